"""Which file of which pack is made how."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from onnx import ModelProto

from ...graphs.standins import SeededWeights, WeightSource, generator, spade_part
from . import networks, speech, tables
from .generators import appearance_extractor, warping_network, web_generator
from .widths import Widths

Make = Callable[[], ModelProto | bytes]


def contents(widths: Widths, seed: int, weights: WeightSource | None = None) -> dict[str, dict[str, Make]]:
    """For each pack by name, each of its files by name: a function that makes it.

    Args:
        seed: of tables and, unless `weights` are given, of the networks.
    """
    weights = weights or SeededWeights(seed)
    joyvasa, liveportrait = "joyvasa/joyvasa-", "liveportrait-webgpu/liveportrait-"
    return {
        "timeline-studio": {
            f"{joyvasa}audio.onnx": partial(speech.speech_encoder, widths.speech, weights),
            f"{joyvasa}denoiser.onnx": partial(speech.denoiser, widths.speech, weights),
            f"{joyvasa}conditioning.bin": partial(tables.conditioning, seed),
            f"{joyvasa}schedule.bin": tables.schedule,
            f"{joyvasa}motion-template.json": partial(tables.template, seed),
            f"{liveportrait}appearance_feature_extractor.onnx": partial(
                appearance_extractor, widths.generator, weights
            ),
            f"{liveportrait}motion-extractor.onnx": partial(networks.motion_extractor, widths.extractor, weights),
            f"{liveportrait}stitching.onnx": partial(networks.stitching, widths.stitching, weights),
            f"{liveportrait}generator-preview-fp16.onnx": partial(
                web_generator, widths.generator, weights, preview=True
            ),
            f"{liveportrait}generator-quality-fp16.onnx": partial(web_generator, widths.generator, weights),
        },
        "liveportrait-onnx": {
            "generator_fix_grid.onnx": partial(generator, widths.generator, weights),
            "landmark.onnx": partial(networks.landmarks, widths.landmarks, weights),
            "warping.onnx": partial(warping_network, widths.generator, weights),
            "spade_generator.onnx": partial(spade_part, widths.generator, weights),
            "stitching_lip.onnx": partial(networks.lip_closing, widths.stitching, weights),
        },
    }
