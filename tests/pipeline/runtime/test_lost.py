"""Devices that the process has lost: nothing is opened there any more, and what was open is never freed."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref

from pipeline.runtime.lost import LostDevices
from pipeline.runtime.providers import Rung, parse_rungs

FIRST, SECOND = parse_rungs("cuda:0,cuda:1")


class Thing:
    """What a session is to the list."""


def test_sessions_of_a_lost_device_are_kept_and_others_are_not() -> None:
    broken: set[Rung] = set()
    kept: list[object] = []
    devices = LostDevices(broken.__contains__, kept.append)
    things = [Thing(), Thing(), Thing()]
    for thing, rung in zip(things, (Rung("cuda"), FIRST, SECOND), strict=True):
        devices.watch(thing, rung)
    assert not devices
    assert not devices.check(FIRST)
    broken.add(FIRST)
    assert devices.check(FIRST)
    assert devices.check(Rung("tensorrt", "0"))  # the same device under another provider
    assert not devices.check(SECOND)
    assert devices
    assert sorted(map(id, kept)) == sorted(map(id, things[:2]))
    broken.clear()
    assert devices.check(FIRST)  # for as long as the process lives


def test_a_device_that_nothing_stood_on_is_no_reason_for_another_process() -> None:
    """A new process would find it as broken."""
    devices = LostDevices(lambda rung: True, lambda thing: None)
    assert devices.check(FIRST)
    assert not devices


def test_watching_keeps_nothing_alive() -> None:
    devices, thing = LostDevices(lambda rung: True, lambda thing: None), Thing()
    devices.watch(thing, FIRST)
    gone = weakref.ref(thing)
    del thing
    gc.collect()
    assert gone() is None
    assert devices.check(FIRST)


KEPT = """
from pipeline.runtime.lost import keep_for_ever
class Loud:
    def __del__(self):
        print("freed")
loud, kept = Loud(), Loud()
keep_for_ever(kept)
del loud, kept
"""


def test_what_is_kept_outlives_the_process() -> None:
    done = subprocess.run([sys.executable, "-c", KEPT], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["freed"]
