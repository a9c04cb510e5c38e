"""What a device has, asked of its driver. Only in a process that does not fork afterwards: the driver does not
survive a fork."""

from __future__ import annotations

import ctypes

from .libraries import NVIDIA
from .providers import Rung


def device_memory(rung: Rung) -> int | None:
    """Bytes of memory of a rung's device; None where it is not there, or no driver tells."""
    if rung.kind not in NVIDIA:
        return None
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    device, size = ctypes.c_int(), ctypes.c_size_t()
    known = (
        driver.cuInit(0) == 0
        and driver.cuDeviceGet(ctypes.byref(device), int(rung.device or 0)) == 0
        and driver.cuDeviceTotalMem_v2(ctypes.byref(size), device) == 0
    )
    return size.value if known else None
