"""Packs with a generator of a few nodes: volumes, sampling, an upsampling; and a model beside it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from pipeline.graphs.convert import convert
from pipeline.graphs.lower.presets import lower
from pipeline.graphs.model import prepare
from pipeline.graphs.standins import SeededWeights
from pipeline.graphs.standins.writer import GraphWriter

CHANNELS, DEPTH, SIDE, POINTS = 8, 4, 8, 5
IMAGE = 4 * SIDE


def generator(*, preview: bool = False) -> onnx.ModelProto:
    """`feature_3d` and keypoints to a picture of 32 pixels, or of 16 as a preview has it."""
    w = GraphWriter(SeededWeights(), auto_pad=True)
    volume = w.conv("feature_3d", "volume", (CHANNELS, CHANNELS), (3, 3, 3), gain=1)
    moved = w.node("ReduceMean", w.node("Sub", "kp_source", "kp_driving"), w.integers(1), keepdims=1)
    moved = w.node("Mul", moved, w.scalar(0.2))  # thrown out of the volume whole, a picture would be all rounding
    axes = [(2 * np.arange(n) + 1) / n - 1 for n in (DEPTH, SIDE, SIDE)]
    identity = np.stack(np.meshgrid(*axes, indexing="ij")[::-1], -1).astype(np.float32)[None]
    grid = w.node("Add", w.constant(identity), w.node("Reshape", moved, w.integers(1, 1, 1, 1, 3)))
    sampled = w.node("GridSample", volume, grid, mode="linear", padding_mode="zeros", align_corners=0)
    flat = w.node("Reshape", sampled, w.integers(1, CHANNELS * DEPTH, SIDE, SIDE))
    x = w.node("Relu", w.conv(flat, "first", (CHANNELS * DEPTH, 16), (3, 3), gain=1))
    factor = w.conv(w.nearest(x, sizes=(1, 16, 2 * SIDE // (1 + preview), 2 * SIDE // (1 + preview))),
                    "factor", (16, 16), (3, 3), gain=0.3)  # fmt: skip
    x = x if preview else w.nearest(x, scales=(1, 1, 2, 2))
    ones, zeros = w.constant(np.ones(16, np.float32)), w.constant(np.zeros(16, np.float32))
    x = w.node("Mul", w.node("InstanceNormalization", x, ones, zeros, epsilon=1e-5), factor)
    x = w.conv(w.node("LeakyRelu", x, alpha=0.2), "image", (16, 12), (3, 3), gain=1)
    x = w.node("Sigmoid", w.node("DepthToSpace", x, mode="CRD", blocksize=2), name="out")
    points = (1, POINTS, 3)
    side = IMAGE // (1 + preview)
    inputs = {"feature_3d": (1, CHANNELS, DEPTH, SIDE, SIDE), "kp_driving": points, "kp_source": points}
    return w.model("tiny", inputs, {"out": (1, 3, side, side)})


def in_half_precision(model: onnx.ModelProto) -> onnx.ModelProto:
    """As published: GridSample lowered, mixed half precision."""
    return ir.to_proto(convert(lower(ir.from_proto(model), "gridsample").model)[0])


def small_network() -> onnx.ModelProto:
    """A model that no pass rewrites."""
    w = GraphWriter(SeededWeights(1))
    w.node("Tanh", w.node("MatMul", "x", w.constant(np.eye(6, dtype=np.float32))), name="y")
    return w.model("other", {"x": (1, 6)}, {"y": (1, 6)})


def _tensors(model: onnx.ModelProto, roles: dict[str, str]) -> dict[str, dict[str, Any]]:
    def tensors(values: Any) -> dict[str, Any]:
        return {
            roles.get(v.name, v.name): {
                "name": v.name,
                "shape": [d.dim_value for d in v.type.tensor_type.shape.dim],
                "dtype": "float32",
            }
            for v in values
        }

    return {"inputs": tensors(model.graph.input), "outputs": tensors(model.graph.output)}


def write_pack(folder: Path, name: str, graphs: dict[str, onnx.ModelProto], presets: dict[str, Any]) -> Path:
    """A pack's folder; models are named like their files."""
    folder.mkdir(parents=True)
    models, files = {}, {}
    for model, graph in graphs.items():
        path = folder / "net" / f"{model}.onnx"
        path.parent.mkdir(exist_ok=True)
        onnx.save(graph, path)
        models[model] = {"file": f"net/{model}.onnx", **_tensors(graph, {"out": "image"}), "memory_bytes": 7 << 20}
    (folder / "table.bin").write_bytes(b"table")
    for path in sorted(folder.rglob("*.*")):
        files[path.relative_to(folder).as_posix()] = {
            "bytes": path.stat().st_size,
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            "licence": "MIT",
            "provenance": "made by a test",
        }
    manifest = {
        "format": 1,
        "name": name,
        "revision": "1",
        "licence": {"summary": "MIT", "commercial_use": True},
        "files": files,
        "models": models,
        "presets": presets,
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


PRESETS = {"preview": {"size": 16, "generator": "small"}, "quality": {"size": 32, "generator": "large"}}


def published(folder: Path) -> Path:
    """Two generators in half precision, as timeline-studio has them, and another model."""
    graphs = {
        "small": in_half_precision(generator(preview=True)),
        "large": in_half_precision(generator()),
        "other": small_network(),
    }
    return write_pack(folder, "tiny", graphs, PRESETS)


def untouched(folder: Path) -> Path:
    """The float32 generator and a model beside it, as liveportrait-onnx has them."""
    return write_pack(folder, "export", {"exported": generator(), "beside": small_network()}, {})


def prepared(model: onnx.ModelProto) -> ir.Model:
    return prepare(ir.from_proto(model))
