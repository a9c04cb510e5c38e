"""Stage 1, Sound: any recording -> what the models hear, and the original sound encoded for the film.

Both come from one decoding pass. The original is never held whole as samples: it leaves the pass as Opus
packets, so 30 minutes take the 16 kHz copy (115 MB) and the packets (29 MB).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import BinaryIO

import numpy as np
from av.audio.frame import AudioFrame
from av.audio.resampler import AudioResampler

from ..errors import SoundError
from ..values import F32, Sound, Soundtrack
from .decoding import decoded_frames, header_duration, name_of, opened_sound
from .soundtrack import LAYOUTS, OPUS_RATE, SoundtrackEncoder

# The rate that speech encoders (wav2vec 2.0 and its kin) are trained at.
SPEECH_RATE = 16000

# Seconds. Below this there is not one syllable, and fewer frames than a person sees as movement.
SHORTEST = 0.2

# Seconds. A longer talk is better cut; memory and render times are tested up to here.
LONGEST = 30 * 60.0

# Peak of the 16 kHz copy. -60 dBFS: dither and the hum of an unplugged input lie below, the faintest speech
# that can be made out lies above.
SILENCE_PEAK = 1e-3


@dataclass(frozen=True)
class SoundFacts:
    """What a recording's header says, read without decoding it.

    `duration`: seconds, None where the header does not say; some headers only estimate it.
    """

    codec: str
    sample_rate: int
    channels: int
    duration: float | None


def probe_sound(source: Path | BinaryIO) -> SoundFacts:
    """A quick look before work is queued; raises SoundError as `read_sound` does for files it cannot open."""
    with opened_sound(source) as (container, stream):
        context = stream.codec_context
        return SoundFacts(context.name, context.sample_rate, context.channels, header_duration(container, stream))


def read_sound(
    source: Path | BinaryIO, *, sample_rate: int = SPEECH_RATE, longest: float = LONGEST
) -> tuple[Sound, Soundtrack]:
    """Decodes a recording once, from its first sample to its last.

    `source`: a file, or a seekable binary file object; any container and codec PyAV reads, a video included
    (first audio stream). `sample_rate`: Hz of the copy for the models, which is the mean of the channels and
    keeps its loudness. The soundtrack stays mono or stereo; more channels are mixed down to stereo.
    `longest`: seconds; decoding stops as soon as they are passed.

    Raises SoundError: unreadable, empty, no audio stream, damaged, shorter than `SHORTEST`, longer than
    `longest`, or nothing in it louder than `SILENCE_PEAK`.
    """
    name = name_of(source)
    speech: list[F32] = []
    duration = Fraction(0)
    encoder: SoundtrackEncoder | None = None
    converter: _Converter | None = None
    with opened_sound(source) as (container, stream):
        for frame in decoded_frames(container, stream, name):
            duration += Fraction(frame.samples, frame.sample_rate)
            if duration > longest:
                raise SoundError(f"{name} is longer than {longest / 60:g} minutes. Cut it into parts and render each.")
            if encoder is None:
                encoder = SoundtrackEncoder(1 if frame.layout.nb_channels == 1 else 2)
            if converter is None or not converter.takes(frame):
                # Some streams change rate or layout midway; what the resamplers hold belongs before it.
                if converter is not None:
                    _collect(converter.convert(None), speech, encoder)
                converter = _Converter(frame, sample_rate, encoder.channels)
            _collect(converter.convert(frame), speech, encoder)
        if converter is None or encoder is None:
            raise SoundError(f"{name} holds no sound that can be decoded. Save or download it again.")
        _collect(converter.convert(None), speech, encoder)
    if float(duration) < SHORTEST:
        raise SoundError(f"{name} lasts {float(duration):.3f} s; at least {SHORTEST:g} s of speech are needed.")
    samples = np.concatenate(speech)
    if np.abs(samples).max() < SILENCE_PEAK:
        raise SoundError(
            f"{name} is silent: nothing in it is louder than -60 dBFS. "
            "Check the microphone, or choose another recording."
        )
    return Sound(samples, sample_rate, float(duration)), encoder.finish()


class _Converter:
    """Two resamplers side by side, for frames that look like the first one.

    libswresample starts both at the first sample and, flushed, gives all of them, so the copies stay aligned.
    """

    def __init__(self, like: AudioFrame, speech_rate: int, channels: int) -> None:
        self._like = _looks(like)
        # Planar with the channels kept: the mean is taken here, since FFmpeg's own mono is louder than that.
        self._speech = AudioResampler("fltp", LAYOUTS[channels], speech_rate)
        self._original = AudioResampler("flt", LAYOUTS[channels], OPUS_RATE)

    def takes(self, frame: AudioFrame) -> bool:
        return _looks(frame) == self._like

    def convert(self, frame: AudioFrame | None) -> tuple[list[AudioFrame], list[AudioFrame]]:
        """Frames at the speech rate and frames at 48 kHz; None flushes."""
        if frame is not None:
            frame.pts = None
        return self._speech.resample(frame), self._original.resample(frame)


def _looks(frame: AudioFrame) -> tuple[str, str, int]:
    return frame.format.name, frame.layout.name, frame.sample_rate


def _collect(
    converted: tuple[list[AudioFrame], list[AudioFrame]], speech: list[F32], encoder: SoundtrackEncoder
) -> None:
    for frame in converted[0]:
        speech.append(frame.to_ndarray().mean(axis=0, dtype=np.float32))
    for frame in converted[1]:
        encoder.push(frame)
