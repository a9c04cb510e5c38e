"""A made-up installation of onnxruntime: a folder for PYTHONPATH that shows the real one as another build."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

PACKAGE = '''
import importlib, sys
from pathlib import Path

_spec, _folder = __spec__, str(Path(__file__).parent.parent)
_rest = [sys.path.pop(i) for i in reversed(range(len(sys.path))) if sys.path[i] == _folder]
del sys.modules["onnxruntime"]
real = importlib.import_module("onnxruntime")
sys.path[:0] = _rest
real.__spec__ = _spec
real.preload_dlls = lambda: print("Failed to load libs")
_Session = real.InferenceSession


def _without(path, options, providers, **more):
    """As the real one does with a provider whose library does not load: the CPU, without a word."""
    return _Session(path, options, providers=["CPUExecutionProvider"], **more)


real.get_available_providers = lambda: {providers!r}
real.InferenceSession = _without
'''


def make_build(folder: Path, name: str, version: str, providers: Sequence[str] = (), needs: Sequence[str] = ()) -> Path:
    """Add a distribution to a folder.

    Args:
        name: of the distribution. providers: that the package claims to have; none leave the real package to be
            imported. needs: libraries that its CUDA provider asks for; none leave it out.
    """
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "RECORD").write_text(f"onnxruntime/__init__.py,,\n{info.name}/METADATA,,\n")
    if providers:
        capi = folder / "onnxruntime" / "capi"
        capi.mkdir(parents=True)
        (capi.parent / "__init__.py").write_text(PACKAGE.replace("{providers!r}", repr(list(providers))))
        if needs:
            (capi / "libonnxruntime_providers_cuda.so").write_bytes(shared_library(needs))
    return folder


def shared_library(needs: Sequence[str], run_path: str = "") -> bytes:
    """An ELF file of nothing but a dynamic section."""
    table = b"\0"
    entries = []
    for tag, text in [*((1, name) for name in needs), *([(29, run_path)] if run_path else [])]:
        entries.append((tag, len(table)))
        table += text.encode() + b"\0"
    base, start = 0x10000, 64 + 2 * 56  # addresses lie elsewhere than in the file
    dynamic = b"".join(struct.pack("<QQ", *entry) for entry in [(5, base + start), *entries, (0, 0)])
    at = start + len(table)
    head = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    head += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 2, 0, 0, 0)
    size = at + len(dynamic)
    load = struct.pack("<IIQQQQQQ", 1, 4, 0, base, base, size, size, 4096)
    section = struct.pack("<IIQQQQQQ", 2, 4, at, base + at, base + at, len(dynamic), len(dynamic), 8)
    return head + load + section + table + dynamic
