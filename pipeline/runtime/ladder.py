"""The ladder: a model runs on the first rung that really runs it, and what failed above is said."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import DeviceFaultError, ModelError, ProviderError
from ..packs.manifest import ModelSpec
from .arena import ARENA
from .faults import Fault, fault_of
from .libraries import machine_problem
from .library import onnxruntime
from .lost import LOST_DEVICES, LostDevices
from .messages import one_line
from .options import RuntimeOptions
from .overhearing import overheard
from .placement import read_placement
from .places import Fall, Place
from .providers import CPU, KINDS, Rung, default_rungs

TRIAL_SIDE = 256
"""Length of a free side in the run that tries a session; the leading axis is 1."""

LOST = "its device is lost to this process; start another one to use it again"

BAD_FILE = frozenset({"InvalidProtobuf", "NoSuchFile", "NoModel", "InvalidGraph"})
"""Classes of ONNX Runtime's errors that speak of the file, whatever should run it."""


class Ladder:
    """Opens models on the first rung that runs them. One serves all models of a process.

    Args:
        options: the rungs, threads and memory. lost: the process's lost devices.
    """

    def __init__(self, options: RuntimeOptions, lost: LostDevices = LOST_DEVICES) -> None:
        self.options = options
        self.lost = lost
        self._lock = threading.Lock()

    @property
    def rungs(self) -> tuple[Rung, ...]:
        """Best first. Raises RuntimeMissingError: no onnxruntime, where none are stated."""
        return self.options.providers or default_rungs()

    def open(
        self,
        path: Path,
        spec: ModelSpec,
        *,
        start: Rung | None = None,
        falls: tuple[Fall, ...] = (),
        make_room: Callable[[], bool] = lambda: False,
    ) -> tuple[Any, Place]:
        """A session on the first rung that runs the model.

        Args:
            path: the .onnx file. spec: its tensors.
            start: the rung to begin with, None for the first. falls: what is already known of those above.
            make_room: lets other models' sessions go, and says whether there were any: a rung whose device has too
            little memory beside them is tried again without them.

        Returns:
            The session of ONNX Runtime, and where it runs.

        Raises:
            RuntimeMissingError: no onnxruntime. ModelError: the file does not load.
            ProviderError: no rung runs the model, or with `strict`, the first one does not run all of it.
        """
        rungs = self.rungs
        found = list(falls)
        for rung in rungs[rungs.index(start) if start else 0 :]:
            if reason := self._closed_for(rung):
                found.append(Fall(str(rung), None, reason))
            else:
                try:
                    session, place = self._attempt(path, spec, rung, make_room)
                except _RungFailedError as error:
                    found.append(Fall(str(rung), path.name, str(error)))
                else:
                    if place.placement is not None and not place.placement.whole:
                        found.append(Fall(str(rung), path.name, str(place.placement), kept=True))
                    self._judge(found)
                    return session, replace(place, falls=tuple(found))
            self._judge(found)
        raise ProviderError(f"{'; '.join(map(str, found))}; give --providers another rung, for instance cpu")

    def _attempt(self, path: Path, spec: ModelSpec, rung: Rung, make_room: Callable[[], bool]) -> tuple[Any, Place]:
        try:
            return _try(path, spec, rung, self.options, self.lost)
        except _RungFailedError as error:
            if error.fault is not Fault.MEMORY or not make_room():
                raise
        return _try(
            path, spec, rung, self.options, self.lost
        )  # out here, where nothing holds the failed session any more

    def below(self, rung: Rung) -> Rung | None:
        """The rung after this one."""
        rungs = self.rungs
        following = rungs[rungs.index(rung) + 1 :]
        return following[0] if following else None

    def _judge(self, falls: list[Fall]) -> None:
        if falls and self.options.strict:
            raise ProviderError(f"{falls[-1]}; mend it, or leave out --strict-providers")

    def _closed_for(self, rung: Rung) -> str | None:
        """Why a rung runs nothing on this machine."""
        with self._lock:
            return machine_problem(rung.kind) or (LOST if self.lost.check(rung) else None)


class _RungFailedError(Exception):
    """Why a rung does not run a model, on one line. `fault`: that of its device or memory, None for another reason."""

    def __init__(self, reason: str, fault: Fault | None = None) -> None:
        super().__init__(reason)
        self.fault = fault


def _session(path: Path, spec: ModelSpec, rung: Rung, options: RuntimeOptions, profile: Path | None) -> Any:
    ort = onnxruntime()
    settings = ort.SessionOptions()
    settings.intra_op_num_threads = 1 if spec.parallel == "runs" else options.thread_count
    settings.inter_op_num_threads = 1
    settings.log_severity_level = 4  # what fails is raised and said by us
    ARENA.share(settings)
    # Threads that spin between runs would take the cores of the encoder and of other workers.
    settings.add_session_config_entry("session.intra_op.allow_spinning", "0")
    for name, value in KINDS[rung.kind].session.items():
        setattr(settings, name, value)
    if profile is not None:
        settings.enable_profiling = True
        settings.profile_file_prefix = str(profile)
    provider = (rung.provider, rung.options(settings.intra_op_num_threads, options.device_memory))
    try:
        # Its own way back to the CPU is shut: it prints, and says nothing to us.
        return ort.InferenceSession(str(path), settings, providers=[provider], enable_fallback=0)
    except Exception as error:  # onnxruntime raises classes of its own, all below Exception
        if rung == CPU and (fault := fault_of(error)) is not None:
            raise DeviceFaultError(f"{path} does not load ({one_line(error)})", fault) from error
        if rung == CPU or type(error).__name__ in BAD_FILE:
            raise ModelError(f"{path} does not load ({one_line(error)}); verify the pack") from error
        raise _RungFailedError(one_line(error), fault_of(error)) from error


def _try(path: Path, spec: ModelSpec, rung: Rung, options: RuntimeOptions, lost: LostDevices) -> tuple[Any, Place]:
    if rung == CPU:
        return _session(path, spec, rung, options, None), Place(path.name, rung)
    with tempfile.TemporaryDirectory(prefix="talkreel-") as folder:
        with overheard() as said:
            session = _session(path, spec, rung, options, Path(folder) / "profile")
        if rung.provider not in session.get_providers():
            raise _RungFailedError(said[0] if said else f"onnxruntime does not give {rung.provider} here")
        lost.watch(session, rung)
        try:
            seconds = _trial(session, spec)
        except _RungFailedError:
            lost.check(rung)  # before the session is freed
            raise
        placement = read_placement(Path(session.end_profiling()), rung.provider)
    if placement.mostly_elsewhere:
        raise _RungFailedError(str(placement))
    return session, Place(path.name, rung, (), placement, seconds)


def _trial(session: Any, spec: ModelSpec) -> float:
    """Run once with zeros: a rung counts when it has run the model, and only a run shows where its nodes are.

    Returns:
        Seconds that it took.
    """
    begun = time.perf_counter()
    try:
        session.run(None, {tensor.name: tensor.zeros(TRIAL_SIDE) for tensor in spec.inputs.values()})
    except Exception as error:
        session.end_profiling()
        raise _RungFailedError(f"its first run failed: {one_line(error)}", fault_of(error)) from error
    return time.perf_counter() - begun
