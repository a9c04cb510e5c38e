"""What is faster on ONNX Runtime's CPU provider, in order, for a graph whose 5-D GridSample nodes are lowered."""

from __future__ import annotations

from . import drop_shift, few_outputs, fold_bias, overlap_save, pad_channels, sink_upsample, upsample, winograd
from .conv3d import by_cost
from .conv3d_cpu import cpu_form
from .passes import Pass
from .rank4 import rank4_pass

CPU_PASSES: tuple[Pass, ...] = (
    fold_bias.PASS,  # every pass over memory counts
    drop_shift.PASS,
    rank4_pass(cpu_form, by_cost),
    sink_upsample.PASS,  # before folding: what stands between an upsampling and a convolution goes above it
    upsample.PASS,
)
"""Everything above rank 4, and fewer operations where the graph allows it; convolutions of pictures stay such."""

CPU_FINISH: tuple[Pass, ...] = (
    few_outputs.PASS,
    winograd.PASS,
    overlap_save.PASS,
    pad_channels.PASS,  # last: only convolutions that are still direct gain by it
)
"""Faster forms of the convolutions that are left. After quantisation, which needs them as they are."""
