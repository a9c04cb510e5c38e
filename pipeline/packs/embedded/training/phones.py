"""Phones of the synthesisers -> visemes (authoring/visemes.py), and labels in time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..authoring.visemes import CLASSES, SILENCE

LABEL_RATE = 100
"""Labels a second."""

_ARPABET = {
    "silence": "pau sil ssil h#",
    "p b m": "p b m em",
    "f v": "f v",
    "th": "th dh",
    "t d": "t d n en dx nx",
    "k g": "k g ng hh hv q",
    "s z sh": "s z sh zh ch jh",
    "r l": "r l el er axr",
    "aa": "aa ah ax ay aw",
    "eh": "ae eh ey",
    "iy": "ih iy y ix",
    "ao": "ao ow oy",
    "uw": "uw uh w",
}
_ARPABET_CLASS = {phone: CLASSES.index(name) for name, phones in _ARPABET.items() for phone in phones.split()}

UNSURE = -1
"""Label of a sound of which nobody knows what it is; nothing is learned of it."""

_NOISES = ("+spn+", "+nsn+")
"""What pocketsphinx calls sounds that it takes for noise."""

_IPA = {
    "p b m": "pbmβʙɓɸ",
    "f v": "fvɱʋⱱ",
    "th": "θð",
    "t d": "tdnɾʈɖɳɲɗ",
    "k g": "kɡgŋhxçɣʔqɢʁχɦħʕɟcʝɴʜʢ",
    "s z sh": "szʃʒɕʑʂʐɬɮɧ",
    "r l": "ɹrɚɝɜlɫʎɽɭɻʀʟɺ",
    "aa": "aɐɑʌəäɞ",
    "eh": "æɛeɘ",
    "iy": "ɪijɨᵻɯɤ",
    "ao": "ɔoɒøœɵɶ",
    "uw": "uʊwyʉʏʍɥ",
}
_IPA_CLASS = {sign: CLASSES.index(name) for name, signs in _IPA.items() for sign in signs}

_AFFRICATES = ("tʃ", "dʒ", "ts", "dz", "tɕ", "dʑ", "tʂ", "dʐ", "ʈʂ", "ɖʐ", "tS", "dZ")


def arpabet_class(phone: str) -> int:
    """Class of a phone of CMUdict or flite, with or without a stress digit; UNSURE for a noise.

    Raises KeyError: not such a phone.
    """
    phone = phone.lower().rstrip("0123456789")
    return UNSURE if phone in _NOISES else _ARPABET_CLASS[phone]


def ipa_class(phone: str) -> int | None:
    """Class of a phone in IPA as espeak-ng writes it; None where it says nothing of the lips (a length mark)."""
    phone = phone.replace("ˈ", "").replace("ˌ", "").replace("͡", "").lstrip("ʰʲ")
    if not phone or phone[0] in "(_| ":
        return SILENCE
    if phone.startswith(_AFFRICATES):
        return CLASSES.index("s z sh")
    if phone.startswith("pf"):
        return CLASSES.index("f v")
    return next((_IPA_CLASS[sign] for sign in phone if sign in _IPA_CLASS), None)


def labels(starts: Sequence[tuple[float, int]], length: int) -> NDArray[np.int8]:
    """(start in seconds, class) of phones that follow one another -> [length] classes in steps of 10 ms."""
    result = np.zeros(length, np.int8)
    edges = [round(start * LABEL_RATE) for start, _ in starts] + [length]
    for (_, kind), begin, end in zip(starts, edges, edges[1:], strict=False):
        result[max(begin, 0) : max(end, 0)] = kind
    return result
