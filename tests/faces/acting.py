"""One face made to act, by the very code that renders films."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, cached_property
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from pipeline.faces.landmarks import find_landmarks, square_of
from pipeline.packs.embedded.authoring.anatomy import UNITS
from pipeline.packs.store import open_pack
from pipeline.report import Report
from pipeline.runtime.options import RuntimeOptions
from pipeline.scene import Scene
from pipeline.settings import Settings
from pipeline.stages.generator import fixed_inputs, generate, to_pixels
from pipeline.stages.sound import read_sound
from pipeline.studio import Studio
from pipeline.values import F32, U8, Appearance, Crop, Motion, Portrait

T = TypeVar("T")
F64 = NDArray[np.float64]
FACES = Path(__file__).parent / "portraits"
SIZE = 512


@dataclass(frozen=True)
class Pose:
    """Units of the basis (a name without its side stands for both) and the head's turn, degrees.

    `rest`: undriven, the photo as it is; all others start from the closed mouth, as films do."""

    units: Mapping[str, float]
    pitch: float = 0.0
    yaw: float = 0.0
    roll: float = 0.0
    rest: bool = False

    @property
    def coefficients(self) -> F32:
        row = np.zeros(len(UNITS), np.float32)
        for name, value in self.units.items():
            indices = [i for i, unit in enumerate(UNITS) if unit in (name, f"{name}Left", f"{name}Right")]
            if not indices:
                raise ValueError(f"there is no unit {name}")
            row[indices] = value
        return row


POSES = {
    "photo": Pose({}, rest=True),
    "closed": Pose({}),
    "aa": Pose({"jawOpen": 0.6}),
    "ee": Pose({"jawOpen": 0.2, "mouthSmile": 0.4, "mouthStretch": 0.3}),
    "oo": Pose({"mouthPucker": 0.8, "mouthFunnel": 0.4, "jawOpen": 0.15}),
    "oh": Pose({"mouthFunnel": 0.7, "jawOpen": 0.4}),
    "f v": Pose({"mouthRollLower": 0.6, "mouthUpperUp": 0.3, "jawOpen": 0.1}),
    "th": Pose({"jawOpen": 0.18, "tongueOut": 0.5, "mouthLowerDown": 0.2}),
    "smile": Pose({"mouthSmile": 0.7, "cheekSquint": 0.4}),
    "blink": Pose({"eyeBlink": 1.0}),
    "half blink": Pose({"eyeBlink": 0.5}),
    "gaze left": Pose({"eyeLookOutLeft": 0.8, "eyeLookInRight": 0.8}),
    "gaze right": Pose({"eyeLookOutRight": 0.8, "eyeLookInLeft": 0.8}),
    "gaze up": Pose({"eyeLookUp": 0.7}),
    "gaze down": Pose({"eyeLookDown": 0.7}),
    "brows": Pose({"browInnerUp": 0.8, "browOuterUp": 0.8}),
    "yaw -12": Pose({}, yaw=-12),
    "yaw +12": Pose({}, yaw=12),
    "pitch -8": Pose({}, pitch=-8),
    "pitch +8": Pose({}, pitch=8),
    "roll 8": Pose({}, roll=8),
    "yaw -12 aa": Pose({"jawOpen": 0.5}, yaw=-12),
    "yaw +12 oh": Pose({"mouthFunnel": 0.6, "jawOpen": 0.35}, pitch=5, yaw=12, roll=-4),
}


@dataclass(frozen=True)
class Actor:
    """One portrait with its features and an open studio."""

    name: str
    studio: Studio
    portrait: Portrait
    appearance: Appearance

    @classmethod
    def open(cls, path: Path, studio: Studio) -> Actor:
        """Raises InputError: no face is found."""
        report = Report()
        portrait = studio.prepare_portrait(path, Settings(), report)
        return cls(path.stem, studio, portrait, studio.make_appearance(portrait, report))

    @property
    def photo(self) -> U8:
        """[512, 512, 3] the crop that the generator shows at rest."""
        return self.portrait.pixels

    @cached_property
    def points(self) -> F64:
        """[478, 3] landmarks of the photo in pixels of the crop."""
        return in_pixels(self.portrait.landmarks)

    def film(self, motion: Motion) -> Scene:
        return Scene(self.studio, self.appearance, motion, len(motion), Settings())

    def keypoints(self, poses: Sequence[Pose]) -> F32:
        """[N, 478, 3] driving keypoints."""
        rows = [Pose({}), *poses]  # row 0 is what relative parts are relative to
        motion = Motion(
            expression=np.stack([pose.coefficients for pose in rows]),
            scale=np.ones(len(rows), np.float32),
            translation=np.zeros((len(rows), 3), np.float32),
            angles=np.array([[pose.pitch, pose.yaw, pose.roll] for pose in rows], np.float32),
            fps=25.0,
        )
        scene, source = self.film(motion), self.appearance.source.keypoints
        return np.stack([source if pose.rest else scene.keypoints(k + 1) for k, pose in enumerate(poses)])

    def frames(self, keypoints: F32, appearance: Appearance | None = None) -> Iterator[F32]:
        """[512, 512, 3] RGB 0..1 of each [478, 3]."""
        name = self.studio.pack.manifest.preset(Settings().preset).generator
        fixed = fixed_inputs(appearance or self.appearance, self.studio.pack.manifest.model(name))
        model = self.studio.models.get(name)
        for row in keypoints:
            yield generate(fixed, row[None], model)[0].transpose(1, 2, 0)

    def act(self, *poses: Pose) -> list[U8]:
        return [to_pixels(frame.transpose(2, 0, 1)) for frame in self.frames(self.keypoints(poses))]

    def speech(self, voice: Path, seconds: float) -> F32:
        """[N, 478, 3] driving keypoints of a film."""
        sound, _ = read_sound(voice)
        motion = self.studio.make_motion(sound, Settings(), Report(), lambda done, total: None)
        scene = self.studio.scene(self.appearance, motion, min(seconds, sound.duration), Settings())
        return np.stack([scene.keypoints(k) for k in range(scene.count)])

    def found(self, frame: U8, *, head_still: bool = False) -> F64 | None:
        """[478, 3] landmarks found again in a frame, in its pixels.

        `head_still`: looked for in the very square of the photo's, which no lip then moves or widens."""
        finder = self.studio.finder
        spec = finder.spec.landmarks
        start: Crop = square_of(self.points, spec)
        found = find_landmarks(frame, finder.landmarks, replace(spec, passes=1) if head_still else spec, start)
        return None if found is None else found.points


def in_pixels(points: F32) -> F64:
    """Crop units -> pixels of a frame of 512, where (0, 0) is the top left corner."""
    return (points.astype(np.float64) + np.array([1, 1, 0])) * (SIZE / 2)


def open_studio(threads: int = 1) -> Studio:
    return Studio(open_pack("embedded"), RuntimeOptions(threads=threads))


def face_files(names: Sequence[str] = ()) -> list[Path]:
    """The set's portraits, or those of these names; a path stands for itself."""
    if not names:
        return sorted(FACES.glob("*.jpg"))
    files = [Path(name) if Path(name).exists() else FACES / f"{name}.jpg" for name in names]
    for file in files:
        if not file.exists():
            there = ", ".join(face.stem for face in sorted(FACES.glob("*.jpg")))
            raise SystemExit(f"there is no face {file.stem}; give a file, or one of {there}")
    return files


def each_face(job: Callable[[Path], T], files: Sequence[Path], processes: int) -> Iterator[T]:
    """What a job gives for each file, in order, made by so many processes (1: in this one)."""
    if processes == 1:
        yield from map(job, files)
    else:
        with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
            yield from pool.map(job, files)


@cache
def shared_studio() -> Studio:
    """This process' own, opened once."""
    return open_studio()
