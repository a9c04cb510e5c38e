"""The ladder: a model runs on the first rung that really runs it, and what failed above is said."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import ProviderError
from ..packs.manifest import ModelSpec
from .faults import Fault
from .libraries import machine_problem
from .lost import LOST_DEVICES, LostDevices
from .opening import RungFailedError, open_on
from .options import RuntimeOptions
from .places import Fall, Place
from .providers import Rung, default_rungs

LOST = "its device is lost to this process; start another one to use it again"


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
                    session, place = open_on(rung, path, spec, self.options, self.lost, make_room)
                except RungFailedError as error:
                    found.append(Fall(str(rung), path.name, str(error), passing=error.fault is Fault.MEMORY))
                else:
                    if place.placement is not None and not place.placement.whole:
                        found.append(Fall(str(rung), path.name, str(place.placement), kept=True))
                    self._judge(found)
                    return session, replace(place, falls=tuple(found))
            self._judge(found)
        raise ProviderError(f"{'; '.join(map(str, found))}; give --providers another rung, for instance cpu")

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
