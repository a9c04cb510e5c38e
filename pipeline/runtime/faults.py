"""What ONNX Runtime's errors mean: a fault of the device or of memory, a run that was ended on purpose, or neither.

ONNX Runtime tells faults apart by their text only: a provider's own code reaches Python within a general status. The
texts below are those of CUDA, cuBLAS, cuDNN, TensorRT, Direct3D 12 (DXGI), OpenCL (OpenVINO), WebGPU (Dawn) and of
ONNX Runtime's allocators.
"""

from __future__ import annotations

import re
from enum import StrEnum

from ..errors import DeviceFaultError, ModelError, RunEndedError
from .messages import one_line


class Fault(StrEnum):
    """Why a session may be of no more use though nothing is wrong with its model."""

    MEMORY = "out of memory"
    RESET = "driver reset"
    LOST = "device lost"


_PATTERNS: tuple[tuple[Fault, str], ...] = (
    (
        Fault.MEMORY,
        # ONNX Runtime's arena and allocators, the C++ library, CUDA error 2, Windows' E_OUTOFMEMORY, OpenCL, Vulkan.
        r"failed to allocate memory|available memory of \d+ is smaller than requested|bad[_ ]alloc(ation)?\b"
        r"|out of (gpu |host |device |video )?memory|\bCUDA (failure|error)[: ]+2\b|cudaErrorMemoryAllocation"
        r"|STATUS_ALLOC_FAILED|\b(0x)?8007000E\b|CL_MEM_OBJECT_ALLOCATION_FAILURE|CL_OUT_OF_HOST_MEMORY"
        r"|exceed(s|ed) max size of memory|not enough memory|out of gpu resources|CL_OUT_OF_RESOURCES"
        r"|\bCUBLAS failure 3\b",  # its ALLOC_FAILED
    ),
    (
        Fault.RESET,
        # DXGI: hung, reset, driver's internal error. CUDA: a launch that the system's watchdog ended, unknown error.
        r"\b(0x)?887A00(06|07|20)\b|DXGI_ERROR_(DEVICE_HUNG|DEVICE_RESET|DRIVER_INTERNAL_ERROR)"
        r"|\bCUDA (failure|error)[: ]+(702|999|46|304)\b|launch timed out|all CUDA-capable devices are busy"
        r"|driver (was |has been )?(reset|shut ?down)|driver shutting down|\bCUDA (failure|error)[: ]+4\b",
    ),
    (
        Fault.LOST,
        # CUDA's errors after which every call of the process fails: ECC, NVLink, illegal access, launch failure; no
        # device, context gone. DXGI: removed. Dawn: lost.
        r"\b(0x)?887A0005\b|DXGI_ERROR_DEVICE_REMOVED|device (is |was |has been )?(lost|removed)|lost device"
        r"|\bgpu is lost|fallen off the bus|\bCUDA (failure|error)[: ]+(100|101|201|214|219|220|226"
        r"|70[09]|71[0456789]|721)\b|illegal memory access|unspecified launch failure|uncorrectable ECC"
        r"|no CUDA-capable device|illegal instruction|misaligned address|device-side assert"
        r"|context (is |was )(destroyed|lost)|CUDNN_STATUS_(INTERNAL_ERROR|EXECUTION_FAILED)"
        r"|CUBLAS_STATUS_(INTERNAL_ERROR|EXECUTION_FAILED|NOT_INITIALIZED)|CUDNN_STATUS_NOT_INITIALIZED",
    ),
)

_FAULTS = tuple((fault, re.compile(pattern, re.IGNORECASE)) for fault, pattern in _PATTERNS)

_ENDED = "terminate flag being set"
"""What a run says that was ended by `RunOptions.terminate`."""


def fault_of(error: BaseException | str) -> Fault | None:
    """The fault that an error of ONNX Runtime tells of; None for any other error."""
    if isinstance(error, MemoryError):
        return Fault.MEMORY
    text = str(error)
    return next((fault for fault, pattern in _FAULTS if pattern.search(text)), None)


def run_error(model: str, error: BaseException) -> ModelError:
    """What a failed run of a model raises.

    Args:
        model: its name for the message. error: what ONNX Runtime raised.

    Returns:
        RunEndedError: it was ended on purpose. DeviceFaultError: the device or the memory failed it.
        ModelError: anything else.
    """
    if _ENDED in str(error):
        return RunEndedError(f"{model} was ended while running")
    text = f"{model} failed while running ({one_line(error)})"
    fault = fault_of(error)
    return ModelError(text) if fault is None else DeviceFaultError(text, fault)
