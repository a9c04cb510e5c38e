"""Real recordings: English with phone times by forced alignment and pocketsphinx's own phone search beside it, other
languages with phone times warped from a synthesiser that reads the transcript.

The recordings are Debian's asterisk-core-sounds-en-g722 (Allison Smith), -fr-g722 (June Wallack), -ru-g722 (Maxim
Topal) and, for their transcripts, asterisk-core-sounds-en, -fr, -ru; CC BY-SA 3.0, the Russian ones CC BY 3.0.
Evaluation only: nothing of them is in the pack. Unpack them with `dpkg -x` into a folder.
"""

from __future__ import annotations

import gzip
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.packs.embedded.authoring.visemes import SILENCE
from pipeline.packs.embedded.training.alignment import RATE, Aligner, Starts
from pipeline.packs.embedded.training.corpus import espeak_speaker
from pipeline.packs.embedded.training.phones import LABEL_RATE, labels
from pipeline.packs.embedded.training.recordings import decoded

from .warping import warped

Floats = NDArray[np.floating[Any]]
Labels = NDArray[np.int8]

SECONDS = (1.5, 12.0)
SEED = 4

FOLDERS = {"en": "en_US*", "fr": "fr_CA*", "ru": "ru_RU*"}
"""Language of the recordings -> folder of the sounds; espeak-ng's voice has the language's name."""

EVALUATED = 120
"""The first so many recordings of English are measured; on the others choices were made."""


@dataclass
class Recording:
    """`samples` [n] at 16 kHz; `labels` and `searched`: classes in steps of 10 ms, by the transcript and without it."""

    samples: Floats
    labels: Labels
    searched: Labels


def recordings(folder: Path, count: int = EVALUATED) -> Iterator[Recording]:
    """So many English ones, those that pocketsphinx cannot align left out."""
    aligner = Aligner()
    found = ((samples, aligner.aligned(samples, text)) for samples, text in _spoken(folder, "en"))
    fitting = ((samples, starts) for samples, starts in found if starts is not None)
    for samples, starts in islice(fitting, count):
        length = len(samples) * LABEL_RATE // RATE
        yield Recording(samples, _known(starts, length), _known(aligner.searched(samples), length))


def other_recordings(folder: Path, language: str, count: int) -> Iterator[tuple[Floats, Labels]]:
    """So many of another language: samples, and classes in steps of 10 ms as a synthesiser times them."""
    say = espeak_speaker(language, random.Random(SEED), plain=True)
    for samples, text in islice(_spoken(folder, language), count):
        read, starts = say(text)
        yield samples, warped(labels(starts, len(read) * LABEL_RATE // RATE), read, samples)


def _spoken(folder: Path, language: str) -> Iterator[tuple[Floats, str]]:
    """Samples and transcripts in a fixed order."""
    (listing,) = folder.glob(f"usr/share/doc/asterisk-core-sounds-{language}/core-sounds-{language}.txt*")
    opened = gzip.open if listing.suffix == ".gz" else open
    with opened(listing, "rt", encoding="utf-8", errors="replace") as file:
        found = [re.match(r"\s*([\w/-]+)\s*:\s*([^\[\]<>{}()\d\ufffd]+)$", line.strip()) for line in file]
    texts = {match[1]: match[2].strip() for match in found if match}
    (base,) = (path for path in folder.glob(f"usr/share/asterisk/sounds/{FOLDERS[language]}") if path.is_dir())
    names = sorted(name for name in texts if (base / f"{name}.g722").exists())
    random.Random(SEED).shuffle(names)
    for name in names:
        samples = decoded(base / f"{name}.g722")
        if SECONDS[0] <= len(samples) / RATE <= SECONDS[1]:
            yield samples, texts[name]


def _known(starts: Starts, length: int) -> Labels:
    """Labels with silence for noise."""
    return np.maximum(labels(starts, length), np.int8(SILENCE))
