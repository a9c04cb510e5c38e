"""Lowering with proof: lower, save, compare what was saved, time it, and write the evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import onnx_ir as ir

from ..errors import GraphError, ProofError
from .audit import audit
from .compare import ORDERS, compare
from .comparison import over
from .evidence import Evidence, GraphFile
from .feeds import Feeds, signature
from .lower.presets import PRESETS, lower
from .model import load, prepare, save
from .runner import DEFAULT_RUN, Runner, RunOptions
from .schemes import DEFAULT_INPUTS, Inputs
from .timing import Speed, alternate

BOUND = 2.0
"""Greatest error in noise floors."""


def prove(
    source: Path,
    preset: str,
    output: Path | None = None,
    *,
    dims: Mapping[str, int] | None = None,
    batch: int = 1,
    batched: Sequence[str] = (),
    inputs: Inputs = DEFAULT_INPUTS,
    layers: bool = False,
    options: RunOptions = DEFAULT_RUN,
    bound: float = BOUND,
    faster: float | None = None,
    runs: int = 5,
    orders: int = ORDERS,
) -> Evidence:
    """Lower a graph file and show that the result is the same function.

    Writes the graph (`output`, or `<source>.<preset>.onnx` beside the source), and the evidence beside it, also
    when a bound is broken.

    Args:
        source: the .onnx file; the same for `preset`, `dims`, `batch`, `batched` as of `lower`.
        inputs, layers, orders: as of `compare`.
        options: how both are run.
        bound: greatest error of an output, in noise floors.
        faster: how many times as fast the result must be, a frame.
        runs: alternating pairs of runs that are timed; 0 for none.

    Raises:
        GraphError: the graph cannot be read or lowered.
        ProofError: a bound is broken; the message says which and where the evidence is.
    """
    output = output or source.with_name(f"{source.stem}.{preset}.onnx")
    if output.resolve() == source.resolve():
        raise GraphError(f"{output} would replace its source; give it another name")
    if faster is not None and runs < 1:
        raise GraphError("a bound on the speed needs timed runs; give 1 or more")
    lowered = lower(load(source), preset, dims=dims, batch=batch, batched=batched)
    save(lowered.model, output)
    saved = load(output)
    original = prepare(load(source), dims)
    comparison = compare(source, output, dims=dims, inputs=inputs, layers=layers, options=options, orders=orders)
    evidence = Evidence(
        preset=preset,
        before=GraphFile.read(source),
        after=GraphFile.read(output),
        audits=(audit(original), audit(saved)),
        passes=lowered.outcomes,
        comparison=comparison,
        bound=bound,
        options=options,
        batch=batch,
    )
    if runs:
        _, feeds = inputs.make(signature(original), frames=batch, batched=set(batched))
        evidence.speed = alternate(Runner(source, options), Runner(output, options), _usual(feeds), runs=runs)
    evidence.broken = [*_remaining(preset, saved), *over(comparison, bound), *_slow(evidence.speed, faster)]
    place, _ = evidence.write(output)
    if evidence.broken:
        raise ProofError(f"{output} is not proven: {'; '.join(evidence.broken)} (see {place})")
    return evidence


def _remaining(preset: str, saved: ir.Model) -> list[str]:
    remaining = PRESETS[preset].remaining(prepare(saved))
    return [f"{preset} would leave nothing, but there are {', '.join(remaining[:3])}"] if remaining else []


def _slow(speed: Speed | None, faster: float | None) -> list[str]:
    if speed is None or faster is None or speed.ratio >= faster:
        return []
    return [f"it is {speed.ratio:.2f} times as fast, less than {faster:g}"]


def _usual(feeds: Mapping[str, list[Feeds]]) -> list[Feeds]:
    """The kind to take times on: the middle one, as the extremes may be faster (zeros) or slower (subnormals)."""
    return list(feeds.values())[(len(feeds) - 1) // 2]
