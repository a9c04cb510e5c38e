"""Lowering with proof: lower, save, compare what was saved, time it, and write the evidence."""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence
from pathlib import Path

import onnx_ir as ir

from ..errors import GraphError, ProofError
from .audit import audit
from .compare import ORDERS, Known, compare
from .evidence import Bounds, Evidence, GraphFile
from .feeds import Feeds, signature
from .lower.passes import Outcome
from .lower.presets import PRESETS, lower
from .model import load, prepare, save
from .runner import DEFAULT_RUN, Runner, RunOptions
from .schemes import DEFAULT_INPUTS, Inputs
from .timing import alternate

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
    boundary: bool = False,
    inputs: Inputs = DEFAULT_INPUTS,
    layers: bool = False,
    options: RunOptions = DEFAULT_RUN,
    bound: float = BOUND,
    faster: float | None = None,
    runs: int = 5,
    orders: int = ORDERS,
    rewriting: bool = True,
    known: Known | None = None,
) -> Evidence:
    """Lower a graph file and show that the result is the same function.

    Writes the graph (`output`, or `<source>.<preset>.onnx` beside the source), and the evidence beside it, also
    when a bound is broken.

    Args:
        source: the .onnx file; the same for `preset`, `dims`, `batch`, `batched`, `boundary` as of `lower`.
        inputs, layers, orders, rewriting, known: as of `compare`.
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
    lowered = lower(load(source), preset, dims=dims, batch=batch, batched=batched, boundary=boundary)
    save(lowered.model, output)
    passes = lowered.outcomes
    del lowered
    gc.collect()  # its weights, before sessions come: the parts of a graph hold each other
    evidence = witness(
        source,
        output,
        preset,
        Bounds(bound, faster=faster),
        passes=passes,
        dims=dims,
        batch=batch,
        batched=batched,
        inputs=inputs,
        layers=layers,
        options=options,
        runs=runs,
        orders=orders,
        rewriting=rewriting,
        known=known,
    )
    evidence.broken[:0] = _remaining(preset, load(output))
    return settle(evidence, output)


def witness(
    source: Path,
    output: Path,
    what: str,
    bounds: Bounds,
    *,
    passes: Mapping[str, Outcome] | None = None,
    dims: Mapping[str, int] | None = None,
    batch: int = 1,
    batched: Sequence[str] = (),
    inputs: Inputs = DEFAULT_INPUTS,
    layers: bool = False,
    options: RunOptions = DEFAULT_RUN,
    timed: RunOptions | None = None,
    emulation: Path | None = None,
    runs: int = 5,
    orders: int = ORDERS,
    rewriting: bool = True,
    known: Known | None = None,
) -> Evidence:
    """Compare a graph file with the one it was made from, and time both; nothing is written. Arguments as of `prove`.

    Args:
        what: what was done, `passes` step by step.
        timed: how both are run for their speed (None: by `options`, too).
        emulation: a graph that is compared in the result's place, as its precision needs another machine.

    Raises:
        GraphError: a graph cannot be read, or the two do not fit. ModelError: one does not run.
    """
    original = prepare(load(source), dims)
    audits, ports = (audit(original), audit(load(output))), signature(original)
    comparison = compare(
        source,
        emulation or output,
        dims=dims,
        inputs=inputs,
        layers=layers,
        options=options,
        orders=orders,
        rewriting=rewriting,
        source=original,
        known=known,
    )
    del original
    gc.collect()  # before two sessions come
    evidence = Evidence(
        preset=what,
        before=GraphFile.read(source),
        after=GraphFile.read(output),
        audits=audits,
        passes=dict(passes or {}),
        comparison=comparison,
        bounds=bounds,
        options=timed or options,
        batch=batch,
    )
    if runs:
        _, feeds = inputs.make(ports, frames=batch, batched=set(batched))
        before, after = (Runner(path, evidence.options) for path in (source, output))
        evidence.speed = alternate(before, after, _usual(feeds), runs=runs)
    evidence.broken = bounds.broken(comparison, evidence.speed)
    return evidence


def settle(evidence: Evidence, output: Path) -> Evidence:
    """Write the evidence beside the graph.

    Raises:
        ProofError: a bound is broken.
    """
    place, _ = evidence.write(output)
    if evidence.broken:
        raise ProofError(f"{output} is not proven: {'; '.join(evidence.broken)} (see {place})")
    return evidence


def _remaining(preset: str, saved: ir.Model) -> list[str]:
    remaining = PRESETS[preset].remaining(prepare(saved))
    return [f"{preset} would leave nothing, but there are {', '.join(remaining[:3])}"] if remaining else []


def _usual(feeds: Mapping[str, list[Feeds]]) -> list[Feeds]:
    """The kind to take times on: the middle one, as the extremes may be faster (zeros) or slower (subnormals)."""
    return list(feeds.values())[(len(feeds) - 1) // 2]
