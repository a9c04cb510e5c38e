"""Real recordings as takes: `python -m pipeline.packs.embedded.training.recordings OUTPUT FOLDER...`.

A folder holds sound files of English, and transcripts.tsv with a line "name<tab>text" for each whose words are known.
Those get their phone times by forced alignment (OUTPUT/aligned_0.npz), the others by phone search
(OUTPUT/searched_0.npz); what the search takes for noise is left without a label.

The shipped weights learned of the LibriSpeech excerpts (CC BY 4.0, made of LibriVox readings in the public domain) in
the repository resemble-ai/Resemblyzer, folders audio_data/librispeech_*; transcripts of its test-other part: column 2
of is21_deep_bias/ref/test-other.biasing_100.tsv in facebookresearch/fbai-speech.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray

from .alignment import RATE, Aligner
from .corpus import packed
from .phones import LABEL_RATE, labels

SOUNDS = (".flac", ".wav", ".ogg", ".mp3", ".g722")
SECONDS = (1.0, 40.0)


def decoded(path: Path) -> NDArray[np.float32]:
    """Mono samples at 16 kHz, full scale 1."""
    resampler = av.AudioResampler("s16", "mono", RATE)
    with av.open(str(path), format="g722" if path.suffix == ".g722" else None) as file:
        frames = [made for frame in file.decode(audio=0) for made in resampler.resample(frame)]
    blocks = [frame.to_ndarray().reshape(-1) for frame in [*frames, *resampler.resample(None)]]
    return np.concatenate(blocks).astype(np.float32) / np.float32(32768)


def transcripts(folder: Path) -> dict[str, str]:
    """Name of a file without its ending -> what is said in it."""
    listing = folder / "transcripts.tsv"
    if not listing.exists():
        return {}
    lines = (line.split("\t") for line in listing.read_text("utf-8").splitlines())
    return {fields[0]: fields[1] for fields in lines if len(fields) > 1}


@cache
def _aligner() -> Aligner:
    return Aligner(guess=Path(f"/tmp/talkreel-guess-{os.getpid()}.wav"))


def _take(path: Path, text: str | None) -> tuple[str, dict[str, NDArray[Any]]] | None:
    samples = decoded(path)
    steps = len(samples) * LABEL_RATE // RATE
    if not SECONDS[0] <= len(samples) / RATE <= SECONDS[1]:
        return None
    samples = samples[: steps * RATE // LABEL_RATE]
    if text is None:
        return "searched", packed(samples, labels(_aligner().searched(samples), steps))
    starts = _aligner().aligned(samples, text)
    return None if starts is None else ("aligned", packed(samples, labels(starts, steps)))


def main() -> None:
    """Write the takes, in the order of the files' names."""
    output, *folders = map(Path, sys.argv[1:])
    output.mkdir(parents=True, exist_ok=True)
    work: list[tuple[Path, str | None]] = []
    for folder in folders:
        texts = transcripts(folder)
        files = sorted(path for path in folder.rglob("*") if path.suffix in SOUNDS)
        work += [(path, texts.get(path.stem)) for path in files]
    with multiprocessing.Pool() as pool:
        made = [take for take in pool.starmap(_take, work, chunksize=4) if take is not None]
    for group in ("aligned", "searched"):
        takes = [take for name, take in made if name == group]
        if takes:
            lengths = np.array([len(take["labels"]) for take in takes])
            tables: dict[str, Any] = {name: np.concatenate([take[name] for take in takes]) for name in takes[0]}
            np.savez(output / f"{group}_0.npz", lengths=lengths, **tables)
            print(f"{group}: {len(takes)} recordings, {lengths.sum() / 6000:.1f} min")


if __name__ == "__main__":
    main()
