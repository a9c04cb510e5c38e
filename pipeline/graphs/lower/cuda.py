"""What is fastest on ONNX Runtime's CUDA provider, in order; measured on an H200 with prefer_nhwc and a CUDA graph.

Convolutions of volumes stay as they are: cuDNN computes them as fast as their rank-4 forms, and those add padding
and slices (13 to 16 ms for a whole frame). What pays is to compute nothing on whole grids that factors an axis
can say, few and wide convolutions, no biases that a normalisation takes away again, and full tiles. What does not:
nearest upsampling folded into its convolutions (+0.2 ms), biases as a channel of ones (+0.3 ms: with 136 channels
instead of 128 slower kernels are chosen), mixtures of grids as a matrix product (no change).
"""

from __future__ import annotations

from . import drop_shift, fold_bias, heat_maps, merge_siblings, separable_grid, sink_upsample, tap_shares
from .passes import Pass

PASSES: tuple[Pass, ...] = (
    heat_maps.PASS,
    separable_grid.PASS,
    sink_upsample.PASS,
    fold_bias.PASS,
    drop_shift.PASS,
    tap_shares.PASS,
    merge_siblings.PASS,
)
