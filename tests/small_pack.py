"""A pack whose generator is a handful of nodes, and scenes of it: for what sessions do around a generator."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from onnx import TensorProto

from pipeline.packs.embedded.authoring.writer import Graph, Value
from pipeline.packs.pack import MANIFEST, Pack
from pipeline.packs.store import open_pack
from pipeline.runtime.models import Models
from pipeline.runtime.options import RuntimeOptions
from pipeline.runtime.residents import Residents
from pipeline.scene import Scene
from pipeline.settings import Settings
from pipeline.studio import Studio
from pipeline.values import Appearance, Motion, Source

K = 5
SIDE = 32
HALF_LIMIT = 0.5
"""A mean shift of the keypoints above which the FP16 generator overflows."""

NO_POINTS = np.zeros((K, 3), np.float32)
SOURCE = Source(NO_POINTS, NO_POINTS, np.eye(3, dtype=np.float32), 1.0, np.zeros(3, np.float32), NO_POINTS)


def write_generator(
    path: Path, *, batch: int, half: bool, black: bool = False, side: int = SIDE, layers: int = 0
) -> None:
    """feature + mean shift of each frame's keypoints, and a trace of the batch's mean: [batch, 3, side, side].

    Args:
        half: take the shift through float16, which overflows above `HALF_LIMIT`.
        black: what overflows makes a black picture, as some cards do, and no values that are not finite.
        layers: further elementwise nodes, each with a value of its own.
    """
    graph = Graph("generator")
    feature = graph.input("feature", [1, 3, side, side])
    source, driving = graph.input("kp_source", [1, K, 3]), graph.input("kp_driving", [batch, K, 3])
    shift: Value = (driving - source).mean(1, 2).reshape(batch, 1, 1, 1)
    if half:
        # ONNX Runtime's CPU computes in float32 and drops a cast to and fro, but not around what has a float16 kernel.
        large = (shift * np.float32(65504 / HALF_LIMIT)).cast(TensorProto.FLOAT16)
        shift = large.reshape(1, batch, 1, 1).transpose(1, 0, 2, 3).cast() * np.float32(HALF_LIMIT / 65504)
    moved = shift * 0.1 + shift.mean(0, keep=True) * 1e-2
    image = feature + moved
    for _ in range(layers):
        image = (image * 1.0001).abs()
    # Where it overflowed: inf - inf is no number; 1 - inf is far below zero.
    made = image.clip(0, 1) * (1 - moved.abs()).clip(0, 1e-3) * 1e3 if black else image.clip(0, 1) + (moved - moved)
    graph.output("image", made, [batch, 3, side, side])
    graph.save(path)


def build_small_pack(
    folder: Path,
    *,
    batch: int = 1,
    half: bool = False,
    black: bool = False,
    side: int = SIDE,
    layers: int = 0,
    memory: int = 1 << 20,
) -> Pack:
    """The embedded pack with another generator (`write_generator`), its preset "preview". `memory`: of the generator,
    as the manifest states it."""
    folder.mkdir(parents=True)
    embedded = open_pack()
    manifest = json.loads((embedded.folder / MANIFEST).read_text("utf-8"))
    for name in list(manifest["files"]):
        if name.startswith("generator"):
            del manifest["files"][name]
        else:
            (folder / name).write_bytes(embedded.path(name).read_bytes())
    variants = {"float32": "float32.onnx"} if half else {}
    write_generator(folder / "generator.onnx", batch=batch, half=half, black=black, side=side, layers=layers)
    if half:
        write_generator(folder / "float32.onnx", batch=batch, half=False, black=black, side=side, layers=layers)
    for name in ("generator.onnx", *variants.values()):
        size = (folder / name).stat().st_size
        manifest["files"][name] = {"bytes": size, "sha256": "0" * 64, "licence": "MIT", "provenance": "tests"}

    def tensor(name: str, *shape: int) -> dict[str, object]:
        return {"name": name, "shape": list(shape), "dtype": "float32"}

    models = {name: model for name, model in manifest["models"].items() if not name.startswith("generator")}
    models["generator"] = {
        "file": "generator.onnx",
        "inputs": {
            "feature": tensor("feature", 1, 3, side, side),
            "kp_source": tensor("kp_source", 1, K, 3),
            "kp_driving": tensor("kp_driving", batch, K, 3),
        },
        "outputs": {"image": tensor("image", batch, 3, side, side)},
        "variants": variants,
        "memory_bytes": memory,
    }
    manifest["models"] = models
    manifest["presets"] = {"preview": {"size": side, "generator": "generator"}}
    manifest["source"]["keypoints"] = K
    manifest["driving"]["lip_points"] = [0, 1]
    manifest["key_frames"]["chunk"] = 6
    (folder / MANIFEST).write_text(json.dumps(manifest), "utf-8")
    return Pack.open(folder)


def small_scene(pack: Pack, shifts: np.ndarray, side: int = SIDE) -> Scene:
    """A scene whose frame i has its keypoints shifted by shifts[i] on all axes."""
    options = RuntimeOptions(threads=1)
    studio = Studio(pack, options, Models(pack, options, residents=Residents()))
    count = len(shifts)
    expression = np.repeat(np.asarray(shifts, np.float32)[:, None], 3 * K, 1)
    still = np.zeros((count, 3), np.float32)
    motion = Motion(expression, np.ones(count, np.float32), still, still, 25.0)
    feature = np.random.default_rng(0).uniform(0.3, 0.6, (1, 3, side, side)).astype(np.float32)
    return Scene(studio, Appearance({"feature": feature}, SOURCE), motion, count, Settings(preset="preview"))


def portrait_of(side: int = SIDE) -> np.ndarray:
    """What the first frame is compared with: [side, side, 3] uint8."""
    return np.full((side, side, 3), 115, np.uint8)
