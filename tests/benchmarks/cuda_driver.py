"""CUDA's driver by hand, for benchmarks of faults: fill a card from another process, break this process's context.

python -m tests.benchmarks.cuda_driver DEVICE LEFT     # fill all but LEFT bytes, until standard input ends
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

PIECE = 1 << 28
"""Bytes of the largest allocations that fill a card; smaller ones take the rest."""

SMALLEST = 1 << 21

KERNEL = b"""
.version 6.0
.target sm_50
.address_size 64
.visible .entry stray()
{
    .reg .b64 %rd<2>;
    .reg .b32 %r<2>;
    mov.u64 %rd1, 8;
    mov.u32 %r1, 1;
    st.global.u32 [%rd1], %r1;
    ret;
}
\0"""
"""Writes where nothing was allocated: afterwards every call of the process fails (CUDA error 700)."""


class Card:
    """A device through libcuda, in its primary context, which ONNX Runtime and PyTorch use, too."""

    def __init__(self, device: int) -> None:
        self._cuda: Any = ctypes.CDLL("libcuda.so.1")
        self._check(self._cuda.cuInit(0))
        handle, context = ctypes.c_int(), ctypes.c_void_p()
        self._check(self._cuda.cuDeviceGet(ctypes.byref(handle), device))
        self._check(self._cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), handle))
        self._check(self._cuda.cuCtxSetCurrent(context))

    def _check(self, status: int) -> None:
        if status:
            raise RuntimeError(f"the CUDA driver answers {status}")

    def free(self) -> int:
        """Bytes."""
        left, whole = ctypes.c_size_t(), ctypes.c_size_t()
        self._check(self._cuda.cuMemGetInfo_v2(ctypes.byref(left), ctypes.byref(whole)))
        return left.value

    def fill(self, left: int) -> int:
        """Take all but `left` bytes; how many were taken. The process's end gives them back."""
        taken, size = 0, PIECE
        while size >= SMALLEST:
            pointer = ctypes.c_uint64()
            if self.free() - size < left or self._cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(size)):
                size //= 2
            else:
                taken += size
        return taken

    def break_context(self) -> int:
        """Make the process's context unusable; the error that the driver answers from now on."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self._check(self._cuda.cuModuleLoadData(ctypes.byref(module), KERNEL))
        self._check(self._cuda.cuModuleGetFunction(ctypes.byref(function), module, b"stray"))
        sizes = [ctypes.c_uint(1)] * 6
        self._check(self._cuda.cuLaunchKernel(function, *sizes, ctypes.c_uint(0), None, None, None))
        status: int = self._cuda.cuCtxSynchronize()
        return status


class Filler:
    """Another process that holds the card's memory."""

    def __init__(self, device: int, left: int) -> None:
        command = [sys.executable, "-m", "tests.benchmarks.cuda_driver", str(device), str(left)]
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        self.taken = int(self._process.stdout.readline())

    def release(self) -> None:
        """Give the memory back."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait(60)


@contextmanager
def filled(device: int, left: int) -> Iterator[Filler]:
    """The card filled for a while."""
    filler = Filler(device, left)
    try:
        yield filler
    finally:
        filler.release()


if __name__ == "__main__":
    print(Card(int(sys.argv[1])).fill(int(sys.argv[2])), flush=True)
    sys.stdin.read()
