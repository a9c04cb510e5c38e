"""The original sound encoded for the film while it is decoded: Opus at 48 kHz."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import av
import numpy as np
from av.audio.codeccontext import AudioCodecContext
from av.audio.frame import AudioFrame
from av.packet import Packet

from ..values import Soundtrack

# Opus knows no other rate inside; WebM players expect it.
OPUS_RATE = 48000

# Transparent for music too, by channels; the picture takes several times as much.
BIT_RATES = {1: 96_000, 2: 128_000}

LAYOUTS = {1: "mono", 2: "stereo"}


def opus_context(channels: int) -> AudioCodecContext:
    """An open encoder, 20 ms a packet. Its `extradata` is the OpusHead of every soundtrack made with it."""
    context = av.CodecContext.create("libopus", "w")
    assert isinstance(context, AudioCodecContext)
    context.sample_rate = OPUS_RATE
    context.layout = LAYOUTS[channels]
    context.format = "flt"
    context.time_base = Fraction(1, OPUS_RATE)
    context.bit_rate = BIT_RATES[channels]
    context.options = {"application": "audio", "vbr": "on", "frame_duration": "20"}
    context.open()
    return context


class SoundtrackEncoder:
    """Takes frames of 48 kHz float sound and keeps only their packets.

    `channels`: 1 or 2, as the frames have. Call `push` for each frame and `finish` once.
    """

    def __init__(self, channels: int) -> None:
        self.channels = channels
        self._context = opus_context(channels)
        self._packets: list[tuple[bytes, int, int]] = []
        self._samples = 0

    def push(self, frame: AudioFrame) -> None:
        """Encodes a frame that follows the one before without a gap."""
        frame.pts = self._samples
        frame.time_base = Fraction(1, OPUS_RATE)
        self._samples += frame.samples
        self._keep(self._context.encode(frame))

    def finish(self) -> Soundtrack:
        """Everything pushed, to the last sample."""
        self._keep(self._context.encode(None))
        sizes = np.array([len(data) for data, _, _ in self._packets], np.int64)
        return Soundtrack(
            data=np.frombuffer(b"".join(data for data, _, _ in self._packets), np.uint8),
            sizes=sizes,
            pts=np.array([pts for _, pts, _ in self._packets], np.int64),
            durations=np.array([duration for _, _, duration in self._packets], np.int64),
            header=bytes(self._context.extradata or b""),
            channels=self.channels,
            sample_rate=OPUS_RATE,
        )

    def _keep(self, packets: list[Packet[Any]]) -> None:
        self._packets += [(bytes(packet), packet.pts or 0, packet.duration or 0) for packet in packets]
