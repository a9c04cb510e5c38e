"""Grids and windows of the crop, in pixels of its 512 x 512 version."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

SIZE = 512
"""Side of the crop that the appearance graph reads."""

STEP = 4
"""Pixels between nodes of the warp; nodes stand at the centres of STEP x STEP cells."""

COARSE_STEP = 8
"""The same outside SLITS, where the warp is smoother."""


@dataclass(frozen=True)
class Window:
    """A rectangle of the crop; every edge is a multiple of STEP, so that it holds whole cells."""

    top: int
    left: int
    height: int
    width: int

    @property
    def bottom(self) -> int:
        return self.top + self.height

    @property
    def right(self) -> int:
        return self.left + self.width

    def over(self, step: int) -> Window:
        """The same rectangle counted in cells of `step` pixels."""
        return Window(self.top // step, self.left // step, self.height // step, self.width // step)

    def inside(self, outer: Window) -> Window:
        """The same rectangle counted from the corner of `outer`."""
        return Window(self.top - outer.top, self.left - outer.left, self.height, self.width)

    def margins(self, outer: Window) -> tuple[int, int, int, int]:
        """Pixels between this window and `outer`: top, left, bottom, right."""
        return (self.top - outer.top, self.left - outer.left,
                outer.bottom - self.bottom, outer.right - self.right)  # fmt: skip

    def columns(self) -> npt.NDArray[np.float32]:
        """[1, width] pixel x of the columns."""
        return np.arange(self.left, self.right, dtype=np.float32)[None, :]

    def rows(self) -> npt.NDArray[np.float32]:
        """[height, 1] pixel y of the rows."""
        return np.arange(self.top, self.bottom, dtype=np.float32)[:, None]

    def nodes(self, step: int = STEP) -> int:
        """How many warp nodes are inside."""
        return self.height // step * (self.width // step)

    def node_positions(self, step: int = STEP) -> npt.NDArray[np.float32]:
        """[nodes, 2] pixel x, y of the warp nodes inside, row by row."""
        centre = (step - 1) / 2
        x, y = np.meshgrid(
            np.arange(self.left, self.right, step) + centre, np.arange(self.top, self.bottom, step) + centre
        )
        return np.column_stack([x.ravel(), y.ravel()]).astype(np.float32)


CROP = Window(0, 0, SIZE, SIZE)

SLITS = Window(top=176, left=80, height=320, width=352)
"""Where the mouth and the eyes may open: the only part with more than one layer."""

EYE = Window(top=0, left=0, height=72, width=96)
"""Where an eye may open: counted from a corner of its own, which follows the portrait."""

MOUTH = Window(top=288, left=136, height=176, width=240)
"""Where the mouth may open in the portrait: what moves with the jaw, and what shows between the lips."""
