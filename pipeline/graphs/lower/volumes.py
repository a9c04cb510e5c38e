"""Volumes [N, C, D, H, W] with depth as the batch axis, and windows that slide over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from ..model import attribute
from .packing import Groups, Packed
from .passes import CannotLowerError
from .rank import Walk

DEPTH_BATCH: Groups = ((0, 2), (1,), (3,), (4,))
"""[N·D, C, H, W]: each slice a picture of its own."""

DEPTH_ALONE: Groups = ((0,), (2,), (1,), (3, 4))
"""[N, D, C, H·W], the same data as `DEPTH_BATCH`, with the depth an axis that can be cut and padded."""

DEPTH_SPATIAL: Groups = ((0, 1), (), (2,), (3, 4))
"""[N·C, 1, D, H·W]: depth as the height of a picture."""


@dataclass(frozen=True)
class Window:
    """A sliding window over D, H, W: each a triple, `pads` before and after each axis."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def depth_only_one(self) -> bool:
        """Whether every output slice depends on the input slice at its own depth alone."""
        return (self.kernel[0], self.strides[0], self.before[0], self.after[0]) == (1, 1, 0, 0)

    def flat(self) -> dict[str, Any]:
        """Attributes of the same window over H and W."""
        return {
            "kernel_shape": list(self.kernel[1:]),
            "strides": list(self.strides[1:]),
            "dilations": list(self.dilations[1:]),
            "pads": [*self.before[1:], *self.after[1:]],
        }

    def deep(self) -> dict[str, Any]:
        """Attributes of the same window over D alone, in `DEPTH_SPATIAL`."""
        return {
            "kernel_shape": [self.kernel[0], 1],
            "strides": [self.strides[0], 1],
            "dilations": [self.dilations[0], 1],
            "pads": [self.before[0], 0, self.after[0], 0],
        }


def window(node: ir.Node, kernel: Sequence[int], lengths: Sequence[int]) -> Window:
    """A node's window over an input of `lengths`, automatic padding worked out.

    Raises:
        CannotLowerError: padding of an unknown kind.
    """
    ones = [1] * len(kernel)
    strides = [int(n) for n in attribute(node, "strides", ones)]
    dilations = [int(n) for n in attribute(node, "dilations", ones)]
    pads = [int(n) for n in attribute(node, "pads", [0] * 2 * len(kernel))]
    before, after = pads[: len(kernel)], pads[len(kernel) :]
    auto = str(attribute(node, "auto_pad", "NOTSET"))
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        for axis, (length, size) in enumerate(zip(lengths, kernel, strict=True)):
            steps = -(-length // strides[axis])
            total = max(0, (steps - 1) * strides[axis] + (size - 1) * dilations[axis] + 1 - length)
            small = total // 2
            before[axis], after[axis] = (small, total - small) if auto == "SAME_UPPER" else (total - small, small)
    elif auto == "VALID":
        before, after = [0] * len(kernel), [0] * len(kernel)
    elif auto != "NOTSET":
        raise CannotLowerError(f"padding {auto} is not known")
    return Window(tuple(kernel), tuple(strides), tuple(dilations), tuple(before), tuple(after))


def volume(walk: Walk, value: ir.Value | None) -> Packed:
    """An input that is a volume.

    Raises:
        CannotLowerError: it has another rank than 5.
    """
    packed = walk.get(value)
    if len(packed.shape) != 5:
        raise CannotLowerError(f"rank {len(packed.shape)} instead of 5")
    return packed
