"""Takes on the device, and random stretches of them as batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ..authoring.visemes import CLOSED
from .phones import UNSURE
from .targets import FRAME_STEPS, closed_frames

STEP = 160
OVERHANG_SECONDS = 0.4
"""A stretch may begin so long before its take, or end so long after it."""


@dataclass
class Batch:
    """A batch of stretches of T steps (10 ms), M = T / 4 frames.

    `audio` [B, 160 T] clean, peak about 0.6; `labels` [B, T]; `shares` [B, M, 13]; `closed` [B, M] truth;
    `sure` [B, M] 0..1 how much of a frame has a label; `loudness` [B, M] 0..1; `pitch` [B, M] -1..1;
    `speech` [B, 1]: 0 = music.
    """

    audio: Tensor
    labels: Tensor
    shares: Tensor
    closed: Tensor
    sure: Tensor
    loudness: Tensor
    pitch: Tensor
    speech: Tensor


class Takes:
    """All takes of a group, one after another in the device's memory."""

    def __init__(self, folder: Path, group: str, device: torch.device) -> None:
        files = [np.load(path) for path in sorted(folder.glob(f"{group}_*.npz"))]
        self.device = device

        def joined(name: str) -> Tensor:
            return torch.tensor(np.concatenate([file[name] for file in files])).to(device)

        self.audio, self.labels, self.shares, self.pitch = (
            joined(name) for name in ("audio", "labels", "shares", "pitch")
        )
        self.lengths = joined("lengths")
        self.starts = self.lengths.cumsum(0) - self.lengths

    @property
    def hours(self) -> float:
        return len(self.labels) / 360000

    def stretches(self, count: int, steps: int, warp: float) -> tuple[Tensor, ...]:
        """audio [B, 160 T], labels [B, T], shares [B, T, 13], pitch [B, T]; speed and pitch changed by up to
        exp(+-warp) together."""
        device = self.device
        which = torch.multinomial(self.lengths.float(), count, replacement=True)
        length, base = self.lengths[which].float()[:, None], self.starts[which][:, None]
        speed = torch.exp((torch.rand(count, 1, device=device) * 2 - 1) * warp)
        over = OVERHANG_SECONDS * 100
        low = torch.minimum(torch.full_like(length, -over), length - steps * speed)
        high = torch.maximum(length - steps * speed + over, torch.zeros_like(length))
        first = low + (high - low) * torch.rand(count, 1, device=device)

        at = (first + torch.arange(steps * STEP, device=device) / STEP * speed) * STEP
        below = at.floor()
        inside = (below >= 0) & (below < length * STEP - 1)
        index = torch.where(inside, below, 0).long() + base * STEP
        left, right = self.audio[index].float(), self.audio[(index + 1).clamp(max=len(self.audio) - 1)].float()
        audio = torch.lerp(left, right, at - below) * inside / 32768

        at = first + (torch.arange(steps, device=device) + 0.5) * speed
        inside = (at >= 0) & (at < length)
        index = torch.where(inside, at.floor(), 0).long() + base
        labels = torch.where(inside, self.labels[index].long(), 0)
        silent = torch.zeros(self.shares.shape[1], device=device)
        silent[0] = 1
        shares = torch.where(inside[:, :, None], self.shares[index].float() / 255, silent)
        return audio, labels, shares, torch.where(inside, self.pitch[index].float() / 127, 0)


def mixed_batch(
    groups: Mapping[str, Takes], parts: Mapping[str, int], steps: int, warp: float, music: Sequence[str] = ("music",)
) -> Batch:
    """`parts` of each group, together."""
    drawn = [groups[name].stretches(count, steps, warp) for name, count in parts.items()]
    audio, labels, shares, pitch = (torch.cat(tables) for tables in zip(*drawn, strict=True))
    speech = torch.cat([torch.full((n, 1), float(name not in music), device=audio.device) for name, n in parts.items()])
    count, frames = len(audio), steps // FRAME_STEPS
    cover = (labels == CLOSED).float().view(count, frames, FRAME_STEPS).mean(2)
    power = audio.view(count, frames, -1).square().mean(2)
    decibels = 10 * torch.log10(power + 1e-7)
    loudest = decibels.topk(max(1, frames // 10), dim=1).values.mean(1, keepdim=True)
    said = (labels != 0).float().view(count, frames, FRAME_STEPS).mean(2)
    return Batch(
        audio=audio,
        labels=labels,
        shares=shares.view(count, frames, FRAME_STEPS, -1).mean(2),
        closed=closed_frames(torch.nn.functional.pad(cover, (1, 1))),
        sure=(labels != UNSURE).float().view(count, frames, FRAME_STEPS).mean(2),
        loudness=((decibels - loudest + 30) / 30).clamp(0, 1) * said,
        pitch=pitch.view(count, frames, FRAME_STEPS).mean(2),
        speech=speech,
    )
