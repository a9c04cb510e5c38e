"""Faults are recognised by what ONNX Runtime and the drivers really say."""

from __future__ import annotations

import pytest

from pipeline.errors import DeviceFaultError, ModelError, RunEndedError
from pipeline.runtime.faults import Fault, fault_of, run_error

NODE = "[ONNXRuntimeError] : 1 : FAIL : Non-zero status code returned while running Conv node. Name:'' Status Message: "
ARENA_FULL = (
    f"{NODE}/onnxruntime_src/onnxruntime/core/framework/bfc_arena.cc:360 void* onnxruntime::BFCArena::"
    "AllocateRawInternal(size_t, bool, onnxruntime::Stream*) Failed to allocate memory for requested buffer of size "
    "1073741824\n"
)

MEMORY = [
    ARENA_FULL,
    "[ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : Non-zero status code returned while running Expand node. Name:'' "
    "Status Message: std::bad_alloc",
    f"{NODE}bfc_arena.cc:376 Available memory of 0 is smaller than requested bytes of 135383040",
    "CUDA failure 2: out of memory ; GPU=0 ; hostname=h ; file=cuda_allocator.cc ; line=44 ; expr=cudaMalloc",
    "Cuda Error in allocate: 2 (out of memory)",
    f"{NODE}CUDNN failure 2: CUDNN_STATUS_ALLOC_FAILED ; GPU=0 ; hostname=h",
    "CUBLAS failure 3: the resource allocation failed ; GPU=0 ; hostname=vm ; file=cuda_execution_provider.cc",
    f"{NODE}CUBLAS failure 3: CUBLAS_STATUS_ALLOC_FAILED ; GPU=0 ; hostname=h",
    "ExecutionProvider.cpp(962): 8007000E Not enough memory resources are available to complete this operation.",
    "[OpenVINO-EP]  Wait Model Failed: Exception from ocl_engine.cpp:185:\n[GPU] out of GPU resources",
    "WebGPU device error(2): Out of memory",
    MemoryError("bad allocation"),
    MemoryError(),
]
LOST = [
    "CUDA failure 700: an illegal memory access was encountered ; GPU=0 ; hostname=h ; file=gpu_data_transfer.cc ; "
    "line=63 ; expr=cudaMemcpyAsync(dst_data, src_data, bytes)",
    "CUDA failure 719: unspecified launch failure ; GPU=1",
    "CUDA failure 214: uncorrectable ECC error encountered ; GPU=0",
    "CUDA failure 100: no CUDA-capable device is detected",
    f"{NODE}ExecutionProvider.cpp(962) 887A0005 The GPU device instance has been suspended. Use GetDeviceRemovedReason",
    f"{NODE}WebGPU device lost (1): A valid external Instance reference no longer exists.",
    "CUDNN failure 4: CUDNN_STATUS_INTERNAL_ERROR ; GPU=0",
]
RESET = [
    "DmlGraphFusionHelper.cpp(1078) 887A0006 The GPU will not respond to more commands, most likely because of an "
    "invalid command passed by the calling application.",
    "887A0007 The GPU will not respond to more commands (DXGI_ERROR_DEVICE_RESET)",
    "CUDA failure 702: the launch timed out and was terminated ; GPU=0",
    "CUDA failure 999: unknown error ; GPU=0",
    "CUDA failure 4: driver shutting down ; GPU=0",
]
NONE = [
    "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Got invalid dimensions for input: x for the following indices\n "
    "index: 0 Got: 2 Expected: 1",
    f"{NODE}Non concat axis dimensions must match: Axis 2 has mismatched dimensions of 700 and 702",
    "[ONNXRuntimeError] : 7 : INVALID_PROTOBUF : Load model failed:Protobuf parsing failed.",
    "CUDA failure 98: invalid device function ; GPU=0",
]


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        *((error, Fault.MEMORY) for error in MEMORY),
        *((error, Fault.LOST) for error in LOST),
        *((error, Fault.RESET) for error in RESET),
        *((error, None) for error in NONE),
    ],
)
def test_what_an_error_means(error: str | BaseException, fault: Fault | None) -> None:
    assert fault_of(error) == fault


def test_a_fault_is_one_line_with_its_kind() -> None:
    error = run_error("generator.onnx", RuntimeError(ARENA_FULL))
    assert isinstance(error, DeviceFaultError)
    assert error.fault == "out of memory"
    assert str(error).startswith("generator.onnx failed while running (")
    assert "requested buffer of size 1073741824" in str(error)
    assert "\n" not in str(error)


@pytest.mark.parametrize("prefix", ["[ONNXRuntimeError] : 1 : FAIL : ", "Error in execution: "])
def test_a_run_that_was_ended_is_no_fault(prefix: str) -> None:
    error = run_error("m.onnx", RuntimeError(f"{prefix}Exiting due to terminate flag being set to true."))
    assert isinstance(error, RunEndedError)


def test_any_other_error_is_neither() -> None:
    assert type(run_error("m.onnx", RuntimeError(NONE[0]))) is ModelError
