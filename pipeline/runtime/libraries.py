"""Whether the libraries that an execution provider needs are on this machine, before it is asked for.

ONNX Runtime only logs that a provider's library did not load, and goes on without it.
"""

from __future__ import annotations

import ctypes
import io
import re
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from .builds import installed_builds, names_of
from .elf import NotElfError, needed_libraries
from .library import onnxruntime

NVIDIA = frozenset({"cuda", "tensorrt"})

FOR_CUDA_12 = 'pip install "onnxruntime-gpu<1.27"'
"""The builds on PyPI are for CUDA 13 from 1.27 on (onnxruntime issue 29500)."""

ABSENT = "cannot open shared object file"
"""What the loader says of a file that is not there."""

OTHER_VERSIONS = 4
"""How far around the wanted version of a library others are looked for."""


@cache
def machine_problem(kind: str) -> str | None:
    """Why a kind of provider cannot run anything on this machine, with the cure, on one line; None when nothing is
    known against it. Looks once: libraries do not appear while a process runs."""
    path = provider_library(kind)
    if path is None or sys.platform != "linux":
        return None
    if kind in NVIDIA:
        _preload()
    try:
        names, folders = needed_libraries(path)
    except (NotElfError, OSError) as error:
        return f"{error}; install onnxruntime again"
    missing = {name: why for name in names if (why := _fault(name, folders)) is not None}
    if missing:
        return _missing_text(kind, names, missing)
    return _driver_problem(names) if kind in NVIDIA else None


def provider_library(kind: str) -> Path | None:
    """The shared library of a provider; None where it is part of onnxruntime itself, or not there."""
    spec = find_spec("onnxruntime")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / "capi" / f"libonnxruntime_providers_{kind}.so"
    return path if path.exists() else None


def _preload() -> None:
    """Let onnxruntime load the libraries that pip installed: the loader does not look in site-packages. What it
    prints of those it does not find, we say ourselves."""
    preload = getattr(onnxruntime(), "preload_dlls", None)
    if preload is not None:
        with redirect_stdout(io.StringIO()):
            preload()


def _fault(name: str, folders: list[str]) -> str | None:
    """Why a library does not load; None when it does."""
    faults = []
    for place in (name, *(f"{folder}/{name}" for folder in folders)):
        try:
            ctypes.CDLL(place)
        except OSError as error:
            faults.append(str(error))
        else:
            return None
    # One that is there and damaged says more than the places where there is none.
    return next((fault for fault in faults if ABSENT not in fault), "not found")


def _missing_text(kind: str, names: list[str], missing: Mapping[str, str]) -> str:
    """Args: names: of all libraries that it needs. missing: why some of them do not load."""
    build = names_of(installed_builds())
    if [*missing] == ["libcuda.so.1"]:
        return f"there is no NVIDIA driver here (libcuda.so.1 is not found; {build}); install it, or leave {kind} out"
    cuda = _version(names, "libcudart") or _version(names, "libcublas")
    damaged = [fault for fault in missing.values() if fault != "not found"]
    absent = [name for name, fault in missing.items() if fault == "not found"]
    text = "; ".join([*damaged, *([f"{', '.join(absent)} not found"] if absent else [])])
    if kind not in NVIDIA or cuda is None:
        return f"{text} ({build}); install what brings them, or put their folder in LD_LIBRARY_PATH"
    if other := _other_version("libcudart", cuda):
        text += f": {build} is built for CUDA {cuda}, here is CUDA {other}"
        fitting = FOR_CUDA_12 if other == 12 < cuda else f"a build of onnxruntime-gpu for CUDA {other}"
        return f"{text}; install CUDA {cuda}, or {fitting}"
    driver = "there is no NVIDIA driver here, and " if "libcuda.so.1" in missing else ""
    tensorrt = _version([*missing], "libnvinfer")
    wanted = f"CUDA {cuda}" + (f" and TensorRT {tensorrt}" if tensorrt else "")
    cure = "" if tensorrt else 'pip install "onnxruntime-gpu[cuda,cudnn]", or '
    return f"{text}: {driver}{build} needs {wanted}; {cure}put their folder in LD_LIBRARY_PATH"


def _driver_problem(names: list[str]) -> str | None:
    """A driver older than the CUDA that the build is made for."""
    cuda = _version(names, "libcudart")
    if cuda is None or "libcuda.so.1" not in names:
        return None
    version = ctypes.c_int()
    # May be called before the driver is initialised, so it makes no context that a fork would break.
    if ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version)) != 0 or version.value // 1000 >= cuda:
        return None
    return (
        f"the NVIDIA driver is for CUDA {version.value // 1000}.{version.value % 1000 // 10}, "
        f"{names_of(installed_builds())} is built for CUDA {cuda}; install a newer driver"
        + (f", or {FOR_CUDA_12}" if cuda == 13 else "")
    )


def _version(names: list[str], library: str) -> int | None:
    """The version that a library is asked for in, as `libcudart.so.13` says."""
    found = (re.fullmatch(rf"{library}\.so\.(\d+)", name) for name in names)
    return next((int(match[1]) for match in found if match), None)


def _other_version(library: str, wanted: int) -> int | None:
    near = range(wanted - OTHER_VERSIONS, wanted + OTHER_VERSIONS + 1)
    return next((n for n in near if n != wanted and n > 0 and _fault(f"{library}.so.{n}", []) is None), None)
