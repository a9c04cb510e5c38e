"""The ladder: which rung a model got, and what is said of those that failed. The provider is made up."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

from pipeline.errors import ModelError, ProviderError
from pipeline.packs.embedded.authoring.writer import Graph
from pipeline.packs.manifest import ModelSpec, Tensor
from pipeline.report import Report
from pipeline.runtime.ladder import LOST, Ladder
from pipeline.runtime.lost import LostDevices
from pipeline.runtime.options import RuntimeOptions
from pipeline.runtime.providers import CPU, Rung, parse_rungs
from pipeline.runtime.session import Session
from pipeline.stage_record import StageRecord
from tests.fakes import FakeModel
from tests.pipeline.runtime.test_faults import ARENA_FULL

SPEC = ModelSpec(
    "double.onnx",
    {"value": Tensor("x", (None, 3, None), "float32")},
    {"result": Tensor("y", (None, 3, None), "float32")},
    {},
)
CUDA = "CUDAExecutionProvider"
REAL = onnxruntime.InferenceSession
LOGGED = (
    b"\x1b[1;31m2026-11-30 17:03:11.259 [E:onnxruntime:Default, cudnn_fe_call.cc:39 CudaErrString] No valid engine"
    b" configs for _\n at: 0 == newResults\nWarning: CUDNN_STATUS_NOT_SUPPORTED; Reason: status\n\n\x1b[m\n"
)
"""As ONNX Runtime wrote it on an H200, shortened."""


class Claimed:
    """The CPU under the name of CUDA. `elsewhere`: operators that it leaves to the CPU. `failing`: raise when run."""

    def __init__(self, path: str, options: Any, providers: Any, *, elsewhere: tuple[str, ...], failing: bool) -> None:
        self._session = REAL(path, options, providers=["CPUExecutionProvider"])
        self._elsewhere = elsewhere
        self._failing = failing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def get_providers(self) -> list[str]:
        return [CUDA, "CPUExecutionProvider"]

    def run(self, *given: Any) -> Any:
        if self._failing:
            os.write(2, LOGGED)
            raise RuntimeError("[ONNXRuntimeError] : 9 : NOT_IMPLEMENTED : cuDNN is not available.\nInstall cuDNN")
        return self._session.run(*given)

    def end_profiling(self) -> str:
        path = str(self._session.end_profiling())
        events = json.loads(Path(path).read_text())
        for event in events:
            if event.get("cat") == "Node" and event["args"]["op_name"] not in self._elsewhere:
                event["args"]["provider"] = CUDA
        Path(path).write_text(json.dumps(events))
        return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    graph = Graph("double")
    value = graph.input("x", [1, 3, 256])
    graph.output("y", (value * 2).abs() + 1, [1, 3, 256])
    graph.save(tmp_path / "double.onnx")
    return tmp_path / "double.onnx"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """Options of the sessions that were asked for on CUDA, which claims to run everything."""
    return claim(monkeypatch)


def claim(
    monkeypatch: pytest.MonkeyPatch,
    elsewhere: tuple[str, ...] = (),
    failing: bool = False,
    error: Exception | None = None,
    silent: bool = False,
) -> list[dict[str, str]]:
    asked: list[dict[str, str]] = []

    def session(path: str, options: Any, providers: Any, **more: Any) -> Any:
        assert more == {"enable_fallback": 0}
        ((name, chosen),) = providers
        if name != CUDA:
            return REAL(path, options, providers=providers)
        asked.append(chosen)
        if error is not None:
            raise error
        if silent:
            return REAL(path, options, providers=["CPUExecutionProvider"])
        return Claimed(path, options, providers, elsewhere=elsewhere, failing=failing)

    monkeypatch.setattr(onnxruntime, "InferenceSession", session)
    return asked


def opened(path: Path, providers: str = "cuda,cpu", **options: Any) -> Session:
    return Session(path, SPEC, Ladder(RuntimeOptions(1, parse_rungs(providers), **options)))


def test_the_first_rung_that_runs_it(path: Path, asked: list[dict[str, str]]) -> None:
    session = opened(path, "cuda:1,cpu", device_memory=5)
    place = session.place
    assert (place.rung, place.falls, place.model) == (Rung("cuda", "1"), (), "double.onnx")
    assert place.placement is not None
    assert place.placement.whole
    assert place.trial_seconds is not None
    assert (asked[0]["device_id"], asked[0]["gpu_mem_limit"]) == ("1", "5")
    value = np.full((1, 3, 256), 3, np.float32)
    np.testing.assert_array_equal(session.run({"value": value})["result"], 2 * value + 1)


def test_the_cpu_is_not_tried_twice(path: Path) -> None:
    place = opened(path, "cpu").place
    assert (place.rung, place.placement, place.trial_seconds, place.falls) == (CPU, None, None, ())


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({"silent": True}, "onnxruntime does not give CUDAExecutionProvider here"),
        ({"error": RuntimeError("out of\nmemory")}, "out of memory"),
        ({"failing": True}, "its first run failed: cuDNN is not available. Install cuDNN"),
        ({"elsewhere": ("Mul", "Abs", "Add")}, "3 of 3 nodes elsewhere"),
    ],
)
def test_a_rung_that_fails_says_why(
    how: dict[str, Any], reason: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim(monkeypatch, **how)
    place = opened(path).place
    assert place.rung == CPU
    (fall,) = place.falls
    assert str(fall).startswith("cuda does not run double.onnx: ")
    assert reason in str(fall)
    assert "\n" not in str(fall)
    with pytest.raises(ProviderError, match="cuda does not run"):
        opened(path, strict=True)
    with pytest.raises(ProviderError, match=r"cuda does not run .*; give --providers another rung"):
        opened(path, "cuda")


def test_a_heavy_node_elsewhere_is_told_and_refused_when_strict(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claim(monkeypatch, elsewhere=("Abs",))
    place = opened(path).place
    assert place.rung == Rung("cuda")
    (fall,) = place.falls
    assert fall.kept
    assert "cuda runs only a part of double.onnx: 1 of 3 nodes elsewhere (Abs; " in str(fall)
    with pytest.raises(ProviderError, match="only a part"):
        opened(path, strict=True)


def test_a_bad_file_is_the_files_fault_on_any_rung(tmp_path: Path, asked: list[dict[str, str]]) -> None:
    (tmp_path / "bad.onnx").write_bytes(b"not a model")
    with pytest.raises(ModelError, match=r"bad\.onnx does not load"):
        opened(tmp_path / "bad.onnx")


def test_it_can_begin_lower_with_what_is_known(path: Path, asked: list[dict[str, str]]) -> None:
    ladder = Ladder(RuntimeOptions(1, parse_rungs("cuda:0,cuda:1,cpu")))
    lost = opened(path).place.falls
    assert ladder.below(Rung("cuda", "0")) == Rung("cuda", "1")
    assert ladder.below(CPU) is None
    session = Session(path, SPEC, ladder, start=ladder.below(Rung("cuda", "0")), falls=lost)
    assert session.place.rung == Rung("cuda", "1")
    assert [options.get("device_id") for options in asked] == [None, "1"]


def test_the_report_tells_rungs_and_falls_of_a_stage(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claim(monkeypatch, silent=True)
    model = FakeModel(dict)
    model.place = opened(path).place
    report = Report()
    for _ in range(2):
        with report.timing("motion", model, FakeModel(dict)):
            pass
    stage = json.loads(json.dumps(report.to_json()))["stages"]["motion"]
    assert (stage["rungs"], stage["provider"]) == (["cpu"], "CPUExecutionProvider")
    assert [fall["rung"] for fall in stage["falls"]] == ["cuda"]
    assert report.rungs() == ["cpu"]
    assert len(report.falls()) == 1
    record = StageRecord.of_json(stage)
    both = record.plus(StageRecord(provider=CUDA, rungs=["cuda"], elsewhere={"a": "b"}))
    assert (both.rungs, both.provider, both.elsewhere) == (["cpu", "cuda"], CUDA, {"a": "b"})
    assert both.falls == record.falls


class Short(Claimed):
    """A card with too little memory beside other sessions, while there are any."""

    others = 0

    def run(self, *given: Any) -> Any:
        if Short.others:
            raise RuntimeError(ARENA_FULL)
        return super().run(*given)


@pytest.mark.parametrize("others", [1, 2])
def test_a_card_short_of_memory_is_tried_again_without_the_other_models(
    path: Path, asked: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch, others: int
) -> None:
    """Once: where that does not suffice the ladder goes on."""

    def make_room() -> bool:
        Short.others -= 1
        return True

    monkeypatch.setattr("tests.pipeline.runtime.test_ladder.Claimed", Short)
    monkeypatch.setattr(Short, "others", others)
    ladder = Ladder(RuntimeOptions(1, parse_rungs("cuda,cpu")))
    place = Session(path, SPEC, ladder, make_room=make_room).place
    assert place.rung == (Rung("cuda") if others == 1 else CPU)
    assert len(asked) == 2
    assert [(fall.reason.split(":")[0], fall.passing) for fall in place.falls] == [("its first run failed", True)] * (
        others - 1
    )


class Choosy(Claimed):
    """A card whose first search for kernels finds none for this model."""

    def __init__(self, path: str, options: Any, providers: Any, **how: Any) -> None:
        super().__init__(path, options, providers, **how)
        ((_, chosen),) = providers
        self._failing = chosen["cudnn_conv_algo_search"] not in Choosy.works

    works: tuple[str, ...] = ()


@pytest.mark.parametrize(
    ("works", "tried"), [(("EXHAUSTIVE",), 2), (("DEFAULT",), 3), ((), 3), (("HEURISTIC", "EXHAUSTIVE"), 1)]
)
def test_other_ways_to_find_kernels_are_tried_before_the_next_rung(
    path: Path,
    asked: list[dict[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    works: tuple[str, ...],
    tried: int,
) -> None:
    """Without what is logged of kernels that were tried; why none does is told by the fall."""
    monkeypatch.setattr("tests.pipeline.runtime.test_ladder.Claimed", Choosy)
    monkeypatch.setattr(Choosy, "works", works)
    place = opened(path).place
    assert place.rung == (Rung("cuda") if works else CPU)
    searches = ["HEURISTIC", "EXHAUSTIVE", "DEFAULT"]
    assert [each["cudnn_conv_algo_search"] for each in asked] == searches[:tried]
    assert len(place.falls) == (not works)
    assert capfd.readouterr().err == ""


def test_nothing_is_let_go_for_a_card_that_lacks_something_else(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claim(monkeypatch, failing=True)
    let_go: list[bool] = []
    ladder = Ladder(RuntimeOptions(1, parse_rungs("cuda,cpu")))
    assert Session(path, SPEC, ladder, make_room=lambda: let_go.append(True) or True).place.rung == CPU
    assert let_go == []


def test_nothing_is_opened_on_a_device_that_is_lost(path: Path, asked: list[dict[str, str]]) -> None:
    ladder = Ladder(
        RuntimeOptions(1, parse_rungs("cuda,cpu")), LostDevices(lambda rung: rung != CPU, lambda thing: None)
    )
    place = Session(path, SPEC, ladder).place
    assert (place.rung, [str(fall) for fall in place.falls]) == (CPU, [f"cuda does not run here: {LOST}"])
    assert asked == []


def test_a_session_that_meets_a_lost_device_in_its_trial_is_kept(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claim(monkeypatch, failing=True)
    broken, kept = iter([False, True]), list[object]()
    ladder = Ladder(RuntimeOptions(1, parse_rungs("cuda,cpu")), LostDevices(lambda rung: next(broken), kept.append))
    assert Session(path, SPEC, ladder).place.rung == CPU
    assert len(kept) == 1
