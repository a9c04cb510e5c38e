"""The fleet measured: overhead against one process, what two workers gain, messages and bytes.

    python -m tests.benchmarks.fleet overhead    # one worker of one thread against one process of one thread
    python -m tests.benchmarks.fleet sharing     # two workers against one, alternating
    python -m tests.benchmarks.fleet traffic     # messages and Redis bytes of a job of 10 s and of 5 min

Workers are warm: their models are loaded by a first job that is not counted. Give it a quiet machine.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from pipeline import RuntimeOptions, Settings, open_pack, render
from pipeline.studio import Studio
from tests.benchmarks.stages import SAMPLES, voice_of
from tests.workers.fleet import TestFleet, running_fleet
from workers.config import QUEUES

PORTRAIT = SAMPLES / "portrait.png"


def run_job(fleet: TestFleet, voice: Path, **settings: Any) -> float:
    """Seconds from submission to the film's bytes."""
    start = time.perf_counter()
    job = fleet.client().submit(PORTRAIT, voice, **settings)
    job.wait(timeout=3600)
    job.result()
    return time.perf_counter() - start


def overhead(folder: Path, pairs: int) -> None:
    voice = voice_of(10, folder)
    studio = Studio(open_pack(), RuntimeOptions(threads=1))
    ratios = []
    with running_fleet(folder, "one") as fleet:
        run_job(fleet, voice, seed=10_000, preset="quality", frame="crop")
        for seed in range(pairs):
            remote = run_job(fleet, voice, seed=seed, preset="quality", frame="crop")
            start = time.perf_counter()
            settings = Settings(preset="quality", frame="crop", seed=seed)
            render(PORTRAIT, voice, folder / "film.webm", settings, studio=studio)
            local = time.perf_counter() - start
            ratios.append(remote / local)
            print(f"fleet {remote:6.2f} s   local {local:6.2f} s   ratio {ratios[-1]:.3f}", flush=True)
    print(f"median ratio {statistics.median(ratios):.3f}")


def sharing(folder: Path, pairs: int) -> None:
    voice = voice_of(10, folder)
    ratios = []
    with running_fleet(folder, "one", "two") as fleet:
        control = fleet.client().fleet.app.control

        def consume(action: str) -> None:
            for queue in QUEUES:
                getattr(control, action)(queue, destination=["two@test"], reply=True, timeout=5)

        for seed in range(3):
            run_job(fleet, voice, seed=10_000 + seed, preset="quality", frame="crop")
        for seed in range(pairs):
            both = run_job(fleet, voice, seed=seed, preset="quality", frame="crop")
            consume("cancel_consumer")
            one = run_job(fleet, voice, seed=100 + seed, preset="quality", frame="crop")
            consume("add_consumer")
            ratios.append(one / both)
            print(f"one {one:6.2f} s   two {both:6.2f} s   gain {ratios[-1]:.2f}", flush=True)
    print(f"median gain {statistics.median(ratios):.2f}")


def traffic(folder: Path, lengths: list[int]) -> None:
    with running_fleet(folder, "one", "two") as fleet, fleet.server.client() as redis:
        run_job(fleet, voice_of(2, folder), seed=10_000, preset="preview", frame="crop")
        for seconds in lengths:
            redis.config_resetstat()
            before = redis.info("memory")["used_memory"]
            took = run_job(fleet, voice_of(seconds, folder), seed=seconds, preset="preview", frame="crop")
            stats, commands = redis.info("stats"), redis.info("commandstats")
            moved = (stats["total_net_input_bytes"], stats["total_net_output_bytes"])
            peak = redis.info("memory")["used_memory_peak"] - before
            print(
                f"{seconds} s of sound: {commands['cmdstat_lpush']['calls']} messages, "
                f"{moved[0] / 1e6:.1f} MB into Redis, {moved[1] / 1e6:.1f} MB out, "
                f"{peak / 1e6:.1f} MB more memory at the peak, {took:.1f} s",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("overhead", "sharing", "traffic"))
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--lengths", type=int, nargs="+", default=[10, 300], help="of the traffic's jobs, seconds")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if arguments.what == "traffic":
            traffic(Path(folder), arguments.lengths)
        else:
            {"overhead": overhead, "sharing": sharing}[arguments.what](Path(folder), arguments.pairs)


if __name__ == "__main__":
    main()
