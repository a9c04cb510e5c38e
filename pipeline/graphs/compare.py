"""Two graphs on the same inputs: how far their outputs lie apart, beside the noise floor.

The floor is what the same mathematics in another order makes of the first graph's outputs, on the same inputs: the
largest difference between it as it is and (a) itself without ONNX Runtime's rewriting, (b) itself with every
long sum permuted (`reorder.reorder_sums`), for several seeds.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
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
) -> Comparison:
    """Run both graphs, and the first in other orders, on the same inputs.

    Args:
        first: the reference. Where the second takes several frames in one run, it is run once a frame.
        second: with the first's inputs and outputs by name; shapes may be merged as `lower` merges them.
        dims: lengths of the first's named dimensions.
        layers: also compare the values that both hold under one name and of one size.
        options, second_options: how each is run (the second: like the first).
        orders: permutations of the sums that the floor is measured with.

    Raises:
        GraphError: a graph that cannot be read, or inputs or outputs that do not fit. ModelError: one does not run.
    """
    source = prepare(load(first), dims)
    ports = signature(source)
    candidate = Runner(second, second_options or options)
    frames, batched = candidate.batched(ports)
    scheme, feeds = inputs.make(ports, frames=frames, batched=batched)
    made = Comparison(scheme, inputs.seed, frames, orders)
    plain = RunOptions(options.threads, optimise=False, provider=options.provider, settings=options.settings)
    with tempfile.TemporaryDirectory(prefix="talkreel-") as folder:
        other_orders = [_reordered(source, seed, Path(folder)) for seed in range(1, orders + 1)]
        runners = [
            lambda: Runner(first, plain),
            *(lambda path=path: Runner(path, options) for path in other_orders),
        ]
        names = _same_outputs(Runner(first, options), candidate)
        made.outputs = _table(lambda: Runner(first, options), lambda: candidate, runners, feeds, names)
        if layers:
            del runners, candidate
            made.layers = _layers(source, second, other_orders, feeds, options, second_options, Path(folder))
    return made


def _same_outputs(first: Runner, second: Runner) -> list[str]:
    if set(first.names) != set(second.names):
        raise GraphError(
            f"{first.path} has the outputs {', '.join(first.names)}, {second.path} {', '.join(second.names)}; "
            "compare graphs with the same outputs"
        )
    return first.names


def _reordered(source: ir.Model, seed: int, folder: Path) -> Path:
    model = source.clone()
    reorder_sums(model, seed)
    path = folder / f"order_{seed}.onnx"
    save(model, path)
    return path


def _run(runner: Runner, feeds: Mapping[str, Sequence[Feeds]], names: Sequence[str]) -> Outputs:
    return {kind: runner.run_frames(rows, names) for kind, rows in feeds.items()}


def _table(
    reference: Callable[[], Runner],
    candidate: Callable[[], Runner],
    others: Sequence[Callable[[], Runner]],
    feeds: Mapping[str, Sequence[Feeds]],
    names: Sequence[str],
) -> Table:
    """One session at a time, as each may take gigabytes."""
    wanted = _run(reference(), feeds, names)
    errors = _errors(_run(candidate(), feeds, names), wanted)
    floors = [_errors(_run(other(), feeds, names), wanted) for other in others]
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
    first, candidate = runners.pop("first"), runners.pop("second")
    others = [lambda runner=runner: runner for runner in runners.values()]
    made: Table = {kind: {} for kind in feeds}
    for names in batches(shared):
        found = _table(lambda: first, lambda: candidate, others, feeds, names)
        for kind, row in found.items():
            made[kind].update(row)
    return made
