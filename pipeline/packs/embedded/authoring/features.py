"""What the speech encoder says of a frame, and the denoiser understands. Each feature lies in 0..1.

level     loudness, 0 = pause or background, 1 = the louder frames of the window
voicing   how periodic the sound is (vowels, nasals) rather than noise
open      first formant high, as in "ah"; low in "ee", "oo" and murmurs
front     second formant high, as in "ee"
round     little above the first formant, as in "oh", "oo"
hiss      energy above 3 kHz, as in s, sh
breath    weak noise without pitch, as in f, h
closure   the bands that an open mouth lets out drop while speech goes on: p, b, m, and other stops
"""

from __future__ import annotations

FEATURES = ("level", "voicing", "open", "front", "round", "hiss", "breath", "closure")
