"""A model outlives its sessions: made again after a fault, once, then on the next rung."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline.errors import DeviceFaultError, ModelError, ProviderError, RunEndedError
from pipeline.packs.manifest import ModelSpec
from pipeline.runtime.faults import run_error
from pipeline.runtime.ladder import LOST, Ladder
from pipeline.runtime.lost import LostDevices
from pipeline.runtime.options import RuntimeOptions
from pipeline.runtime.places import Fall, Place
from pipeline.runtime.providers import CPU, Rung
from pipeline.runtime.recovery import AGAIN, PROVEN, ManagedModel
from pipeline.runtime.residents import Residents
from tests.pipeline.runtime.test_faults import ARENA_FULL

CUDA, NAME = Rung("cuda"), "m.onnx"
DEVICE_LOST = "CUDA failure 700: an illegal memory access was encountered ; GPU=0 ; hostname=h"
ENDED = "Exiting due to terminate flag being set to true."
SPEC = ModelSpec(NAME, {}, {}, {})


class FakeSession:
    """A session whose runs raise what ONNX Runtime would, as long as there is something to raise."""

    def __init__(self, rung: Rung, falls: tuple[Fall, ...], raising: Callable[[Rung], str | None]) -> None:
        self.place = Place(NAME, rung, falls)
        self.raising = raising
        self.ended = 0

    def run(self, inputs: Mapping[str, Any], fixed: Any = None) -> dict[str, Any]:
        if text := self.raising(self.place.rung):
            raise run_error(NAME, RuntimeError(text))
        return {"rung": str(self.place.rung)}

    def terminate(self) -> None:
        self.ended += 1


@dataclass
class Device:
    """What goes wrong, run by run; makes the sessions."""

    texts: list[str | None] = field(default_factory=list)
    by_rung: dict[str, str] = field(default_factory=dict)
    made: list[tuple[str, tuple[Fall, ...]]] = field(default_factory=list)
    alive: list[weakref.ref[FakeSession]] = field(default_factory=list)
    most_alive: int = 0
    opening: list[ModelError] = field(default_factory=list)

    def raising(self, rung: Rung) -> str | None:
        return self.by_rung.get(str(rung)) or (self.texts.pop(0) if self.texts else None)

    def make(
        self, path: Path, spec: ModelSpec, ladder: Ladder, *, start: Rung | None, falls: Any, make_room: Any
    ) -> FakeSession:
        if self.opening:
            raise self.opening.pop(0)
        if ladder.options.strict and falls:
            raise ProviderError(str(falls[-1]))
        session = FakeSession(start or ladder.rungs[0], falls, self.raising)
        self.made.append((str(session.place.rung), falls))
        self.alive.append(weakref.ref(session))
        gc.collect()
        self.most_alive = max(self.most_alive, sum(ref() is not None for ref in self.alive))
        return session


def model(
    device: Device, *rungs: Rung, strict: bool = False, residents: Residents | None = None, size: int = 1
) -> ManagedModel:
    ladder = Ladder(RuntimeOptions(threads=1, providers=rungs or (CPU,), strict=strict))
    home = residents or Residents()
    return ManagedModel(Path(NAME), SPEC, ladder, home, 10, size, device.make)  # type: ignore[arg-type]


def test_a_fault_once_is_repaired_on_its_rung() -> None:
    device = Device([ARENA_FULL])
    made = model(device, CUDA, CPU)
    assert made.run({}) == {"rung": "cuda"}
    assert [rung for rung, _ in device.made] == ["cuda", "cuda"]
    recoveries = made.spent().recoveries
    assert [str(each) for each in recoveries] == ["m.onnx was opened again on cuda and the run repeated: out of memory"]
    assert made.spent().recoveries == ()
    assert made.place.falls == ()


def test_the_failed_session_is_gone_before_the_next_is_made() -> None:
    device = Device([ARENA_FULL, DEVICE_LOST])
    model(device, CUDA, CPU).run({})
    assert len(device.made) == 3
    assert device.most_alive == 1


def test_a_fault_twice_leads_to_the_next_rung() -> None:
    device = Device([DEVICE_LOST, DEVICE_LOST])
    made = model(device, CUDA, CPU)
    assert made.run({}) == {"rung": "cpu"}
    assert [rung for rung, _ in device.made] == ["cuda", "cuda", "cpu"]
    assert [str(fall) for fall in made.place.falls] == [
        "cuda does not run m.onnx: device lost again after it was opened anew"
    ]


def test_a_lost_device_is_left_at_once() -> None:
    """What was open there is kept, as ONNX Runtime would end the process while it frees it."""
    device, broken, kept = Device([None, DEVICE_LOST]), [False], list[object]()
    ladder = Ladder(
        RuntimeOptions(threads=1, providers=(CUDA, CPU)),
        LostDevices(lambda rung: broken[0] and rung == CUDA, kept.append),
    )
    made = ManagedModel(Path(NAME), SPEC, ladder, Residents(), 10, 1, device.make)  # type: ignore[arg-type]
    assert made.run({}) == {"rung": "cuda"}
    ladder.lost.watch(made._session, CUDA)
    first, broken[0] = made._session, True
    assert made.run({}) == {"rung": "cpu"}
    assert kept == [first]
    assert [rung for rung, _ in device.made] == ["cuda", "cpu"]
    assert [str(fall) for fall in made.place.falls] == [f"cuda does not run m.onnx: {LOST}"]
    assert made.spent().recoveries == ()


def test_a_fault_that_stays_is_an_error_and_the_next_run_starts_afresh() -> None:
    device = Device(by_rung={"cpu": ARENA_FULL})
    made = model(device)
    with pytest.raises(DeviceFaultError, match="requested buffer") as caught:
        made.run({})
    assert caught.value.fault == "out of memory"
    assert len(device.made) == 2
    assert not made.is_open
    device.by_rung.clear()
    assert made.run({}) == {"rung": "cpu"}
    assert len(device.made) == 3


def test_each_rung_gets_its_second_try() -> None:
    device = Device(by_rung={"cuda": ARENA_FULL})
    device.texts = [DEVICE_LOST]
    assert model(device, CUDA, CPU).run({}) == {"rung": "cpu"}
    assert [rung for rung, _ in device.made] == ["cuda", "cuda", "cpu", "cpu"]


@pytest.mark.parametrize(("good", "rungs"), [(PROVEN, ["cuda"] * 3), (PROVEN - 1, ["cuda", "cuda", "cpu"])])
def test_a_session_that_ran_well_for_long_may_be_made_again(good: int, rungs: list[str]) -> None:
    device = Device([ARENA_FULL, *[None] * good, ARENA_FULL])
    made = model(device, CUDA, CPU)
    for _ in range(good + 1):
        made.run({})
    assert [rung for rung, _ in device.made] == rungs


def test_strict_makes_the_next_rung_an_error() -> None:
    device = Device([DEVICE_LOST, DEVICE_LOST])
    with pytest.raises(ProviderError, match="device lost again"):
        model(device, CUDA, CPU, strict=True).run({})


def test_a_run_that_was_ended_is_not_repeated() -> None:
    device = Device([ENDED])
    with pytest.raises(RunEndedError):
        model(device, CUDA, CPU).run({})
    assert len(device.made) == 1


def test_any_other_failure_is_not_repeated() -> None:
    device = Device(["INVALID_ARGUMENT : Got invalid dimensions"])
    with pytest.raises(ModelError, match="invalid dimensions"):
        model(device).run({})
    assert len(device.made) == 1


def test_threads_that_meet_one_fault_make_one_session() -> None:
    together = threading.Barrier(4)
    failing = threading.local()

    class Lost(Device):
        def raising(self, rung: Rung) -> str | None:
            if len(self.made) == 1 and not hasattr(failing, "done"):
                failing.done = True
                together.wait()  # all four run on the first session when it is lost
                return DEVICE_LOST
            return None

    device = Lost()
    made = model(device, CUDA, CPU)
    made._begin()  # opened before the threads start
    results: list[Any] = []
    threads = [threading.Thread(target=lambda: results.append(made.run({}))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [{"rung": "cuda"}] * 4
    assert [rung for rung, _ in device.made] == ["cuda", "cuda"]


def test_sessions_are_made_one_after_another() -> None:
    """Also those of two models that two threads want at once."""
    residents, second_made = Residents(), threading.Event()
    together: list[bool] = []

    class First(Device):
        def make(self, *given: Any, **more: Any) -> FakeSession:
            thread.start()
            together.append(second_made.wait(0.2))
            return super().make(*given, **more)

    class Second(Device):
        def make(self, *given: Any, **more: Any) -> FakeSession:
            second_made.set()
            return super().make(*given, **more)

    first, second = (model(device, residents=residents) for device in (First(), Second()))
    thread = threading.Thread(target=lambda: second.run({}))
    first.run({})
    thread.join()
    assert together == [False]
    assert (first.is_open, second.is_open) == (True, True)


def test_without_memory_for_another_session_the_idle_ones_go() -> None:
    residents = Residents()
    idle = model(Device(), residents=residents)
    idle.run({})
    device = Device([ARENA_FULL])
    model(device, residents=residents).run({})
    assert not idle.is_open
    assert idle.run({}) == {"rung": "cpu"}


def test_without_memory_to_load_the_idle_ones_go_first() -> None:
    residents = Residents()
    idle = model(Device(), residents=residents)
    idle.run({})
    device = Device(opening=[DeviceFaultError("m.onnx does not load", "out of memory")])
    assert model(device, residents=residents).run({}) == {"rung": "cpu"}
    assert not idle.is_open


def test_what_does_not_fit_beside_the_others_takes_the_place_of_the_one_unused_for_longest() -> None:
    residents = Residents()
    first, second, third = (model(Device(), residents=residents, size=4) for _ in range(3))
    first.run({})
    second.run({})
    first.run({})
    third.run({})
    assert (first.is_open, second.is_open, third.is_open) == (True, False, True)
    small = model(Device(), residents=residents, size=2)
    small.run({})
    assert first.is_open
    assert residents.total() == 10


def test_a_session_in_use_is_not_let_go() -> None:
    residents = Residents()
    busy, device = SimpleNamespace(other=None), Device()
    other = model(Device(), residents=residents, size=8)

    def raising(rung: Rung) -> str | None:
        other.run({})  # wants the place of the one that is running
        return None

    device.raising = raising  # type: ignore[method-assign]
    busy.other = model(device, residents=residents, size=8)
    busy.other.run({})
    assert busy.other.is_open
    assert residents.total() == 16


def test_first_seconds_are_those_of_opening_and_the_first_run() -> None:
    made = model(Device())
    made.run({})
    assert made.spent().first_seconds > 0
    made.run({})
    assert made.spent().first_seconds == 0
    made.close()
    made.run({})
    assert made.spent().first_seconds > 0


def test_terminating_reaches_the_session() -> None:
    made = model(Device())
    made.terminate()
    made.run({})
    made.terminate()
    assert made._session.ended == 1  # type: ignore[union-attr]


def test_a_card_that_was_full_is_tried_again_after_a_while() -> None:
    now, full = [0.0], [True]

    def make(*given: Any, **how: Any) -> FakeSession:
        falls = (Fall("cuda", NAME, "out of memory", passing=True),) if full[0] else ()
        return FakeSession(CPU if full[0] else CUDA, falls, lambda rung: None)

    ladder = Ladder(RuntimeOptions(threads=1, providers=(CUDA, CPU)))
    made = ManagedModel(Path(NAME), SPEC, ladder, Residents(), 10, 1, make, lambda: now[0])  # type: ignore[arg-type]
    assert made.run({}) == {"rung": "cpu"}
    full[0], now[0] = False, AGAIN - 1
    assert made.run({}) == {"rung": "cpu"}
    now[0] = AGAIN
    assert made.run({}) == {"rung": "cuda"}
    assert made.place.falls == ()


def test_a_rung_that_lacks_something_else_is_not_tried_again() -> None:
    now, makes = [0.0], list[Rung]()

    def make(*given: Any, **how: Any) -> FakeSession:
        makes.append(CPU)
        return FakeSession(CPU, (Fall("cuda", NAME, "no kernel"),), lambda rung: None)

    ladder = Ladder(RuntimeOptions(threads=1, providers=(CUDA, CPU)))
    made = ManagedModel(Path(NAME), SPEC, ladder, Residents(), 10, 1, make, lambda: now[0])  # type: ignore[arg-type]
    made.run({})
    now[0] = 10 * AGAIN
    made.run({})
    assert len(makes) == 1
