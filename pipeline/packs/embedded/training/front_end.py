"""The encoder's front end in torch, number for number what authoring/speech.py writes into the graph."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from ..authoring.mel import BINS, FLOOR, HOP, LEAST, LOUD_SLICES, PERIOD, RANGE, SPAN, WINDOW, mel_filters


class FrontEnd:
    """Log-mel energies of windows of sound, on a device."""

    def __init__(self, device: torch.device) -> None:
        self.filters = torch.tensor(mel_filters(), device=device)
        self.hann = torch.tensor(np.hanning(WINDOW + 1)[:-1], dtype=torch.float32, device=device)

    def power(self, audio: Tensor) -> Tensor:
        """[B, 160 T] samples -> [B, 257, T] power in slices of 10 ms; a full-scale sine sums to about 1."""
        reach = (WINDOW - HOP) // 2
        padded = F.pad(audio.unsqueeze(1), (reach, reach), mode="reflect").squeeze(1)
        spectra = torch.fft.rfft(padded.unfold(1, WINDOW, HOP) * self.hann, PERIOD)
        return (spectra.abs() * (4 / WINDOW)).square().transpose(1, 2)[:, :BINS] / 1.5

    def normalised(self, power: Tensor, floor: Tensor | float = FLOOR) -> Tensor:
        """[B, 257, T] -> [B, 80, T]: log-mel energies less each band's mean over the louder slices."""
        loudest = power.sum(1).topk(LOUD_SLICES, dim=1).values.mean(1)[:, None, None]
        mel = torch.log(torch.einsum("mf,bft->bmt", self.filters, power) + (floor * loudest + LEAST))
        level = mel.mean(1)
        middle = level.topk(level.shape[1] // 2, dim=1).values[:, -1:]
        bound = torch.maximum(middle, level.amax(1, keepdim=True) - SPAN)
        loud = (level >= bound).float()[:, None]
        mean = (mel * loud).sum(2, keepdim=True) / loud.sum(2, keepdim=True)
        return (mel - mean).clamp(*RANGE) / 3
