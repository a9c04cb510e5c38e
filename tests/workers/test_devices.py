"""What each process of a worker runs on. The pool is real; devices are made up."""

from __future__ import annotations

import os
from pathlib import Path

import billiard.pool
import pytest

import workers.app
from pipeline.cli.main import main
from pipeline.errors import ProviderError, SettingsError
from pipeline.runtime.providers import CPU, parse_rungs
from tests.odd_build import make_build
from tests.pipeline.runtime.test_installations import GPU, NEEDS, ROOT
from workers import devices
from workers.devices import check_ladder, ladder_of, memory_of, process_options

TWO = parse_rungs("cuda:0,cuda:1,cpu")


@pytest.fixture
def gpu_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The build for GPUs is the one that child processes find; its libraries are missing."""
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(make_build(tmp_path, "onnxruntime-gpu", "1.31.1", GPU, NEEDS)), str(ROOT)])
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("stated", "ladders"),
    [
        ("cuda:0,cuda:1,cpu", ["cuda:0,cpu", "cuda:1,cpu", "cuda:0,cpu"]),
        ("cuda,cpu", ["cuda,cpu", "cuda,cpu"]),
        ("cuda:2,cuda:3", ["cuda:2", "cuda:3"]),
        ("cpu", ["cpu", "cpu"]),
        ("openvino:GPU,openvino:CPU,cpu", ["openvino:GPU,cpu", "openvino:CPU,cpu"]),
        ("tensorrt:0,cuda:0,cpu", ["tensorrt:0,cuda:0,cpu", "tensorrt:0,cuda:0,cpu"]),
    ],
)
def test_each_process_has_a_device_of_its_own(stated: str, ladders: list[str]) -> None:
    rungs = parse_rungs(stated)
    assert [ladder_of(rungs, number) for number in range(len(ladders))] == [parse_rungs(text) for text in ladders]


def test_a_devices_memory_is_shared_out_to_the_processes_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "device_memory", {TWO[0]: 1000, TWO[1]: 2000}.get)
    assert [memory_of(TWO, number, 2) for number in range(2)] == [900, 1800]
    assert [memory_of(TWO, number, 3) for number in range(3)] == [450, 1800, 450]
    assert memory_of((CPU,), 0, 2) is None
    monkeypatch.setattr(devices, "device_memory", lambda rung: None)
    assert memory_of(TWO, 0, 2) is None


def test_a_process_knows_its_device_after_the_fork(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TALKREEL_PROVIDERS", "cuda:0,cuda:1,cpu")
    monkeypatch.setenv("TALKREEL_STRICT_PROVIDERS", "1")
    monkeypatch.setenv("TALKREEL_PROCESSES", "2")
    monkeypatch.setenv("TALKREEL_THREADS", "3")

    def say() -> None:
        options = process_options()
        ladder = ",".join(map(str, options.providers or ()))
        (tmp_path / f"{ladder} {options.threads} {options.strict}").touch()

    with billiard.pool.Pool(2, initializer=say) as pool:
        pool.apply(len, ("wait until both are there",))
        pool.close()
        pool.join()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cuda:0,cpu 3 True", "cuda:1,cpu 3 True"]


def test_without_a_ladder_it_is_the_installed_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TALKREEL_PROVIDERS", raising=False)
    assert process_options().providers is None


def test_the_plain_build_needs_no_look() -> None:
    assert check_ladder(None, strict=True).rungs == (CPU,)
    assert check_ladder("cpu", strict=True).devices == ()


def test_a_provider_that_is_not_installed_stops_the_worker() -> None:
    with pytest.raises(SettingsError, match="openvino is not in the installed onnxruntime"):
        check_ladder("openvino,cpu", strict=False)


def test_what_does_not_run_here_is_told_at_the_start(gpu_build: Path) -> None:
    found = check_ladder("cuda:0,cuda:1,cpu", strict=False)
    assert found.rungs == TWO
    assert found.devices == ()
    assert "cuda does not run here: libcublas.so.77" in found.problems[0]
    with pytest.raises(ProviderError, match="cuda does not run here"):
        check_ladder(None, strict=True)


def test_the_command_runs_one_process_a_device(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("TALKREEL_PROCESSES", "TALKREEL_PROVIDERS", "TALKREEL_QUEUES", "TALKREEL_STRICT_PROVIDERS"):
        monkeypatch.setenv(name, "")
    started: list[list[str]] = []
    monkeypatch.setattr(workers.app.app, "worker_main", started.append)
    monkeypatch.setattr("workers.worker.configure_logging", lambda level: None)
    found = devices.Found(parse_rungs("cuda:0,cuda:1,cuda:2,cpu"), (), ("a warning",))
    monkeypatch.setattr("workers.commands.worker.check_ladder", lambda stated, strict: found)
    with caplog.at_level("INFO"):
        assert main(["worker", "--strict-providers"]) == 0
    assert "--concurrency=3" in started[0]
    assert os.environ["TALKREEL_PROVIDERS"] == "cuda:0,cuda:1,cuda:2,cpu"
    assert os.environ["TALKREEL_STRICT_PROVIDERS"] == "1"
    assert "a warning" in caplog.text
