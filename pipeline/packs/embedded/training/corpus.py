"""Makes the speech that the models learn from: many short jobs, each a process of its own with a time limit.

A take is 8 to 14 s of one voice with pauses between its sentences. A job's takes depend on its seed alone; a job
whose process crashes (libespeak-ng does) is left out.
"""

from __future__ import annotations

import math
import multiprocessing
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..authoring.visemes import SILENCE
from . import festival, flite, sounds
from .espeak import ENGLISH, HELD_OUT_LANGUAGES, Espeak
from .phones import LABEL_RATE, arpabet_class, ipa_class, labels
from .prosody import pitch
from .targets import viseme_shares

SAMPLE_RATE = 16000
STEP = SAMPLE_RATE // LABEL_RATE
TAKE_SECONDS = (8, 14)
PAUSE_SECONDS = (0.15, 1.1)
LONE_PART, LONE_PAUSE_SECONDS = 0.25, (0.4, 5.0)
"""So many takes are of single words, or a letter of one, far apart: a short sound by itself is speech all the same."""

LONE_GROUPS = ("espeak", "flite")
"""Festival ends with a fault on some single letters."""

TIME_LIMIT = 150.0
"""Seconds a job may take."""

EVALUATION_SENTENCES = 300
"""The last of each language are said in evaluation only."""

ENGLISH_ACCENTS = ("en-us", "en-us", "en", "en-gb-scotland", "en-029", "en-gb-x-rp", "en-gb-x-gbclan")
VARIANTS = (
    "adam Alex Alicia Andrea Andy Annie antonio aunty belinda benjamin boris caleb david Denis Diogo ed edward "
    "edward2 Gene Gene2 gustave Henrique Hugo iven iven2 iven3 iven4 Jacky john kaukovalta Lee linda marcelo "
    "Marco Mario max Michael michel miguel Nguyen pablo paul pedro quincy rob robert steph steph2 steph3 Tweaky "
    "zac anika f1 f2 f3 f4 f5 grandma grandpa klatt klatt2 klatt3 klatt4 klatt5 klatt6 m1 m2 m3 m4 m5 m6 m7 m8 "
    "norbert sandro shelby travis victor "
)
"""Manners of speaking that espeak-ng has for every voice."""

Said = tuple[NDArray[np.float32], list[tuple[float, int]]]
"""Samples [n] at 16 kHz, and (start in seconds, class) of each phone."""

Speaker = Callable[[str], Said]


@dataclass(frozen=True)
class Job:
    """`takes` takes of a group, from one seed."""

    group: str
    seed: int
    takes: int


def espeak_speaker(voice: str, chance: random.Random, *, plain: bool = False) -> Speaker:
    """One manner of one voice of espeak-ng; plain: in its own manner."""
    manner = {"words_a_minute": chance.randint(105, 235), "pitch": chance.randint(5, 95),
              "liveliness": chance.randint(15, 95)}  # fmt: skip
    varied = f"{voice}+{chance.choice(VARIANTS.split())}" if chance.random() < 0.93 else voice
    if plain:
        manner, varied = {}, voice

    def say(text: str) -> Said:
        engine = Espeak.open()
        try:
            samples, phones = engine.say(text, varied, **manner)
        except LookupError:
            samples, phones = engine.say(text, voice, **manner)
        starts: list[tuple[float, int]] = []
        for start, phone in phones:
            kind = ipa_class(phone)
            starts.append((start, kind if kind is not None else starts[-1][1] if starts else SILENCE))
        return to_rate(samples, engine.sample_rate), starts

    return say


def flite_speaker(voice: str, chance: random.Random, file: Path) -> Speaker:
    """One pace of one voice of flite."""
    stretch = chance.uniform(0.8, 1.3)

    def say(text: str) -> Said:
        samples, rate, phones = flite.say(text, voice, file, stretch=stretch)
        return to_rate(samples, rate), [(start, arpabet_class(phone)) for start, phone in phones]

    return say


def festival_speaker(voice: str, chance: random.Random, file: Path) -> Speaker:
    """One pace of one voice of festival."""
    stretch = chance.uniform(0.8, 1.3)

    def say(text: str) -> Said:
        samples, rate, phones = festival.say(text, voice, file, stretch=stretch)
        return to_rate(samples, rate), [(start, arpabet_class(phone)) for start, phone in phones]

    return say


def to_rate(samples: NDArray[Any], rate: int) -> NDArray[np.float32]:
    """Samples at any rate -> at 16 kHz."""
    from scipy.signal import resample_poly  # of the extra: what needs no other rate does without

    common = math.gcd(rate, SAMPLE_RATE)
    return resample_poly(samples.astype(np.float32), SAMPLE_RATE // common, rate // common).astype(np.float32)


def take(
    say: Speaker, sentences: Sequence[str], chance: random.Random, *, lone: bool = False
) -> dict[str, NDArray[Any]]:
    """A take: `audio` int16 [160 T], `labels` int8 [T], `shares` uint8 [T, 13], `pitch` int8 [T].

    lone: single words of the sentences, far apart.

    Raises:
        ValueError: the voice says none of it.
    """
    wanted = chance.uniform(*TAKE_SECONDS)
    parts: list[NDArray[np.float32]] = []
    kinds: list[NDArray[np.int8]] = []
    total = 0
    for _ in range(8):
        if total >= wanted * SAMPLE_RATE:
            break
        text = chance.choice(sentences)
        if lone:
            word = chance.choice(text.split())
            text = word if chance.random() < 0.75 else chance.choice(word)
        audio, starts = say(text)
        if len(audio) < 4000 * (1 - 0.6 * lone) or len(starts) < 4 - 2 * lone:
            continue
        steps = len(audio) // STEP
        pause = round(chance.uniform(*(LONE_PAUSE_SECONDS if lone else PAUSE_SECONDS)) * LABEL_RATE)
        parts += [audio[: steps * STEP], np.zeros(pause * STEP, np.float32)]
        kinds += [labels(starts, steps), np.full(pause, SILENCE, np.int8)]
        total += (steps + pause) * STEP
    if not parts:
        raise ValueError("the voice says none of the sentences")
    return packed(np.concatenate(parts), np.concatenate(kinds))


def packed(audio: NDArray[Any], kinds: NDArray[np.int8]) -> dict[str, NDArray[Any]]:
    """Samples and classes as a take is stored."""
    loudest = float(np.abs(audio).max()) + 1e-9
    return {
        "audio": np.round(audio * (20000 / loudest)).astype(np.int16),
        "labels": kinds,
        "shares": np.round(viseme_shares(kinds) * 255).astype(np.uint8),
        "pitch": np.round(pitch(audio, len(kinds)) * 127).astype(np.int8),
    }


def _takes(job: Job, texts: Mapping[str, list[str]], folder: Path) -> list[dict[str, NDArray[Any]]]:
    chance = random.Random(f"{job.group} {job.seed}")
    noise = np.random.default_rng(job.seed)
    result = []
    for _ in range(job.takes):
        if job.group == "music":
            tuneful = noise.random() < 0.6
            tune = sounds.music(noise) if tuneful else sounds.rumble(noise)
            tune = sounds.interrupted(tune, noise, 1.5 if tuneful else 0.3)
            result.append(packed(tune, np.zeros(len(tune) // STEP, np.int8)))
        elif job.group == "syllables":
            result.append(packed(*sounds.syllables(noise)))
        else:
            speaker = _speaker(job.group, texts, chance, folder / f"{job.group}_{job.seed}.wav")
            lone = job.group in LONE_GROUPS and chance.random() < LONE_PART
            result.append(take(*speaker, chance, lone=lone))
    return result


def _speaker(
    group: str, texts: Mapping[str, list[str]], chance: random.Random, file: Path
) -> tuple[Speaker, Sequence[str]]:
    if group == "espeak":
        languages = [name for name in texts if name not in HELD_OUT_LANGUAGES]
        language = chance.choices(languages, [4.0 if name == ENGLISH else 1.0 for name in languages])[0]
        voice = chance.choice(ENGLISH_ACCENTS) if language == ENGLISH else language
        return espeak_speaker(voice, chance), texts[language][:-EVALUATION_SENTENCES]
    if group == "flite":
        voice = chance.choices(list(flite.VOICES), list(flite.VOICES.values()))[0]
        return flite_speaker(voice, chance, file), texts[ENGLISH][:-EVALUATION_SENTENCES]
    if group == "festival":
        return festival_speaker(chance.choice(festival.VOICES), chance, file), texts[ENGLISH][:-EVALUATION_SENTENCES]
    if group == flite.HELD_OUT_VOICE:
        return flite_speaker(group, chance, file), texts[ENGLISH][-EVALUATION_SENTENCES:]
    if group in HELD_OUT_LANGUAGES:
        return espeak_speaker(group, chance), texts[group]
    raise ValueError(f"no such group: {group}")


def _work(job: Job, texts: Mapping[str, list[str]], folder: Path) -> None:
    takes = _takes(job, texts, folder)
    lengths = np.array([len(t["labels"]) for t in takes])
    tables: dict[str, Any] = {name: np.concatenate([t[name] for t in takes]) for name in takes[0]}
    np.savez(folder / f"{job.group}_{job.seed}.npz", lengths=lengths, **tables)


def make_corpus(jobs: Sequence[Job], texts: Mapping[str, list[str]], folder: Path, processes: int) -> int:
    """Do the jobs, so many at a time; writes GROUP_SEED.npz each into the folder. Returns how many failed."""
    folder.mkdir(parents=True, exist_ok=True)
    waiting = list(reversed(jobs))
    running: list[tuple[multiprocessing.Process, float]] = []
    failed = 0
    while waiting or running:
        while waiting and len(running) < processes:
            process = multiprocessing.Process(target=partial(_work, waiting.pop(), texts, folder))
            process.start()
            running.append((process, time.monotonic()))
        time.sleep(0.02)
        still = []
        for process, started in running:
            if process.is_alive() and time.monotonic() - started < TIME_LIMIT:
                still.append((process, started))
                continue
            if process.is_alive():
                process.kill()
            process.join()
            failed += process.exitcode != 0
        running = still
    return failed
