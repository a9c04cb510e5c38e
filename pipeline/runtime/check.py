"""The ladder on this machine, looked at in a process of its own: `python -m pipeline.runtime.check [LIST]`.

Prints one JSON object: `rungs`, `closed` (kinds of which none runs here) and `problems`, or `error` and `message`.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from ..errors import SettingsError, TalkreelError
from .builds import builds_problem, installed_builds
from .devices import device_memory
from .libraries import NVIDIA, machine_problem
from .providers import default_rungs, read_rungs


def look(stated: str | None) -> dict[str, Any]:
    """What the ladder will meet here.

    Args:
        stated: the rungs as the user states them, None for what the installed build is for.
    """
    try:
        rungs = read_rungs(stated) if stated is not None else default_rungs()
    except TalkreelError as error:
        return error.to_json()
    closed = {kind: reason for kind in dict.fromkeys(rung.kind for rung in rungs) if (reason := machine_problem(kind))}
    for rung in rungs:
        if rung.kind in NVIDIA and rung.kind not in closed and device_memory(rung) is None:
            message = f"provider {rung}: the driver knows no such device; nvidia-smi lists those it knows"
            return SettingsError(message).to_json()
    builds = builds_problem(installed_builds())
    problems = [*([builds] if builds else []), *(f"{kind} does not run here: {why}" for kind, why in closed.items())]
    return {"rungs": [str(rung) for rung in rungs], "closed": list(closed), "problems": problems}


if __name__ == "__main__":
    print(json.dumps(look(sys.argv[1] if len(sys.argv) > 1 else None)))
