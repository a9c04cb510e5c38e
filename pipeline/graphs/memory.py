"""How much memory ONNX Runtime takes for a model on the CPU, predicted from the graph."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx_ir as ir

from . import bfc
from .allocation import Allocation, allocate
from .arena import Buffer, by_time, lower_bound
from .optimised import NCHWC, optimised
from .prediction import RUNTIME, Prediction
from .shapes import known_shape

SEGMENT = 64 << 10
"""Bytes of a thread's buffer for a convolution that unfolds its input in segments (128 x 128 floats, MLAS)."""


@dataclass(frozen=True)
class MemoryOptions:
    """Settings of a session that decide its memory."""

    threads: int = 1
    pattern: bool = True
    """From the second run on, all values in one planned block, besides what the first run left in the arena."""
    arena: bool = True
    """Keep freed buffers in an arena; without it they go back to the system after each run."""
    reuse: bool = True
    """Let a value take a freed buffer of its shape."""


def session_options(options: MemoryOptions) -> Any:
    """onnxruntime.SessionOptions with these settings."""
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = options.threads
    settings.inter_op_num_threads = 1
    settings.log_severity_level = 3
    settings.enable_mem_pattern = options.pattern
    settings.enable_cpu_mem_arena = options.arena
    settings.enable_mem_reuse = options.reuse
    settings.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return settings


def peak_memory(
    path: str | Path, options: MemoryOptions | None = None, maximum: Mapping[str, int] | None = None
) -> Prediction:
    """Predict the memory of a session of the CPU provider.

    The plan is made on the graph that ONNX Runtime makes of the file on this machine, as it fuses nodes and computes
    convolutions in a blocked layout between copies. Arrays given as inputs belong to the caller and do not count.

    Args:
        path: the .onnx file.
        options: settings of the session.
        maximum: greatest length of each named dimension of the inputs.

    Raises:
        GraphError: the file does not load, or a shape is not known.
    """
    options = options or MemoryOptions()
    model = optimised(path, maximum)
    blocked = [node.inputs[1] for node in model.graph if node.domain == NCHWC and node.op_type == "Conv"]
    workspace = max((_workspace(node, options.threads) for node in model.graph), default=0)
    return Prediction(
        weights=sum(_constant_bytes(value) for value in model.graph.initializers.values()),
        loading=sum(_constant_bytes(value) for value in set(blocked) if value is not None),
        activations=_activations(allocate(model, reuse=options.reuse), options),
        workspace=workspace,
        runtime=RUNTIME,
    )


def _activations(buffers: Allocation, options: MemoryOptions) -> int:
    every = [*buffers.inner, *buffers.outputs]
    last = max((buffer.last for buffer in every), default=0)
    block = Buffer("planned block", by_time(buffers.inner).peak, 0, last)
    planned = [block, *buffers.outputs] if options.pattern and block.size else every
    if not options.arena:
        return max(lower_bound(every), lower_bound(planned))
    arena = bfc.Arena()
    for run in (every, planned, planned):  # the first run allocates value by value, to learn the plan
        bfc.run(arena, run)
    return arena.touched


def _constant_bytes(value: ir.Value) -> int:
    return 0 if value.const_value is None else value.const_value.nbytes


SAMPLE_PLAN = 56
"""Bytes a point of what a bilinear GridSample with zeros around keeps of its four neighbours (ONNX Runtime 1.32,
measured: tests/pipeline/graphs/test_memory.py)."""


def _workspace(node: ir.Node, threads: int) -> int:
    """Scratch of a kernel while it runs, outside of the arena."""
    if node.op_type == "GridSample":
        return _sample_plan(node)
    if node.domain != NCHWC and node.op_type in ("Conv", "FusedConv"):
        return _unfolded(node, threads)
    return 0


def _sample_plan(node: ir.Node) -> int:
    made = known_shape(node.outputs[0])
    mode, around = node.attributes.get_string("mode", "linear"), node.attributes.get_string("padding_mode", "zeros")
    if made is None or len(made) != 4 or mode not in ("linear", "bilinear") or around != "zeros":
        return 0
    return SAMPLE_PLAN * math.prod(made[2:])


def _unfolded(node: ir.Node, threads: int) -> int:
    """Of a convolution that is not blocked (MlasConvPrepare): the whole unfolded input, or a piece a thread."""
    if node.inputs[1] is None:
        return 0
    weight, made = known_shape(node.inputs[1]), known_shape(node.outputs[0])
    if weight is None or made is None:
        return 0
    filters, positions = weight[0] // node.attributes.get_int("group", 1), math.prod(made[2:])
    return 4 * math.prod(weight[1:]) * positions if filters > positions else threads * SEGMENT
