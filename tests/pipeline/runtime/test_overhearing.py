"""ONNX Runtime's log, as it wrote it, and what else is written meanwhile."""

from __future__ import annotations

import os

import pytest

from pipeline.runtime.overhearing import overheard

WARNING = (
    "\x1b[0;93m2026-11-30 11:27:11.315064940 [W:onnxruntime:Default, onnxruntime_pybind_state.cc:1066 "
    "CreateExecutionProviderFactoryInstance] Failed to create OpenVINOExecutionProvider.\x1b[m\n"
)
ERROR = (
    "\x1b[1;31m2026-11-30 11:27:11.315026117 [E:onnxruntime:Default, provider_bridge_ort.cc:2310 Create] "
    "/onnxruntime/core/openvino_provider_factory.cc:141 std::string ParseDeviceType(std::shared_ptr<OVCore>) "
    "[ERROR] [OpenVINO] Device GPU is not available\n\x1b[m\n"
)
PLAIN = "2026-11-30 10:00:00.1 [E:onnxruntime:, inference_session.cc:2579 operator()] No colours here\n"


def test_records_are_kept_and_the_rest_is_passed_on(capfd: pytest.CaptureFixture[str]) -> None:
    with overheard() as records:
        os.write(2, f"before\n{WARNING}between\n{ERROR}{PLAIN}after\n".encode())
    assert records == [
        "[ERROR] [OpenVINO] Device GPU is not available",
        "No colours here",
        "Failed to create OpenVINOExecutionProvider",
    ]
    assert capfd.readouterr().err == "before\nbetween\nafter\n"


def test_an_error_meanwhile_gives_back_the_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        with overheard():
            os.write(2, b"said\n")
            raise ValueError("odd")

    with pytest.raises(ValueError, match="odd"):
        fail()
    os.write(2, b"heard\n")
    assert capfd.readouterr().err == "said\nheard\n"
