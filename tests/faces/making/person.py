"""What one rendered person is made of; the persons themselves stand in people.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .heads import Shape

Color = tuple[float, float, float]


@dataclass(frozen=True)
class Skin:
    """Linear colours: `tone`, `deep` (mottled spots), `red` (cheeks, nose), `lip`."""

    tone: Color
    deep: Color
    red: Color
    lip: Color
    blush: float = 0.5
    lips: float = 0.8
    freckles: float = 0.0
    sockets: float = 0.35
    wrinkles: float = 0.05
    roughness: float = 0.52
    scatter: float = 0.12


@dataclass(frozen=True)
class Hair:
    """`patch`: scalp, beard, brows. `raised`, `crown`: bare forehead and crown, in face heights."""

    patch: str
    count: int
    growth: Mapping[str, float | str | int]
    raised: float = 0.0
    crown: float = 0.0
    moustache: bool = True
    chin_only: bool = False
    lip_only: bool = False


@dataclass(frozen=True)
class Light:
    """An area light: `yaw` from the camera's side, `height` above the face (degrees), `away` and `size` in
    decimetres of an adult's head."""

    yaw: float
    height: float
    power: float
    color: Color = (1.0, 0.95, 0.88)
    size: float = 7.0
    away: float = 14.0


@dataclass(frozen=True)
class Glasses:
    color: Color = (0.02, 0.02, 0.02)
    roundness: float = 0.75
    """1: round; below: squarer."""
    thickness: float = 0.022
    metal: bool = False


@dataclass(frozen=True)
class Person:
    """One portrait. Angles in degrees; `face`: the face's height in parts of the picture's."""

    name: str
    about: str
    shape: Shape
    skin: Skin
    hair: Sequence[Hair]
    hair_color: Color
    iris: Color = (0.09, 0.045, 0.02)
    gray: float = 0.0
    """Part of the strands that are white."""
    lights: Sequence[Light] = (Light(-35, 25, 900), Light(50, 5, 260, size=12), Light(160, 35, 500))
    ambient: Color = (0.18, 0.19, 0.21)
    background: tuple[Color, Color] = ((0.30, 0.32, 0.34), (0.12, 0.13, 0.15))
    cloth: Color = (0.05, 0.08, 0.16)
    glasses: Glasses | None = None
    stubble: float = 0.0
    yaw: float = 0.0
    pitch: float = 3.0
    roll: float = 0.0
    face: float = 0.42
    shift: tuple[float, float] = (0.0, 0.0)
    lens: float = 70.0
    stop: float = 5.6
    exposure: float = 0.0
    contrast: str = "Medium High Contrast"
    grain: float = 1.6
    """Noise of the sensor, in grey levels."""
    size: tuple[int, int] = (512, 512)
    pupil: float = 0.2
    gaze: tuple[float, float] = (0.0, 0.0)
    """Up and across, from the camera."""
    extra: Mapping[str, float] = field(default_factory=dict)
