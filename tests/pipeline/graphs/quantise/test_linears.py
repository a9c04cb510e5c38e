"""Linear layers in 4 and 8 bits, chosen by what the network makes: on stand-ins of the speech networks and the pack."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest
from onnx import helper

from pipeline.errors import GraphError
from pipeline.graphs.model import load, prepare
from pipeline.graphs.quantise import quantise_linears
from pipeline.graphs.quantise.linears import Run
from pipeline.graphs.quantise.quality import relative_error
from pipeline.graphs.quantise.running import opened
from pipeline.graphs.standins import AbsentWeights
from pipeline.graphs.standins.transformer import BASE, FRAMES, PREVIOUS, SAMPLES, TINY, denoiser, speech_encoder
from pipeline.stages.diffusion import Schedule, guided, sample
from tests.pipeline.graphs.graphs import model, random, run

PACK = Path(__file__).parents[4] / "pipeline" / "packs" / "embedded"
STEPS = 4


def wave(seed: int) -> np.ndarray:
    noise = random((SAMPLES,), seed)
    return (np.convolve(noise, np.hanning(9), "same") * 0.05).astype(np.float32)[None]


@cache
def audio_features() -> np.ndarray:
    with opened(prepare(ir.from_proto(speech_encoder(TINY))), 1) as runner:
        return runner.run({"audio_padded": wave(0)})["audio_features"]


def conditions(step: int, motion: np.ndarray) -> dict[str, np.ndarray]:
    """Inputs of the denoiser: row 0 does not hear the sound."""
    audio = audio_features()
    return {
        "motion": np.concatenate([motion, motion]),
        "audio": np.concatenate([np.zeros_like(audio), audio]),
        "previous_motion": np.zeros((2, PREVIOUS, TINY.motion), np.float32),
        "previous_audio": np.zeros((2, PREVIOUS, TINY.features), np.float32),
        "step": np.full(2, step, np.int64),
    }


def motion(denoise: Run) -> np.ndarray:
    """A window drawn by the sampler of the motion stage, [100, motion]."""
    bar = np.linspace(1, 0.02, STEPS + 1, dtype=np.float32) ** 2
    schedule = Schedule(np.concatenate([bar[:1], bar[1:] / bar[:-1]]), bar)

    def clean(x: np.ndarray, step: int) -> np.ndarray:
        rows = denoise(conditions(step, x))["motion_prediction"][:, PREVIOUS:]
        return guided(rows[:1], rows[1:], 1.2)

    shape = (1, FRAMES, TINY.motion)
    return sample(clean, random(shape, 1), (random(shape, 2 + step) for step in range(STEPS)), schedule)[0]


@pytest.mark.parametrize(("network", "millions"), [(speech_encoder, 94), (denoiser, 9)])
def test_the_stand_ins_have_the_published_size(network: object, millions: float) -> None:
    made = network(BASE, AbsentWeights())  # type: ignore[operator]
    count = sum(int(np.prod(value.dims)) for value in made.graph.initializer if value.data_location)
    assert count / 1e6 == pytest.approx(millions, rel=0.07)


def test_features_follow_the_sound() -> None:
    first = audio_features()
    with opened(prepare(ir.from_proto(speech_encoder(TINY))), 1) as runner:
        second = runner.run({"audio_padded": wave(1)})["audio_features"]
    assert first.shape == (1, FRAMES, TINY.features)
    assert 0.5 < first.std() < 2
    assert np.abs(first - second).mean() > 0.1


def test_the_denoiser_is_chosen_by_the_motion() -> None:
    source = prepare(ir.from_proto(denoiser(TINY)))
    found = quantise_linears(source, [], produce=motion, error=0.05, threads=1)
    variants = {variant.name: variant for variant in found.report.variants}
    assert variants["chosen"].scores["error"] <= 0.05 < variants["all in 4 bits"].scores["error"]
    assert variants["chosen"].weight_bytes < 0.5 * variants["float32"].weight_bytes
    choices = {part.choice for part in found.report.parts}
    assert choices == {"4 bits", "8 bits"}
    with opened(found.model, 1) as runner, opened(source, 1) as reference:
        error = relative_error(motion(runner.run), motion(reference.run))
    assert error == pytest.approx(variants["chosen"].scores["error"], rel=1e-3)
    assert {node.attributes["bits"].as_int() for node in found.model.graph if node.op_type == "MatMulNBits"} == {4, 8}


def test_a_loose_bound_takes_4_bits_everywhere_and_a_strict_one_none() -> None:
    weights = {"a": random((256, 64)) / 16, "b": random((64, 128), 1) / 8, "c": random((128,), 2)}
    nodes = [
        helper.make_node("MatMul", ["x", "a"], ["h"]),
        helper.make_node("Gelu", ["h"], ["g"]),
        helper.make_node("Gemm", ["g", "b", "c"], ["y"]),
    ]
    source = model(nodes, {"x": (5, 256)}, ["y"], weights)
    rows = [{"x": random((5, 256), seed)} for seed in range(3)]
    forms = {}
    for bound in (0.5, 0.0):
        found = quantise_linears(source, rows, error=bound, block=64)
        forms[bound] = {part.choice for part in found.report.parts}
        for row in rows:
            wanted = run(source, row)["y"]
            assert np.sqrt(np.mean((run(found.model, row)["y"] - wanted) ** 2)) <= max(bound, 1e-6) * wanted.std() * 1.5
    assert forms == {0.5: {"4 bits"}, 0.0: {"float32"}}


@pytest.mark.parametrize("turned", [0, 1])
def test_a_gemm_in_8_bits_is_the_same_function(turned: int) -> None:
    weight = random((200, 48)) / 14
    weights = {"b": weight.T.copy() if turned else weight, "c": random((48,), 2)}
    source = model([helper.make_node("Gemm", ["x", "b", "c"], ["y"], transB=turned)], {"x": (7, 200)}, ["y"], weights)
    row = {"x": random((7, 200), 3)}
    found = quantise_linears(source, [row], error=0.02)
    assert [part.choice for part in found.report.parts] == ["8 bits"]
    np.testing.assert_allclose(run(found.model, row)["y"], run(source, row)["y"], atol=0.05)


def test_products_that_are_no_linear_layers_are_left_with_a_reason() -> None:
    weights = {"a": random((256, 64)) / 16, "small": random((8, 52)), "b": random((64, 3))}
    nodes = [
        helper.make_node("MatMul", ["x", "a"], ["h"], name="layer"),
        helper.make_node("Transpose", ["h"], ["t"], perm=[1, 0]),
        helper.make_node("MatMul", ["h", "t"], ["s"], name="attention"),
        helper.make_node("MatMul", ["s", "small"], ["u"], name="narrow"),
        helper.make_node("Gemm", ["h", "b"], ["y"], name="scaled", alpha=0.5),
    ]
    source = model(nodes, {"x": (8, 256)}, ["y", "u"], weights)
    left = quantise_linears(source, [{"x": random((8, 256))}], error=1).report.left
    assert left == {
        "MatMul 'attention'": "its second operand is no constant",
        "MatMul 'narrow'": "[8, 52] is no smaller in blocks of 128",
        "Gemm 'scaled'": "it scales its operands, or turns the first",
    }


def test_the_packs_own_speech_networks() -> None:
    with pytest.raises(GraphError, match="no linear layer that would get smaller"):
        quantise_linears(prepare(load(PACK / "speech_encoder.onnx")), [{"audio_padded": wave(0)}])
    with pytest.raises(GraphError, match="no inputs to judge on"):
        quantise_linears(prepare(load(PACK / "denoiser.onnx")), [])  # the vectors that modulate its blocks
