"""Contact sheets, by the code that renders: `python -m tests.faces.contact_sheet OUT_FOLDER [FACE…]
[--processes N]`.

FACE: a portrait of the set or a picture's path; none means the whole set. Written: faces_N.jpg (four faces a sheet,
two rows of poses each), mouths_N.jpg and eyes_N.jpg (the same close up), film_N.jpg (ten frames of
each face speaking).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from pipeline.stages.generator import to_pixels
from pipeline.values import U8

from .acting import POSES, Actor, each_face, face_files, shared_studio

VOICE = Path(__file__).parents[2] / "samples" / "voice.wav"
FACES_A_SHEET = 4
FILM_SECONDS = 4.0
HALF = 12
"""Poses in a row of the sheet of faces: each face has two rows."""
TALKING = ["closed", "aa", "ee", "oo", "oh", "f v", "th", "smile", "yaw -12 aa", "yaw +12 oh"]
LOOKING = ["photo", "blink", "half blink", "gaze left", "gaze right", "gaze up", "gaze down", "brows"]


def close_up(frame: U8, center: np.ndarray, width: float, size: tuple[int, int]) -> Image.Image:
    height = width * size[1] / size[0]
    left, top = center[0] - width / 2, center[1] - height / 2
    return Image.fromarray(frame).resize(size, Image.Resampling.LANCZOS, (left, top, left + width, top + height))


def head(frame: U8, side: int) -> Image.Image:
    """The middle of a frame."""
    return Image.fromarray(frame[64:448, 64:448]).resize((side, side))


def sheet(rows: list[list[Image.Image]], titles: list[list[str]]) -> Image.Image:
    width, height = rows[0][0].size
    page = Image.new("RGB", (width * max(map(len, rows)), (height + 14) * len(rows)))
    draw = ImageDraw.Draw(page)
    for i, (row, names) in enumerate(zip(rows, titles, strict=True)):
        for j, (tile, name) in enumerate(zip(row, names, strict=True)):
            draw.text((j * width + 3, i * (height + 14) + 1), name)
            page.paste(tile, (j * width, i * (height + 14) + 14))
    return page


def tiles_of(file: Path) -> dict[str, tuple[list[list[Image.Image]], list[list[str]]]]:
    """Rows of tiles and their titles by kind of sheet."""
    actor = Actor.open(file, shared_studio())
    frames = dict(zip(POSES, actor.act(*POSES.values()), strict=True))
    poses, heads = list(POSES), [head(frame, 224) for frame in frames.values()]
    mouth, eyes = actor.points[[61, 291, 13, 14], :2].mean(0), actor.points[[33, 263], :2].mean(0)
    apart = 1.45 * float(np.linalg.norm(actor.points[33, :2] - actor.points[263, :2]))
    wide = max(1.05 * apart, 1.9 * float(np.linalg.norm(actor.points[61, :2] - actor.points[291, :2])))
    speech = actor.speech(VOICE, FILM_SECONDS)
    spoken = list(actor.frames(speech[np.linspace(5, len(speech) - 5, 10).astype(int)]))
    pixels = [to_pixels(frame.transpose(2, 0, 1)) for frame in spoken]
    rows = {
        "faces": ([heads[:HALF], heads[HALF:]], [poses[:HALF], poses[HALF:]]),
        "mouths": ([[close_up(frames[name], mouth, wide, (260, 240)) for name in TALKING]], [TALKING]),
        "eyes": ([[close_up(frames[name], eyes, apart, (300, 130)) for name in LOOKING]], [LOOKING]),
        "film": ([[head(frame, 256) for frame in pixels]], [[str(k) for k in range(10)]]),
    }
    named = {kind: [[f"{actor.name} {t}" for t in row] for row in titles] for kind, (_, titles) in rows.items()}
    return {kind: (tiles, named[kind]) for kind, (tiles, _) in rows.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("faces", nargs="*")
    parser.add_argument("--processes", type=int, default=1)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    made = list(each_face(tiles_of, face_files(arguments.faces), arguments.processes))
    for start in range(0, len(made), FACES_A_SHEET):
        some = made[start : start + FACES_A_SHEET]
        for kind in some[0]:
            tiles = [row for found in some for row in found[kind][0]]
            titles = [row for found in some for row in found[kind][1]]
            sheet(tiles, titles).save(arguments.folder / f"{kind}_{start // FACES_A_SHEET}.jpg", quality=90)


if __name__ == "__main__":
    main()
