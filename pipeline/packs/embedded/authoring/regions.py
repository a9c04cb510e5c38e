"""Local frames and zones of the mouth and the eyes, in crop pixels, as graph expressions."""

from __future__ import annotations

from .anatomy import (
    CHIN,
    EYES,
    LIP_MIDDLE,
    LOWER_EDGE,
    LOWER_INNER,
    MOUTH_CORNERS,
    NOSE_BASE,
    UPPER_EDGE,
    UPPER_INNER,
    Eye,
)
from .writer import Graph, Operand, Value


class Frame:
    """Axes u (along a slit, to the right of the picture) and v (down) about an origin."""

    def __init__(self, left: Value, right: Value, origin: Value) -> None:
        axis = (right - left)[0:2]
        self.width = ((axis * axis).sum(0) + 1e-3).sqrt()
        """Distance of the slit's corners, pixels."""
        self.cos, self.sin = axis[0] / self.width, axis[1] / self.width
        self.x, self.y = origin[0], origin[1]

    def local(self, x: Operand, y: Operand) -> tuple[Value, Value]:
        """u and v of pixels."""
        dx, dy = x - self.x, y - self.y
        return dx * self.cos + dy * self.sin, dy * self.cos - dx * self.sin

    def local_points(self, points: Value) -> tuple[Value, Value]:
        """u [n] and v [n] of points [n, 2]."""
        return self.local(points[:, 0], points[:, 1])

    def pixel(self, u: Value, v: Value) -> tuple[Value, Value]:
        """x and y of places in the frame."""
        return u * self.cos - v * self.sin + self.x, u * self.sin + v * self.cos + self.y


def polyline(g: Graph, u_knots: Value, v_knots: Value, count: int, u: Value, least: float = 0.05) -> Value:
    """v of the polyline through `count` knots, at least `least` apart, at u; constant beyond its ends."""
    v = u * 0 + v_knots[0]
    for i in range(count - 1):
        run = g.maximum(u_knots[i + 1] - u_knots[i], least)
        v = v + ((u - u_knots[i]) / run).clip(0, 1) * (v_knots[i + 1] - v_knots[i])
    return v


def ellipse(g: Graph, u: Value, v: Value, across: Operand, up: Operand, down: Operand) -> Value:
    """Radius in units of the border of an ellipse with different reach upwards and downwards."""
    tall = g.where(v < 0.0, v / up, v / down)
    return ((u / across) * (u / across) + tall * tall + 1e-9).sqrt()


class MouthRegion:
    """The mouth's frame (origin between the lips), its edges and its zone."""

    def __init__(self, g: Graph, points: Value) -> None:
        self.g = g
        self.frame = Frame(points[MOUTH_CORNERS[0]], points[MOUTH_CORNERS[1]],
                           (points[UPPER_INNER[LIP_MIDDLE]] + points[LOWER_INNER[LIP_MIDDLE]]) * 0.5)  # fmt: skip
        self.width = self.frame.width
        self.upper = self.frame.local_points(points.take(UPPER_EDGE))
        self.lower = self.frame.local_points(points.take(LOWER_EDGE))
        self.middle = (self.upper[0][0] + self.upper[0][-1]) * 0.5
        """u half-way between the corners."""
        self.opening = (self.lower[1] - self.upper[1]).max(0)
        """Largest gap between the inner lips, pixels."""
        to_chin = points[CHIN, 1] - self.frame.y
        lower_lip = points[LOWER_INNER[LIP_MIDDLE], 1] - self.frame.y
        self.to_nose = g.maximum(self.frame.y - points[NOSE_BASE, 1], 1.0)
        self.down = g.maximum(g.maximum(to_chin * 0.85, lower_lip + to_chin * 0.4), 1.0)

    def zone(self, x: Operand, y: Operand, up: float = 1.0) -> Value:
        """Ellipse from the nose (times `up`) to above the chin, 0 at the mouth's middle, 1 at the border."""
        u, v = self.frame.local(x, y)
        return ellipse(self.g, u, v, self.width * 0.71, self.to_nose * up, self.down)

    def upper_edge(self, u: Value) -> Value:
        """v of the upper lip's inner edge at u, pixels; `lower_edge` is that of the lower one."""
        return polyline(self.g, *self.upper, len(UPPER_EDGE), u)

    def lower_edge(self, u: Value) -> Value:
        """See `upper_edge`."""
        return polyline(self.g, *self.lower, len(LOWER_EDGE), u)


class EyeRegion:
    """An eye's frame (origin half-way between the corners), its lids and its zone."""

    def __init__(self, g: Graph, points: Value, eye: Eye) -> None:
        self.g = g
        left, right = points[eye.corners[0]], points[eye.corners[1]]
        self.frame = Frame(left, right, (left + right) * 0.5)
        self.width = self.frame.width
        self.upper = self.frame.local_points(points.take(eye.upper_edge))
        self.lower = self.frame.local_points(points.take(eye.lower_edge))
        self._count = len(eye.upper_edge)

    def zone(self, x: Operand, y: Operand) -> Value:
        """Ellipse about the eye, 0 half-way between its corners, 1 at the border."""
        u, v = self.frame.local(x, y)
        return ellipse(self.g, u, v, self.width * 0.72, self.width * 0.62, self.width * 0.55)

    def upper_edge(self, u: Value) -> Value:
        """v of the upper lid's edge at u, pixels; `lower_edge` is that of the lower one."""
        return polyline(self.g, *self.upper, self._count, u)

    def lower_edge(self, u: Value) -> Value:
        """See `upper_edge`."""
        return polyline(self.g, *self.lower, self._count, u)


def eye_regions(g: Graph, points: Value) -> list[EyeRegion]:
    """The right eye (left in the picture), then the left one; `points` [478, 3], pixels."""
    return [EyeRegion(g, points, eye) for eye in EYES]
