"""A picture of half the size from the same network, which timeline-studio made its preview with: without the last
upsampling.

The last doubling on the way to the picture goes, so that all layers after it run on a quarter of the pixels, with
their own weights. Values from elsewhere that meet them there (maps of factors and offsets, for instance) are resized
to half of what they were. It is another function, not a lowering: it is judged by its pictures.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from ..errors import GraphError
from .lower.editing import Editor
from .lower.nearest import repeats
from .lower.passes import CannotLowerError
from .lower.sink_upsample import BINARY, NORMALISATIONS
from .lower.upsample import UNARY
from .model import attribute, clean, constant, describe, name_of, static_shape
from .quantise.candidates import downstream
from .shapes import infer_node, known_shape

SCALING = UNARY | BINARY | NORMALISATIONS | {"Cast", "Concat", "Conv", "DepthToSpace", "SpaceToDepth", "Tanh", "Where"}
"""Operators whose result has half the sides when their pictures have, and whose attributes state no size of these."""


@dataclass
class Halved:
    """What was done."""

    left_out: str = ""
    """The upsampling that went."""
    resized: list[str] = field(default_factory=list)
    """Upsamplings that go half as far."""
    sides: tuple[int, int] = (0, 0)
    """Height and width of the picture now."""


def half_size(model: ir.Model) -> Halved:
    """Let a graph that makes a picture make one of half the sides; in place.

    Args:
        model: prepared; its picture is the one output of rank 4.

    Raises:
        GraphError: it makes no one picture, or no upsampling can be left out; the message says why.
    """
    pictures = [value for value in model.graph.outputs if len(value.shape or ()) == 4]
    if len(pictures) != 1:
        raise GraphError(f"{name_of(model)} makes {len(pictures)} pictures; half the size is made of one")
    *_, height, width = static_shape(pictures[0])
    reasons = []
    for node in _doublings(model):
        try:
            made = _Halving(node).plan()
        except CannotLowerError as error:
            reasons.append(f"{describe(node)}: {error}")
            continue
        _apply(model, node, made)
        report = Halved(describe(node), [describe(resize) for resize in made], _sides(model))
        if report.sides != (height // 2, width // 2):
            raise GraphError(f"{name_of(model)} without {report.left_out} makes {report.sides}, not half its sides")
        return report
    raise GraphError(
        f"{name_of(model)} has no upsampling that can be left out ({'; '.join(reasons[:3]) or 'it has none'})"
    )


def _doublings(model: ir.Model) -> Iterator[ir.Node]:
    """Upsamplings by two that every later one comes before, the last first."""
    for node in reversed(list(model.graph)):
        if repeats(node) == (2, 2):
            yield node


def _sides(model: ir.Model) -> tuple[int, int]:
    *_, height, width = next(static_shape(value) for value in model.graph.outputs if len(value.shape or ()) == 4)
    return height, width


class _Halving:
    """Which nodes see half the sides once an upsampling is gone."""

    def __init__(self, node: ir.Node) -> None:
        self.node = node
        self.after = downstream([node])
        self.aside: set[ir.Node] = set()
        """Nodes beside the picture's way that have to follow."""
        self.resizes: dict[ir.Node, None] = {}

    def plan(self) -> list[ir.Node]:
        """The upsamplings that have to go half as far.

        Raises:
            CannotLowerError: an operator states a size, or a value is needed at both sizes.
        """
        for node in self.after:
            self._check(node)
            for value in node.inputs:
                if value is not None and value.producer() not in {self.node, *self.after}:
                    self._follow(value)
        for node in (*self.aside, *self.resizes):
            users = {use.node for value in node.outputs for use in value.uses()}
            if users - self.after - self.aside or any(value.is_graph_output() for value in node.outputs):
                raise CannotLowerError(f"{describe(node)} is needed at its own size, too")
        return list(self.resizes)

    def _check(self, node: ir.Node) -> None:
        strides = attribute(node, "strides", [1]) if node.op_type == "Conv" else [1]
        if node.domain or not (node.op_type in SCALING or repeats(node)) or set(strides) != {1}:
            raise CannotLowerError(f"{describe(node)} may not keep to half the sides")

    def _follow(self, value: ir.Value) -> None:
        """A value from elsewhere: constants and numbers for each channel stay, pictures are traced to their Resize."""
        shape, maker = known_shape(value), value.producer()
        if shape is None:
            raise CannotLowerError(f"the shape of {value.name} is not known")
        if len(shape) < 2 or set(shape[-2:]) == {1} or (constant(value) is not None and _is_weight(value)):
            return
        if maker is None:
            raise CannotLowerError(f"{value.name} comes in at its own size")
        if maker in self.aside or maker in self.resizes:
            return
        factors = repeats(maker)
        if factors is not None and all(factor > 1 and factor % 2 == 0 for factor in factors):
            self.resizes[maker] = None
            return
        self._check(maker)
        self.aside.add(maker)
        for source in maker.inputs:
            if source is not None:
                self._follow(source)


def _is_weight(value: ir.Value) -> bool:
    """Whether a constant is a parameter of each node that reads it, not a picture."""
    return all(use.idx > 0 and use.node.op_type in {"Conv", "PRelu", *NORMALISATIONS} for use in value.uses())


def _apply(model: ir.Model, node: ir.Node, resizes: list[ir.Node]) -> None:
    for resize in resizes:
        source, *_ = resize.inputs
        assert source is not None
        sides = [side // 2 for side in static_shape(resize.outputs[0])[2:]]
        editor = Editor(model, before=resize)
        if list(static_shape(source)[2:]) == sides:
            editor.replace([source])
            continue
        *batch, _, _ = static_shape(source)
        kept = {name: held.value for name, held in resize.attributes.items() if name != "axes"}
        sizes = editor.const(np.asarray([*batch, *sides], np.int64))
        editor.replace([editor.op("Resize", source, None, None, sizes, **kept)])
    source = node.inputs[0]
    assert source is not None
    Editor(model, before=node).replace([source])
    for each in model.graph:
        infer_node(each, dict(model.opset_imports))
    clean(model)
