"""Stacks of residual blocks as graph nodes; training/networks.py has the same in torch."""

from __future__ import annotations

from .architecture import NORM_EPSILON, Stack
from .weights import Weights
from .writer import Value


def silu(x: Value) -> Value:
    """x * sigmoid(x) (Elfwing et al., 2018)."""
    return x * x.op("Sigmoid")


def residual_blocks(x: Value, weights: Weights, stack: Stack, condition: Value | None = None) -> Value:
    """x [B, C, T] -> [B, C, T]; condition [B, n] for a stack that is modulated."""
    for i, dilation in enumerate(stack.dilations):
        name = f"body.blocks.{i}"
        axes = (1, 2) if stack.whole else (1,)
        centred = x - x.mean(*axes, keep=True)
        spread = (centred * centred).mean(*axes, keep=True) + NORM_EPSILON
        y = centred / spread.sqrt() * weights[f"{name}.weight"] + weights[f"{name}.bias"]
        if condition is not None:
            change = weights.linear(condition, f"{name}.modulation").unsqueeze(2)
            y = y * (1 + change[:, : stack.width]) + change[:, stack.width :]
        deep = silu(weights.conv(y, f"{name}.deep", dilation=dilation, groups=stack.groups))
        wide = weights.conv(deep, f"{name}.wide")
        x = x + wide[:, : stack.width] * wide[:, stack.width :].op("Sigmoid")
    return x
