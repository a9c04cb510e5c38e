"""Weights of 4 bits for the linear layers of a network, of 8 bits or float32 where the result needs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx_ir as ir

from ...errors import GraphError
from ..feeds import Array, Feeds
from ..model import clean, describe, name_of
from .blocks import Blocks, quantise_blocks
from .convs import Quantised
from .linear_layers import Linear, linears, write
from .quality import relative_error
from .report import Part, Report, Variant
from .running import opened, weight_bytes
from .speed import speedup

BLOCK = 128
"""Weights that share a scale."""

FLOAT = 32

FORMS = {4: "4 bits", 8: "8 bits", FLOAT: "float32"}

SHRINKS = {4: 1.0, 8: (15 / 255) ** 2, FLOAT: 0.0}
"""Squared error of a form, in that of 4 bits: as the square of the step."""

Run = Callable[[Feeds], Mapping[str, Array]]
"""One run of a graph: inputs by name to outputs by name."""


def quantise_linears(
    model: ir.Model,
    feeds: Sequence[Feeds],
    *,
    produce: Callable[[Run], Array] | None = None,
    error: float = 0.05,
    block: int = BLOCK,
    timed: bool = False,
    threads: int = 2,
) -> Quantised:
    """A copy of a graph whose linear layers hold few bits (`MatMulNBits` of ONNX Runtime, groups of `block`).

    Each layer is first held in 4 bits alone, and its error seen in what the network is for; squared errors add up,
    so the layers that do most harm for their size get 8 bits, and then float32, until the whole is as good as asked.

    Args:
        model: prepared. Not changed.
        feeds: inputs to judge on.
        produce: what is judged, [..., columns], from runs of a graph: a motion drawn by a sampler, say. None: the
            first output on all `feeds`.
        error: the most root mean squared difference, in standard deviations of each column of the float32 result.
        block: a power of 2 from 16.
        timed: measure the speed of whole graphs, on the first of `feeds`.
        threads: of ONNX Runtime.

    Raises:
        GraphError: no layer gets smaller, or nothing to judge on. ModelError: the graph does not run.
    """
    left: dict[str, str] = {}
    layers = [layer for layer in linears(model, left) if _shrinks(layer, block, left)]
    if not layers:
        raise GraphError(f"{name_of(model)} has no linear layer that would get smaller; see the reasons: {left}")
    if produce is None and not feeds:
        raise GraphError("no inputs to judge on; give some, or a way to produce what is judged")
    work = _Work(model, layers, block, produce or _first_output(feeds), threads)
    alone = [work.error({index: 4}) for index in range(len(layers))]
    bits = _choose(alone, layers, error, work)
    rows = {
        "float32": {},
        "all in 4 bits": dict.fromkeys(range(len(layers)), 4),
        "all in 8 bits": dict.fromkeys(range(len(layers)), 8),
        "chosen": dict(enumerate(bits)),
    }
    report = Report(
        "Linear layers in few bits",
        "what the network makes; root mean squared difference in standard deviations",
        {"block": block, "error": error},
        left=left,
    )
    for layer, found, chosen in zip(layers, alone, bits, strict=True):
        why = "" if chosen == 4 else "harms the result most for its size"
        report.parts.append(Part([describe(layer.node)], int(layer.weight.size), {"4 bits": found}, FORMS[chosen], why))
    for name, form in rows.items():
        graph = work.quantised(form)
        ratio = speedup(model, graph, feeds[0], threads=threads) if timed and feeds and form else None
        report.variants.append(Variant(name, weight_bytes(graph), {"error": work.error(form)}, ratio))
    return Quantised(work.quantised(rows["chosen"]), report)


def _shrinks(layer: Linear, block: int, left: dict[str, str]) -> bool:
    length, outputs = layer.weight.shape
    blocks = -(-length // block)
    small = outputs * (blocks * block // 2 + 5 * blocks) < layer.weight.nbytes
    if not small:
        left[describe(layer.node)] = f"[{length}, {outputs}] is no smaller in blocks of {block}"
    return small


def _first_output(feeds: Sequence[Feeds]) -> Callable[[Run], Array]:
    def produce(run: Run) -> Array:
        found = [next(iter(run(feed).values())) for feed in feeds]
        return np.concatenate([array.reshape(-1, array.shape[-1]) for array in found])

    return produce


def _choose(alone: Sequence[float], layers: Sequence[Linear], error: float, work: _Work) -> list[int]:
    """Bits of each layer: raised where that takes away most squared error for its bytes."""
    squared = [value**2 for value in alone]
    bits = [4] * len(layers)
    budget = error**2
    following = {4: 8, 8: FLOAT}

    def gain(index: int) -> float:
        now, then = bits[index], following[bits[index]]
        return squared[index] * (SHRINKS[now] - SHRINKS[then]) / (layers[index].weight.size * (then - now))

    while any(held in following for held in bits):
        total = sum(value * SHRINKS[held] for value, held in zip(squared, bits, strict=True))
        if total <= budget and work.error(dict(enumerate(bits))) <= error:
            break
        raised = max((index for index, held in enumerate(bits) if held in following), key=gain)
        bits[raised] = following[bits[raised]]
    return bits


class _Work:
    """A graph whose linear layers can be held in any bits."""

    def __init__(
        self,
        model: ir.Model,
        layers: Sequence[Linear],
        block: int,
        produce: Callable[[Run], Array],
        threads: int,
    ) -> None:
        self.model = model
        self.layers = layers
        self.block = block
        self.threads = threads
        self._produce = produce
        self._blocks: dict[tuple[int, int], Blocks] = {}
        self._wanted = self._made(model)

    def quantised(self, bits: Mapping[int, int]) -> ir.Model:
        """A copy with the bits of each layer by its index; layers that are not named stay."""
        model = self.model.clone()
        names = {layer.node.outputs[0].name: index for index, layer in enumerate(self.layers)}
        for layer in linears(model, {}):
            index = names.get(layer.node.outputs[0].name)
            held = FLOAT if index is None else bits.get(index, FLOAT)
            if index is not None and held != FLOAT:
                key = index, held
                if key not in self._blocks:
                    self._blocks[key] = quantise_blocks(layer.weight, held, self.block)
                write(model, layer, self._blocks[key], held, self.block)
        return clean(model)

    def error(self, bits: Mapping[int, int]) -> float:
        """Of the result with these bits."""
        return relative_error(self._made(self.quantised(bits)), self._wanted)

    def _made(self, model: ir.Model) -> Array:
        with opened(model, self.threads) as runner:
            return self._produce(lambda feeds: runner.run(runner.feeds([feeds])))
