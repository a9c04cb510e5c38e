"""The table of the model card.

    python -m tests.benchmarks.speech_motion --texts texts.json [--recordings FOLDER] [--takes 24] [--card]

Needs flite, espeak-ng, and for --recordings pocketsphinx (real_speech.py says which recordings). `--texts` is what
`python -m pipeline.packs.embedded.training.texts` wrote; its last sentences of each language are not in training.
`--card` writes the table into the pack's MODEL_CARD.md.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections.abc import Callable, Iterator
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
    """Widest lips and part of frames with open lips: in silence, room noise and music."""
    noise = np.random.default_rng(3)
    hiss = 0.003 * noise.standard_normal(8 * 16000)
    kinds = {
        "silence": [np.zeros(8 * 16000)],
        "noise": [hiss, 10 * hiss, np.cumsum(hiss) / 60],
        "music": [sounds.music(np.random.default_rng(900 + i)) for i in range(8)],
    }
    cells = []
    for clips in kinds.values():
        gaps = np.concatenate([lip_gap(speak(clip)) for clip in clips])
        cells.append(f"{gaps.max():.2f} ({(gaps > CLOSED_GAP).mean():.1%})")
    return " | ".join(cells)


def row(name: str, tally: Tally) -> str:
    closure = f"{tally.recall:.2f} / {tally.precision:.2f}"
    return f"| {name} | {tally.accuracy:.3f} | {closure} | {tally.opening:.2f} | {tally.lag:+.2f} |"


def main() -> None:
    """Print the table, as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=Path, required=True)
    parser.add_argument("--recordings", type=Path)
    parser.add_argument("--pack", default="embedded")
    parser.add_argument("--takes", type=int, default=24)
    parser.add_argument("--count", type=int, default=120, help="of recordings")
    parser.add_argument("--card", action="store_true")
    arguments = parser.parse_args()
    texts = json.loads(arguments.texts.read_text("utf-8"))
    lines: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        speakers = subjects(arguments.pack, Path(folder))
        slt = flite_speaker("slt", random.Random(1), Path(folder) / "slt.wav")
        english = texts[ENGLISH][-EVALUATION_SENTENCES:]
        russian = []
        for voice in OTHER_VOICES:
            say = espeak_speaker("ru", random.Random(voice))
            russian += synthetic(say, texts["ru"], arguments.takes // len(OTHER_VOICES))
        sets = {"flite slt, English (voice held out)": list(synthetic(slt, english, arguments.takes)),
                "espeak-ng, Russian (language held out)": russian}  # fmt: skip
        head = "| | accuracy | closure recall / precision | opening | lag |\n|---|---|---|---|---|"
        for title, heard in sets.items():
            lines += ["", f"**{title}**, {sum(len(s) for s, _ in heard) / 960000:.1f} min", "", head]
            lines += [row(name, measured(speak, heard)) for name, speak in speakers.items()]
        if arguments.recordings:
            from .real_speech import recordings

            found = list(recordings(arguments.recordings, arguments.count))
            heard = [(r.samples, r.labels) for r in found]
            minutes = sum(len(s) for s, _ in heard) / 960000
            lines += [
                "",
                f"**Real English against forced alignment**, {len(found)} recordings, {minutes:.1f} min",
                "",
                head,
            ]
            lines += [row(name, measured(speak, heard)) for name, speak in speakers.items()]
            search = Tally()
            for r in found:
                classes = frame_classes(r.labels)
                searched = frame_classes(r.searched)
                search.tally_classes(searched, classes)
                search.tally_closure((r.searched == CLOSED)[: 4 * len(classes)].reshape(-1, 4).any(1),
                                     r.labels[: 4 * len(classes)])  # fmt: skip
            closure = f"{search.recall:.2f} / {search.precision:.2f}"
            lines += [f"| pocketsphinx's phone search | {search.accuracy:.3f} | {closure} | | |"]
        still = "| | silence | noise | music |\n|---|---|---|---|"
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
