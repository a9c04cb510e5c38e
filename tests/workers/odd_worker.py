"""`talkreel worker` with faults that a test chooses. Run as `python -m tests.workers.odd_worker worker ...`.

TALKREEL_TEST_HOLDS    a folder: a step waits before its work while hold-STEP lies in it, and after each sign of
                       progress while mid-STEP does; a process that waits has a file at-HOLD.PID. With block-STEP it
                       waits before its work as code that hangs does: not even a cancelled job lets it go. With
                       endless-run, rendering waits as a model's run does: only `Studio.terminate` ends it
TALKREEL_TEST_POISON   a seed: rendering a job of it kills the process, as running out of memory does
TALKREEL_TEST_SLOW     seconds more that a key frame takes; frames between key frames are the key frame before, at once
TALKREEL_TEST_ROOM     bytes that its disk takes of a film
TALKREEL_TEST_HASTE    times as often as others it looks for what was lost, and as soon it is free again after a step of
                       another version: tests wait for these
TALKREEL_TEST_COLD     set: its models are opened when they are first wanted, which spares the tests those that are not
TALKREEL_TEST_HOST     the machine that its processes claim to run on
TALKREEL_TEST_CODE     the code's identity that this worker claims to have
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pipeline.pace
import pipeline.stages.interpolation
import workers.failures
import workers.owners
import workers.step_task
import workers.studios
import workers.supervisor
import workers.tasks
from pipeline.cli.main import main
from pipeline.errors import RunEndedError
from pipeline.scene import Scene
from pipeline.studio import Studio
from pipeline.values import KeyFrame
from tests.small_disk import small_disk
from workers.work import Work


def hold(folder: Path, name: str, check: Callable[[], None]) -> None:
    """Wait while the hold is there; what `check` raises ends that."""
    held = folder / name
    at = folder / f"at-{name}.{os.getpid()}"
    if not held.exists():
        return
    at.touch()
    try:
        while held.exists():
            check()
            time.sleep(0.01)
    finally:
        at.unlink(missing_ok=True)


def install_holds(folder: Path) -> None:
    run_step, progress = workers.step_task.run_step, Work.progress

    def held_step(fleet: Any, job: str, step: str, studio_of: Any, work: Callable[[Work], Any], *more: Any) -> str:
        def held(given: Work) -> Any:
            hold(folder, f"hold-{step}", given.lease.check)
            hold(folder, f"block-{step}", lambda: None)
            return work(given)

        return run_step(fleet, job, step, studio_of, held, *more)

    def held_progress(self: Work, *args: Any) -> None:
        progress(self, *args)
        hold(folder, f"mid-{self.step}", self.lease.check)

    workers.step_task.run_step = held_step
    Work.progress = held_progress  # type: ignore[method-assign]


def install_endless_runs(folder: Path) -> None:
    render, terminate, ended = Scene.render, Studio.terminate, threading.Event()

    def told(self: Studio) -> None:
        ended.set()
        terminate(self)

    def check() -> None:
        if ended.is_set():
            raise RunEndedError("it was ended while running")

    def endless(self: Scene, *args: Any, **kwargs: Any) -> Any:
        ended.clear()
        hold(folder, "endless-run", check)
        return render(self, *args, **kwargs)

    Studio.terminate = told  # type: ignore[method-assign]
    Scene.render = endless  # type: ignore[method-assign]


def install_poison(seed: int) -> None:
    render = Scene.render

    def poisoned(self: Scene, *args: Any, **kwargs: Any) -> Any:
        if self.settings.seed == seed:
            os.kill(os.getpid(), signal.SIGKILL)
        return render(self, *args, **kwargs)

    Scene.render = poisoned  # type: ignore[method-assign]


def install_small_disk(room: int) -> None:
    write = workers.tasks.write_film

    def cramped(*args: Any) -> Any:
        with small_disk(room):
            return write(*args)

    workers.tasks.write_film = cramped


def install_slowness(seconds: float) -> None:
    render = Scene.render

    def slow(self: Scene, *args: Any, **kwargs: Any) -> Any:
        for frame in render(self, *args, **kwargs):
            time.sleep(seconds)
            yield frame

    def between(before: KeyFrame, *_: Any) -> Any:
        return before.image

    Scene.render = slow  # type: ignore[method-assign]
    pipeline.stages.interpolation.between = between
    pipeline.pace.between = between


def install_haste(times: float) -> None:
    workers.supervisor.EVERY /= times
    workers.failures.MISMATCH_PAUSE /= times


if __name__ == "__main__":
    if holds := os.environ.get("TALKREEL_TEST_HOLDS"):
        install_holds(Path(holds))
        install_endless_runs(Path(holds))
    if poison := os.environ.get("TALKREEL_TEST_POISON"):
        install_poison(int(poison))
    if haste := os.environ.get("TALKREEL_TEST_HASTE"):
        install_haste(float(haste))
    if os.environ.get("TALKREEL_TEST_COLD"):
        Studio.warm_up = lambda self, **_: None  # type: ignore[method-assign]
    if room := os.environ.get("TALKREEL_TEST_ROOM"):
        install_small_disk(int(room))
    if slow := os.environ.get("TALKREEL_TEST_SLOW"):
        install_slowness(float(slow))
    if host := os.environ.get("TALKREEL_TEST_HOST"):
        workers.owners._place = lambda: host  # type: ignore[assignment]
    if code := os.environ.get("TALKREEL_TEST_CODE"):
        workers.studios.code_identity = lambda: code  # type: ignore[assignment]
    sys.exit(main())
