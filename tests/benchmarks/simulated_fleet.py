"""How busy a fleet of 100 slots is kept, when rendering is a sleep: what queues, leases and state cost.

    python -m tests.benchmarks.simulated_fleet [--slots 100] [--processes 4] [--jobs 60] [--seconds 2]

Counts the seconds slept by all slots between the first quarter and the last, against slots times the
time passed: there the fleet is neither filling nor running dry.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.benchmarks.stages import SAMPLES
from tests.redis_server import RedisServer
from workers.client import Client
from workers.connections import Connections


def busy_share(log: Path, slots: int) -> tuple[float, int]:
    """Share of the slots' time that was slept in the middle half of the run, and the steps in all."""
    spans = [json.loads(line)[:2] for line in log.read_text().splitlines()]
    first, last = min(start for start, _ in spans), max(end for _, end in spans)
    low, high = first + (last - first) / 4, last - (last - first) / 4
    slept = sum(max(0.0, min(end, high) - max(start, low)) for start, end in spans)
    return slept / (slots * (high - low)), len(spans)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slots", type=int, default=100)
    parser.add_argument("--processes", type=int, default=4, help="workers; each has slots / processes threads")
    parser.add_argument("--jobs", type=int, default=60)
    parser.add_argument("--chunks", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=2.0, help="that rendering or encoding sleeps")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, RedisServer() as server:
        log = Path(folder) / "slept.log"
        environment = {
            **os.environ,
            "TALKREEL_BROKER_URL": server.url,
            "SIMULATED_SECONDS": str(arguments.seconds),
            "SIMULATED_CHUNKS": str(arguments.chunks),
            "SIMULATED_LOG": str(log),
        }
        command = [sys.executable, "-m", "celery", "-A", "tests.benchmarks.simulated_worker", "worker"]
        command += ["--pool", "threads", "-c", str(arguments.slots // arguments.processes), "--without-mingle"]
        command += ["-Q", "media,motion,render,encode"]
        workers = []
        for number in range(arguments.processes):
            with (Path(folder) / f"{number}.log").open("w") as out:
                name = ["-n", f"simulated{number}@test"]
                workers.append(subprocess.Popen([*command, *name], env=environment, stdout=out, stderr=out))
        try:
            client = Client(connections=Connections.read(server.url))
            time.sleep(5)
            start = time.monotonic()
            picture, voice = (SAMPLES / "portrait.png").read_bytes(), (SAMPLES / "voice.wav").read_bytes()
            jobs = [client.submit(picture, voice, seed=seed) for seed in range(arguments.jobs)]
            for job in jobs:
                job.wait(timeout=3600)
            took = time.monotonic() - start
            share, steps = busy_share(log, arguments.slots)
            print(f"{arguments.slots} slots, {arguments.jobs} jobs, {steps} steps in {took:.1f} s: {share:.1%} busy")
        finally:
            for worker in workers:
                worker.terminate()
            for worker in workers:
                worker.wait(60)


if __name__ == "__main__":
    main()
