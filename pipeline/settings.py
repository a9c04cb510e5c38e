"""What a user chooses for one film: checked once, JSON both ways."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from typing import Any

from .errors import SettingsError
from .packs.specs import GREATEST_SMOOTHING
from .stages.film_format import exact_fps

Rgb = tuple[int, int, int]

MID_GREY: Rgb = (128, 128, 128)
FRAMES = ("portrait", "crop")


def parse_background(text: str) -> Rgb:
    """A colour: "#808080", "808080", "128,128,128", or a name that Pillow knows.

    Raises:
        SettingsError: none of these.
    """
    from PIL import ImageColor

    try:
        if "," in text:
            red, green, blue = (int(part) for part in text.split(","))
            return _checked_rgb((red, green, blue))
        bare = len(text) in (3, 6) and all(c in "0123456789abcdefABCDEF" for c in text)
        red, green, blue = ImageColor.getrgb(f"#{text}" if bare else text)[:3]
        return red, green, blue
    except (ValueError, TypeError):
        hint = "give for instance grey, #808080 or 128,128,128"
        raise SettingsError(f"background {text!r} is not a colour; {hint}") from None


def _checked_rgb(value: Any) -> Rgb:
    if (
        not isinstance(value, list | tuple)
        or len(value) != 3
        or not all(type(v) is int and 0 <= v <= 255 for v in value)
    ):
        raise SettingsError(f"background {value!r} is not a colour; give three whole numbers from 0 to 255")
    return value[0], value[1], value[2]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """One film's settings.

    preset: a picture size of the pack: "preview" (256 px) or "quality" (512 px).
    fps: the film's frame rate, 1 to 60, exact.
    keyframe_fps: rate of the frames that the generator renders, above 0; None = the pack's default.
    seed: of the motion; 0 to 2^63 - 1.
    strength: of the motion; 0 to 2, 1 as it is.
    guidance: of the diffusion sampler, 0 to 10; None = the pack's default.
    smoothing: of the head's motion, 0 (none) to 0.999; None = the pack's default.
    frame: "portrait" (the whole picture) or "crop" (the square that the generator makes).
    max_side: long side of a portrait film at most, in pixels; 64 to 4096.
    face: which face, from 1, left to right; None = the only one.
    background: RGB behind transparent pictures.
    synthetic_note: whether the film's metadata say that it is synthetic.
    """

    preset: str = "quality"
    fps: Fraction = Fraction(25)
    keyframe_fps: float | None = None
    seed: int = 0
    strength: float = 1.0
    guidance: float | None = None
    smoothing: float | None = None
    frame: str = "portrait"
    max_side: int = 1280
    face: int | None = None
    background: Rgb = MID_GREY
    synthetic_note: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "fps", exact_fps(self.fps))
        object.__setattr__(self, "background", _checked_rgb(self.background))
        self._check("keyframe_fps", 0.1, 60, optional=True)
        self._check("seed", 0, 2**63 - 1, whole=True)
        self._check("strength", 0, 2)
        self._check("guidance", 0, 10, optional=True)
        self._check("smoothing", 0, GREATEST_SMOOTHING, optional=True)
        self._check("max_side", 64, 4096, whole=True)
        self._check("face", 1, 1000, whole=True, optional=True)
        if not isinstance(self.preset, str):
            raise SettingsError(f"preset {self.preset!r} is not a name; give for instance preview or quality")
        if not isinstance(self.synthetic_note, bool):
            raise SettingsError(f"synthetic_note {self.synthetic_note!r} is unknown; give true or false")
        if self.frame not in FRAMES:
            raise SettingsError(f"frame {self.frame!r} is unknown; give one of: {', '.join(FRAMES)}")

    def _check(self, name: str, low: float, high: float, *, whole: bool = False, optional: bool = False) -> None:
        value = getattr(self, name)
        if value is None and optional:
            return
        if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
            kind = "whole number" if whole else "number"
            raise SettingsError(f"{name} {value!r} is not a {kind}; give one from {low} to {high}")
        if not math.isfinite(value) or not low <= value <= high:
            raise SettingsError(f"{name} {value} is out of range; give a value from {low} to {high}")

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "fps": str(self.fps), "background": list(self.background)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Settings:
        """Raises SettingsError: an unknown name or a value out of range."""
        known = [field.name for field in fields(cls)]
        if unknown := sorted(set(data) - set(known)):
            wrong = ", ".join(unknown)
            raise SettingsError(f"unknown settings: {wrong}; this version knows {', '.join(known)}")
        return cls(**data)
