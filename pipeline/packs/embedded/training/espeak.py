"""Speech of espeak-ng with the time of every phone, through libespeak-ng's callback.

The library has one state a process and sometimes crashes: call it from processes that may die.
"""

from __future__ import annotations

import ctypes
import ctypes.util
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

LIBRARY = "libespeak-ng.so.1"

ENGLISH = "en-us"

HELD_OUT_LANGUAGES = ("ru",)
"""Spoken in evaluation only."""

_SYNCHRONOUS, _PHONE_EVENTS_IN_IPA = 2, 3
_UTF8 = 1
_RATE, _PITCH, _RANGE = 1, 3, 4
_END_OF_LIST, _WORD, _PHONE = 0, 1, 7


class _Identity(ctypes.Union):
    _fields_ = (("number", ctypes.c_int), ("name", ctypes.c_char_p), ("string", ctypes.c_char * 8))


class _Event(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_int),
        ("unique_identifier", ctypes.c_uint),
        ("text_position", ctypes.c_int),
        ("length", ctypes.c_int),
        ("audio_position", ctypes.c_int),
        ("sample", ctypes.c_int),
        ("user_data", ctypes.c_void_p),
        ("id", _Identity),
    )


_Callback = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.POINTER(_Event)
)  # fmt: skip


class Espeak:
    """The library, once a process: `Espeak.open()`."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(LIBRARY)
        self.sample_rate: int = self._library.espeak_Initialize(_SYNCHRONOUS, 0, None, _PHONE_EVENTS_IN_IPA)
        self._blocks: list[NDArray[np.int16]] = []
        self._phones: list[tuple[int, str]] = []
        self._callback = _Callback(self._heard)  # kept, or it would be collected while the library holds it
        self._library.espeak_SetSynthCallback(self._callback)

    @staticmethod
    @cache
    def open() -> Espeak:
        return Espeak()

    def _heard(self, samples: Any, count: int, events: Any) -> int:
        if samples and count > 0:
            self._blocks.append(np.ctypeslib.as_array(samples, (count,)).copy())
        i = 0
        while events[i].type != _END_OF_LIST:
            if events[i].type == _PHONE:
                name = bytes(events[i].id.string).split(b"\0")[0].decode("utf-8", "ignore")
                self._phones.append((events[i].sample, name))
            i += 1
        return 0

    def say(
        self, text: str, voice: str, *, words_a_minute: int = 150, pitch: int = 50, liveliness: int = 50
    ) -> tuple[NDArray[np.int16], list[tuple[float, str]]]:
        """Samples [n] at `sample_rate`, and (start in seconds, IPA) of each phone.

        Raises:
            LookupError: no such voice.
        """
        self._blocks.clear()
        self._phones.clear()
        if self._library.espeak_SetVoiceByName(voice.encode()) != 0:
            raise LookupError(f"espeak-ng has no voice {voice!r}; see `espeak-ng --voices`")
        for parameter, value in ((_RATE, words_a_minute), (_PITCH, pitch), (_RANGE, liveliness)):
            self._library.espeak_SetParameter(parameter, value, 0)
        data = text.encode()
        self._library.espeak_Synth(data, len(data) + 1, 0, 1, 0, _UTF8, None, None)
        self._library.espeak_Synchronize()
        samples = np.concatenate(self._blocks) if self._blocks else np.zeros(0, np.int16)
        return samples, [(sample / self.sample_rate, name) for sample, name in self._phones]
