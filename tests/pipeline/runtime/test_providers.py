"""Rungs by name: what may be stated, and what the installed build has."""

from __future__ import annotations

import onnxruntime
import pytest

from pipeline.errors import SettingsError
from pipeline.runtime.providers import CPU, KINDS, Rung, default_rungs, installed_kinds, parse_rungs, read_rungs


def test_rungs_in_their_order() -> None:
    rungs = parse_rungs(" cuda:1, tensorrt ,openvino:GPU.0,cpu")
    assert rungs == (Rung("cuda", "1"), Rung("tensorrt"), Rung("openvino", "GPU.0"), CPU)
    assert ",".join(map(str, rungs)) == "cuda:1,tensorrt,openvino:GPU.0,cpu"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "names none"),
        (",", "names none"),
        ("gpu", "'gpu' is unknown; give some of cuda"),
        ("CUDAExecutionProvider", "unknown"),
        ("cpu:1", "cpu has no devices"),
        ("cuda:x", "must be a number"),
        ("cuda:-1", "must be a number"),
        ("cuda:01", "must be a number"),
        ("cuda:", "must be a number"),
        ("openvino:", "names no device"),
        ("cpu,cpu", "names cpu twice"),
        ("cuda,cuda:0", "names cuda:0 twice"),
    ],
)
def test_what_cannot_be_meant(text: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        parse_rungs(text)


def test_what_is_not_installed_is_told_with_what_is() -> None:
    with pytest.raises(SettingsError, match=r"cuda is not in the installed onnxruntime \(onnxruntime 1\.") as caught:
        read_rungs("cuda,cpu")
    assert "give some of cpu" in str(caught.value)
    assert "pip install onnxruntime-gpu" in str(caught.value)
    assert read_rungs("cpu") == (CPU,)


@pytest.mark.parametrize(
    ("available", "ladder"),
    [
        (["AzureExecutionProvider", "CPUExecutionProvider"], "cpu"),
        (["TensorrtExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider"], "cuda,cpu"),
        (["OpenVINOExecutionProvider", "CPUExecutionProvider"], "openvino,cpu"),
        (["DmlExecutionProvider", "CPUExecutionProvider"], "directml,cpu"),
        (["CoreMLExecutionProvider", "CPUExecutionProvider"], "cpu"),
    ],
)
def test_without_a_ladder_it_is_what_the_build_is_for(
    available: list[str], ladder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: available)
    assert default_rungs() == parse_rungs(ladder)
    assert "cpu" in installed_kinds()


def test_devices_threads_and_memory_reach_the_provider() -> None:
    cuda = Rung("cuda", "1").options(4, memory=1 << 30)
    assert (cuda["device_id"], cuda["gpu_mem_limit"]) == ("1", str(1 << 30))
    assert "gpu_mem_limit" not in Rung("cuda").options(4)
    assert "device_id" not in Rung("cuda").options(4)
    openvino = Rung("openvino", "GPU").options(4, memory=1 << 30)
    assert (openvino["device_type"], openvino["num_of_threads"]) == ("GPU", "4")
    assert CPU.options(4, memory=1) == {}


def test_every_kind_is_a_provider_of_onnxruntime() -> None:
    known = set(onnxruntime.get_all_providers())
    assert {kind.provider for kind in KINDS.values()} <= known
