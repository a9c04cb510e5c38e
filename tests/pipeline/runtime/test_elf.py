"""What a shared library asks for, read from the file."""

from __future__ import annotations

from pathlib import Path

import onnxruntime
import pytest

from pipeline.runtime.elf import NotElfError, needed_libraries
from tests.odd_build import shared_library


def test_a_real_library() -> None:
    (path,) = (Path(onnxruntime.__file__).parent / "capi").glob("onnxruntime_pybind11_state*.so")
    names, _ = needed_libraries(path)
    assert "libc.so.6" in names
    assert all(".so" in name for name in names)


def test_names_in_their_order_and_folders_beside_the_file(tmp_path: Path) -> None:
    path = tmp_path / "lib.so"
    long = "lib" + 100 * "x" + ".so.1"  # longer than a block of reading
    path.write_bytes(shared_library(["libb.so.2", "liba.so.1", long], "$ORIGIN/more:/opt/lib"))
    assert needed_libraries(path) == (["libb.so.2", "liba.so.1", long], [f"{tmp_path}/more", "/opt/lib"])


@pytest.mark.parametrize("content", [b"", b"not a library", shared_library(["liba.so"])[:200], b"\x7fELF\x01\x01"])
def test_a_damaged_file_is_named(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "lib.so"
    path.write_bytes(content)
    with pytest.raises(NotElfError, match=r"lib\.so is no shared library"):
        needed_libraries(path)
