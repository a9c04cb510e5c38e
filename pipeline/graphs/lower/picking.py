"""Computing a few elements of a value without the rest of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from ..model import attribute, constant, static_shape
from ..shapes import known_shape
from .dependence import MAX_DEPTH, bounded_shape, is_elementwise, is_movement, move, position_of, sources_of
from .editing import Editor


class Picker:
    """Computes chosen elements of values with an editor, each choice once."""

    def __init__(self, editor: Editor) -> None:
        self.editor = editor
        self._made: dict[tuple[ir.Value, bytes], ir.Value] = {}

    def pick(self, value: ir.Value, elements: np.ndarray, depth: int = 0) -> ir.Value:
        """Some elements of a value, by their flat positions (any shape), as a value of that shape.

        The operators that make the value are applied to these elements alone, in the same order: the same
        rounding, as far as the runtime rounds an operator's elements alike.

        Raises:
            CannotLowerError: a shape is not known, or a value is too large to analyse.
        """
        flat = elements.reshape(-1).astype(np.int64)
        key = (value, flat.tobytes())
        if key not in self._made:
            self._made[key] = self._pick(value, flat, depth)
        return self.editor.reshape(self._made[key], elements.shape)

    def _pick(self, value: ir.Value, elements: np.ndarray, depth: int) -> ir.Value:
        known = constant(value)
        if known is not None:
            return self.editor.const(known.reshape(-1)[elements])
        node = value.producer()
        if node is not None and depth < MAX_DEPTH:
            if is_movement(node):
                return self._moved(node, value, elements, depth)
            if is_elementwise(node):
                return self._elementwise(node, elements, depth)
        size = int(np.prod(bounded_shape(value)))
        return self._reordered(self.editor.reshape(value, [size]), elements)

    def _moved(self, node: ir.Node, value: ir.Value, elements: np.ndarray, depth: int) -> ir.Value:
        sources = sources_of(node)
        shapes = [bounded_shape(source) for source in sources]
        starts = np.cumsum([0, *(int(np.prod(shape)) for shape in shapes)])
        arrays = [np.arange(starts[i], starts[i + 1]).reshape(shape) for i, shape in enumerate(shapes)]
        origins = move(node, arrays)[position_of(value)].reshape(-1)[elements]
        which = np.searchsorted(starts, origins, side="right") - 1
        parts = [self.pick(sources[i], origins[which == i] - starts[i], depth + 1) for i in np.unique(which)]
        if len(parts) == 1:
            return parts[0]
        order = np.argsort(np.argsort(which, kind="stable"), kind="stable")
        return self._reordered(self.editor.op("Concat", *parts, axis=0), order)

    def _elementwise(self, node: ir.Node, elements: np.ndarray, depth: int) -> ir.Value:
        places = np.unravel_index(elements, bounded_shape(node.outputs[0]))
        inputs: list[ir.Value | None] = []
        for source in node.inputs:
            shape = None if source is None else bounded_shape(source)
            if source is None or not shape:
                inputs.append(source)  # absent, or a scalar: the same for every element
                continue
            aligned = places[len(places) - len(shape) :]
            own = [np.zeros_like(place) if size == 1 else place for place, size in zip(aligned, shape, strict=True)]
            flat = np.ravel_multi_index(own, shape)
            inputs.append(self.pick(source, flat[:1] if (flat == flat[0]).all() else flat, depth + 1))
        found = self.editor.op(node.op_type, *inputs, **_attributes(node))
        if known_shape(found) == (len(elements),):
            return found
        return self.editor.op("Expand", self.editor.reshape(found, [1]), self.editor.const([len(elements)]))

    def _reordered(self, flat: ir.Value, order: np.ndarray) -> ir.Value:
        if np.array_equal(order, np.arange(static_shape(flat)[0])):
            return flat
        return self.editor.op("Gather", flat, self.editor.const(order.astype(np.int64)), axis=0)


def _attributes(node: ir.Node) -> dict[str, Any]:
    return {name: attribute(node, name) for name in node.attributes}
