"""How many processes a worker chooses, with made-up cores and memory."""

from __future__ import annotations

import dataclasses

import pytest

import workers.app
from pipeline.cli.main import main
from pipeline.packs.store import open_pack
from workers.capacity import PROCESS_BYTES, Capacity
from workers.config import QUEUES

MIB = 1 << 20
MANIFEST = open_pack().manifest
MODELS = {name: spec.memory_bytes or 0 for name, spec in MANIFEST.models.items()}
GENERATORS = MODELS["generator_256"] + MODELS["generator_512"]


@pytest.fixture(autouse=True)
def no_threads_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TALKREEL_THREADS", raising=False)
    monkeypatch.delenv("TALKREEL_PROCESSES", raising=False)


def capacity(cores: int, memory: int, *queues: str) -> Capacity:
    return Capacity(MANIFEST, queues or QUEUES, cores, memory)


def test_a_process_holds_the_models_of_its_queues() -> None:
    assert capacity(1, MIB, "encode", "media").process_bytes(1) == PROCESS_BYTES
    speech = MODELS["speech_encoder"] + MODELS["denoiser"]
    assert capacity(1, MIB, "motion").process_bytes(1) == PROCESS_BYTES + speech
    assert capacity(1, MIB).process_bytes(1) == PROCESS_BYTES + sum(MODELS.values())


def test_runs_side_by_side_take_their_memory_as_often() -> None:
    four = capacity(4, MIB, "render")
    assert four.process_bytes(1) - four.process_bytes(2) == 2 * GENERATORS
    assert four.process_bytes(2) - four.process_bytes(4) == GENERATORS


def test_as_many_as_there_are_cores_where_the_memory_suffices() -> None:
    choice = capacity(6, 1 << 40).choose(None)
    assert (choice.processes, choice.fits) == (6, True)
    assert "on 6 cores" in choice.reason


@pytest.mark.parametrize("room", [1, 2, 3])
def test_as_many_as_fit_in_a_small_memory(room: int) -> None:
    one = capacity(8, MIB, "encode").process_bytes(1)
    small = capacity(8, int(room * one / 0.8) + MIB, "encode")
    assert small.choose(None).processes == small.most() == room
    assert small.fits(room)
    assert not small.fits(room + 1)


def test_at_least_one_with_a_warning_where_none_fits() -> None:
    choice = capacity(8, 256 * MIB).choose(None)
    assert (choice.processes, choice.fits) == (1, False)
    assert "more memory" in choice.reason


def test_more_than_fit_are_run_when_asked_for_with_a_warning_in_figures() -> None:
    choice = capacity(2, 2048 * MIB, "encode").choose(5)
    assert (choice.processes, choice.fits) == (5, False)
    for text in ("processes: 5, each 0.4 GiB", "together 1.9 GiB", "80% of the 2.0 GiB", "give --processes 2"):
        assert text in choice.reason


def test_threads_that_are_given_leave_fewer_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TALKREEL_THREADS", "3")
    assert [capacity(cores, 1 << 40).choose(None).processes for cores in (1, 3, 6, 8)] == [1, 1, 2, 2]


def test_a_model_without_a_statement_takes_its_weights_and_a_variant_as_much_again() -> None:
    spec = dataclasses.replace(
        MANIFEST.models["appearance"], memory_bytes=None, variants={"float32": "appearance.onnx"}
    )
    manifest = dataclasses.replace(MANIFEST, models={"appearance": spec})
    made = Capacity(manifest, ["render"], 1, MIB).process_bytes(1)
    assert made == PROCESS_BYTES + 2 * MANIFEST.files["appearance.onnx"].bytes


@pytest.mark.parametrize(("given", "chosen", "level"), [([], 1, "INFO"), (["--processes", "4"], 4, "WARNING")])
def test_the_command_runs_what_was_chosen(
    given: list[str], chosen: int, level: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    started: list[str] = []
    monkeypatch.setenv("TALKREEL_PROCESSES", "1")  # so that what the command sets is taken back
    monkeypatch.setenv("TALKREEL_QUEUES", "")
    monkeypatch.setenv("TALKREEL_PROVIDERS", "")
    monkeypatch.setattr("workers.commands.worker.memory_allowed", lambda: 900 * MIB)
    monkeypatch.setattr("workers.commands.worker.cores_allowed", lambda: 8)
    monkeypatch.setattr("workers.worker.configure_logging", lambda level: None)
    monkeypatch.setattr(workers.app.app, "worker_main", started.extend)
    caplog.set_level("INFO", "workers.commands.worker")
    assert main(["worker", "--queues", "encode", *given]) == 0
    assert f"--concurrency={chosen}" in started
    (capacity, providers) = caplog.records
    assert (capacity.levelname, f"processes: {chosen}," in capacity.message) == (level, True)
    assert providers.message == "providers: cpu"
