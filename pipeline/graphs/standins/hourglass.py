"""The hourglass that reads the candidate motions: five levels down, five up, with skips."""

from __future__ import annotations

from .spec import HOURGLASS_LEVELS
from .weights import RELU
from .writer import GraphWriter

KERNEL = (3, 3, 3)
# Averaging four neighbours takes from their variance; the next convolution gives it back.
POOLED = 1.3 * RELU
# Heat maps are zero nearly everywhere, so the input has a small spread.
FIRST = 2.5


def hourglass(writer: GraphWriter, x: str, channels: int, base: int) -> str:
    """Add the hourglass and the convolution over its output and input.

    Args:
        x: [1, channels, D, H, W].
        base: channels of the last level up; level i has 2 ** (i + 1) times as many.

    Returns:
        [1, base + channels, D, H, W].
    """
    skips, widths = [x], [channels]
    for level in range(HOURGLASS_LEVELS):
        made = base * 2 ** (level + 1)
        gain = POOLED if level else FIRST
        x = writer.conv(skips[-1], f"warping/down{level}", (widths[-1], made), KERNEL, gain=gain)
        x = writer.node("Relu", x)
        skips.append(writer.average_pool(x, (1, 2, 2)))
        widths.append(made)
    x, width = skips.pop(), widths.pop()
    for level in reversed(range(HOURGLASS_LEVELS)):
        made = base * 2**level
        x = writer.nearest(x, scales=(1.0, 1.0, 1.0, 2.0, 2.0))
        x = writer.conv(x, f"warping/up{level}", (width, made), KERNEL, gain=POOLED)
        x = writer.node("Relu", x)
        x = writer.node("Concat", x, skips.pop(), axis=1)
        width = made + widths.pop()
    x = writer.conv(x, "warping/joined", (width, width), KERNEL, gain=RELU)
    return writer.node("Relu", x)
