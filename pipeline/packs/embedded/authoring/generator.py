"""Generator graphs: the portrait's layers, warped to the driving keypoints and laid over each other.

Positions are in window units: -1..1 across the edges of the window in question, as GridSample
without aligned corners has them; for the whole crop these are the crop units of the keypoints.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from onnx import TensorProto

from .anatomy import EYES, LOWER_INNER, POINTS, UPPER_INNER
from .appearance import TENSORS
from .backward_maps import at_pixels, cut, head_map, in_units, jaw_map
from .edges import as_distance, beyond, light, parted
from .eye_patches import EyePatches
from .guard import guarded
from .head_frame import HeadFrame
from .lip_motion import folds_flatten, light_behind, like_photo, line_fades, pucker, teeth_covered
from .placement import Patch, centres, extent
from .sampling import dense_scale, linear, pool, sample_dense
from .smile_fold import POOL
from .tongue import tongue_out, tongue_tip
from .warp_weights import FACTORS, OF_HEAD, OF_JAW
from .windows import MOUTH, SIZE, SLITS, STEP, Window
from .writer import Graph, Value

MOUTH_PATCH, EYE_PATCH = (176, 192), (64, 80)
"""Height and width, pixels of 512, of what is composed of several layers in a frame."""

MOUTH_PATCH_DOWN = 12 * 2 / SIZE
"""How far the mouth's patch stands below the middle of the lips (crop units): the jaw opens downwards."""

REACH = 2.0
"""Keypoints further than this from their source (crop units) are held there, so that all stays finite."""

INSIDE = Window(top=20, left=24, height=112, width=144)
"""Where in the mouth's patch its opening may be."""

TONGUE = Window(top=16, left=32, height=64, width=80)
"""Where in INSIDE the tip of the tongue may be."""

WIDEST_SQUEEZE = 0.2
"""Smallest determinant of the mouth's affine motion that is inverted as it is."""


class Generator:
    """Writes one generator graph for frames of `size` x `size` pixels."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.shrink = SIZE // size
        self.slits = SLITS.over(self.shrink)
        self.g = Graph(f"generator_{size}")
        self.tensors = {name: self.g.input(name, shape) for name, (shape, _) in TENSORS.items()}
        self.source = self.g.input("kp_source", [1, POINTS, 3])
        self.driving = self.g.input("kp_driving", [1, POINTS, 3])

    def build(self) -> Graph:
        """The whole graph; once for each Generator."""
        g = self.g
        source = self.source[0][:, 0:2]
        reached = source + (self.driving[0][:, 0:2] - source).clip(-REACH, REACH)
        driving = guarded(g, source, reached)
        moves = driving - source

        # The head layer fills the frame; all else shows only through its slits.
        factors = self.tensors["keypoint_weights"] @ moves
        of_jaw, of_head = factors[:OF_JAW], factors[FACTORS - OF_HEAD :]
        head = head_map(g, self.tensors, of_head)
        colour, alpha, background = (self.tensors[name] for name in ("head_color", "alpha", "background"))
        frame = HeadFrame(g, colour, alpha, background, head, self.shrink)

        middle = driving.take([*UPPER_INNER, *LOWER_INNER]).mean(0)
        mouth = self._patch(middle + np.array([0, MOUTH_PATCH_DOWN]), MOUTH_PATCH)
        above = in_units(cut(head, mouth), MOUTH)
        on_head = at_pixels(above, mouth)
        on_jaw = at_pixels(jaw_map(g, self.tensors, of_jaw, above, mouth), mouth)
        dense = on_jaw * dense_scale(MOUTH, self.shrink)
        jaw = sample_dense(self.tensors["jaw_layer"], dense, MOUTH, self.shrink)
        lip = linear(self._layer("upper_lip"), on_head, MOUTH.height // self.shrink)
        above_lower, below_upper = as_distance(jaw[:, 3:4] * (1 / 255)), as_distance(lip[:, 0:1] * (1 / 255))
        # The line between the lips fades as they part.
        fades = line_fades(g, source, driving)
        colour = jaw[:, 0:3] + jaw[:, 4:5] * fades
        before = self._cut(frame.slits, mouth)
        upper = before + lip[:, 1:2] * fades
        apart = parted(below_upper, above_lower)
        seen, uncovered = beyond(above_lower + apart), beyond(below_upper + apart)
        opening, as_photo = seen * uncovered, like_photo(g, source, driving)
        puckered = pucker(g, source, driving)
        inside = self._inside_mouth(moves, driving, mouth, opening, as_photo, puckered) * light_behind(puckered)
        below = colour + self._widen((inside - self._narrow(colour)) * self._narrow(seen))
        # Folds reach from beside the upper lip to beside the lower one.
        on_either = self._over(on_head, on_jaw, uncovered.reshape(1, mouth.height, mouth.width, 1))
        fold = (linear(self.tensors["fold_fill"], on_either, MOUTH.height // POOL) - 128) * 2
        flatter = self._over(upper, below, uncovered) + fold * folds_flatten(g, source, driving)
        changes = [self._put(flatter - before, mouth)]

        # Mouth and eyes change different pixels, so patches that overlap add up.
        eyes = [self._patch(driving.take(eye.corners).mean(0), EYE_PATCH) for eye in EYES]
        at_eyes = g.concat([cut(head, patch) for patch in eyes], axis=0)
        drawn = EyePatches(g, self.tensors, self.shrink, eyes[0].height, eyes[0].width).draw(
            g.concat([self._cut(frame.slits, patch) for patch in eyes], axis=0),
            at_pixels((at_eyes + 1) * (SIZE / 2) - 0.5, eyes[0]),
            self.tensors["lid_weights"] @ moves,
            self.tensors["gaze_weights"] @ moves,
        )
        changes += [self._put(drawn[i : i + 1], patch) for i, patch in enumerate(eyes)]
        g.output("image", frame.with_changes(changes), [1, 3, self.size, self.size])
        return g

    def _layer(self, name: str) -> Value:
        return pool(self.tensors[name], self.shrink)

    def _inside_mouth(
        self, moves: Value, driving: Value, patch: Patch, opening: Value, as_photo: Value, puckered: Value
    ) -> Value:
        """[1, 3, h, w] in INSIDE the upper teeth over the cavity, what is drawn in the light through the opening."""
        g, part = self.g, patch.part(INSIDE)
        height = MOUTH.height // self.shrink
        behind_lip = self._rigid_map(moves, 0, part, raised=teeth_covered(puckered, driving))
        teeth = linear(self._layer("teeth_layer"), behind_lip, height)
        cavity = linear(self._layer("cavity_layer"), self._rigid_map(moves, 1, part), height)
        own = cavity[:, 6:7] * as_photo
        drawn = cavity[:, 0:3]
        cavity = g.concat([self._over(drawn, cavity[:, 3:6], own * (1 / 255)), own], axis=1)
        # Drawn teeth leave what the portrait shows alone.
        free = 1 - own * (1 - (teeth[:, 3:4] - 128).clip(0, None) * (1 / 127)) * (1 / 255)
        layers = self._over(cavity, teeth[:, 0:4], teeth[:, 4:5] * free * (1 / 255))
        layers = layers + self._tongue(moves, driving, part, drawn, layers)
        lit = light(g, self._narrow(opening), part.height, part.width, self.shrink)
        return layers[:, 0:3] * (lit + (1 - lit) * (layers[:, 3:4] * (1 / 255)))

    def _tongue(self, moves: Value, driving: Value, inside: Patch, cavity: Value, layers: Value) -> Value:
        """[1, 4, h, w] in INSIDE what the tip of the tongue changes in the layers of the mouth."""
        window, part = TONGUE.over(self.shrink), inside.part(TONGUE)
        before, colours = (x[:, :, window.top : window.bottom, window.left : window.right] for x in (layers, cavity))
        out = tongue_out(self.g, moves, driving)
        tip = tongue_tip(self.g, out, driving, self._crop_positions(part), colours)
        top, left, bottom, right = window.margins(INSIDE.inside(INSIDE).over(self.shrink))
        change = (tip.layer - before) * tip.alpha
        return self.g.op("Pad", change, np.array([0, 0, top, left, 0, 0, bottom, right]))

    def _narrow(self, image: Value) -> Value:
        """The part in INSIDE of an image of the mouth's patch."""
        window = INSIDE.over(self.shrink)
        return image[:, :, window.top : window.bottom, window.left : window.right]

    def _widen(self, image: Value) -> Value:
        """An image of INSIDE with zeros around it over the mouth's patch."""
        top, left, bottom, right = INSIDE.over(self.shrink).margins(Window(0, 0, *MOUTH_PATCH).over(self.shrink))
        return self.g.op("Pad", image, np.array([0, 0, top, left, 0, 0, bottom, right]))

    def _rigid_map(self, moves: Value, layer: int, patch: Patch, raised: Value | float = 0.0) -> Value:
        """[1, h, w, 2] source position in MOUTH for each pixel of a patch: inverse of an affine motion of the crop;
        `raised` by so many crop units."""
        g = self.g
        corners = (self.tensors["mouth_weights"][3 * layer : 3 * layer + 3]) @ moves
        along_x, along_y = (corners[1] - corners[0]) * 0.5, (corners[2] - corners[0]) * 0.5
        a, b, c, d = along_x[0] + 1, along_y[0], along_x[1], along_y[1] + 1
        shift = corners[0] + along_x + along_y - g.concat([b.reshape(1), d.reshape(1)], axis=0) * raised
        determinant = a * d - b * c
        determinant = g.where(determinant.abs() < WIDEST_SQUEEZE, WIDEST_SQUEEZE, determinant)
        inverse = g.concat([v.reshape(1) for v in (d, -c, -b, a)], axis=0).reshape(2, 2) / determinant
        # All affine steps in one product: patch units -> crop units -> source -> units of MOUTH.
        centre, half = extent(MOUTH)
        stretch, corner = self._placed(patch)
        linear = inverse * stretch.reshape(2, 1) / half
        offset = ((corner - shift).reshape(1, 2) @ inverse - centre) / half
        local = centres(g, Window(0, 0, patch.height, patch.width)).reshape(-1, 2)
        return (local @ linear + offset).reshape(1, patch.height, patch.width, 2)

    def _placed(self, patch: Patch) -> tuple[npt.NDArray[np.float32], Value]:
        """Half the sides [2] of a patch and its middle [2], x before y, in crop units."""
        centre, half = extent(SLITS)
        stretch = np.array([patch.width / self.size, patch.height / self.size], np.float32)
        return stretch, patch.start.take([1, 0]).cast() * (2 / self.size) + (centre - half + stretch)

    def _crop_positions(self, patch: Patch) -> Value:
        """[1, h, w, 2] the pixels of a patch in crop units."""
        stretch, middle = self._placed(patch)
        return centres(self.g, Window(0, 0, patch.height, patch.width)) * stretch + middle

    def _patch(self, centre: Value, size: tuple[int, int]) -> Patch:
        """A patch of `size` (height, width in pixels of the full crop) about a point [2] in crop units."""
        rows, columns = size[0] // STEP, size[1] // STEP
        slits = SLITS.over(STEP)
        corner = (centre.take([1, 0]) + 1) * (SIZE / 2 / STEP) - [rows / 2 + slits.top, columns / 2 + slits.left]
        corner = self.g.minimum(corner.clip(0, None), [slits.height - rows, slits.width - columns])
        cells, step = self.g.op("Round", corner), STEP // self.shrink
        return Patch(rows, columns, cells.cast(TensorProto.INT64), step, (cells * step).cast(TensorProto.INT64))

    def _cut(self, image: Value, patch: Patch) -> Value:
        """The part in a patch of an image [1, 3, h, w] over SLITS."""
        part = self.g.op("Slice", image, patch.start, patch.start + patch.size, np.array([2, 3]))
        return part.reshape(1, 3, patch.height, patch.width)

    def _put(self, image: Value, patch: Patch) -> Value:
        """An image [1, 3, h, w] of a patch, with zeros around it over SLITS."""
        after = np.array([self.slits.height, self.slits.width]) - patch.size - patch.start
        zeros = np.zeros(2, np.int64)
        pads = self.g.concat([zeros, patch.start, zeros, after], axis=0)
        return self.g.op("Pad", image, pads).reshape(1, 3, self.slits.height, self.slits.width)

    @staticmethod
    def _over(below: Value, above: Value, alpha: Value) -> Value:
        return below + (above - below) * alpha


def generator_graph(size: int) -> Graph:
    """TENSORS, `kp_source` and `kp_driving` [1, 478, 3] -> `image` [1, 3, size, size], RGB 0..1."""
    return Generator(size).build()
