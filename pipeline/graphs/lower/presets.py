"""Presets: which passes, in which order, for which target; and what must hold afterwards."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from ...errors import GraphError
from ..model import describe, name_of, prepare
from . import channels_by_four, cuda, deformation, heat_maps, integers, pooling, rank4, separable_grid, spelled, windows
from .batching import batch_pass
from .boundary import only_reshaped, restore_boundary
from .cpu import CPU_FINISH, CPU_PASSES
from .grid_sample import grid_sample
from .operator_set import operator_set_pass
from .packing import MAX_RANK
from .passes import Outcome, Pass, run_passes
from .sampling import is_volumetric
from .unrolling import unroll_pass

WEB_OPERATOR_SET = 19
"""onnxruntime-web's WebGPU provider has kernels of GridSample up to this operator set."""

WEB_FIRST: tuple[Pass, ...] = (windows.PASS, integers.PASS, spelled.PASS)
"""No 64-bit integers and no operators without a kernel on WebGPU; while bounds of places can still be read."""

WEB_LAST: tuple[Pass, ...] = (operator_set_pass(WEB_OPERATOR_SET), channels_by_four.PASS)
"""The operator set of WebGPU's kernels, and no convolution that its provider gets wrong; once all others are made."""


@dataclass(frozen=True)
class Preset:
    """A target's passes. `remaining` names what the target still could not run.

    `finish`: passes that come last, after quantisation where there is any: they replace the convolutions that it
    needs to see. `unroll`: several frames in one run come one after another, not as a batch axis.
    """

    name: str
    what: str
    passes: tuple[Pass, ...]
    remaining: Callable[[ir.Model], Sequence[str]]
    finish: tuple[Pass, ...] = ()
    unroll: bool = False


def volumetric(model: ir.Model) -> list[str]:
    """GridSample and pooling nodes of volumes that are left."""
    pools = [node for node in model.graph if node.op_type in pooling.RULES and len(node.outputs[0].shape or ()) == 5]
    return [describe(node) for node in (*filter(is_volumetric, model.graph), *pools)]


def above_rank4(model: ir.Model) -> list[str]:
    """Values above rank 4, or of unknown rank, that are left, the boundary and constants included."""
    values = [*model.graph.inputs, *(value for node in model.graph for value in node.outputs)]
    values += [value for value in model.graph.initializers.values() if value.uses()]
    return [str(value.name) for value in values if value.shape is None or len(value.shape) > MAX_RANK]


def above_rank4_inside(model: ir.Model) -> list[str]:
    """The same, but for inputs and outputs that are only there in another shape."""
    values = (*model.graph.inputs, *model.graph.outputs)
    boundary = {str(value.name) for value in values if only_reshaped(value)}
    return [name for name in above_rank4(model) if name not in boundary]


PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset(
            "gridsample",
            "only what WebGPU lacks goes: GridSample and pooling of volumes, integers that depend on data, Min, Round",
            (*WEB_FIRST, separable_grid.PASS, grid_sample("slices"), pooling.PASS, *WEB_LAST),
            volumetric,
        ),
        Preset(
            "rank4",
            "nothing above rank 4, the graph's inputs and outputs included",
            (*WEB_FIRST, separable_grid.PASS, grid_sample("slices"), rank4.PASS, *WEB_LAST),
            above_rank4,
        ),
        Preset(
            "cpu",
            "rank4, and what is faster on ONNX Runtime's CPU provider",
            (separable_grid.PASS, deformation.PASS, heat_maps.PASS, grid_sample("gather"), *CPU_PASSES),
            above_rank4_inside,
            CPU_FINISH,
            unroll=True,
        ),
        Preset(
            "cuda",
            "what is fastest on ONNX Runtime's CUDA provider; convolutions and sampling of volumes stay",
            cuda.PASSES,
            lambda model: (),
        ),
    )
}


def _keep_their_shapes(model: ir.Model, batched: Sequence[str]) -> bool:
    """Whether what has a frame axis is of a rank that lowering does not change."""
    values = [value for value in model.graph.inputs if value.name in batched]
    return all(len(value.shape or ()) <= MAX_RANK for value in (*values, *model.graph.outputs))


@dataclass(frozen=True)
class Lowered:
    """A lowered graph, and what each pass did, by the pass's name."""

    model: ir.Model
    outcomes: dict[str, Outcome]


def lower(
    model: ir.Model,
    preset: str,
    *,
    dims: Mapping[str, int] | None = None,
    batch: int = 1,
    batched: Sequence[str] = (),
    finish: bool = True,
    boundary: bool = False,
) -> Lowered:
    """Rewrite a graph for a target; the model is changed in place.

    Args:
        model: as `load` gives it.
        preset: a name in `PRESETS`.
        dims: lengths of named dimensions.
        batch: frames in one run.
        batched: the inputs that have as many frames, joined to their first axis.
        finish: whether the preset's last passes are run, too.
        boundary: inputs and outputs keep their shapes, with a Reshape beside each that the passes gave another.

    Raises:
        GraphError: no such preset, a graph that `prepare` refuses, or something is left that the target lacks.
    """
    if preset not in PRESETS:
        raise GraphError(f"there is no preset {preset!r}; choose one of {', '.join(PRESETS)}")
    chosen = PRESETS[preset]
    passes = (*chosen.passes, *chosen.finish) if finish else chosen.passes
    model = prepare(model, dims)
    if batch > 1:
        unroll = chosen.unroll and _keep_their_shapes(model, batched)
        passes = (*passes, unroll_pass(batch, batched)) if unroll else (batch_pass(batch, batched), *passes)
    outcomes = run_passes(model, passes)
    if remaining := chosen.remaining(model):
        reasons = {f"{node}: {why}" for outcome in outcomes.values() for node, why in outcome.left.items()}
        raise GraphError(
            f"{name_of(model)} cannot be lowered by {preset}: {', '.join(remaining[:3])} would stay"
            f"{' and others' if len(remaining) > 3 else ''} ({'; '.join(sorted(reasons)[:3]) or 'no reason known'})"
        )
    if boundary:
        restore_boundary(model)
    return Lowered(model, outcomes)
