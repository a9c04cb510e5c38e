"""A stand-in for the published pack (contracts.md §1, §2): its tensor names, shapes and files, with small
graphs of our own inside. What it shows is that a neural pack fits the manifest and the code as they are."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto

from pipeline.packs.embedded.authoring.writer import Graph
from pipeline.packs.store import open_pack

K = 21


def _graphs(folder: Path) -> None:
    random = np.random.default_rng(0)

    def constant(*shape: int, scale: float = 0.1) -> np.ndarray:
        return np.round(random.normal(0, scale, shape), 4).astype(np.float32)

    g = Graph("audio")
    audio = g.input("audio_padded", [1, 64080])
    level = audio[:, 40:64040].reshape(1, 100, 640).abs().mean(2, keep=True)
    g.output("audio_features", level * constant(1, 1, 256, scale=1), [1, 100, 256])
    g.save(folder / "joyvasa-audio.onnx")

    g = Graph("denoiser")
    motion, heard = g.input("motion", [2, 100, 73]), g.input("audio", [2, 100, 256])
    before, heard_before = g.input("previous_motion", [2, 10, 73]), g.input("previous_audio", [2, 10, 256])
    step = g.input("step", [2], TensorProto.INT64).cast().reshape(2, 1, 1)
    all_motion, all_heard = g.concat([before, motion], 1), g.concat([heard_before, heard], 1)
    made = all_motion * 0.1 + all_heard @ constant(256, 73) + step * 0.0001
    g.output("motion_prediction", made, [2, 110, 73])
    g.save(folder / "joyvasa-denoiser.onnx")

    g = Graph("appearance")
    image = g.input("img", [1, 3, 256, 256])
    small = g.op("AveragePool", image, kernel_shape=[4, 4], strides=[4, 4])
    wide = g.op("Tile", small, np.array([1, 11, 1, 1], np.int64))[:, 0:32]
    feature = g.op("Tile", wide.unsqueeze(2), np.array([1, 1, 16, 1, 1], np.int64))
    g.output("output", feature, [1, 32, 16, 64, 64])
    g.save(folder / "appearance_feature_extractor.onnx")

    g = Graph("motion_extractor")
    mean = g.input("img", [1, 3, 256, 256]).mean(1, 2, 3).reshape(1, 1)
    logits = -((np.arange(66, dtype=np.float32) - 33) ** 2)[None]  # expected bin 33: 1.5 degrees
    for angle in ("pitch", "yaw", "roll"):
        g.output(angle, mean * 0 + logits, [1, 66])
    g.output("t", mean * 0 + np.float32([[0.02, -0.03, 0.5]]), [1, 3])
    g.output("exp", mean * 0 + constant(1, 63, scale=0.01), [1, 63])
    g.output("scale", mean * 0 + 1.2, [1, 1])
    g.output("kp", mean * 0 + constant(1, 63, scale=0.4), [1, 63])
    g.save(folder / "motion-extractor.onnx")

    g = Graph("stitching")
    both = g.input("input", [1, 126])
    g.output("output", (both @ constant(126, 65)) * 0.001, [1, 65])
    g.save(folder / "stitching.onnx")

    for name, size in (("preview", 256), ("quality", 512)):
        g = Graph(name)
        feature = g.input("feature_3d", [1, 32, 16, 64, 64])
        source, driving = g.input("kp_source", [1, K, 3]), g.input("kp_driving", [1, K, 3])
        shift = (driving - source)[:, :, 0:2].mean(1).reshape(1, 1, 1, 2)
        axis = ((np.arange(size, dtype=np.float32) + 0.5) / size * 2 - 1).astype(np.float32)
        grid = np.stack(np.meshgrid(axis, axis), -1)[None]
        sampled = g.op("GridSample", feature[:, 0:3, 0], grid - shift, mode="linear", padding_mode="border")
        g.output("out", sampled.clip(0, 1), [1, 3, size, size])
        g.save(folder / f"generator-{name}.onnx")


def _tables(folder: Path) -> None:
    random = np.random.default_rng(1)
    random.normal(0, 0.1, 10 * 256 + 10 * 73 + 256).astype("<f4").tofile(folder / "joyvasa-conditioning.bin")
    open_pack().floats("schedule.bin").astype("<f4").tofile(folder / "joyvasa-schedule.bin")
    template = {"mean_exp": [0.0] * 63, "std_exp": [0.05] * 63, "min_scale": 1.0, "max_scale": 1.3}
    template |= {"min_t": [-0.1] * 3, "max_t": [0.1] * 3}
    for angle in ("pitch", "yaw", "roll"):
        template |= {f"min_{angle}": -5.0, f"max_{angle}": 5.0}
    (folder / "joyvasa-motion-template.json").write_text(json.dumps(template))


def _model(file: str, inputs: dict[str, Any], outputs: dict[str, Any]) -> dict[str, Any]:
    def tensors(entries: dict[str, Any]) -> dict[str, Any]:
        return {
            role: {"name": name, "shape": list(shape), "dtype": dtype}
            for role, (name, shape, dtype) in {r: (*e, "float32")[:3] for r, e in entries.items()}.items()
        }

    return {"file": file, "inputs": tensors(inputs), "outputs": tensors(outputs)}


def build_published_pack(folder: Path) -> Path:
    """Write the pack; returns its folder."""
    folder.mkdir(parents=True)
    _graphs(folder)
    _tables(folder)
    range_of = {name: {"min": f"min_{name}", "max": f"max_{name}"} for name in ("scale", "t", "pitch", "yaw", "roll")}
    points = ("kp_source", (1, K, 3)), ("kp_driving", (1, K, 3))
    generator = {"feature_3d": ("feature_3d", (1, 32, 16, 64, 64)), "kp_source": points[0], "kp_driving": points[1]}
    embedded = json.loads((open_pack().folder / "manifest.json").read_text("utf-8"))
    manifest = {
        "format": 1,
        "name": "stand-in",
        "revision": "a201b68",
        "licence": {"summary": "MIT", "commercial_use": True},
        "files": {
            path.name: {
                "bytes": path.stat().st_size,
                "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
                "licence": "MIT",
                "provenance": "made by tests/published_pack.py",
            }
            for path in sorted(folder.iterdir())
        },
        "models": {
            "audio": _model(
                "joyvasa-audio.onnx",
                {"audio": ("audio_padded", (1, 64080))},
                {"audio_features": ("audio_features", (1, 100, 256))},
            ),
            "denoiser": _model(
                "joyvasa-denoiser.onnx",
                {
                    "motion": ("motion", (2, 100, 73)),
                    "audio": ("audio", (2, 100, 256)),
                    "previous_motion": ("previous_motion", (2, 10, 73)),
                    "previous_audio": ("previous_audio", (2, 10, 256)),
                    "step": ("step", (2,), "int64"),
                },
                {"motion": ("motion_prediction", (2, 110, 73))},
            ),
            "motion_extractor": _model(
                "motion-extractor.onnx",
                {"image": ("img", (1, 3, 256, 256))},
                {
                    **{angle: (angle, (1, 66)) for angle in ("pitch", "yaw", "roll")},
                    **{name: (name, (1, n)) for name, n in (("t", 3), ("exp", 63), ("scale", 1), ("kp", 63))},
                },
            ),
            "appearance": _model(
                "appearance_feature_extractor.onnx",
                {"image": ("img", (1, 3, 256, 256))},
                {"feature_3d": ("output", (1, 32, 16, 64, 64))},
            ),
            "stitching": _model("stitching.onnx", {"keypoints": ("input", (1, 126))}, {"delta": ("output", (1, 65))}),
            **{
                name: _model(f"generator-{name}.onnx", generator, {"image": ("out", (1, 3, size, size))})
                for name, size in (("preview", 256), ("quality", 512))
            },
        },
        "speech": {
            **embedded["speech"],
            "encoder": "audio",
            "denoiser": "denoiser",
            "motion_size": 73,
            "audio_size": 256,
            "guidance": 2.0,
            "conditioning": "joyvasa-conditioning.bin",
            "schedule": "joyvasa-schedule.bin",
        },
        "motion": {
            "template": "joyvasa-motion-template.json",
            "parts": {
                "expression": {"columns": [0, 63], "mean": "mean_exp", "std": "std_exp"},
                "scale": {"columns": [63, 64], **range_of["scale"]},
                "translation": {"columns": [64, 67], **range_of["t"]},
                "pitch": {"columns": [67, 68], **range_of["pitch"]},
                "yaw": {"columns": [68, 69], **range_of["yaw"]},
                "roll": {"columns": [69, 70], **range_of["roll"]},
            },
        },
        "source": {
            "model": "motion_extractor",
            "input": "image",
            "keypoints": K,
            "pose_bins": {"step": 3, "offset": -97.5},
        },
        "driving": {
            "expression_frame": "camera",
            **dict.fromkeys(("rotation", "expression", "scale", "translation"), "relative"),
            "lip_points": [6, 12, 14, 17, 19, 20],
            "lip_rule": "absolute",
        },
        "crop": embedded["crop"],
        "compositing": embedded["compositing"],
        "checks": embedded["checks"],
        "key_frames": {"fps": 2, "extra_percentile": 62, "extra_gap_seconds": 0.32, "greatest_miss": 0.1, "chunk": 8},
        "presets": {name: {"size": size, "generator": name} for name, size in (("preview", 256), ("quality", 512))},
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder
