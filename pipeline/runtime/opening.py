"""Opening a model on one rung: it counts as open when a trial run succeeded there."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..errors import DeviceFaultError, ModelError
from ..packs.manifest import ModelSpec
from .arena import ARENA
from .faults import Fault, fault_of
from .library import onnxruntime
from .lost import LostDevices
from .messages import one_line
from .options import RuntimeOptions
from .overhearing import overheard
from .placement import read_placement
from .places import Place
from .providers import CPU, KINDS, Rung

TRIAL_SIDE = 256
"""Length of a free side in the run that tries a session; the leading axis is 1."""

BAD_FILE = frozenset({"InvalidProtobuf", "NoSuchFile", "NoModel", "InvalidGraph"})
"""Classes of ONNX Runtime's errors that speak of the file, whatever should run it."""


class RungFailedError(Exception):
    """Why a rung does not run a model, on one line.

    `fault`: that of its device or memory, None for another reason. `ran`: it was opened, and failed in its trial run.
    """

    def __init__(self, reason: str, fault: Fault | None = None, *, ran: bool = False) -> None:
        super().__init__(reason)
        self.fault = fault
        self.ran = ran


def open_on(
    rung: Rung,
    path: Path,
    spec: ModelSpec,
    options: RuntimeOptions,
    lost: LostDevices,
    make_room: Callable[[], bool],
) -> tuple[Any, Place]:
    """A session of ONNX Runtime on a rung, and where its nodes run.

    Where its device has too little memory, it is tried once more after other models made room. Where the run fails for
    another reason, the provider's other options are tried in turn: which convolutions a search for kernels finds one
    for depends on its kind.

    Raises:
        RungFailedError: it does not run there. ModelError: the file does not load.
    """
    first: RungFailedError | None = None
    for other in ({}, *KINDS[rung.kind].otherwise):
        try:
            return _with_room(rung, path, spec, options, lost, make_room, other)
        except RungFailedError as error:
            first = first or error
            if not error.ran or error.fault is not None:
                break
    assert first is not None
    raise first


def _with_room(
    rung: Rung,
    path: Path,
    spec: ModelSpec,
    options: RuntimeOptions,
    lost: LostDevices,
    make_room: Callable[[], bool],
    other: Mapping[str, str],
) -> tuple[Any, Place]:
    try:
        return _try(path, spec, rung, options, lost, other)
    except RungFailedError as error:
        if error.fault is not Fault.MEMORY or not make_room():
            raise
    return _try(path, spec, rung, options, lost, other)  # out here, where nothing holds the failed session any more


def _session(
    path: Path,
    spec: ModelSpec,
    rung: Rung,
    options: RuntimeOptions,
    profile: Path | None = None,
    other: Mapping[str, str] | None = None,
) -> Any:
    ort = onnxruntime()
    settings = ort.SessionOptions()
    settings.intra_op_num_threads = 1 if spec.parallel == "runs" else options.thread_count
    settings.inter_op_num_threads = 1
    settings.log_severity_level = 4  # what fails is raised and said by us
    if not spec.rewritten:
        settings.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    ARENA.share(settings)
    # Threads that spin between runs would take the cores of the encoder and of other workers.
    settings.add_session_config_entry("session.intra_op.allow_spinning", "0")
    for name, value in KINDS[rung.kind].session.items():
        setattr(settings, name, value)
    if profile is not None:
        settings.enable_profiling = True
        settings.profile_file_prefix = str(profile)
    provider = (rung.provider, rung.options(settings.intra_op_num_threads, options.device_memory) | dict(other or {}))
    try:
        # Its own way back to the CPU is shut: it prints, and says nothing to us.
        return ort.InferenceSession(str(path), settings, providers=[provider], enable_fallback=0)
    except Exception as error:  # onnxruntime raises classes of its own, all below Exception
        if rung == CPU and (fault := fault_of(error)) is not None:
            raise DeviceFaultError(f"{path} does not load ({one_line(error)})", fault) from error
        if rung == CPU or type(error).__name__ in BAD_FILE:
            raise ModelError(f"{path} does not load ({one_line(error)}); verify the pack") from error
        raise RungFailedError(one_line(error), fault_of(error)) from error


def _try(
    path: Path, spec: ModelSpec, rung: Rung, options: RuntimeOptions, lost: LostDevices, other: Mapping[str, str]
) -> tuple[Any, Place]:
    if rung == CPU:
        return _session(path, spec, rung, options), Place(path.name, rung)
    with tempfile.TemporaryDirectory(prefix="talkreel-") as folder:
        with overheard() as said:
            session = _session(path, spec, rung, options, Path(folder) / "profile", other)
        if rung.provider not in session.get_providers():
            raise RungFailedError(said[0] if said else f"onnxruntime does not give {rung.provider} here")
        lost.watch(session, rung)
        try:
            with overheard():  # raised is what fails; what is logged besides is of kernels that were tried
                seconds = _trial(session, spec)
        except RungFailedError:
            lost.check(rung)  # before the session is freed
            raise
        placement = read_placement(Path(session.end_profiling()), rung.provider)
    if placement.mostly_elsewhere:
        raise RungFailedError(str(placement))
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
        raise RungFailedError(f"its first run failed: {one_line(error)}", fault_of(error), ran=True) from error
    return time.perf_counter() - begun
