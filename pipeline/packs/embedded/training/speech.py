"""Trains the encoder and the lips together: from sound to phones, and from phones to what lips do."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..authoring.architecture import LOUDNESS, PITCH
from ..authoring.visemes import CLASSES, CLOSED
from .augmentation import Augmentation
from .batches import Batch, Takes, mixed_batch
from .front_end import FrontEnd
from .networks import Encoder, Lips
from .phones import UNSURE

WINDOWS, WINDOW_STEPS, WINDOW_FRAMES, PREVIOUS = 2, 400, 100, 10
SHARES = {"espeak": 0.24, "flite": 0.27, "festival": 0.07, "aligned": 0.1, "searched": 0.19, "syllables": 0.07,
          "music": 0.06}  # fmt: skip
"""What a batch is made of."""

BATCH = 64
WARP = 0.2
PEAK_RATE, WARM_UP, WEIGHT_DECAY, CLIP = 1.6e-3, 0.05, 0.02, 1.0
AGAIN_RATE = 5e-4
"""Peak rate for networks that have learned already."""

AVERAGED_PART = 3.5
"""The weights are an exponential mean over the last 1 / AVERAGED_PART of a run."""

SMOOTHING = 0.05
RARE = {"th": 1.8, "uw": 1.4, "f v": 1.2}
"""Rare sounds weigh so much more than the others, or they would be taken for their neighbours."""

CLOSED_WEIGHT = 3.0
"""A missed closure counts so much more than a false one."""

EDGE_FRAMES, EDGE_WEIGHT = 6, 2.0
"""The first and last frames of a window lack what is beside them; they weigh so much more."""

REPORT_EVERY = 500


class SpeechNetworks(nn.Module):
    """Encoder and lips; windows of a batch follow one another."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = Encoder()
        self.lips = Lips()

    def forward(self, mel: Tensor, windows: int) -> tuple[Tensor, Tensor, Tensor]:
        """mel [B W, 80, 400], an item's windows side by side -> class logits [B W, 13, 200], features
        [B W, A, 100], lip logits [B W, 14, 100]."""
        logits, features = self.encoder(mel)
        stacked = features.view(-1, windows, *features.shape[1:])
        start = torch.zeros_like(stacked[:, :1, :, :PREVIOUS])
        previous = torch.cat([start, stacked[:, :-1, :, -PREVIOUS:]], 1).flatten(0, 1)
        return logits, features, self.lips(torch.cat([previous, features], 2))[:, :, PREVIOUS:]


def losses(outputs: tuple[Tensor, Tensor, Tensor], batch: Batch) -> dict[str, Tensor]:
    """What each part of the networks gets wrong."""
    logits, features, lips = (table.float() for table in outputs)
    labels = batch.labels.view(len(logits), -1)
    shares = batch.shares.reshape(len(lips), WINDOW_FRAMES, -1).transpose(1, 2)
    rare = torch.tensor([RARE.get(name, 1.0) for name in CLASSES], device=lips.device)
    halves = [F.cross_entropy(logits, labels[:, part::2].long(), rare, ignore_index=UNSURE, label_smoothing=SMOOTHING)
              for part in (0, 1)]  # fmt: skip
    weight = torch.ones(WINDOW_FRAMES, device=lips.device)
    weight[:EDGE_FRAMES] = weight[-EDGE_FRAMES:] = EDGE_WEIGHT
    weight = weight * batch.sure.view(len(lips), -1) / weight.mean()
    missed = torch.tensor(CLOSED_WEIGHT, device=lips.device)
    closed = batch.closed.view(len(lips), -1).float()
    shut = F.binary_cross_entropy_with_logits(lips[:, -1], closed, pos_weight=missed, reduction="none")
    visemes = -(shares * rare[:, None] * F.log_softmax(lips[:, :-1], 1)).sum(1)
    return {
        "classes": (halves[0] + halves[1]) / 2,
        "visemes": (visemes * weight).mean(),
        "closed": 0.5 * (shut * weight).mean(),
        "loudness": 2 * F.mse_loss(features[:, LOUDNESS], batch.loudness.view(len(lips), -1)),
        "pitch": F.mse_loss(features[:, PITCH], batch.pitch.view(len(lips), -1)),
    }


def heard(batch: Batch, front: FrontEnd, change: Augmentation) -> Tensor:
    """What reaches the encoder of a batch: [B W, 80, 400], augmented."""
    power = front.power(change.sound(batch.audio, batch.speech))
    power = change.equaliser(change.mouth(power))
    windows = power.unflatten(2, (-1, WINDOW_STEPS)).transpose(1, 2).flatten(0, 1)
    floor = 10 ** change.uniform(len(windows), -8, -5.5)
    return change.masks(front.normalised(windows, floor[:, :, None]))


def train_speech(
    groups: Mapping[str, Takes],
    steps: int,
    seconds: float,
    device: torch.device,
    start: Mapping[str, Tensor] | None = None,
) -> SpeechNetworks:
    """So many steps, or as many as are done in so many seconds; `start`: weights to go on from."""
    torch.manual_seed(0)
    networks = SpeechNetworks().to(device)
    if start is not None:
        networks.load_state_dict(start)
    peak = PEAK_RATE if start is None else AGAIN_RATE
    averaging = 1 - AVERAGED_PART / max(steps, 2 * AVERAGED_PART)
    average = [p.detach().clone() for p in networks.parameters()]
    optimiser = torch.optim.AdamW(networks.parameters(), peak, weight_decay=WEIGHT_DECAY, betas=(0.9, 0.98))
    front, change = FrontEnd(device), Augmentation(device)
    parts = {name: max(1, round(share * BATCH)) for name, share in SHARES.items() if name in groups}
    started, step = time.monotonic(), 0
    while True:
        done = max(step / steps, (time.monotonic() - started) / seconds)
        if done >= 1:
            break
        rate = peak * min(1.0, done / WARM_UP + 0.01) * (0.5 + 0.5 * math.cos(math.pi * done)) + 1e-6
        for group in optimiser.param_groups:
            group["lr"] = rate
        with torch.no_grad():
            batch = mixed_batch(groups, parts, WINDOWS * WINDOW_STEPS, WARP)
            mel = heard(batch, front, change)
        with torch.autocast(device.type, torch.bfloat16):
            outputs = networks(mel, WINDOWS)
        wrong = losses(outputs, batch)
        optimiser.zero_grad(set_to_none=True)
        sum(wrong.values(), torch.zeros((), device=device)).backward()
        nn.utils.clip_grad_norm_(networks.parameters(), CLIP)
        optimiser.step()
        step += 1
        with torch.no_grad():
            keep = min(averaging, 1 - 1 / (step + 1))
            torch._foreach_lerp_(average, list(networks.parameters()), 1 - keep)
        if step % REPORT_EVERY == 1:
            report = ", ".join(f"{name} {value.item():.3f}" for name, value in wrong.items())
            print(f"speech {step} ({time.monotonic() - started:.0f} s): {report}", flush=True)
    with torch.no_grad():
        for parameter, mean in zip(networks.parameters(), average, strict=True):
            parameter.copy_(mean)
    print(f"speech: {step} steps in {time.monotonic() - started:.0f} s", flush=True)
    return networks.eval()


@torch.no_grad()
def validate(networks: SpeechNetworks, takes: Takes, device: torch.device) -> str:
    """Accuracy by frame and lip closure by frame on clean stretches of takes: a line for the log."""
    torch.manual_seed(1)
    front = FrontEnd(device)
    batch = mixed_batch({"held out": takes}, {"held out": 96}, WINDOWS * WINDOW_STEPS, 0.0)
    windows = front.power(batch.audio).unflatten(2, (-1, WINDOW_STEPS)).transpose(1, 2).flatten(0, 1)
    _, _, lips = networks(front.normalised(windows), WINDOWS)
    true = batch.shares.argmax(2).view(len(lips), -1)
    line = f"accuracy {(lips[:, :-1].argmax(1) == true).float().mean():.3f}"
    there = F.max_pool1d((batch.labels == CLOSED).float().view(len(lips), 1, -1), 4)[:, 0] > 0
    asked = batch.closed.view(len(lips), -1)
    for bound in (0.35, 0.5, 0.65, 0.8):
        shut = lips[:, -1].sigmoid() > bound
        recall = (shut & asked).sum() / asked.sum()
        precision = (shut & there).sum() / shut.sum().clamp(min=1)
        line += f"; closed > {bound}: recall {recall:.2f} precision {precision:.2f}"
    return line
