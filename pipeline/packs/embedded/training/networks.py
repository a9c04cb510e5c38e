"""The three networks in torch: the encoder, and the denoiser's lips and life.

All are stacks of residual blocks of dilated convolutions; authoring/convolutions.py writes the same into graphs.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..authoring.architecture import (
    AUDIO_SIZE,
    ENCODER,
    LATENTS,
    LIFE,
    LIFE_COLUMNS,
    LIFE_CONDITIONS,
    LIPS,
    NORM_EPSILON,
    Stack,
)
from ..authoring.mel import BANDS
from ..authoring.visemes import CLASSES


class Block(nn.Module):
    """x + GLU(1x1(SiLU(conv(norm(x) modulated)))) over [B, C, T].

    whole: normalise over channels and time together, else each moment by itself.
    conditions: size of a vector that scales and shifts what is normalised, or 0.
    """

    def __init__(self, stack: Stack, dilation: int, dropout: float) -> None:
        super().__init__()
        width = stack.width
        self.whole = stack.whole
        self.weight = nn.Parameter(torch.ones(width, 1))
        self.bias = nn.Parameter(torch.zeros(width, 1))
        reach = dilation * (stack.kernel // 2)
        self.deep = nn.Conv1d(width, width, stack.kernel, padding=reach, dilation=dilation, groups=stack.groups)
        self.wide = nn.Conv1d(width, 2 * width, 1)
        self.dropout = nn.Dropout(dropout)
        self.modulation = nn.Linear(stack.conditions, 2 * width) if stack.conditions else None

    def forward(self, x: Tensor, condition: Tensor | None = None) -> Tensor:
        axes = (1, 2) if self.whole else (1,)
        centred = x - x.mean(axes, keepdim=True)
        y = centred * torch.rsqrt(centred.square().mean(axes, keepdim=True) + NORM_EPSILON)
        y = y * self.weight + self.bias
        if self.modulation is not None:
            scale, shift = self.modulation(condition)[:, :, None].chunk(2, 1)
            y = y * (1 + scale) + shift
        return x + self.dropout(F.glu(self.wide(F.silu(self.deep(y))), 1))


class Blocks(nn.Module):
    def __init__(self, stack: Stack, dropout: float) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block(stack, dilation, dropout) for dilation in stack.dilations])

    def forward(self, x: Tensor, condition: Tensor | None = None) -> Tensor:
        x = x.float()  # under autocast too: what the blocks add up is kept in full
        for block in self.blocks:
            x = block(x, condition)
        return x


class Encoder(nn.Module):
    """Log-mel [B, 80, 400] -> logits of classes [B, 13, 200] (20 ms), audio features [B, A, 100]."""

    def __init__(self) -> None:
        super().__init__()
        width = ENCODER.width
        self.first = nn.Conv1d(BANDS, width, 5, padding=2)
        self.second = nn.Conv1d(width, width, 5, stride=2, padding=2, groups=ENCODER.groups)
        self.body = Blocks(ENCODER, 0.1)
        self.classes = nn.Conv1d(width, len(CLASSES), 1)
        self.others = nn.Conv1d(width, 2 + LATENTS, 2, stride=2)

    def forward(self, mel: Tensor) -> tuple[Tensor, Tensor]:
        x = self.body(F.silu(self.second(F.silu(self.first(mel)))))
        logits = self.classes(x)
        shares = logits.float().softmax(1)
        others = self.others(x).float()
        features = torch.cat(
            [
                shares[:, :, 0::2],
                shares[:, :, 1::2],
                others[:, :1].sigmoid(),
                others[:, 1:2].tanh(),
                torch.ones_like(others[:, :1]),
                others[:, 2:].tanh(),
            ],
            1,
        )
        return logits, features


class Lips(nn.Module):
    """Audio features [B, A, 110] -> logits [B, 14, 110]: visemes, and whether the lips are closed."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv1d(AUDIO_SIZE, LIPS.width, 1)
        self.body = Blocks(LIPS, 0.1)
        self.last = nn.Conv1d(LIPS.width, len(CLASSES) + 1, 1)

    def forward(self, features: Tensor) -> Tensor:
        return self.last(self.body(self.first(features)))


class Life(nn.Module):
    """Noisy life and its mean without the network [B, 20, 110] (the first 10 frames known), conditions [B, 4, 110],
    alpha_bar [B] -> a correction of the clean life [B, 10, 110]."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv1d(2 * len(LIFE_COLUMNS) + LIFE_CONDITIONS + 1, LIFE.width, 1)
        self.step = nn.Sequential(nn.Linear(2, LIFE.conditions), nn.SiLU(), nn.Linear(LIFE.conditions, LIFE.conditions))
        self.body = Blocks(LIFE, 0.0)
        self.last = nn.Conv1d(LIFE.width, len(LIFE_COLUMNS), 1)
        nn.init.zeros_(self.last.weight)

    def forward(self, noisy: Tensor, conditions: Tensor, kept: Tensor) -> Tensor:
        """kept: [B] alpha_bar."""
        past = torch.zeros_like(conditions[:, :1])
        past[:, :, :10] = 1
        level = F.silu(self.step(torch.stack([kept.sqrt(), (1 - kept).sqrt()], 1)))
        return self.last(self.body(self.first(torch.cat([noisy, conditions, past], 1)), level))
