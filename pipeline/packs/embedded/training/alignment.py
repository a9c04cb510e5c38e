"""Phone times of real English by pocketsphinx (BSD; its wheel brings the acoustic model): with a transcript by forced
alignment, without one by phone search, which is less sure."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pocketsphinx import Config, Decoder, get_model_path

from . import flite
from .phones import arpabet_class

RATE = 16000
Starts = list[tuple[float, int]]
"""(start in seconds, class) of phones that follow one another."""

_FLITE_TO_CMU = {"ax": "AH", "axr": "ER", "ix": "IH", "dx": "D", "nx": "N", "el": "AH L", "en": "AH N", "em": "AH M",
                 "hv": "HH", "ux": "UW"}  # fmt: skip


def spoken_words(text: str) -> list[str]:
    """The words of a transcript as the dictionary writes them."""
    return re.sub(r"[^a-z' ]", " ", text.lower()).split()


class Aligner:
    """Forced alignment and phone search of recordings at 16 kHz."""

    def __init__(self, *, guess: Path | None = None) -> None:
        """guess: a file that may be written over; with it, words that are not in the dictionary are said as flite
        would."""
        self._aligner = Decoder(Config(lm=None, loglevel="FATAL"))
        self._searcher = Decoder(Config(allphone=get_model_path("en-us/en-us-phone.lm.bin"), lm=None, lw=2.0, pip=0.3,
                                        beam=1e-20, pbeam=1e-20, loglevel="FATAL"))  # fmt: skip
        self._guess = guess

    def aligned(self, samples: NDArray[np.floating[Any]], text: str) -> Starts | None:
        """None where a word is not known or nothing fits."""
        words = spoken_words(text)
        if not words or not all(self._known(word) for word in words):
            return None
        pcm = _pcm(samples)
        try:
            self._aligner.set_align_text(" ".join(words))
            _process(self._aligner, pcm)
            self._aligner.set_alignment()
            _process(self._aligner, pcm)
            alignment = self._aligner.get_alignment()
        except RuntimeError:
            return None
        if alignment is None:
            return None
        return [(phone.start / 100, arpabet_class(phone.name)) for word in alignment for phone in word]

    def searched(self, samples: NDArray[np.floating[Any]]) -> Starts:
        """The likeliest phones by the acoustic model and a phone bigram."""
        _process(self._searcher, _pcm(samples))
        return [(s.start_frame / 100, arpabet_class(s.word)) for s in self._searcher.seg() if s.word[0] != "("]

    def _known(self, word: str) -> bool:
        if self._aligner.lookup_word(word) is not None:
            return True
        if self._guess is None:
            return False
        phones = [phone for _, phone in flite.say(word, "kal", self._guess)[2] if phone != "pau"]
        said = " ".join(_FLITE_TO_CMU.get(phone, phone.upper()) for phone in phones)
        if said:
            self._aligner.add_word(word, said, True)
        return bool(said)


def _pcm(samples: NDArray[np.floating[Any]]) -> bytes:
    return np.round(samples * 32767).astype(np.int16).tobytes()


def _process(decoder: Decoder, pcm: bytes) -> None:
    decoder.start_utt()
    decoder.process_raw(pcm, full_utt=True)
    decoder.end_utt()
