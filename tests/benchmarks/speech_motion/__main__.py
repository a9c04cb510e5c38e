"""The table of the model card.

    python -m tests.benchmarks.speech_motion --texts texts.json [--recordings FOLDER] [--takes 24] [--card]

Needs flite, espeak-ng and pocketsphinx; real_speech.py says which recordings. `--texts` is what
`python -m pipeline.packs.embedded.training.texts` wrote; its last sentences of each language are not in training.
`--card` writes the table into the pack's MODEL_CARD.md.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.packs.embedded.authoring.visemes import CLOSED, CLOSED_GAP, lip_gap
from pipeline.packs.embedded.training import sounds
from pipeline.packs.embedded.training.corpus import EVALUATION_SENTENCES, Speaker, espeak_speaker, flite_speaker, take
from pipeline.packs.embedded.training.espeak import ENGLISH
from pipeline.packs.embedded.training.targets import frame_classes

from .measures import Tally
from .real_speech import EVALUATED, Recording, other_recordings, recordings
from .subjects import subjects

Floats = NDArray[np.floating[Any]]
Heard = tuple[Floats, NDArray[np.int8]]

CARD = Path(__file__).parents[3] / "pipeline/packs/embedded/MODEL_CARD.md"
BEGIN, END = "<!-- table -->", "<!-- end of table -->"
OTHER_VOICES = ("one", "two", "three", "four")
"""Seeds of espeak-ng's manners."""


def synthetic(say: Speaker, sentences: list[str], takes: int) -> Iterator[Heard]:
    """Takes with exact phone times."""
    chance = random.Random(11)
    for _ in range(takes):
        made = take(say, sentences, chance)
        yield made["audio"] / 32768.0, made["labels"]


def measured(speak: Callable[[Floats], Floats], heard: list[Heard]) -> Tally:
    tally = Tally()
    for samples, labels in heard:
        tally.add(speak(samples), labels)
    return tally


def stillness(speak: Callable[[Floats], Floats]) -> str:
    """Widest lips and part of frames with open lips: in silence, room noise, music, and music that stops."""
    noise = np.random.default_rng(3)
    hiss = 0.003 * noise.standard_normal(8 * 16000)
    kinds: dict[str, list[Floats]] = {
        "silence": [np.zeros(8 * 16000)],
        "noise": [hiss, 10 * hiss, np.cumsum(hiss) / 60],
        "music": [sounds.music(np.random.default_rng(900 + i)) for i in range(8)],
        "music that stops": [broken_off(950 + i) for i in range(8)],
    }
    cells = []
    for clips in kinds.values():
        gaps = np.concatenate([lip_gap(speak(clip)) for clip in clips])
        cells.append(f"{gaps.max():.2f} ({(gaps > CLOSED_GAP).mean():.1%})")
    return " | ".join(cells)


def broken_off(seed: int) -> Floats:
    """6 s of music or of a rumble that end somewhere in the last window, faded or at once, and silence: [n]."""
    chance = np.random.default_rng(seed)
    made = (sounds.music(chance) if seed % 2 else sounds.rumble(chance))[: 6 * 16000]
    end, fade = round(chance.uniform(4.3, 5.7) * 16000), round(chance.uniform(0.003, 0.2) * 16000)
    time = np.arange(len(made))
    return made * np.clip((end - time) / fade, 0, 1)


def row(name: str, tally: Tally) -> str:
    closure = f"{tally.recall:.2f} / {tally.precision:.2f}"
    return f"| {name} | {tally.accuracy:.3f} | {closure} | {tally.opening:.2f} | {tally.lag:+.2f} |"


def heading(title: str, heard: Sequence[Heard], count: str = "") -> list[str]:
    minutes = sum(len(samples) for samples, _ in heard) / 960000
    head = "| | accuracy | closure recall / precision | opening | lag |\n|---|---|---|---|---|"
    return ["", f"**{title}**, {count}{minutes:.1f} min", "", head]


def searched(found: Sequence[Recording]) -> str:
    """Row of pocketsphinx's phone search."""
    tally = Tally()
    for r in found:
        classes = frame_classes(r.labels)
        tally.tally_classes(frame_classes(r.searched), classes)
        shut = (r.searched == CLOSED)[: 4 * len(classes)].reshape(-1, 4).any(1)
        tally.tally_closure(shut, r.labels[: 4 * len(classes)])
    return f"| pocketsphinx's phone search | {tally.accuracy:.3f} | {tally.recall:.2f} / {tally.precision:.2f} | | |"


def main() -> None:
    """Print the table, as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=Path, required=True)
    parser.add_argument("--recordings", type=Path)
    parser.add_argument("--pack", default="embedded")
    parser.add_argument("--takes", type=int, default=24)
    parser.add_argument("--count", type=int, default=EVALUATED, help=f"of English recordings, at most {EVALUATED}")
    parser.add_argument("--other", type=int, default=40, help="of recordings in each other language")
    parser.add_argument("--card", action="store_true")
    arguments = parser.parse_args()
    texts = json.loads(arguments.texts.read_text("utf-8"))
    lines: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        speakers = subjects(arguments.pack, Path(folder))

        def rows(heard: list[Heard]) -> list[str]:
            return [row(name, measured(speak, heard)) for name, speak in speakers.items()]

        slt = flite_speaker("slt", random.Random(1), Path(folder) / "slt.wav")
        english = texts[ENGLISH][-EVALUATION_SENTENCES:]
        russian: list[Heard] = []
        for voice in OTHER_VOICES:
            say = espeak_speaker("ru", random.Random(voice))
            russian += synthetic(say, texts["ru"], arguments.takes // len(OTHER_VOICES))
        sets = {"flite slt, English (voice held out)": list(synthetic(slt, english, arguments.takes)),
                "espeak-ng, Russian (language held out)": russian}  # fmt: skip
        for title, heard in sets.items():
            lines += heading(title, heard) + rows(heard)
        if arguments.recordings:
            found = list(recordings(arguments.recordings, min(arguments.count, EVALUATED)))
            heard = [(r.samples, r.labels) for r in found]
            lines += heading("Real English against forced alignment", heard, f"{len(heard)} recordings, ")
            lines += [*rows(heard), searched(found)]
            for name, language in {"French": "fr", "Russian": "ru"}.items():
                heard = list(other_recordings(arguments.recordings, language, arguments.other))
                title = f"Real {name} against phone times warped from espeak-ng's reading"
                lines += heading(title, heard, f"{len(heard)} recordings, ") + rows(heard)
        still = "| | silence | noise | music | music that stops |\n|---|---|---|---|---|"
        lines += ["", "**Without speech**: widest lips in widths of the mouth, part of frames open", "", still]
        lines += [f"| {name} | {stillness(speak)} |" for name, speak in speakers.items()]
    table = "\n".join(lines).strip()
    print(table)
    if arguments.card:
        text = CARD.read_text("utf-8")
        before, after = text.split(BEGIN)[0], text.split(END)[1]
        CARD.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", "utf-8")


if __name__ == "__main__":
    main()
