"""What can be asked of a build."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import PackError, SettingsError
from ..built import PRESETS

GAIN = 1.1
"""How many times as fast a rewritten model must be to take the place of one that runs as it is: less is noise."""


@dataclass(frozen=True)
class BuildOptions:
    """Options of `build`.

    Raises:
        SettingsError: one is out of its range. PackError: a file cannot be read.
    """

    preset: str
    psnr: float = 35.0
    """int8: the least PSNR of its pictures against float32, dB."""
    portraits: tuple[Path, ...] = ()
    """Pictures to calibrate on; none: the one that ships."""
    threads: int = 2
    """Of ONNX Runtime, in proofs."""
    pairs: int = 1
    """Alternating runs by which a generator's speed is told; 0 for none."""

    def __post_init__(self) -> None:
        if self.preset not in PRESETS:
            raise SettingsError(f"there is no preset {self.preset!r}; choose one of {', '.join(PRESETS)}")
        if not 10 <= self.psnr <= 100 or not math.isfinite(self.psnr):
            raise SettingsError(f"--psnr is {self.psnr:g}; give 10 to 100 dB")
        if self.threads < 1 or self.pairs < 0:
            raise SettingsError(
                f"{self.threads} threads and {self.pairs} pairs; give 1 thread or more, 0 pairs or more"
            )

    def to_json(self) -> dict[str, Any]:
        """Those that the result depends on."""
        made: dict[str, Any] = {"preset": self.preset}
        if self.preset == "int8":
            made["psnr"] = self.psnr
        if self.preset != "cpu":
            made["portraits"] = [_digest(path) for path in self.portraits]
        return made


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise PackError(f"{path} cannot be read ({error.strerror}); give another portrait") from error
