"""Picture and sound of a decoded film: the lips move when the voice is heard, at its start as at its end."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from numpy.typing import NDArray

from pipeline import RuntimeOptions, Settings, render
from pipeline.faces.finder import FaceFinder
from tests.media import write_wav

SECONDS = 8.2
SYLLABLES = (0.6, 7.4)
"""Middles of the syllables, seconds; the first lies in the first window of the motion, the other in the second."""
LENGTH = 0.24
UPPER_LIP, LOWER_LIP = 13, 14


def syllables() -> NDArray[np.float32]:
    """Two vowels of `LENGTH` in silence: [n] at 16 kHz."""
    time = np.arange(round(SECONDS * 16000)) / 16000
    vowel = sum(np.sin(2 * np.pi * 120 * k * time) / k for k in range(1, 20))
    loud = sum(np.clip(np.cos((time - middle) * np.pi / LENGTH), 0, 1) * (abs(time - middle) < LENGTH / 2)
               for middle in SYLLABLES)  # fmt: skip
    return (0.25 * vowel * loud).astype(np.float32)


def centre(times: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """Mean time, by what rises above half of the peak."""
    weights = np.clip(weights - (weights.min() + np.ptp(weights) / 2), 0, None)
    return float((times * weights).sum() / weights.sum())


def heard(path: Path) -> list[float]:
    """Middles of the syllables in the film's sound, seconds."""
    with av.open(str(path)) as film:
        blocks = [(frame.time, frame.to_ndarray().mean(axis=0)) for frame in film.decode(audio=0)]
    level = np.concatenate([samples for _, samples in blocks]) ** 2
    times = blocks[0][0] + np.arange(len(level)) / 48000
    near = [abs(times - middle) < 0.3 for middle in SYLLABLES]
    return [centre(times[part], level[part]) for part in near]


def seen(path: Path, fps: Fraction, finder: FaceFinder) -> list[float]:
    """Middles of the openings of the mouth in the film's picture, seconds."""
    shown: list[tuple[float, float]] = []
    with av.open(str(path)) as film:
        for frame in film.decode(video=0):
            # A frame is shown from its timestamp on for one frame's length; its middle is what counts.
            time = frame.time + 0.5 / float(fps)
            if min(abs(time - middle) for middle in SYLLABLES) < 0.3:
                (face,) = finder.find(frame.to_ndarray(format="rgb24"))
                shown.append((time, float(face.points[LOWER_LIP, 1] - face.points[UPPER_LIP, 1])))
    times, gaps = np.array(shown).T
    near = [abs(times - middle) < 0.3 for middle in SYLLABLES]
    assert all(np.ptp(gaps[part]) > 4 for part in near)  # pixels of 256: the mouth does open
    return [centre(times[part], gaps[part]) for part in near]


@pytest.mark.parametrize("fps", ["25", "29.97", "30"])
def test_lips_move_with_the_voice_from_the_start_to_the_end(
    fps: str, sample_portrait_path: Path, face_finder: FaceFinder, tmp_path: Path
) -> None:
    voice = write_wav(tmp_path / "voice", syllables(), 16000)
    settings = Settings(preset="preview", frame="crop", fps=fps)  # type: ignore[arg-type]
    film = tmp_path / "film.webm"
    render(sample_portrait_path, voice, film, settings, options=RuntimeOptions(threads=2))
    sound, picture = heard(film), seen(film, settings.fps, face_finder)
    np.testing.assert_allclose(sound, SYLLABLES, atol=0.005)
    late = np.subtract(picture, sound)
    assert np.abs(late).max() < 0.04  # one frame at 25 fps
    assert abs(late[1] - late[0]) < 0.02  # no drift
