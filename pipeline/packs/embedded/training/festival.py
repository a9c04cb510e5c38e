"""Speech of festival with the voice's own phone times (`utt.save.segs`)."""

from __future__ import annotations

import re
import subprocess
import wave
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

VOICES = ("ked_diphone",)
"""Diphones of a recorded man (University of Edinburgh, BSD-like). kal_diphone is flite's kal16 and left out; the slt
voice is the one held out."""

_SEGMENT = re.compile(r"^\s*([\d.]+)\s+\S+\s+(\S+)\s*$", re.MULTILINE)


def say(
    text: str, voice: str, file: Path, *, stretch: float = 1.0
) -> tuple[NDArray[np.int16], int, list[tuple[float, str]]]:
    """Samples [n], their rate in Hz, and (start in seconds, ARPABET) of each phone; `file` is written over, and
    beside it one that ends in .segs.

    Raises:
        CalledProcessError: festival failed.
    """
    segments = file.with_suffix(".segs")
    plain = re.sub(r'["\\]', " ", text)
    script = (
        f"(voice_{voice}) (Parameter.set 'Duration_Stretch {stretch:.2f})"
        f'(set! said (utt.synth (Utterance Text "{plain}")))'
        f'(utt.save.wave said "{file}" \'riff) (utt.save.segs said "{segments}")'
    )
    subprocess.run(["festival", "--pipe"], input=script, text=True, check=True, capture_output=True, timeout=60)
    with wave.open(str(file)) as sound:
        rate = sound.getframerate()
        samples = np.frombuffer(sound.readframes(sound.getnframes()), "<i2")
    ends = _SEGMENT.findall(segments.read_text("utf-8"))
    starts = [0.0, *(float(end) for end, _ in ends)]
    return samples, rate, [(start, phone) for start, (_, phone) in zip(starts, ends, strict=False)]
