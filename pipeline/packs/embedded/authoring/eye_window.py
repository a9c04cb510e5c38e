"""The part of the crop about an eye that its textures cover."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from .regions import EyeRegion
from .windows import EYE, SIZE
from .writer import Graph, Value


class EyeWindow:
    """Places of an eye's textures: x, y in pixels of the crop, u, v in the eye's frame, all [h, w] of EYE."""

    def __init__(self, g: Graph, image: Value, region: EyeRegion) -> None:
        self.g, self.image, self.region = g, image, region
        size = np.array([EYE.width, EYE.height], np.float32)
        middle = g.concat([region.frame.x.reshape(1), region.frame.y.reshape(1)], axis=0)
        # Even corners, so that the textures can be pooled in step with the crop.
        corner = g.op("Round", (middle - size / 2) * 0.5) * 2
        self.corner = g.maximum(g.minimum(corner, SIZE - size), 0.0)
        """[2] x, y of the window's corner."""
        self.u, self.v = region.frame.local(self.corner[0] + EYE.columns(), self.corner[1] + EYE.rows())
        self.photo = self.below(0.0)

    def below(self, down: Value | float) -> Value:
        """[1, 3, EYE] the photo in the window, or so many pixels below it."""
        corner = self.corner + self.g.concat([np.zeros(1), (self.corner[1] * 0 + down).reshape(1)], axis=0)
        limit = np.array([SIZE - EYE.width, SIZE - EYE.height], np.float32)
        start = self.g.minimum(corner, limit).take([1, 0]).cast(TensorProto.INT64)
        end = start + np.array([EYE.height, EYE.width], np.int64)
        photo = self.g.op("Slice", self.image, start, end, np.array([2, 3]))
        return photo.reshape(1, 3, EYE.height, EYE.width)

    def frame(self, reach: Value) -> Value:
        """[1, 4, 2] the eye's axes for tables that reach so far from its middle; see EyeLayers.frames."""
        frame = self.region.frame
        u, v = frame.local(self.corner[0], self.corner[1])
        rows = [(frame.cos / reach, -frame.sin), (frame.sin / reach, frame.cos), (u / reach, v)]
        flat = [part.reshape(1) for row in rows for part in row]
        return self.g.concat([*flat, self.corner], axis=0).reshape(1, 4, 2)
