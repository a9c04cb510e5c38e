"""Made-up installations in processes of their own: two builds together, libraries missing, versions that differ."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import onnxruntime
import pytest

from pipeline.runtime import libraries
from pipeline.runtime.builds import Build, builds_problem
from tests.odd_build import make_build, shared_library
from tests.workers.fleet import PORTRAIT, cut_voice

GPU = ("TensorrtExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider")
NEEDS = ("libcublas.so.77", "libcudart.so.77", "libc.so.6")
"""Of a CUDA that no machine has."""
ROOT = Path(__file__).parents[3]


def python(folder: Path, *arguments: str, libraries: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Python with the made-up installation first."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}
    if libraries is not None:
        environment["LD_LIBRARY_PATH"] = str(libraries)
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def look(folder: Path, stated: str = "cuda,cpu", libraries: Path | None = None) -> dict[str, Any]:
    done = python(folder, "-m", "pipeline.runtime.check", stated, libraries=libraries)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def with_libraries(folder: Path, *names: str) -> Path:
    """A folder with libraries that load, whatever they are called."""
    folder.mkdir()
    for name in names:
        shutil.copy(Path(onnxruntime.__file__).parent / "capi" / "libonnxruntime_providers_shared.so", folder / name)
    return folder


def test_two_builds_together_are_told_with_the_cure(tmp_path: Path) -> None:
    make_build(tmp_path, "onnxruntime", "1.32.0")
    make_build(tmp_path, "onnxruntime-gpu", "1.31.1")
    done = python(tmp_path, "-m", "pipeline", "doctor")
    assert done.returncode == 1
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("MISSING"))
    assert "onnxruntime 1.32.0, onnxruntime-gpu 1.31.1" in line
    assert "pip uninstall -y onnxruntime onnxruntime-gpu; pip install onnxruntime-gpu" in line


def test_cuda_asked_for_where_the_other_build_overwrote_it(tmp_path: Path) -> None:
    """The last one installed wins: here the plain one."""
    make_build(tmp_path, "onnxruntime", "1.32.0")
    make_build(tmp_path, "onnxruntime-gpu", "1.31.1")
    done = python(tmp_path, "-m", "pipeline", "render", "a.png", "a.wav", "-o", "a.webm", "--providers", "cuda,cpu")
    assert done.returncode == 2
    assert "2 builds of onnxruntime are installed together" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_one_build_is_no_problem() -> None:
    assert builds_problem([Build("onnxruntime", "1.32.0")]) is None
    assert builds_problem([]) is None


def test_a_missing_library_is_named_with_the_cure(tmp_path: Path) -> None:
    make_build(tmp_path, "onnxruntime-gpu", "1.31.1", GPU, NEEDS)
    found = look(tmp_path)
    assert (found["rungs"], found["closed"]) == (["cuda", "cpu"], ["cuda"])
    (problem,) = found["problems"]
    assert "cuda does not run here: libcublas.so.77, libcudart.so.77 not found" in problem
    assert "onnxruntime-gpu 1.31.1 needs CUDA 77" in problem
    assert "LD_LIBRARY_PATH" in problem


def test_no_driver_is_called_so() -> None:
    absent = dict.fromkeys(("libcuda.so.1", *NEEDS), "not found")
    text = libraries._missing_text("cuda", [*absent], {"libcuda.so.1": "not found"})
    assert "there is no NVIDIA driver here (libcuda.so.1 is not found" in text
    assert "no NVIDIA driver here, and" in libraries._missing_text("cuda", [*absent], absent)


def test_another_cuda_than_the_builds_is_a_pair_that_cannot_work(tmp_path: Path) -> None:
    make_build(tmp_path, "onnxruntime-gpu", "1.31.1", GPU, NEEDS)
    here = with_libraries(tmp_path / "lib", "libcudart.so.76", "libcublas.so.76")
    (problem,) = look(tmp_path, libraries=here)["problems"]
    assert "onnxruntime-gpu 1.31.1 is built for CUDA 77, here is CUDA 76" in problem
    assert "install CUDA 77, or a build of onnxruntime-gpu for CUDA 76" in problem


def test_all_libraries_there_and_no_such_device(tmp_path: Path) -> None:
    make_build(tmp_path, "onnxruntime-gpu", "1.31.1", GPU, NEEDS)
    here = with_libraries(tmp_path / "lib", "libcudart.so.77", "libcublas.so.77")
    found = look(tmp_path, "cuda:99,cpu", libraries=here)
    assert found["error"] == "SettingsError"
    assert found["message"].startswith("provider cuda:99: the driver knows no such device")


def test_doctor_tells_it_and_a_run_goes_on_below(tmp_path: Path) -> None:
    """Whatever the build for GPUs says of itself, the models ran on the CPU, and that is said."""
    make_build(tmp_path, "onnxruntime-gpu", "1.31.1", GPU, NEEDS)
    done = python(tmp_path, "-m", "pipeline", "doctor", "--json")
    assert done.returncode == 1
    data = json.loads(done.stdout)
    assert data["ladder"] == ["cuda", "cpu"]
    assert data["onnxruntime"] == ["onnxruntime-gpu 1.31.1"]
    assert data["providers"]["cuda"] == "not usable"
    assert data["providers"]["cpu"] == "usable"
    (problem,) = data["problems"]
    assert problem.startswith("cuda does not run here: libcublas.so.77")


def test_cuda_asked_for_and_the_cpu_used_is_said(tmp_path: Path) -> None:
    """The build for GPUs takes the CPU without a word; the film, its report and the summary have one."""
    make_build(tmp_path, "onnxruntime-gpu", "1.31.1", GPU, NEEDS)
    film, report = tmp_path / "film.webm", tmp_path / "report.json"
    voice = cut_voice(tmp_path / "voice.wav", 0.5)
    words = ["-m", "pipeline", "render", str(PORTRAIT), str(voice), "-o", str(film), "--report", str(report)]
    words += ["--preset", "preview", "--frame", "crop", "--fps", "2", "--providers", "cuda,cpu"]
    done = python(tmp_path, *words)
    assert done.returncode == 0, done.stderr
    assert "models ran on cpu" in done.stderr
    assert "cuda does not run here: libcublas.so.77, libcudart.so.77 not found" in done.stderr
    stage = json.loads(report.read_text())["stages"]["generator"]
    assert (stage["rungs"], [fall["rung"] for fall in stage["falls"]]) == (["cpu"], ["cuda"])
    film.unlink()
    strict = python(tmp_path, *words, "--strict-providers")
    assert strict.returncode == 1
    assert "cuda does not run here" in strict.stderr
    assert strict.stderr.count("\n") == 1
    assert not film.exists()


def test_a_library_beside_the_providers_own_is_found(tmp_path: Path) -> None:
    folders = [str(with_libraries(tmp_path / "more", "libodd.so.7"))]
    assert libraries._fault("libodd.so.7", folders) is None
    assert libraries._fault("libodd.so.7", []) == "not found"


def test_a_damaged_library_is_told_from_one_that_is_not_there(tmp_path: Path) -> None:
    make_build(tmp_path, "onnxruntime-gpu", "1.31.1", GPU, NEEDS)
    here = with_libraries(tmp_path / "lib", "libcudart.so.77")
    (here / "libcublas.so.77").write_bytes(b"damaged on purpose")
    (problem,) = look(tmp_path, libraries=here)["problems"]
    assert f"cuda does not run here: {here}/libcublas.so.77: " in problem
    assert "not found" not in problem


@pytest.mark.parametrize(("version", "told"), [(12040, True), (13000, False), (14010, False)])
def test_a_driver_older_than_the_builds_cuda(version: int, told: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    class Driver:
        def cuDriverGetVersion(self, at: Any) -> int:  # noqa: N802 - as the driver names it
            at._obj.value = version
            return 0

    monkeypatch.setattr(libraries.ctypes, "CDLL", lambda name: Driver())
    problem = libraries._driver_problem(["libcudart.so.13", "libcuda.so.1"])
    assert (problem is not None) == told
    if problem:
        assert "the NVIDIA driver is for CUDA 12.4" in problem
        assert "is built for CUDA 13" in problem
        assert "onnxruntime-gpu<1.27" in problem


def test_a_damaged_provider_library(tmp_path: Path) -> None:
    make_build(tmp_path, "onnxruntime-gpu", "1.31.1", GPU, NEEDS)
    library = tmp_path / "onnxruntime" / "capi" / "libonnxruntime_providers_cuda.so"
    library.write_bytes(shared_library(NEEDS)[:100])
    (problem,) = look(tmp_path)["problems"]
    assert "damaged; install onnxruntime again" in problem
