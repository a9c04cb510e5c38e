"""How a job stands, as JSON: for `talkreel status`, `jobs`, and whoever asks the client."""

from __future__ import annotations

from typing import Any

from .canvas import QUEUES, kind_of
from .fleet import Fleet
from .job_view import JobView
from .owners import worker_of


def job_status(fleet: Fleet, job: str) -> dict[str, Any]:
    """State, steps by status, frames, bytes held, and what makes no progress. Raises JobNotFoundError."""
    view = fleet.jobs.view(job)
    steps: dict[str, dict[str, int]] = {}
    for step, state in view.steps.items():
        kind = steps.setdefault(kind_of(step), {})
        kind[state.status] = kind.get(state.status, 0) + 1
    return {
        "job": job,
        "state": view.state,
        "error": view.error,
        "submitted": view.order.submitted,
        "seconds": view.now - view.order.submitted,
        "priority": view.order.priority,
        "steps": steps,
        "frames": {
            "done": fleet.jobs.counts(job).get("frames", 0),
            "total": (view.result("plan") or {}).get("key_frames"),
        },
        "budget": view.budget,
        "bytes": fleet.store.usage(job),
        "stalled": [_standstill(view, step) for step in view.stalled()],
    }


def _standstill(view: JobView, step: str) -> dict[str, Any]:
    """What is known of a step that stands still. `worker`: the one that has it or, while it waits in its queue,
    the one that had it last; "" where none ever took it."""
    state = view.steps[step]
    return {
        "step": step,
        "status": state.status,
        "queue": QUEUES[kind_of(step)],
        "worker": worker_of(state.owner or state.last),
        "process": state.owner or state.last,
        "seconds": view.standstill(step),
        "note": state.note,
    }
