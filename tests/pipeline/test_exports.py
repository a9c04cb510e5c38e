"""The library's names, imported when they are first wanted."""

from __future__ import annotations

import subprocess
import sys

import pytest

import pipeline


def python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_every_name_is_there() -> None:
    for name in pipeline.__all__:
        assert getattr(pipeline, name).__name__ == name
    assert set(pipeline.__all__) <= set(dir(pipeline))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = pipeline.nothing


@pytest.mark.parametrize("first", ["import pipeline.render", "from pipeline.render import check_output", "pass"])
def test_render_is_the_function_whatever_was_imported_first(first: str) -> None:
    assert python(f"{first}\nfrom pipeline import render\nprint(type(render).__name__)") == "function"
    assert python(f"{first}\nimport pipeline, pipeline.render\nprint(type(pipeline.render).__name__)") == "function"


def test_the_package_alone_imports_nothing_heavy() -> None:
    code = "import sys, pipeline.cli.main; print(sorted({'numpy', 'av', 'argparse', 'onnxruntime'} & set(sys.modules)))"
    assert python(code) == "[]"
