"""Make the speech, train, write the weights: `python -m pipeline.packs.embedded.training --texts FILE`."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from ..authoring.weights import WEIGHTS
from .batches import Takes
from .corpus import Job, make_corpus
from .life import train_life
from .speech import train_speech, validate

JOBS = {"espeak": (96, 45), "flite": (80, 26), "festival": (16, 26), "syllables": (8, 20), "music": (16, 25),
        "slt": (2, 25), "ru": (1, 20)}  # fmt: skip
"""Group -> jobs, takes in each: about 13 h of espeak-ng, 8 h of flite, 1.5 h of festival."""

RECORDED = ("aligned", "searched")
"""Groups that `...training.recordings` makes."""

HELD_OUT = ("slt", "ru")


def main() -> None:
    """Write the weights that the authoring code reads."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=Path, required=True, help="what `...training.texts` wrote")
    parser.add_argument("--recordings", type=Path, required=True, help="folder that `...training.recordings` wrote")
    parser.add_argument("--folder", type=Path, default=Path("/dev/shm/talkreel"), help="where the speech goes")
    parser.add_argument("--output", type=Path, default=WEIGHTS)
    parser.add_argument("--start", type=Path, help="weights to go on from; those of the life are kept")
    parser.add_argument("--part", type=float, default=1.0, help="of the speech and the steps; small = a trial")
    parser.add_argument("--speech-steps", type=int, default=7000)
    parser.add_argument("--speech-seconds", type=float, default=400)
    parser.add_argument("--life-steps", type=int, default=2400)
    parser.add_argument("--life-seconds", type=float, default=120)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    arguments = parser.parse_args()

    started = time.monotonic()
    texts = json.loads(arguments.texts.read_text("utf-8"))
    part = arguments.part
    jobs = [Job(group, seed, max(2, round(takes * part**0.5)))
            for group, (count, takes) in JOBS.items() for seed in range(max(1, round(count * part**0.5)))]  # fmt: skip
    failed = make_corpus(jobs, texts, arguments.folder, os.cpu_count() or 1)
    device = torch.device(arguments.device)
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    groups = {name: Takes(arguments.folder, name, device) for name in JOBS}
    groups |= {name: Takes(arguments.recordings, name, device) for name in RECORDED}
    hours = ", ".join(f"{name} {takes.hours:.2f} h" for name, takes in groups.items())
    print(
        f"speech made in {time.monotonic() - started:.0f} s, {failed} of {len(jobs)} jobs failed: {hours}", flush=True
    )

    start = {} if arguments.start is None else loaded(arguments.start)
    life = {name: value for name, value in start.items() if name.startswith("life.")}
    before = {name: value for name, value in start.items() if name not in life} or None
    steps = max(2, round(arguments.speech_steps * part))
    speech = train_speech(groups, steps, arguments.speech_seconds, device, before)
    for name in HELD_OUT:
        print(f"{name}: {validate(speech, groups[name], device)}", flush=True)
    save(arguments.output, {**speech.state_dict(), **life})  # should the rest fail
    if not life:
        trained = train_life(groups, max(2, round(arguments.life_steps * part)), arguments.life_seconds, device)
        life = {f"life.{name}": value for name, value in trained.state_dict().items()}
        save(arguments.output, {**speech.state_dict(), **life})
    print(f"{time.monotonic() - started:.0f} s in all", flush=True)


def loaded(path: Path) -> dict[str, torch.Tensor]:
    """The weights of a file that `save` wrote."""
    with np.load(path) as file:
        return {name: torch.tensor(file[name].astype(np.float32)) for name in file.files}


def save(path: Path, state: Mapping[str, torch.Tensor]) -> None:
    """Write the weights as the authoring code reads them, and say how many there are."""
    weights = {name: value.cpu().numpy().astype(np.float16) for name, value in state.items()}
    np.savez_compressed(path, **weights)
    sizes = Counter[str]()
    for name, values in weights.items():
        sizes[name.split(".")[0]] += values.size
    print(f"weights: {dict(sizes)}", flush=True)


if __name__ == "__main__":
    main()
