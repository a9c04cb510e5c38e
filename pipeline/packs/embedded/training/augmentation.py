"""Rooms, noise, codecs and other mouths, laid over clean speech; all in batches on the device."""

from __future__ import annotations

import math

import torch
from torch import Tensor

SAMPLE_RATE = 16000


class Augmentation:
    """Random changes, each drawn for every item of a batch by itself."""

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def uniform(self, count: int, low: float, high: float) -> Tensor:
        """[count, 1]."""
        return low + (high - low) * torch.rand(count, 1, device=self.device)

    def chance(self, count: int, probability: float) -> Tensor:
        """[count, 1] of 0 and 1."""
        return (torch.rand(count, 1, device=self.device) < probability).float()

    def sound(self, audio: Tensor, speech: Tensor) -> Tensor:
        """[B, N] -> [B, N]: a room, coloured noise, other voices, clipping, a coarse codec, another level.

        speech: [B, 1] 1 where an item may be background for another.
        """
        audio = self._room(audio)
        audio = audio / (audio.abs().amax(1, keepdim=True) + 1e-5)
        level = audio.square().mean(1, keepdim=True).sqrt() + 3e-3
        count = len(audio)
        noise = self._noise(audio) * level * 10 ** (-self.uniform(count, 2, 55) / 20) * self.chance(count, 0.85)
        noisy = audio + self._for_a_while(noise)
        others = sum(torch.roll(audio * speech, k, 0) for k in (1, 2, 3))
        noisy = noisy + others * 10 ** (-self.uniform(count, 12, 32) / 20) * self.chance(count, 0.15)
        noisy = torch.where(self.chance(count, 0.1) > 0, noisy.clamp(-0.35, 0.35), noisy)
        noisy = torch.where(self.chance(count, 0.1) > 0, self._codec(noisy), noisy)
        noisy = noisy * 10 ** (self.uniform(count, -45, 0) / 20)
        return torch.where(self.chance(count, 0.3) > 0, (noisy * 32768).round() / 32768, noisy)

    def _room(self, audio: Tensor) -> Tensor:
        count, length = audio.shape
        taps = SAMPLE_RATE // 2
        time = torch.arange(taps, device=self.device) / SAMPLE_RATE
        echo = torch.randn(count, taps, device=self.device) * torch.exp(-6.9 * time / self.uniform(count, 0.08, 0.8))
        echo[:, :16] = 0
        echo = echo / (echo.square().sum(1, keepdim=True).sqrt() + 1e-6) * 10 ** (self.uniform(count, -22, 1) / 20)
        echo = echo * self.chance(count, 0.5)
        echo[:, 0] += 1
        size = 1 << (length + taps).bit_length()
        return torch.fft.irfft(torch.fft.rfft(audio, size) * torch.fft.rfft(echo, size), size)[:, :length]

    def _noise(self, audio: Tensor) -> Tensor:
        """Of a random colour, level 1."""
        count, length = audio.shape
        spectrum = torch.fft.rfft(torch.randn(count, length, device=self.device))
        frequency = torch.fft.rfftfreq(length, 1 / SAMPLE_RATE, device=self.device)
        noise = torch.fft.irfft(spectrum * ((frequency + 50) / 1000) ** -self.uniform(count, -0.3, 1.3), length)
        return noise / noise.square().mean(1, keepdim=True).sqrt()

    def _for_a_while(self, noise: Tensor) -> Tensor:
        """Now and then it begins late or stops early."""
        count, length = noise.shape
        time = torch.linspace(0, 1, length, device=self.device)[None]
        begin, seconds = self.uniform(count, -0.5, 0.8), self.uniform(count, 0.05, 0.9)
        there = ((time > begin) & (time < begin + seconds)).float()
        return torch.where(self.chance(count, 0.3) > 0, noise * there, noise)

    @staticmethod
    def _codec(audio: Tensor) -> Tensor:
        """mu-law of 7 bits."""
        companded = torch.sign(audio) * torch.log1p(255 * audio.abs().clamp(max=1)) / math.log(256)
        companded = (companded * 63).round() / 63
        return torch.sign(companded) * (256 ** companded.abs() - 1) / 255

    def mouth(self, power: Tensor) -> Tensor:
        """[B, 257, T] spectra -> of longer or shorter vocal tracts, a little crooked."""
        count, bins, slices = power.shape
        f = torch.linspace(0, 1, bins, device=self.device)[None]
        size = torch.exp(self.uniform(count, -0.22, 0.22) * self.chance(count, 0.85))
        wobble = self.uniform(count, -0.015, 0.015) * self.chance(count, 0.6)
        warped = f * size + wobble * torch.sin(math.pi * f * self.uniform(count, 1, 5) + self.uniform(count, 0, 6.28))
        at = warped.clamp(0, 1) * (bins - 1)
        below = at.floor().clamp(max=bins - 2).long()
        part = (at - below)[:, :, None]
        index = below[:, :, None].expand(-1, -1, slices)
        return torch.gather(power, 1, index) * (1 - part) + torch.gather(power, 1, index + 1) * part

    def equaliser(self, power: Tensor) -> Tensor:
        """[B, 257, T]: smooth random gains over frequency, and now and then a band limit."""
        count, bins, _ = power.shape
        f = torch.linspace(0, 1, bins, device=self.device)[None].sqrt()
        gain = self.uniform(count, -1.6, 1.6) * (2 * f - 1)
        for k in (1, 2, 3):
            gain = gain + self.uniform(count, -0.8, 0.8) * torch.cos(math.pi * k * f + self.uniform(count, 0, 6.28))
        gain = gain * self.chance(count, 0.9)
        limit = torch.where(self.chance(count, 0.3) > 0, self.uniform(count, 0.4, 1), torch.full_like(gain[:, :1], 2))
        gain = gain - 12 * (torch.linspace(0, 1, bins, device=self.device)[None] > limit).float()
        return power * torch.exp(gain)[:, :, None]

    def masks(self, mel: Tensor) -> Tensor:
        """[B, 80, T]: bands and moments put out (SpecAugment)."""
        count, bands, slices = mel.shape
        band, slice_ = torch.arange(bands, device=self.device), torch.arange(slices, device=self.device)
        for _ in range(2):
            first, wide = self.uniform(count, 0, bands), self.uniform(count, 0, 9) * self.chance(count, 0.5)
            mel = mel * ~((band >= first) & (band < first + wide))[:, :, None]
        first, wide = self.uniform(count, 0, slices), self.uniform(count, 0, 10) * self.chance(count, 0.4)
        return mel * ~((slice_ >= first) & (slice_ < first + wide))[:, None]
