"""The part of a generator graph that draws the eyes: lids that slide over an eyeball whose iris turns."""

from __future__ import annotations

import numpy as np

from .eye_layers import EDGE, irises_as_drawn, lashes_as_added
from .lid_curves import COLUMNS, LOWER_LID_SHARE, TABLE_REACH, smoothing
from .sampling import dense_scale, linear, pool, sample_dense
from .windows import EYE, SIZE
from .writer import Graph, Value

MARGIN = 1.0
"""Below this gap (pixels of 512) lids slow down as they come together."""

LINE_UP, LINE_DOWN = 0.045, 0.055
"""How far above and below the upper lid's edge the line of a closed eye's lashes reaches, widths of the eye."""

HANG, SPLAY = 0.15, 1.8
"""How far the lashes of a closed eye hang down, widths of the eye, and how far they stand outwards there: shares of
their distance from the eye's middle for each width that they hang."""

SHADE_UP, SHADE = 0.2, 0.35
"""How far above its edge a closed lid, which bulges, turns away from the light, widths of the eye, and how dark it is
at the edge, of the line's darkness."""

AROUND = 6
"""How often the gap between the lids is smoothed to tell how far an eye is closed (lid_curves.smoothing)."""

LYING = 0.6
"""Of the lashes that stand off an open lid, what a closing one takes from sight: they turn down with it."""


def moved_edges(g: Graph, edges: Value, motion: Value, lids: Value, frames: Value) -> tuple[Value, Value]:
    """[2, 2, 64] v of the driven lid edges and how far they moved, from displacements of the lids [28, 2] (pixels).

    A gap s between the lids that is less than MARGIN becomes MARGIN * exp(s / MARGIN - 1): lids never cross. Where the
    portrait's own edges are nearer to each other than that, the photo is not changed.
    """
    down = g.concat([frames[:, 0:1, 1:2], frames[:, 1:2, 1:2]], axis=1)  # [2, 2, 1]
    along = (lids.reshape(2, 14, 2) @ down).reshape(2, 2, 7, 1)
    moves = (motion @ along).reshape(2, 2, COLUMNS)
    rest, gain = edges[:, 1:2] - edges[:, 0:1], moves[:, 1:2] - moves[:, 0:1]
    floor = (rest - MARGIN).clip(None, 0)
    above = rest + gain - floor
    kept = (above / MARGIN - 1).clip(-60, 0).exp() * MARGIN
    short = g.where(above < MARGIN, kept - above, 0.0)
    moves = moves + g.concat([short * (LOWER_LID_SHARE - 1), short * LOWER_LID_SHARE], axis=1)
    return edges + moves, moves


def _around(gap: Value) -> Value:
    """[2, 1, 64] the gap between the lids around each column: what closes an eye closes the skin beside its corners."""
    return gap.clip(0, None) @ smoothing(AROUND).T.copy() + 0.3


class EyePatches:
    """Draws both eyes at once; patches are [2, channels, h, w], the right eye first."""

    def __init__(self, g: Graph, tensors: dict[str, Value], shrink: int, height: int, width: int) -> None:
        self.g, self.tensors, self.shrink = g, tensors, shrink
        self.height, self.width = height, width

    def draw(self, frame: Value, where: Value, lids: Value, gaze: Value) -> Value:
        """[2, 3, h, w] what changes in the frame's patches [2, 3, h, w].

        `where` [2, h, w, 2]: source positions in pixels of the crop; `lids` [28, 2] and `gaze` [2, 2]: displacements
        of lid landmarks and irises beyond the head layer's, crop units.
        """
        g, frames = self.g, self.tensors["eye_frames"]
        count = self.height * self.width
        # x and y stand apart: factors for two numbers side by side take ONNX Runtime ten times as long.
        axes = frames.transpose(0, 2, 1)  # [2, 2, 4]
        position = where.reshape(2, count, 2).transpose(0, 2, 1) - axes[:, :, 3:4]  # from the window's corner
        local = axes[:, :, 0:2] @ position + axes[:, :, 2:3]
        u, v = local[:, 0:1], local[:, 1:2].reshape(2, 1, self.height, self.width)

        edges, moves = moved_edges(g, self.tensors["lid_edges"], self.tensors["lid_motion"], lids * (SIZE / 2), frames)
        gap = edges[:, 1:2] - edges[:, 0:1]
        rest = gap - moves[:, 1:2] + moves[:, 0:1]
        # Where lids meet in the photo they do so always: at the corners there is no ball.
        apart = g.smoothstep((g.minimum(gap, rest) - 0.4) / 1.0)
        narrowed = (_around(gap) / _around(rest)).clip(0, 1)
        closing = (1 - narrowed) * ((rest - gap) * 0.6).clip(0, 1)
        table = g.concat([edges, moves, apart, narrowed], axis=1).reshape(2, 6, 1, COLUMNS)
        lid = linear(table, self._grid(g.concat([u, u * 0], axis=1)), COLUMNS)
        upper, lower = lid[:, 0:1], lid[:, 1:2]
        soft = EDGE * (1 if self.shrink == 1 else 0.8 * self.shrink)
        opening = g.smoothstep((v - upper) / soft + 0.5) * g.smoothstep((lower - v) / soft + 0.5) * lid[:, 4:5]

        units = 2 / np.array([[EYE.width], [EYE.height]])
        place = (position + 0.5) * units - 1
        still = linear(pool(self.tensors["eye_still"], self.shrink), self._grid(place), EYE.height // self.shrink)
        turned = place - (gaze * (SIZE / 2)).reshape(2, 2, 1) * units
        eyeball, before = (self._eyeball(still, iris) for iris in (turned, place))
        down = frames[:, 0:2, 1:2] * units
        on_upper = g.smoothstep((upper + lower) * (0.5 / soft) - v * (1 / soft) + 0.5)
        # A closing eye hides the lower lid's wet rim, and lashes come to lie over its own.
        standing = lid[:, 5:6] * LYING + (1 - LYING)
        shares = (on_upper * standing, (1 - on_upper) * standing)
        shifts = [place - lid[:, i : i + 1].reshape(2, 1, count) * down for i in (2, 3)]
        upper_lashes, lower_lashes = (lashes_as_added(self._dense("eye_lashes", shifted)) for shifted in shifts)
        lashes = upper_lashes * shares[0] + lower_lashes * shares[1]
        # Light on an open lid's rim: what it added to a dark iris is too much for the white.
        light = lashes.clip(0, None) - (eyeball - before).clip(0, None)
        lashes = lashes.clip(None, 0) + light.clip(0, None) * lid[:, 5:6]
        closed, always = still[:, 6:7] * (1 / 255), still[:, 7:8] * (1 / 255)
        skin = (still[:, 0:3] - frame) * (always + (closed - always) * (1 - lid[:, 5:6]))
        changed = skin + (eyeball - frame - skin) * opening + lashes
        return changed - (frame + changed) * self._lashes(u, v - upper, closing * self.tensors["lash_line"])

    def _eyeball(self, still: Value, place: Value) -> Value:
        """[2, 3, h, w] the white of an eye with its iris at a place [2, 2, h * w]."""
        iris = irises_as_drawn(self._dense("eye_irises", place))
        return still[:, 3:6] * (1 - iris[:, 3:4] * (1 / 255)) + iris[:, 0:3]

    def _lashes(self, u: Value, below: Value, dark: Value) -> Value:
        """[2, 1, h, w] how much darker the lashes of a closing eye make what lies so far below the upper lid's edge.

        `dark` [2, 2, 64]: the line at the edge, and the lashes that hang from it.
        """
        g, frames = self.g, self.tensors["eye_frames"]
        per_pixel = (frames[:, 0:1, 0:1] * frames[:, 0:1, 0:1] + frames[:, 1:2, 0:1] * frames[:, 1:2, 0:1]).sqrt()
        away = below * (per_pixel * TABLE_REACH).unsqueeze(3)
        hanging = away.clip(0, None)
        roots = u * (1 - hanging.reshape(2, 1, self.height * self.width).clip(None, HANG) * SPLAY)
        dark = linear(dark.reshape(2, 2, 1, COLUMNS), self._grid(g.concat([roots, roots * 0], axis=1)), COLUMNS)
        line = g.smoothstep(1 - g.maximum(away * (-1 / LINE_UP), away * (1 / LINE_DOWN))) * dark[:, 0:1]
        tips = (1 - g.maximum(away * (-1 / LINE_UP), away * (1 / HANG))).clip(0, 1) * dark[:, 1:2]
        shade = (1 - g.maximum(away * (-1 / SHADE_UP), away * (1 / LINE_DOWN))).clip(0, 1) * (dark[:, 0:1] * SHADE)
        return g.maximum(line, tips, shade)

    def _grid(self, place: Value) -> Value:
        """[2, h, w, 2] of places [2, 2, h * w]."""
        return place.transpose(0, 2, 1).reshape(2, self.height, self.width, 2)

    def _dense(self, name: str, place: Value) -> Value:
        scale = dense_scale(EYE, self.shrink).reshape(2, 1)
        return sample_dense(self.tensors[name], self._grid(place * scale), EYE, self.shrink)
