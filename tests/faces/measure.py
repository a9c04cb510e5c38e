"""Measures of the embedded pack's picture on the portrait set: `python -m tests.faces.measure TABLE.md [FACE…]
[--processes N]`.

The table has a line a face; the worst cases stand under it. Under a unit: correlation of the judge's scores with what
was asked, of its evidence with that of the landmarks asked for, and (range of the scores).
Definitions are with the functions in `measures`.
"""

from __future__ import annotations

import argparse
import statistics
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .acting import POSES, SIZE, Actor, each_face, face_files, in_pixels, shared_studio
from .contact_sheet import VOICE
from .measures.artefacts import Hits, detect, determinants
from .measures.background import Stillness, stillness
from .measures.blackbox import Coded, openings
from .measures.cost import cost
from .measures.judging import SWEEPS, Judge, Sweep, rigid_error, sweep
from .measures.steadiness import Steadiness, steadiness
from .measures.triangles import flips

FILM_SECONDS = 2.0
EDGE = SIZE // 4
"""Rows at the bottom where neck and shoulders leave the frame: they may move there."""


@dataclass(frozen=True)
class Row:
    """One face. `hits` by pose; `folding`: smallest determinant of the forward map, with its pose; `border`: largest
    motion of the frame's edge but the lower one, pixels, with its pose; `flips` of driven and of found landmarks;
    `rigid`: worst over the sweeps; `untouched`: mean difference in grey levels from the photo of what expressions do
    not move; `behind`: the same of the background while the head turns."""

    name: str
    sweeps: dict[str, Sweep]
    rigid: float
    untouched: float
    driven_flips: dict[str, int]
    found_flips: dict[str, int]
    hits: dict[str, Hits]
    folding: tuple[float, str]
    border: tuple[float, str]
    behind: Stillness
    steady: Steadiness

    @property
    def line(self) -> str:
        hits = {pose: found.count for pose, found in self.hits.items() if found.count}
        cells = [self.name, *(f"{s.correlation:.2f} {s.fidelity:.2f} ({s.gain:.2f})" for s in self.sweeps.values())]
        cells += [f"{self.rigid:.1f}", f"{self.untouched:.2f}"]
        cells += [str(sum(self.driven_flips.values())), str(sum(self.found_flips.values()))]
        cells += [f"{self.folding[0]:.2f} ({self.folding[1]})", str(sum(hits.values()))]
        s = self.steady
        cells += [
            f"{self.border[0]:.1f} ({self.border[1]})",
            f"{self.behind.difference:.2f} ({self.behind.pose})",
            f"{s.still:.2f}",
            f"{s.background:.2f}",
            f"{s.shimmer:.1f}",
        ]
        return "| " + " | ".join(cells) + " |"


HEADER = [
    "face", *SWEEPS, "rigid %", "untouched", "flips driven", "found", "least det", "hits", "border px",
    "background in turns", "still noise", "background", "shimmer p99",
]  # fmt: skip


def measured(actor: Actor, judge: Judge) -> Row:
    coded = Coded.of(actor)
    sweeps = {unit: sweep(actor, judge, unit) for unit in SWEEPS}
    rigid = max((rigid_error(actor.points, p) for s in sweeps.values() for p in s.points), default=np.inf)
    keypoints = actor.keypoints(list(POSES.values()))
    frames = actor.act(*POSES.values())
    hits, driven, found_flips, folding, border = {}, {}, {}, (np.inf, ""), (0.0, "")
    at = np.stack(np.meshgrid(*[np.arange(SIZE)] * 2), 2)
    untouched: list[float] = []
    for (name, pose), points, frame in zip(POSES.items(), keypoints, frames, strict=True):
        shown = coded.shown(points)
        backward, allowed = shown.backward, openings(points, actor.appearance.source.keypoints) | shown.made_up
        moved = np.hypot(*np.moveaxis(backward - at, 2, 0))
        edge = max(float(part.max()) for part in (moved[:4], moved[:-EDGE, :4], moved[:-EDGE, -4:]))
        border = max(border, (edge, name))
        hits[name] = detect(actor.photo, frame, backward, allowed)
        folding = min(folding, (determinants(backward, ~allowed)[0], name))
        driven[name] = flips(actor.points, in_pixels(points))
        again = actor.found(frame)
        found_flips[name] = -1 if again is None else flips(actor.points, again)
        if not (pose.yaw or pose.pitch or pose.roll):
            same = (moved < 0.1) & ~allowed
            untouched.append(float(np.abs(frame.astype(float) - actor.photo)[same].mean()) if same.any() else 0.0)
    steady = steadiness(actor, coded, actor.speech(VOICE, FILM_SECONDS))
    return Row(
        actor.name, sweeps, rigid, max(untouched), driven, found_flips, hits, folding, border, stillness(actor), steady
    )


def table(rows: list[Row], actor: Actor) -> str:
    spent = cost(actor)
    lines = ["| " + " | ".join(HEADER) + " |", "|" + "---|" * len(HEADER), *(row.line for row in rows), ""]
    lines += [
        f"One frame of 512 px on one core: {spent.frame_ms:.0f} ms of CPU time; features {spent.features / 1e6:.1f} MB "
        f"a portrait; models loaded and warm in {spent.load_s:.2f} s of CPU time.",
        "",
    ]
    for unit in SWEEPS:
        read = {row.name: row.sweeps[unit] for row in rows}
        low = sorted((s.correlation, name) for name, s in read.items() if s.correlation < 0.9)
        middle = statistics.median(s.correlation for s in read.values())
        span = statistics.median(s.gain for s in read.values())
        lines.append(
            f"- {unit}: median correlation {middle:.3f}, median range read {span:.2f}; under 0.9: {_named(low)}"
        )
        fault = sorted((s.fidelity, name) for name, s in read.items() if s.fidelity < 0.9)
        bound = sorted((s.bound, name) for name, s in read.items() if s.bound < 0.9)
        lines.append(
            f"  - before the judge's last sigmoid, against the landmarks asked for: median "
            f"{statistics.median(s.fidelity for s in read.values()):.3f}; under 0.9: {_named(fault)}"
        )
        lines.append(f"  - the scores of the very landmarks asked for, under 0.9 by the judge's jumps: {_named(bound)}")
    for kind in ("tears", "folds", "outliers"):
        found = [(int(getattr(h, kind).sum()), f"{row.name} {pose}") for row in rows for pose, h in row.hits.items()]
        lines.append(f"- {kind}, pixels: {_worst(found)}")
    for kind in ("driven_flips", "found_flips"):
        counts = [(c, f"{row.name} {pose}") for row in rows for pose, c in getattr(row, kind).items()]
        lost = ", ".join(where for count, where in counts if count < 0)
        lines.append(f"- {kind.replace('_', ' ')}: {_worst(counts)}" + (f"; face lost: {lost}" if lost else ""))
    return "\n".join(lines) + "\n"


def _named(values: list[tuple[float, str]]) -> str:
    return ", ".join(f"{name} {value:.2f}" for value, name in values) or "none"


def _worst(found: list[tuple[int, str]]) -> str:
    return ", ".join(f"{where} {count}" for count, where in sorted(found, reverse=True)[:8] if count > 0) or "none"


def of_file(file: Path) -> Row:
    return measured(Actor.open(file, shared_studio()), Judge.open())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path)
    parser.add_argument("faces", nargs="*")
    parser.add_argument("--processes", type=int, default=1)
    arguments = parser.parse_args()
    files, rows = face_files(arguments.faces), []
    for row in each_face(of_file, files, arguments.processes):
        rows.append(row)
        print(row.line, flush=True)
    arguments.table.write_text(table(rows, Actor.open(files[0], shared_studio())))


if __name__ == "__main__":
    main()
