"""Generator graphs: the portrait's layers, warped to the driving keypoints and laid over each other.

Positions are in window units: -1..1 across the edges of the window in question, as GridSample
without aligned corners has them; for the whole crop these are the crop units of the keypoints.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .anatomy import POINTS
from .appearance import TENSORS
from .guard import guarded
from .windows import CROP, MOUTH, SIZE, SLITS, STEP, Window
from .writer import Graph, Value

REACH = 2.0
"""Keypoints further than this from their source (crop units) are held there, so that all stays finite."""

INVERSE_STEPS = 9
RELAXATION = 0.65
"""Of the fixed-point iteration for the backward map; below 1 because stretched skin moves by more than 1:1."""

WIDEST_SQUEEZE = 0.2
"""Smallest determinant of the mouth's affine motion that is inverted as it is."""


def centres(window: Window) -> npt.NDArray[np.float32]:
    """[1, height, width, 2] the cells' own positions in units of a window counted in those cells."""
    grid = np.empty((1, window.height, window.width, 2), np.float32)
    grid[..., 0] = (np.arange(window.width) * 2 + 1) / window.width - 1
    grid[..., 1] = ((np.arange(window.height) * 2 + 1) / window.height - 1)[:, None]
    return grid


def extent(window: Window) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Centre and half size [2] (x, y) of a window of the crop in crop units."""
    half = np.array([window.width, window.height], np.float32) / SIZE
    corner = np.array([window.left, window.top], np.float32) * (2 / SIZE) - 1
    return corner + half, half


class Generator:
    """Writes one generator graph for frames of `size` x `size` pixels."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.shrink = SIZE // size
        self.g = Graph(f"generator_{size}")
        self.tensors = {name: self.g.input(name, shape) for name, shape in TENSORS.items()}
        self.source = self.g.input("kp_source", [1, POINTS, 3])
        self.driving = self.g.input("kp_driving", [1, POINTS, 3])

    def build(self) -> Graph:
        g = self.g
        moves = self._displacements()
        factors = self.tensors["keypoint_weights"] @ moves
        head = self._backward(self.tensors["head_weights"] @ factors, CROP)
        jaw = self._backward(self.tensors["jaw_weights"] @ factors, SLITS)

        slits, mouth = SLITS.over(self.shrink), MOUTH.over(self.shrink)
        head_image = self._sample(self._layer("head_color"), head, "cubic")
        centre, half = extent(SLITS)
        head_in_slits = (head[:, slits.top : slits.bottom, slits.left : slits.right] - centre) / half
        head_alpha = self._sample(self._layer("head_alpha"), head_in_slits, "linear").clip(0, 1)
        jaw_image = self._sample(self._layer("jaw_layer"), jaw, "cubic")
        teeth = self._sample(self._layer("teeth_layer"), self._rigid_map(moves, 0), "linear")
        cavity = self._sample(self._layer("cavity_layer"), self._rigid_map(moves, 1), "linear")

        inside = cavity + (teeth[:, 0:3] - cavity) * teeth[:, 3:4]
        top, left, bottom, right = mouth.margins(slits)
        inside = g.op("Pad", inside, np.array([0, 0, top, left, 0, 0, bottom, right]), mode="edge")
        lower = inside + (jaw_image[:, 0:3] - inside) * jaw_image[:, 3:4].clip(0, 1)
        head_there = head_image[:, :, slits.top : slits.bottom, slits.left : slits.right]
        shows = (lower - head_there) * (1 - head_alpha)
        top, left, bottom, right = slits.margins(CROP.over(self.shrink))
        shows = g.op("Pad", shows, np.array([0, 0, top, left, 0, 0, bottom, right]))
        g.output("image", (head_image + shows).clip(0, 1), [1, 3, self.size, self.size])
        return g

    def _displacements(self) -> Value:
        """[478, 2] guarded motion of every keypoint, crop units."""
        source = self.source[0][:, 0:2]
        reached = source + (self.driving[0][:, 0:2] - source).clip(-REACH, REACH)
        return guarded(self.g, source, reached) - source

    def _layer(self, name: str) -> Value:
        layer = self.tensors[name]
        if self.shrink == 1:
            return layer
        factor = [self.shrink, self.shrink]
        return self.g.op("AveragePool", layer, kernel_shape=factor, strides=factor)

    def _sample(self, layer: Value, where: Value, mode: str) -> Value:
        return self.g.op("GridSample", layer, where, mode=mode, padding_mode="border", align_corners=0)

    def _backward(self, forward: Value, window: Window) -> Value:
        """[1, h, w, 2] source position for each pixel of the window, from displacements [nodes, 2] (crop units).

        b(y) = -forward(y + b(y)) is solved on the nodes by a relaxed fixed-point iteration.
        """
        g, cells, pixels = self.g, window.over(STEP), window.over(self.shrink)
        _, half = extent(window)
        field = (forward / half).reshape(1, cells.height, cells.width, 2).transpose(0, 3, 1, 2)
        field = field.clip(-4, 4)
        back = field * -0.7
        for _ in range(INVERSE_STEPS):
            there = back.transpose(0, 2, 3, 1) + centres(cells)
            back = back * (1 - RELAXATION) - self._sample(field, there, "linear") * RELAXATION
        back = g.op("Resize", back, "", "", np.array([1, 2, pixels.height, pixels.width]),
                    mode="linear", coordinate_transformation_mode="half_pixel")  # fmt: skip
        return back.transpose(0, 2, 3, 1) + centres(pixels)

    def _rigid_map(self, moves: Value, layer: int) -> Value:
        """[1, h, w, 2] source position in MOUTH for each of its pixels: inverse of an affine motion of the crop."""
        corners = (self.tensors["mouth_weights"][3 * layer : 3 * layer + 3]) @ moves
        along_x, along_y = (corners[1] - corners[0]) * 0.5, (corners[2] - corners[0]) * 0.5
        shift = corners[0] + along_x + along_y
        a, b, c, d = along_x[0] + 1, along_y[0], along_x[1], along_y[1] + 1
        determinant = a * d - b * c
        determinant = self.g.where(determinant.abs() < WIDEST_SQUEEZE, WIDEST_SQUEEZE, determinant)
        inverse = self.g.concat([v.reshape(1) for v in (d, -c, -b, a)], axis=0).reshape(2, 2) / determinant
        centre, half = extent(MOUTH)
        pixels = MOUTH.over(self.shrink)
        targets = (centres(pixels) * half + centre).reshape(-1, 2)
        found = ((targets - shift) @ inverse - centre) / half
        return found.reshape(1, pixels.height, pixels.width, 2)


def generator_graph(size: int) -> Graph:
    """TENSORS, `kp_source` and `kp_driving` [1, 478, 3] -> `image` [1, 3, size, size], RGB 0..1."""
    return Generator(size).build()
