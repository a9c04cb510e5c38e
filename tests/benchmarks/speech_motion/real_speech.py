"""Real recordings in English with phone times by forced alignment, and pocketsphinx's own phone search beside it.

The recordings are Debian's asterisk-core-sounds-en-g722 (Allison Smith, CC BY-SA 3.0): evaluation only, nothing of
them is in the pack. Unpack it and asterisk-core-sounds-en with `dpkg -x` into a folder.
"""

from __future__ import annotations

import gzip
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray
from pocketsphinx import Config, Decoder, get_model_path

from pipeline.packs.embedded.training.phones import arpabet_class, labels

RATE = 16000
SECONDS = (1.5, 12.0)
SEED = 4


@dataclass
class Recording:
    """`samples` [n] at 16 kHz; `labels` and `searched`: classes in steps of 10 ms, by the transcript and without it."""

    samples: NDArray[np.floating[Any]]
    labels: NDArray[np.int8]
    searched: NDArray[np.int8]


def recordings(folder: Path, count: int) -> Iterator[Recording]:
    """So many of them, those that pocketsphinx cannot align left out."""
    (listing,) = folder.glob("usr/share/doc/asterisk-core-sounds-en/core-sounds-en.txt*")
    opened = gzip.open if listing.suffix == ".gz" else open
    with opened(listing, "rt", encoding="utf-8", errors="replace") as file:
        found = [re.match(r"\s*([\w/-]+)\s*:\s*([^\[\]<>{}()\d]+)$", line.strip()) for line in file]
    transcripts = {match[1]: match[2].strip() for match in found if match}
    (base,) = folder.glob("usr/share/asterisk/sounds/en_US*")
    names = sorted(name for name in transcripts if (base / f"{name}.g722").exists())
    random.Random(SEED).shuffle(names)
    aligner = Decoder(Config(lm=None, loglevel="FATAL"))
    searcher = Decoder(Config(allphone=get_model_path("en-us/en-us-phone.lm.bin"), lm=None, lw=2.0, pip=0.3,
                              beam=1e-20, pbeam=1e-20, loglevel="FATAL"))  # fmt: skip
    done = 0
    for name in names:
        samples = _decoded(base / f"{name}.g722")
        if not SECONDS[0] <= len(samples) / RATE <= SECONDS[1]:
            continue
        pcm = np.round(samples * 32767).astype(np.int16).tobytes()
        aligned = _aligned(aligner, transcripts[name], pcm)
        if aligned is None:
            continue
        length = len(samples) * 100 // RATE
        yield Recording(samples, labels(aligned, length), labels(_searched(searcher, pcm), length))
        done += 1
        if done == count:
            return


def _decoded(path: Path) -> NDArray[np.floating[Any]]:
    with av.open(str(path), format="g722") as file:
        blocks = [frame.to_ndarray().reshape(-1) for frame in file.decode(audio=0)]
    return np.concatenate(blocks).astype(np.float32) / 32768


def _aligned(decoder: Decoder, text: str, pcm: bytes) -> list[tuple[float, int]] | None:
    """(start in seconds, class) of each phone; None where a word is not in the dictionary or nothing fits."""
    words = re.sub(r"[^a-z' ]", " ", text.lower()).split()
    if not words or any(decoder.lookup_word(word) is None for word in words):
        return None
    try:
        decoder.set_align_text(" ".join(words))
        _process(decoder, pcm)
        decoder.set_alignment()
        _process(decoder, pcm)
        alignment = decoder.get_alignment()
    except RuntimeError:
        return None
    if alignment is None:
        return None
    return [(phone.start / 100, arpabet_class(phone.name)) for word in alignment for phone in word]


def _searched(decoder: Decoder, pcm: bytes) -> list[tuple[float, int]]:
    _process(decoder, pcm)
    return [(s.start_frame / 100, arpabet_class(s.word)) for s in decoder.seg() if not s.word.startswith("(")]


def _process(decoder: Decoder, pcm: bytes) -> None:
    decoder.start_utt()
    decoder.process_raw(pcm, full_utt=True)
    decoder.end_utt()
