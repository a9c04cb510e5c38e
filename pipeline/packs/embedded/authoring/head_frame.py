"""The head layer over the background, in the whole frame, drawn tile by tile."""

from __future__ import annotations

import numpy as np

from .background_fill import HALF, enlarged_to
from .backward_maps import across, down
from .sampling import dense_scale, linear, pool, sample_dense
from .windows import CROP, SIZE, SLITS, STEP, Window
from .writer import Graph, Value

TILE = 24 << 10
"""Most pixels of a tile: ONNX Runtime keeps 56 bytes of each while it samples, which then stay near the processor."""

BAND = 16
"""Rows of cells for which the coverage's map is made at once: the matrix for all of them is mostly zeros."""


class HeadFrame:
    """The head layer in a frame of SIZE // shrink pixels; what is in SLITS apart, where it is changed.

    Args:
        texture: [1, 3, dense(SIZE), dense(SIZE)] RGB 0..255, what the head adds to the background that shines through.
        alpha: [1, 1, HALF, HALF] 0..255, its coverage. background: [1, 3, SIZE, SIZE] RGB 0..255, stands still.
        places: the head's map, [1, 2, 130, 130].
    """

    def __init__(self, g: Graph, texture: Value, alpha: Value, background: Value, places: Value, shrink: int) -> None:
        self.g, self.texture, self.shrink, self.step = g, texture, shrink, STEP // shrink
        crop, slits = CROP.over(STEP), SLITS.over(STEP)
        self.behind = pool(background, shrink) * self._uncovered(alpha, places)
        scale = dense_scale(CROP, shrink).reshape(1, 2, 1, 1)
        self.rows = across(places * scale, crop.height + 2, crop.width, self.step)
        self.above = self._tiles(Window(0, 0, slits.top, crop.width))
        self.left = self._tiles(Window(slits.top, 0, slits.height, slits.left))
        self.slits = self._tiles(slits)
        """[1, 3, h, w] RGB 0..255 in SLITS."""
        self.right = self._tiles(Window(slits.top, slits.right, slits.height, crop.right - slits.right))
        self.below = self._tiles(Window(slits.bottom, 0, crop.bottom - slits.bottom, crop.width))

    def with_changes(self, changes: list[Value]) -> Value:
        """[1, 3, size, size] the frame, RGB 0..1, with what is added to it in SLITS [1, 3, h, w]."""
        g = self.g
        slits = self.slits
        for change in changes:
            slits = slits + change
        middle = g.concat([self.left, slits.clip(0, 255), self.right], axis=3)
        return g.concat([self.above, middle, self.below], axis=2) * (1 / 255)

    def _uncovered(self, alpha: Value, places: Value) -> Value:
        """[1, 1, size, size] part of the background, 0..1, that is seen."""
        crop, step = CROP.over(STEP), STEP * HALF // SIZE
        rows = across(places, crop.height + 2, crop.width, step)
        bands = [down(rows[:, top : top + BAND + 2], BAND, step) for top in range(0, crop.height, BAND)]
        where = self.g.concat(bands, axis=1).reshape(1, HALF, HALF, 2)
        seen = 1 - linear(alpha, where, HALF) * (1 / 255)
        return pool(enlarged_to(seen, 1), self.shrink)

    def _tiles(self, window: Window) -> Value:
        """A window of the crop, counted in cells, drawn by rows of tiles."""
        pixels = window.height * window.width * self.step**2
        count = next(n for n in range(1, window.height + 1) if window.height % n == 0 and pixels <= n * TILE)
        height = window.height // count
        tiles = [self._tile(Window(window.top + i * height, window.left, height, window.width)) for i in range(count)]
        return tiles[0] if count == 1 else self.g.concat(tiles, axis=2)

    def _tile(self, window: Window) -> Value:
        step = self.step
        rows = self.rows[:, window.top : window.bottom + 2, window.left * 2 * step : window.right * 2 * step]
        where = down(rows, window.height, step).reshape(1, window.height * step, window.width * step, 2)
        head = sample_dense(self.texture, where, CROP, self.shrink)
        part = np.s_[window.top * step : window.bottom * step, window.left * step : window.right * step]
        return (head + self.behind[(slice(None), slice(None), *part)]).clip(0, 255)
