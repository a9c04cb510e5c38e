"""What becomes of a step when its work ends in one way or another; without models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pipeline.errors import ModelError, NoFaceError, TooLittleMemoryError
from pipeline.runtime.lost import LostDevices
from pipeline.runtime.providers import CPU, Rung
from tests.redis_server import RedisServer
from tests.workers.orders import SentApp, done, fleet_on, let_pass, order, status
from workers import execution, failures, lease, leaving, patience, tasks
from workers.errors import (
    ArtifactMissingError,
    ArtifactsTooLargeError,
    DeadlineError,
    FleetFullError,
    FleetUnreachableError,
    WorkerMismatchError,
)
from workers.execution import run_step
from workers.films import FolderFilms
from workers.fleet import MOST_LOST, SHARED, Fleet
from workers.keys import Keys
from workers.studios import Studios
from workers.work import NotReadyError, WaitingError, Work


@dataclass
class Bench:
    """A running job whose step "sound" is sent, and one run of it."""

    fleet: Fleet
    app: SentApp

    def run(self, work: Callable[[Work], Any], step: str = "sound", studio: Any = None) -> str:
        made = studio or SimpleNamespace(terminate=lambda: None)
        return run_step(self.fleet, "job", step, lambda _: made, lambda w: work(w) or {})

    def raising(self, error: Exception) -> str:
        def work(_: Work) -> Any:
            raise error

        return self.run(work)

    def again(self, step: str = "sound") -> None:
        """Send what was handed back."""
        state = self.fleet.jobs.view("job").steps[step]
        assert state.status == "handed back"
        assert self.fleet.jobs.send("job", step, was=state)

    @property
    def error(self) -> str:
        view = self.fleet.jobs.view("job")
        return str(view.error["message"]) if view.error else view.state


@pytest.fixture
def bench(redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setattr(failures, "MISMATCH_PAUSE", 0.01)
    monkeypatch.setattr(lease, "BEAT", 0.02)
    fleet, app = fleet_on(redis_server)
    fleet.jobs.create(order(submitted=fleet.jobs.now()))
    fleet.advance("job")
    return Bench(fleet, app)


def test_a_step_that_is_done_sends_what_follows(bench: Bench) -> None:
    assert bench.run(lambda _: {"duration": 1.5}) == "done"
    assert bench.fleet.jobs.view("job").result("sound") is not None
    assert bench.app.sent[-1] == "job.motion.1"
    assert bench.run(lambda _: pytest.fail("it is done")) == "not run: done"


def test_bad_input_is_not_tried_again(bench: Bench) -> None:
    assert bench.raising(NoFaceError("no face in p.png")) == "failed: NoFaceError"
    assert bench.error == "no face in p.png"
    assert bench.fleet.jobs.running() == []


def test_a_bug_ends_the_job_with_its_name(bench: Bench) -> None:
    bench.raising(ZeroDivisionError("1 / 0"))
    assert bench.error == "job job failed in stage sound: ZeroDivisionError: 1 / 0"


def test_a_fault_of_a_device_is_tried_three_times(bench: Bench) -> None:
    for _ in range(2):
        assert bench.raising(ModelError("device lost")) == "tried again"
        bench.again()
    assert bench.raising(ModelError("device lost")) == "failed: ModelError"


@pytest.mark.parametrize("error", [FleetUnreachableError("Redis is away"), FleetFullError("Redis is full")])
def test_what_passes_is_tried_again_often_and_not_for_ever(error: Exception, bench: Bench) -> None:
    for _ in range(failures.MOST_LACKS - 1):
        assert bench.raising(error) == "tried again"
        assert 0 < bench.fleet.jobs.view("job").steps["sound"].due - bench.fleet.jobs.now() <= failures.LONGEST_PAUSE
        bench.again()
    assert bench.raising(error).startswith("failed")
    assert bench.error == str(error)


def test_waiting_for_another_worker_is_no_try(bench: Bench) -> None:
    """However long another makes what the step waits for: Redis may be away then as often as at first."""
    for _ in range(failures.MOST_LACKS + 1):
        assert bench.raising(WaitingError("appearance:x")) == "waiting"
        bench.again()
    assert bench.raising(FleetUnreachableError("Redis is away")) == "tried again"
    state = bench.fleet.jobs.view("job").steps["sound"]
    assert state.due - state.at == pytest.approx(2.0, abs=0.01)
    bench.again()
    assert bench.raising(TooLittleMemoryError("too large", 5 << 30, 1 << 30)) == "handed back: too little memory"


@pytest.mark.parametrize("error", [DeadlineError("job", 1), ModelError("device lost")])
def test_a_job_that_is_forgotten_while_its_step_fails(error: Exception, bench: Bench) -> None:
    def work(_: Work) -> Any:
        bench.fleet.forget("job")
        raise error

    assert bench.run(work) in ("late", "ended")


def test_a_motion_that_is_there_already_is_told(bench: Bench) -> None:
    """Another job of the same recording made it, or a worker that was lost."""
    bench.fleet.store.put(Keys(order()).motion, b"motion", job="another", lifetime=60)
    bench.fleet.jobs.send("job", "motion")
    assert bench.run(tasks.motion, "motion") == "done"
    assert bench.fleet.jobs.counts("job") == {"motion": 1}


def test_a_worker_of_another_version_hands_back_and_counts_no_attempt(bench: Bench) -> None:
    for _ in range(5):
        assert bench.raising(WorkerMismatchError("job", "code 1", "code 2")) == "handed back: another version"
        bench.again()
    state = bench.fleet.jobs.view("job").steps["sound"]
    assert (state.starts, "needs code 1" in state.note) == (0, True)


def test_a_worker_with_too_little_memory_hands_back_until_no_other_takes_it(bench: Bench) -> None:
    error = TooLittleMemoryError("preset quality is predicted to take 5.00 GiB", 5 << 30, 1 << 30)
    for _ in range(failures.MOST_REFUSALS - 1):
        assert bench.raising(error) == "handed back: too little memory"
        bench.again()
    assert bench.raising(error).startswith("failed")
    assert bench.error == str(error)


def test_a_process_that_lost_its_device_ends_and_hands_the_step_back(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    rung = Rung("cuda")
    lost = LostDevices(lambda rung: True, lambda session: None)
    monkeypatch.setattr(execution, "LOST_DEVICES", lost)
    assert not lost.check(CPU)
    lost.watch(bench.run.__func__, rung)  # anything that lives
    assert lost.check(rung)
    with pytest.raises(SystemExit):
        bench.run(lambda _: pytest.fail("not in this process"))
    assert status(bench.fleet.jobs, "job", "sound") == "handed back"
    monkeypatch.setattr(execution, "LOST_DEVICES", LostDevices())  # the process that takes its place
    bench.again()
    assert bench.run(lambda _: {"duration": 1.5}) == "done"


def test_the_studio_is_that_of_the_jobs_pack_and_code(bench: Bench) -> None:
    opened: list[str] = []

    def open_studio(pack: str) -> Any:
        opened.append(pack)
        return SimpleNamespace(pack=SimpleNamespace(identity="1"))

    studios = Studios(open_studio)
    assert studios.of(order()) is studios.of(order("other"))
    assert opened == ["embedded"]
    with pytest.raises(WorkerMismatchError, match="pack 2"):
        studios.of(order(pack_identity="2"))
    with pytest.raises(WorkerMismatchError, match=r"code 0\.0"):
        studios.of(order(code="0.0"))


def test_a_step_that_was_sent_too_early_waits_for_its_turn(bench: Bench) -> None:
    done(bench.fleet.jobs, "job", "plan", chunks=1, segments=[[0, 0]], key_frames=5)
    bench.fleet.jobs.send("job", "encode:0")

    def early(_: Work) -> Any:
        raise NotReadyError

    assert bench.run(early, "encode:0") == "sent too early"
    assert status(bench.fleet.jobs, "job", "encode:0") == ""


def test_lost_artifacts_are_made_again_but_not_for_ever(bench: Bench) -> None:
    for _ in range(MOST_LOST):
        done(bench.fleet.jobs, "job", "motion")
        bench.fleet.jobs.send("job", "plan")
        run_step(bench.fleet, "job", "plan", lambda _: SimpleNamespace(terminate=lambda: None), _missing("motion:x"))
        assert status(bench.fleet.jobs, "job", "motion") == ""
        assert status(bench.fleet.jobs, "job", "plan") == ""
    done(bench.fleet.jobs, "job", "motion")
    bench.fleet.jobs.send("job", "plan")
    run_step(bench.fleet, "job", "plan", lambda _: SimpleNamespace(terminate=lambda: None), _missing("motion:x"))
    assert "lost again and again" in bench.error


def test_lost_inputs_fail_the_job(bench: Bench) -> None:
    bench.run(_missing("input:abc"))
    assert "its portrait or recording is no longer on the fleet" in bench.error


def _missing(key: str) -> Callable[[Work], Any]:
    def work(_: Work) -> Any:
        raise ArtifactMissingError(key)

    return work


def test_a_shared_artifact_is_made_by_one_while_the_others_wait(bench: Bench) -> None:
    made: list[str] = []

    def first(work: Work) -> None:
        def make() -> Any:
            made.append("first")
            with pytest.raises(WaitingError):
                Work(work.fleet, work.order, "portrait", _idle(work), work.studio).shared("appearance:x", list)
            return np.arange(3)

        work.shared("appearance:x", make)

    assert bench.run(first) == "done"
    assert bench.run(lambda work: work.shared("appearance:x", lambda: made.append("second")), "portrait") == "done"
    assert made == ["first"]
    assert bench.fleet.store.usage(SHARED)["appearance"] > 0


def _idle(work: Work) -> Any:
    return SimpleNamespace(owner="another", check=lambda: None)


def test_a_claim_is_given_up_when_its_maker_fails(bench: Bench) -> None:
    def fails() -> Any:
        raise ModelError("device lost")

    assert bench.run(lambda work: work.shared("appearance:x", fails)) == "tried again"
    assert bench.run(lambda work: work.shared("appearance:x", lambda: np.arange(3)), "portrait") == "done"


def test_a_claim_is_renewed_while_its_maker_works(bench: Bench) -> None:
    client = bench.fleet.jobs.redis

    def slow(work: Work) -> None:
        def make() -> Any:
            key = "talkreel:claim:appearance:x"
            client.pexpire(key, 500)
            while client.pttl(key) <= 500:
                work.lease.check()
            return np.arange(3)

        work.shared("appearance:x", make)

    assert bench.run(slow) == "done"


def test_no_room_to_share_is_no_error(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    hold = bench.fleet.store.hold

    def full(key: str, *, job: str, lifetime: float) -> None:
        if job == SHARED:
            raise ArtifactsTooLargeError(job, 1)
        hold(key, job=job, lifetime=lifetime)

    monkeypatch.setattr(bench.fleet.store, "hold", full)
    assert bench.run(lambda work: work.shared("appearance:x", lambda: np.arange(3))) == "done"


def test_a_cancelled_step_stops_its_model_and_is_no_fault(bench: Bench) -> None:
    stopped: list[bool] = []

    def runs(work: Work) -> None:
        bench.fleet.end("job", "cancelled")
        while not stopped:
            pass
        raise ModelError("terminated")

    studio = SimpleNamespace(terminate=lambda: stopped.append(True))
    assert bench.run(runs, studio=studio) == "ended"
    assert bench.error == "cancelled"


def test_a_step_that_was_taken_over_ends_nothing(bench: Bench) -> None:
    def slow(work: Work) -> None:
        while bench.fleet.jobs.begin("job", "sound", "another") != "go":  # the lease may be renewed in between
            let_pass(bench.fleet.jobs, "job", "sound", 1000)

    bench.run(slow)
    state = bench.fleet.jobs.view("job").steps["sound"]
    assert (state.status, state.owner) == ("running", "another")


def test_a_film_that_comes_after_the_end_is_deleted(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "part.webm").write_bytes(b"film")
    bench.fleet.films = FolderFilms(tmp_path / "films", 1)
    bench.fleet.jobs.send("job", "mux")

    def late(work: Work) -> Any:
        bench.fleet.end("job", "cancelled")
        return {"film": bench.fleet.films.put("job", "film:x", tmp_path / "part.webm")}

    bench.run(late, "mux")
    assert list((tmp_path / "films").iterdir()) == []


def test_a_worker_whose_grace_is_over_hands_its_step_back(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaving, "is_over", lambda: True)

    def endless(work: Work) -> None:
        while True:
            work.lease.check()

    assert bench.run(endless) == "handed back: told to stop"
    assert bench.fleet.jobs.view("job").steps["sound"].starts == 0


def test_a_process_that_is_told_to_exit_hands_its_step_back(bench: Bench) -> None:
    def leaves(_: Work) -> Any:
        raise SystemExit(1)

    with pytest.raises(SystemExit):
        bench.run(leaves)
    assert status(bench.fleet.jobs, "job", "sound") == "handed back"


def test_progress_waits_for_nobody(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: Any) -> None:
        raise FleetUnreachableError("Redis is away")

    monkeypatch.setattr(bench.fleet.jobs, "tell", away)
    assert bench.run(lambda work: work.progress("sound", 1, 1)) == "done"


def test_waiting_for_redis_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "PATIENCE", 0.5)
    monkeypatch.setattr(patience, "PAUSE", 0.01)
    tries: list[int] = []

    def away() -> None:
        tries.append(1)
        raise FleetUnreachableError("Redis is away")

    with pytest.raises(FleetUnreachableError):
        patience.patiently(away)
    assert len(tries) >= 2


def test_waiting_for_redis_ends_with_the_job() -> None:
    def away() -> None:
        raise FleetUnreachableError("Redis is away")

    def ended() -> None:
        raise NoFaceError("stop")

    with pytest.raises(NoFaceError):
        patience.patiently(away, ended)
