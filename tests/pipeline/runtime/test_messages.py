"""What ONNX Runtime says, as it said it, on one line."""

from __future__ import annotations

import pytest

from pipeline.runtime.messages import LONGEST, one_line

OPENVINO = """[ONNXRuntimeError] : 1 : FAIL : Exception during initialization: /onnxruntime/onnxruntime/core/providers/openvino/backends/basic_backend.cc:136 onnxruntime::openvino_ep::BasicBackend::BasicBackend(std::unique_ptr<onnx::ModelProto>&, onnxruntime::openvino_ep::SessionContext&, const onnxruntime::openvino_ep::SubGraphContext&, onnxruntime::openvino_ep::SharedContext&, onnxruntime::openvino_ep::ptr_stream_t&) /onnxruntime/onnxruntime/core/providers/openvino/ov_interface.cc:28 auto onnxruntime::openvino_ep::OvExceptionBoundary(Func&&, std::format_string<Args ...>&&, Args&& ...) [with bool typed = false; Func = OVCore::ReadModel(std::string&&, const std::string&)::<lambda()>; Args = {}; std::format_string<Args ...> = std::basic_format_string<char>] [OpenVINO-EP] Exception while Reading network: Check 'false' failed:
FrontEnd API failed with GeneralFailure:
"""  # noqa: E501
CUDA = "/onnxruntime_src/onnxruntime/core/session/provider_bridge_ort.cc:2043 onnxruntime::Provider& onnxruntime::ProviderLibrary::Get() [ONNXRuntimeError] : 1 : FAIL : Failed to load library x.so with error: libcublasLt.so.13: cannot open shared object file\n\x1b[m"  # noqa: E501


@pytest.mark.parametrize(
    ("said", "line"),
    [
        (
            OPENVINO,
            "[OpenVINO-EP] Exception while Reading network: Check 'false' failed: "
            "FrontEnd API failed with GeneralFailure:",
        ),
        (CUDA, "Failed to load library x.so with error: libcublasLt.so.13: cannot open shared object file"),
        ("[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Got invalid dimensions", "Got invalid dimensions"),
        (
            "CUBLAS failure 3: the resource allocation failed ; GPU=0 ; hostname=vm ; file=/onnxruntime_src/onnxruntime"
            "/core/providers/cuda/cuda_execution_provider.cc ; line=245 ; expr=cublasCreate(&cublas_handle_);",
            "CUBLAS failure 3: the resource allocation failed",
        ),
        ("\x1b[1;31mtwo\n lines\x1b[m", "two lines"),
    ],
)
def test_positions_in_sources_are_left_out(said: str, line: str) -> None:
    assert one_line(said) == line


def test_a_long_one_is_cut_and_an_empty_one_named() -> None:
    assert len(one_line("word " * 1000)) == LONGEST
    assert one_line(ValueError()) == "ValueError"
