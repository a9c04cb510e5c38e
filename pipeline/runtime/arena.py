"""The host memory that all sessions of a process share: one arena of ONNX Runtime.

Each session would else keep an arena of its own, as large as its largest run, though only one of them runs at a time.
A shared arena outlives its sessions, so it is told to give back what is free after one of them was let go.
A memory pattern plans one block for all values from the second run on, beside the first run's buffers; without it the
embedded pack's models keep 112 MiB less (of 442), the full-size generator 504 MiB less. Giving back after every run
would bring them to 173 MiB, at the price of asking the system for all of it again in each.
"""

from __future__ import annotations

import threading
from typing import Any

from .library import onnxruntime

_SAME_AS_REQUESTED = 1
"""Arena extend strategy: as much as is asked for; the other one doubles, and keeps up to half unused."""

_SHRINK = "memory.enable_memory_arena_shrinkage"


class SharedArena:
    """The process's arena. Registered with ONNX Runtime before the first session, after a fork."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._registered = False
        self._slack = False

    def share(self, settings: Any) -> None:
        """Let a session with these onnxruntime.SessionOptions take its host memory from the arena."""
        ort = onnxruntime()
        with self._lock:
            if not self._registered:
                memory = ort.OrtMemoryInfo("Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT)
                strategy = {"arena_extend_strategy": _SAME_AS_REQUESTED}
                ort.create_and_register_allocator(memory, ort.OrtArenaCfg(strategy))
                self._registered = True
        settings.add_session_config_entry("session.use_env_allocators", "1")
        settings.enable_mem_pattern = False

    def released(self) -> None:
        """A session was let go: the arena holds what nobody needs."""
        self._slack = True

    def run_options(self, *, shrink: bool = False) -> Any:
        """onnxruntime.RunOptions for one run. `shrink`: give free memory back to the system afterwards, which a run
        also does after a session was let go."""
        options = onnxruntime().RunOptions()
        if self._slack or shrink:
            self._slack = False
            options.add_run_config_entry(_SHRINK, "cpu:0")
        return options


ARENA = SharedArena()
"""Of this process; ONNX Runtime knows one environment a process."""
