"""Two graphs on the same inputs: how far their outputs lie apart, beside the noise floor.

The floor is what the same mathematics in another order makes of the first graph's outputs, on the same inputs: the
largest difference between it as it is and (a) itself without ONNX Runtime's rewriting, (b) itself with every
long sum permuted (`reorder.reorder_sums`), for several seeds. Where runs are dear, one of these will do.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import replace
from pathlib import Path

import onnx_ir as ir

from ..errors import GraphError
from .comparison import Compared, Comparison, Table
from .differences import Error, difference, largest, magnitude_of, span_of
from .feeds import Array, Feeds, signature
from .layers import batches, expose, shared_values
from .model import load, prepare, save
from .reorder import reorder_sums
from .runner import DEFAULT_RUN, Runner, RunOptions
from .schemes import DEFAULT_INPUTS, Inputs

ORDERS = 3
"""Permutations of the sums."""

Outputs = dict[str, dict[str, Array]]
"""By kind and name."""

Known = MutableMapping[Path, Outputs]
"""What graphs gave on one set of inputs with one set of options: where each graph of a chain is compared with the one
before, it need not run for both comparisons."""


def compare(
    first: Path,
    second: Path,
    *,
    dims: Mapping[str, int] | None = None,
    inputs: Inputs = DEFAULT_INPUTS,
    layers: bool = False,
    options: RunOptions = DEFAULT_RUN,
    second_options: RunOptions | None = None,
    orders: int = ORDERS,
    rewriting: bool = True,
    source: ir.Model | None = None,
    known: Known | None = None,
) -> Comparison:
    """Run both graphs, and the first in other orders, on the same inputs.

    Args:
        first: the reference. Where the second takes several frames in one run, it is run once a frame.
        second: with the first's inputs and outputs by name; shapes may be merged as `lower` merges them.
        dims: lengths of the first's named dimensions.
        layers: also compare the values that both hold under one name and of one size.
        options, second_options: how each is run (the second: like the first).
        orders: permutations of the sums that the floor is measured with.
        rewriting: whether the floor is also measured without ONNX Runtime's rewriting.
        source: the first, prepared, where that is at hand.
        known: the first's outputs are taken from here; the second's are added where it is run by `options`.

    Raises:
        GraphError: a graph that cannot be read, or inputs or outputs that do not fit. ModelError: one does not run.
    """
    source = prepare(load(first), dims) if source is None else source
    known = {} if known is None else known
    ports = signature(source)
    candidate = Runner(second, second_options or options)
    frames, batched = candidate.batched(ports)
    scheme, feeds = inputs.make(ports, frames=frames, batched=batched)
    made = Comparison(scheme, inputs.seed, frames, orders, rewriting)
    names = _same_outputs(first, [str(value.name) for value in source.graph.outputs], candidate)
    # One session at a time, as each may take gigabytes.
    found = _run(candidate, feeds, names)
    del candidate
    if second_options in (None, options):
        known[second] = found
    if first not in known:
        known[first] = _run(Runner(first, options), feeds, names)
    others = [_run(Runner(first, replace(options, optimise=False)), feeds, names)] if rewriting else []
    with tempfile.TemporaryDirectory(prefix="talkreel-") as folder:
        other_orders = [_reordered(source, seed, Path(folder)) for seed in range(1, orders + 1)]
        others += [_run(Runner(path, options), feeds, names) for path in other_orders]
        made.outputs = _table(known[first], found, others)
        if layers:
            made.layers = _layers(source, second, other_orders, feeds, options, second_options, Path(folder))
    return made


def _same_outputs(path: Path, names: list[str], second: Runner) -> list[str]:
    if set(names) != set(second.names):
        raise GraphError(
            f"{path} has the outputs {', '.join(names)}, {second.path} {', '.join(second.names)}; "
            "compare graphs with the same outputs"
        )
    return names


def _reordered(source: ir.Model, seed: int, folder: Path) -> Path:
    model = source.clone()
    reorder_sums(model, seed)
    path = folder / f"order_{seed}.onnx"
    save(model, path)
    return path


def _run(runner: Runner, feeds: Mapping[str, Sequence[Feeds]], names: Sequence[str]) -> Outputs:
    return {kind: runner.run_frames(rows, names) for kind, rows in feeds.items()}


def _table(wanted: Outputs, found: Outputs, others: Sequence[Outputs]) -> Table:
    errors = _errors(found, wanted)
    floors = [_errors(other, wanted) for other in others]
    return {
        kind: {
            name: Compared(error, largest([floor[kind][name] for floor in floors]), magnitude_of(wanted[kind][name]))
            for name, error in row.items()
        }
        for kind, row in errors.items()
    }


def _errors(found: Outputs, wanted: Outputs) -> dict[str, dict[str, Error]]:
    made: dict[str, dict[str, Error]] = {}
    for kind, row in wanted.items():
        made[kind] = {}
        for name, reference in row.items():
            array = found[kind][name]
            once = reference[: len(array)]  # an output that does not depend on the frames is made once
            if array.shape == once.shape != reference.shape and (reference == once[:1]).all():
                reference = once
            if array.size != reference.size:
                raise GraphError(f"the output {name} has shape {array.shape} instead of {reference.shape}")
            made[kind][name] = difference(array, reference, span_of(reference))
    return made


def _layers(
    source: ir.Model,
    second: Path,
    other_orders: Sequence[Path],
    feeds: Mapping[str, Sequence[Feeds]],
    options: RunOptions,
    second_options: RunOptions | None,
    folder: Path,
) -> Table:
    """All values that both graphs hold, a few at a time, so that what is kept stays small."""
    lowered = load(second)
    shared = shared_values(source, lowered)
    models = {"first": source, "second": lowered} | {path.stem: load(path) for path in other_orders}
    runners = {}
    for name, model in models.items():
        path = folder / f"{name}_layers.onnx"
        save(expose(model, [value for value, _ in shared]), path)
        runners[name] = Runner(path, (second_options or options) if name == "second" else options)
    made: Table = {kind: {} for kind in feeds}
    for names in batches(shared):
        wanted, found, *others = (_run(runner, feeds, names) for runner in runners.values())
        for kind, row in _table(wanted, found, others).items():
            made[kind].update(row)
    return made
