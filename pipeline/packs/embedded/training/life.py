"""Head, brows, gaze and blinks: how people move them while speaking, by rule and chance, and the network for it.

Idle motion wanders (authoring/idle_motion.py). Accents, syllables louder and higher than those around, bring nods
and raised brows now and then; a pause brings a blink and a look aside. The diffusion learns the distribution.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from ..authoring.architecture import LIFE_COLUMNS
from ..authoring.idle_motion import FPS, KERNELS, PREVIOUS, TABLES, WINDOW
from ..authoring.life import PROCESSES
from .batches import Takes, mixed_batch
from .networks import Life

MARGIN = 25
"""Frames simulated before and after those that are used."""

LENGTH = PREVIOUS + WINDOW
PITCH, YAW, ROLL, X, Y, SIZE, GAZE_X, GAZE_Y, BROW, BLINK = range(len(LIFE_COLUMNS))

IDLE = {"quiet": 0.75, "speaking": 1.0}
"""Idle motion of the head in pauses and in speech, of its standard deviation."""

NOD = -0.6
"""Units of 2 degrees of a whole nod."""

BLINKING = 1.0
"""How readily eyes blink."""

BATCH, PEAK_RATE, WARM_UP = 384, 1.5e-3, 0.05
DROPPED = 0.15
"""Part of the examples without sound, for guidance."""

AT_REST = 0.2
"""Part that begins with the portrait at rest."""

POOL = 4
"""Batches whose lives are drawn at once: the rules go frame by frame."""


def bells(impulses: Tensor, seconds: float, delay: float = 0.0) -> Tensor:
    """[B, N] -> the same with each impulse widened to a bell of that height, so much later."""
    reach = math.ceil((3 * seconds + abs(delay)) * FPS)
    time_ = torch.arange(-reach, reach + 1, device=impulses.device) / FPS
    kernel = torch.exp(-0.5 * ((time_ + delay) / seconds) ** 2)
    return F.conv1d(impulses[:, None], kernel[None, None], padding=reach)[:, 0]


def smooth(values: Tensor, seconds: float) -> Tensor:
    """[B, N] -> the mean around each, weighted by a bell of that many seconds (its standard deviation)."""
    return bells(values, seconds) / bells(torch.ones_like(values), seconds)


def accents(loudness: Tensor, height: Tensor) -> Tensor:
    """[B, N] -> 0, or the strength of the accent that peaks in a frame (about 1)."""
    effort = smooth(loudness * (1 + 0.6 * height), 0.07)
    above = effort - smooth(effort, 0.5)
    padded = F.pad(above, (1, 1), value=-1)
    peak = (above >= padded[:, :-2]) & (above > padded[:, 2:]) & (above > 0.06)
    return torch.where(peak, (above / 0.22).clamp(0.3, 1.3), 0)


class Rules:
    """Draws lives for given prosody."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        frames = np.arange(LENGTH + 2 * MARGIN)
        lags = np.abs(frames[:, None] - frames) / FPS
        self.factors, self.at_rest = {}, {}
        for name in ("head", "glance"):
            covariance = KERNELS[name](lags)
            values, vectors = np.linalg.eigh(covariance)
            self.factors[name] = self._tensor(vectors * np.sqrt(np.maximum(values, 0)))
            past = slice(MARGIN, MARGIN + PREVIOUS)
            before = covariance[past, past] + 1e-4 * np.eye(PREVIOUS)
            self.at_rest[name] = self._tensor(np.linalg.solve(before, covariance[past]).T)

    def _tensor(self, table: np.ndarray) -> Tensor:
        return torch.tensor(table, dtype=torch.float32, device=self.device)

    def _wander(self, name: str, rest: Tensor, columns: int) -> Tensor:
        """[B, columns, N] of unit variance; conditioned on the past being zero where `rest` [B, 1] is 1."""
        factor = self.factors[name]
        path = torch.randn(len(rest), columns, factor.shape[1], device=self.device) @ factor.T
        known = path[:, :, MARGIN : MARGIN + PREVIOUS] @ self.at_rest[name].T
        return path - known * rest[:, :, None]

    def _gate(self, like: Tensor, probability: float) -> Tensor:
        return (torch.rand_like(like) < probability).float()

    def _blinks(self, ends: Tensor, rest: Tensor) -> Tensor:
        """[B, N] 1 where a blink begins: about every 4 s, likelier where a phrase ends."""
        count, frames = ends.shape
        since = torch.rand(count, device=self.device) * 4
        chance = torch.rand(count, frames, device=self.device)
        born = []
        for j in range(frames):
            hazard = BLINKING * ((0.24 + 0.12 * (since - 4).clamp(min=0)) / FPS + 0.5 * ends[:, j])
            hazard = torch.where(since < 0.9, torch.zeros_like(hazard), hazard)
            if j < MARGIN + PREVIOUS:
                hazard = hazard * (1 - rest[:, 0])
            blink = chance[:, j] < hazard
            since = torch.where(blink, torch.zeros_like(since), since + 1 / FPS)
            born.append(blink)
        return torch.stack(born, 1).float()

    def draw(self, loudness: Tensor, height: Tensor, speech: Tensor, rest: Tensor) -> Tensor:
        """[B, N] loudness, pitch, share of speech, N = LENGTH + 2 MARGIN; rest [B, 1] 1 where the film begins at rest
        -> [B, 10, LENGTH] lives."""
        started = torch.ones_like(loudness)
        started[:, : MARGIN + PREVIOUS] = 0
        allowed = torch.where(rest > 0, started, 1)
        strength = accents(loudness, height) * allowed
        speaking = smooth(speech, 0.3)
        falls = F.relu(smooth(speech, 0.08)[:, :-1] - smooth(speech, 0.08)[:, 1:])
        ends = F.pad(falls, (1, 0)) * allowed * (1 - F.pad(speech, (0, 6))[:, 6:])

        head = self._wander("head", rest, 6)
        deviations = [dict(PROCESSES[0].columns)[LIFE_COLUMNS[c]] for c in (PITCH, YAW, ROLL, X, Y, SIZE)]
        activity = IDLE["quiet"] + (IDLE["speaking"] - IDLE["quiet"]) * speaking
        head = head * activity[:, None] * self._tensor(np.array(deviations))[None, :, None]
        nods = strength * self._gate(strength, 0.6) * (0.5 + 0.9 * torch.rand_like(strength))
        head[:, PITCH] += NOD * bells(nods, 0.15, 0.04) - 0.3 * NOD * bells(nods, 0.2, -0.3)
        for column, size in ((YAW, 0.35), (ROLL, 0.3)):
            turns = strength * self._gate(strength, 0.35) * (2 * torch.rand_like(strength) - 1)
            head[:, column] += size * bells(turns, 0.25, 0.05)

        glance = self._wander("glance", rest, 3)
        aside = (ends > 0.03).float() * self._gate(ends, 0.12) * torch.randn_like(ends)
        glance[:, 0] += 1.5 * bells(aside, 0.35, 0.5)
        raised = strength * self._gate(strength, 0.4) * (1 + height)
        glance[:, 2] = 0.6 * glance[:, 2] + 2.0 * bells(raised, 0.16)

        blinks = 1.6 * bells(self._blinks(ends, rest), 0.11)
        life = torch.cat([head, glance, blinks[:, None]], 1)[:, :, MARGIN:-MARGIN]
        still = torch.zeros_like(life[:, :, :PREVIOUS])
        life[:, :, :PREVIOUS] = torch.where(rest[:, :, None] > 0, still, life[:, :, :PREVIOUS])
        return life


class Prior:
    """What is known of a noisy life without the network: the posterior mean of the idle processes.

    The same as authoring/denoiser.py has in its graph; so are the smooth motions in which the network may correct it.
    """

    def __init__(self, device: torch.device) -> None:
        with np.load(TABLES) as tables:
            self.tables = {name: torch.tensor(table, device=device) for name, table in tables.items()}
        self.spreads = []
        for process in PROCESSES:
            channels = [LIFE_COLUMNS.index(column) for column in process.columns]
            deviations = torch.tensor(list(process.columns.values()), device=device)
            self.spreads.append((process, channels, deviations))

    def mean(self, noisy: Tensor, previous: Tensor, kept: Tensor) -> Tensor:
        """noisy [B, 10, 100], previous [B, 10, 10], kept [B, 1, 1] alpha_bar -> [B, 10, 100]."""
        result = torch.zeros_like(noisy)
        for process, channels, deviations in self.spreads:
            carry, modes, variances = (
                self.tables[f"{process.kernel}_{part}"] for part in ("carry", "modes", "variances")
            )
            mean = previous[:, channels] @ carry.T
            spread = deviations[:, None] ** 2 * variances
            surprise = (noisy[:, channels] - kept.sqrt() * mean) @ modes
            result[:, channels] = mean + (surprise * kept.sqrt() * spread / (kept * spread + 1 - kept)) @ modes.T
        return result

    def correction(self, wanted: Tensor) -> Tensor:
        """[B, 10, 100] -> its part that goes on smoothly from the frames before."""
        result = torch.zeros_like(wanted)
        for process, channels, _ in self.spreads:
            modes = self.tables[f"{process.correction}_modes"]
            result[:, channels] = wanted[:, channels] @ modes @ modes.T
        return result


def predict(network: Life, prior: Prior, noisy: Tensor, previous: Tensor, conditions: Tensor, kept: Tensor) -> Tensor:
    """The clean life [B, 10, 100] as the denoiser sees it; conditions [B, 4, 110], kept [B]."""
    mean = prior.mean(noisy, previous, kept[:, None, None])
    both = torch.cat([torch.cat([previous, noisy], 2), torch.cat([previous, mean], 2)], 1)
    return mean + prior.correction(network(both, conditions, kept)[:, :, PREVIOUS:])


def _lives(groups: Mapping[str, Takes], rules: Rules, device: torch.device) -> tuple[Tensor, Tensor]:
    """Lives [POOL B, 10, 110] that the rules draw for stretches of speech, and the conditions [POOL B, 4, 110]."""
    parts = {"espeak": POOL * BATCH // 2, "flite": POOL * BATCH // 2}
    batch = mixed_batch(groups, parts, 4 * (LENGTH + 2 * MARGIN), 0.1)
    speech = (batch.labels != 0).float().unflatten(1, (-1, 4)).mean(2)
    rest = (torch.rand(len(speech), 1, device=device) < AT_REST).float()
    clean = rules.draw(batch.loudness, batch.pitch, speech, rest)
    used = slice(MARGIN, MARGIN + LENGTH)
    conditions = torch.stack([batch.loudness, batch.pitch, speech, torch.ones_like(speech)], 1)[:, :, used]
    conditions[:, :3] += 0.04 * torch.randn_like(conditions[:, :3])
    conditions[:, :, :PREVIOUS] *= 1 - rest[:, :, None]
    conditions *= (torch.rand(len(speech), 1, 1, device=device) > DROPPED).float()
    order = torch.randperm(len(speech), device=device)
    return clean[order], conditions[order]


def train_life(groups: Mapping[str, Takes], steps: int, seconds: float, device: torch.device) -> Life:
    """So many steps, or as many as are done in so many seconds."""
    torch.manual_seed(2)
    network, rules, prior = Life().to(device), Rules(device), Prior(device)
    average = [p.detach().clone() for p in network.parameters()]
    optimiser = torch.optim.AdamW(network.parameters(), PEAK_RATE, weight_decay=0.01, betas=(0.9, 0.98))
    scale = torch.tensor([0.7, 0.8, 0.45, 0.06, 0.04, 0.04, 1.0, 1.0, 0.8, 0.35], device=device)[:, None]
    pool: list[tuple[Tensor, ...]] = []
    started, step = time.monotonic(), 0
    while True:
        done = max(step / steps, (time.monotonic() - started) / seconds)
        if done >= 1:
            break
        for group in optimiser.param_groups:
            group["lr"] = PEAK_RATE * min(1.0, done / WARM_UP + 0.01) * (0.5 + 0.5 * math.cos(math.pi * done)) + 1e-6
        with torch.no_grad():
            if step % POOL == 0:
                pool = [table.chunk(POOL) for table in _lives(groups, rules, device)]
            clean, conditions = (tables[step % POOL] for tables in pool)
            previous, clean = clean[:, :, :PREVIOUS], clean[:, :, PREVIOUS:]
            when = torch.rand(len(clean), device=device)
            kept = torch.cos((when + 0.008) / 1.008 * math.pi / 2).square().clamp(1e-5, 0.9999)
            signal = kept[:, None, None]
            noisy = signal.sqrt() * clean + (1 - signal).sqrt() * torch.randn_like(clean)
        predicted = predict(network, prior, noisy, previous, conditions, kept)
        wrong = ((predicted - clean) / scale).square().mean()
        optimiser.zero_grad(set_to_none=True)
        wrong.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()
        step += 1
        with torch.no_grad():
            torch._foreach_lerp_(average, list(network.parameters()), 1 - min(0.999, 1 - 1 / (step + 1)))
            if step % 250 == 1:
                alone = ((prior.mean(noisy, previous, signal) - clean) / scale).square().mean()
                print(f"life {step} ({time.monotonic() - started:.0f} s): {wrong.item():.4f}, "
                      f"without the network {alone.item():.4f}", flush=True)  # fmt: skip
    with torch.no_grad():
        for parameter, mean_ in zip(network.parameters(), average, strict=True):
            parameter.copy_(mean_)
    print(f"life: {step} steps in {time.monotonic() - started:.0f} s", flush=True)
    return network.eval()
