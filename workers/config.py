"""The Celery application's settings, each with its reason."""

from __future__ import annotations

import os
from typing import Any

from pipeline.errors import SettingsError
from pipeline.runtime.options import MOST_THREADS, cores_allowed

QUEUES = ("media", "motion", "render", "encode")
"""One kind of work each, so that a fleet can give GPUs to `render` and cores to `encode`. One worker may
take all."""

LONGEST_TASK = 600
"""Hard time limit of a task, seconds. The longest is the mux of a 30-minute film (about a minute); the
rest is room for slow machines."""

SOFT_LIMIT = LONGEST_TASK - 30
"""The task is told to stop, so that it can say why before it is killed."""

VISIBILITY_TIMEOUT = 2 * LONGEST_TASK
"""Redis hands a message out again when it was not acknowledged for this long. Below the longest task that
would run tasks twice while they still run. Lost tasks are found long before this by the supervisor."""

PRIORITIES = {"high": 0, "normal": 3, "low": 6}
"""Redis knows priorities only as separate lists; 0 is served first."""

MEMORY_PER_PROCESS = 4096
"""MiB of resident memory after which a worker process is replaced by a new one, once its task is done; or
TALKREEL_PROCESS_MEMORY."""

GRACE = 25
"""Seconds that tasks have to finish on SIGTERM, before they are handed back; or TALKREEL_GRACE."""

SOCKET_TIMEOUT = 30.0
"""Seconds without an answer after which a connection counts as broken; blocking pops take less."""


def _whole(name: str, default: int, least: int, most: int) -> int:
    """A number of the environment. Raises SettingsError: it is none, or out of its range."""
    text = os.environ.get(name) or str(default)
    if not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
        raise SettingsError(f"{name} {text!r} is not a whole number from {least} to {most}")
    return int(text)


def grace() -> int:
    """TALKREEL_GRACE, else `GRACE`, in seconds. Raises SettingsError."""
    return _whole("TALKREEL_GRACE", GRACE, 0, 24 * 3600)


def process_memory() -> int:
    """TALKREEL_PROCESS_MEMORY, else `MEMORY_PER_PROCESS`, in MiB. Raises SettingsError."""
    return _whole("TALKREEL_PROCESS_MEMORY", MEMORY_PER_PROCESS, 1, 1 << 24)


def served_queues() -> list[str]:
    """What this worker works on: TALKREEL_QUEUES, else all."""
    return os.environ.get("TALKREEL_QUEUES", ",".join(QUEUES)).split(",")


def threads_per_process(processes: int | None = None, cores: int | None = None) -> int:
    """Threads that a model may use in one worker process, so that N processes on a machine do not fight:
    TALKREEL_THREADS, else the cores divided among the worker's processes.

    Args:
        processes: of the worker; TALKREEL_PROCESSES unless given. cores: this machine's unless given.

    Raises:
        SettingsError: TALKREEL_THREADS is out of its range.
    """
    if os.environ.get("TALKREEL_THREADS"):
        return _whole("TALKREEL_THREADS", 1, 1, MOST_THREADS)
    return max(1, (cores or cores_allowed()) // (processes or int(os.environ.get("TALKREEL_PROCESSES", "1"))))


def settings() -> dict[str, Any]:
    """Celery's configuration, but for the addresses."""
    transport = {
        "visibility_timeout": VISIBILITY_TIMEOUT,
        # Within a priority, queues by name: encode, media, motion, render. What ends a film comes before what
        # begins more of it, so finished frames do not pile up. (The other strategies begin with a set's order.)
        "queue_order_strategy": "sorted",
        "priority_steps": sorted(PRIORITIES.values()),
        "sep": ":",
        "socket_timeout": SOCKET_TIMEOUT,
        "socket_connect_timeout": 5.0,
        "socket_keepalive": True,
        "health_check_interval": 10,
        "retry_on_timeout": True,
    }
    return {
        # Messages are ids and small JSON; pickle would run whatever a message holds.
        "task_serializer": "json",
        "result_serializer": "json",
        "event_serializer": "json",
        "accept_content": ["json"],
        # The job's state is kept by `jobs`, with its artifacts: results in a backend would be a second truth.
        "task_ignore_result": True,
        "task_store_errors_even_if_ignored": False,
        "result_expires": 3600,
        # A task that was begun and not finished is handed out again, whatever became of its worker.
        "task_acks_late": True,
        "task_reject_on_worker_lost": True,
        "task_acks_on_failure_or_timeout": True,
        # A worker takes what it can run, so that nothing waits behind a long task while others idle.
        "worker_prefetch_multiplier": 1,
        "visibility_timeout": VISIBILITY_TIMEOUT,
        "broker_transport_options": transport,
        "result_backend_transport_options": {"visibility_timeout": VISIBILITY_TIMEOUT},
        "task_soft_time_limit": SOFT_LIMIT,
        "task_time_limit": LONGEST_TASK,
        # A new process opens its models before it takes a task.
        "worker_proc_alive_timeout": 120.0,
        "worker_max_memory_per_child": 1024 * process_memory(),
        # Brokers restart; workers wait for them for as long as it takes.
        "broker_connection_retry": True,
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        # A task finishes though the broker went away meanwhile: what it makes is kept, its repeat finds it.
        "worker_cancel_long_running_tasks_on_connection_loss": False,
        # Nor does it take less work afterwards.
        "worker_enable_prefetch_count_reduction": False,
        # SIGTERM waits for running tasks; see `leaving` for how long. (Celery's soft shutdown sleeps all of it.)
        "worker_soft_shutdown_timeout": 0.0,
        # Flower shows nothing without these two.
        "worker_send_task_events": True,
        "task_send_sent_event": True,
        "task_track_started": True,
        "task_queue_max_priority": None,
        "task_default_priority": PRIORITIES["normal"],
        "task_default_queue": "media",
        "task_create_missing_queues": True,
        "worker_hijack_root_logger": False,
        "broker_pool_limit": 4,
        "timezone": "UTC",
    }
