"""What the driver answers of a device. The driver is made up."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

import pytest

from pipeline.runtime import devices
from pipeline.runtime.devices import context_is_broken, device_memory
from pipeline.runtime.providers import CPU, parse_rungs

FIRST = parse_rungs("cuda:0")[0]


@pytest.mark.parametrize(
    ("answers", "broken"),
    [
        ({}, False),
        ({"cuCtxSynchronize": 700}, True),
        ({"cuDevicePrimaryCtxRetain": 719}, True),
        ({"cuInit": 100}, False),
    ],
)
def test_the_driver_is_asked(monkeypatch: pytest.MonkeyPatch, answers: dict[str, int], broken: bool) -> None:
    calls = ("cuInit", "cuDeviceGet", "cuDevicePrimaryCtxRetain", "cuCtxPushCurrent_v2", "cuCtxSynchronize")
    driver = {name: (lambda *given, name=name: answers.get(name, 0)) for name in (*calls, "cuCtxPopCurrent_v2")}
    monkeypatch.setattr(devices.ctypes, "CDLL", lambda name: SimpleNamespace(**driver))
    assert context_is_broken(FIRST) is broken
    assert context_is_broken(CPU) is False


@pytest.mark.parametrize(("answers", "size"), [({}, 0), ({"cuDeviceTotalMem_v2": 1}, None), ({"cuInit": 100}, None)])
def test_memory_is_the_drivers(monkeypatch: pytest.MonkeyPatch, answers: dict[str, int], size: int | None) -> None:
    calls = ("cuInit", "cuDeviceGet", "cuDeviceTotalMem_v2")
    driver = {name: (lambda *given, name=name: answers.get(name, 0)) for name in calls}
    monkeypatch.setattr(devices.ctypes, "CDLL", lambda name: SimpleNamespace(**driver))
    assert device_memory(FIRST) == size
    assert device_memory(CPU) is None


def test_without_a_driver_there_is_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> ctypes.CDLL:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(devices.ctypes, "CDLL", absent)
    assert not context_is_broken(FIRST)
    assert device_memory(FIRST) is None
