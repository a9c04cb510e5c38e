"""What a device has and whether it still answers, asked of its driver. Only in a process that does not fork afterwards:
the driver does not survive a fork."""

from __future__ import annotations

import ctypes
from typing import Any

from .libraries import NVIDIA
from .providers import Rung


def device_memory(rung: Rung) -> int | None:
    """Bytes of memory of a rung's device; None where it is not there, or no driver tells."""
    if (found := _device(rung)) is None:
        return None
    driver, device = found
    size = ctypes.c_size_t()
    return size.value if driver.cuDeviceTotalMem_v2(ctypes.byref(size), device) == 0 else None


def context_is_broken(rung: Rung) -> bool:
    """Whether the driver answers this process for a rung's device with an error; False where there is none to lose."""
    if (found := _device(rung)) is None:
        return False
    driver, device = found
    context = ctypes.c_void_p()
    # Not released again: the process's last release would end the context under the sessions that use it.
    if driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) or driver.cuCtxPushCurrent_v2(context):
        return True
    broken: bool = driver.cuCtxSynchronize() != 0
    driver.cuCtxPopCurrent_v2(ctypes.byref(context))
    return broken


def _device(rung: Rung) -> tuple[Any, ctypes.c_int] | None:
    """The driver and its handle of a rung's device; None where it is not there, or there is no driver."""
    if rung.kind not in NVIDIA:
        return None
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    device = ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(device), int(rung.device or 0)):
        return None
    return driver, device
