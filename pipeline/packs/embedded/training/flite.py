"""Speech of flite with the time of every phone."""

from __future__ import annotations

import re
import subprocess
import wave
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

VOICES = {"kal16": 1.0, "kal": 0.5, "awb": 2.5, "rms": 2.5}
"""Voice -> how often it speaks in training."""

HELD_OUT_VOICE = "slt"

_PHONE = re.compile(r"([a-z@#]+)\d*:([\d.]+)")


def say(
    text: str, voice: str, file: Path, *, stretch: float = 1.0
) -> tuple[NDArray[np.int16], int, list[tuple[float, str]]]:
    """Samples [n], their rate in Hz, and (start in seconds, ARPABET) of each phone; `file` is written over.

    Raises:
        CalledProcessError: flite failed.
    """
    command = [
        "flite",
        "-voice",
        voice,
        "--setf",
        f"duration_stretch={stretch:.2f}",
        "-t",
        text,
        "-psdur",
        "-o",
        str(file),
    ]
    ends = _PHONE.findall(subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout)
    with wave.open(str(file)) as sound:
        rate = sound.getframerate()
        samples = np.frombuffer(sound.readframes(sound.getnframes()), "<i2")
    starts = [0.0, *(float(end) for _, end in ends)]
    return samples, rate, [(start, phone) for start, (phone, _) in zip(starts, ends, strict=False)]
