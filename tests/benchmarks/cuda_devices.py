"""Several CUDA devices under one worker: which process works on which, and how much of its memory it takes.

    python -m tests.benchmarks.cuda_devices --pack FOLDER [--providers cuda:0,cuda:1,cpu] [-o RESULT.json]

A fleet of one worker (redis-server is started here) makes two films at once, while nvidia-smi is asked which process
holds memory of which device.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from tests.benchmarks.stages import SAMPLES, voice_of
from tests.workers.fleet import running_fleet

ASK = ("nvidia-smi", "--query-compute-apps=pid,gpu_uuid,used_memory", "--format=csv,noheader,nounits")
DEVICES = ("nvidia-smi", "--query-gpu=index,uuid,memory.used,memory.total", "--format=csv,noheader,nounits")


def main(arguments: list[str] | None = None) -> int:
    """Run two films; print what was seen, and write it as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.cuda_devices", description=__doc__)
    parser.add_argument("-o", "--output", type=Path, help="JSON file to write")
    parser.add_argument("--pack", required=True, help="name or folder")
    parser.add_argument("--preset", default="quality", help="default: %(default)s")
    parser.add_argument("--providers", default="cuda:0,cuda:1,cpu", help="default: %(default)s")
    parser.add_argument("--processes", type=int, default=2, help="default: %(default)s")
    parser.add_argument("--seconds", type=float, default=4, help="of each film (default: %(default)s)")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="cuda-devices-") as name:
        folder = Path(name)
        voice = voice_of(chosen.seconds, folder)
        environment = {"TALKREEL_PROVIDERS": chosen.providers, "TALKREEL_THREADS": "4"}
        with running_fleet(folder, "one", processes=chosen.processes, environment=environment) as fleet:
            worker, seen = fleet.workers[0], Watch()
            begun = time.perf_counter()
            jobs = [
                fleet.client().submit(
                    SAMPLES / "portrait.png", voice, pack=chosen.pack, preset=chosen.preset, frame="crop", seed=seed
                )
                for seed in (1, 2)
            ]
            try:
                for job in jobs:
                    job.wait(timeout=400)
                seconds = time.perf_counter() - begun
                reports = [job.report() for job in jobs]
            finally:
                seen.stop()
                print(worker.text[-3000:])
            found: dict[str, Any] = {
                "seconds of both films": round(seconds, 1),
                "processes of the worker": [child.pid for child in worker.children],
                "devices": seen.devices,
                "most MiB by process and device": seen.processes,
                "films": [
                    {
                        "rungs": sorted({rung for stage in each["stages"].values() for rung in stage["rungs"]}),
                        "rungs of the generator": each["stages"]["generator"]["rungs"],
                        "key frames": each["frames"]["key_frames"],
                        "steady ms a key frame": _steady(each["stages"]["generator"]),
                        "falls": [fall for stage in each["stages"].values() for fall in stage["falls"]],
                    }
                    for each in reports
                ],
            }
    for key, value in found.items():
        print(f"{key}: {value}")
    if chosen.output:
        chosen.output.write_text(json.dumps(found, indent=1) + "\n")
    return 0


def _steady(stage: dict[str, Any]) -> float | None:
    runs = stage["runs"] - stage["first_runs"]
    return round(1e3 * (stage["seconds"] - stage["first_seconds"]) / runs, 2) if runs > 0 else None


class Watch:
    """Asks nvidia-smi until it is stopped. `processes`: MiB by "pid on device"; `devices`: most MiB by index."""

    def __init__(self) -> None:
        self.processes: dict[str, int] = {}
        self.devices: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(0.3):
            for index, uuid, used, total in _rows(DEVICES):
                self._names[uuid] = index
                most = max(int(used), int(self.devices.get(index, "0").split()[0]))
                self.devices[index] = f"{most} of {total} MiB"
            for pid, uuid, used in _rows(ASK):
                key = f"{pid} on {self._names.get(uuid, uuid)}"
                self.processes[key] = max(int(re.sub(r"\D", "", used) or 0), self.processes.get(key, 0))


def _rows(command: tuple[str, ...]) -> list[list[str]]:
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except FileNotFoundError:  # to try the script without a card
        return []
    return [[cell.strip() for cell in line.split(",")] for line in said.splitlines() if line.count(",") >= 2]


if __name__ == "__main__":
    raise SystemExit(main())
