"""Lowered graphs run in a browser, on WASM and on WebGPU, and give what ONNX Runtime gives here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest

from pipeline.graphs.lower.presets import lower
from pipeline.graphs.lower.rank import flat_shape
from pipeline.graphs.model import load
from pipeline.graphs.standins import SMALL, SeededWeights, generator, inputs
from pipeline.packs.store import open_pack
from pipeline.report import Report
from pipeline.runtime.options import RuntimeOptions
from pipeline.studio import Studio
from pipeline.values import Portrait
from tests.web.runtime import Found, Job, run_in_chromium

pytestmark = pytest.mark.web

PRESETS = ("gridsample", "rank4")
PROVIDERS = ("wasm", "webgpu")
GENERATORS = ("standin", "embedded")
RUNS = tuple((f"{name}-{preset}", provider) for name in GENERATORS for preset in PRESETS for provider in PROVIDERS)
TOLERANCE = 1e-4
"""Greatest difference of a value of the picture, 0..1."""

TINY = replace(SMALL, keypoints=5, depth=4)
"""The small-width stand-in with fewer motions and slices: SwiftShader draws on the CPU."""

Feeds = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Case:
    """One lowered graph, what it is fed and what ONNX Runtime's CPU provider makes of it, by run."""

    model: bytes
    feeds: Mapping[str, Feeds]
    expected: Mapping[str, np.ndarray]


def standin() -> tuple[onnx.ModelProto, dict[str, Feeds]]:
    return generator(TINY, SeededWeights(1)), {"far": inputs(TINY, "far", 1)}


def embedded(portrait: Portrait) -> tuple[onnx.ModelProto, dict[str, Feeds]]:
    """The generator that ships inside, on the sample portrait with four movements of the face at once."""
    pack = open_pack()
    studio = Studio(pack, RuntimeOptions())
    appearance = studio.make_appearance(portrait, Report())
    source = appearance.source
    assert source.basis is not None
    spec = pack.manifest.model(pack.manifest.preset("preview").generator)
    offset = np.asarray(sum(source.basis[unit] for unit in (0, 1, -1, -2)))
    driving = source.keypoints + source.scale * (0.5 * offset @ source.rotation)
    roles = {**appearance.features, "kp_source": source.keypoints[None], "kp_driving": driving[None]}
    feeds = {spec.inputs[role].name: np.asarray(roles[role], spec.inputs[role].dtype) for role in spec.inputs}
    return ir.to_proto(load(pack.folder / spec.file)), {"moved": feeds}


@pytest.fixture(scope="module")
def cases(sample: Portrait) -> dict[str, Case]:
    found = {}
    for name, (source, feeds) in {"standin": standin(), "embedded": embedded(sample)}.items():
        expected = {run: evaluate(source, feed) for run, feed in feeds.items()}
        for preset in PRESETS:
            lowered = ir.to_proto(lower(ir.from_proto(source), preset).model)
            lowered.ir_version = 10
            shaped = {
                run: {value: array.reshape(flat_shape(array.shape)) if preset == "rank4" else array
                      for value, array in feed.items()}
                for run, feed in feeds.items()
            }  # fmt: skip
            found[f"{name}-{preset}"] = Case(lowered.SerializeToString(), shaped, expected)
    return found


def evaluate(model: onnx.ModelProto, feeds: Feeds) -> np.ndarray:
    model.ir_version = 10
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, dict(feeds))[0])


@pytest.fixture(scope="module")
def first(cases: dict[str, Case]) -> dict[str, str]:
    """By case: the first that has the very same graph, which runs for all of them."""
    seen: dict[bytes, str] = {}
    return {name: seen.setdefault(case.model, name) for name, case in cases.items()}


@pytest.fixture(scope="module")
def found(cases: dict[str, Case], first: dict[str, str]) -> Found:
    jobs = [
        Job(f"{name}-{provider}", cases[name].model, provider, cases[name].feeds, whole=provider == "webgpu")
        for name, provider in RUNS
        if first[name] == name
    ]
    return run_in_chromium(jobs)


@pytest.mark.parametrize(("name", "provider"), RUNS)
def test_the_picture_in_the_browser(
    name: str, provider: str, cases: dict[str, Case], first: dict[str, str], found: Found
) -> None:
    job = f"{first[name]}-{provider}"
    assert job not in found.failed
    for run, expected in cases[name].expected.items():
        (picture,) = found.outputs[f"{job}/{run}"].values()
        assert expected.std() > 0.05
        assert np.abs(picture - expected.reshape(-1)).max() < TOLERANCE


def test_the_adapter_is_a_real_one(found: Found) -> None:
    assert found.adapter is not None
    assert found.adapter[0]
