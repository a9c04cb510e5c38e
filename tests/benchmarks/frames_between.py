"""CPU time of a frame between two key frames, of this checkout and another one in turns.

    python -m tests.benchmarks.frames_between --against CHECKOUT [--size 512] [--keypoints 478] [--turns 5]

Each turn is a process of its own with one checkout first on Python's path; milliseconds are those of its processor
time, that of threads which BLAS lets wait included, so other work on the machine counts little. Key frames are noise
and keypoints of a face that moves a little, the same in all. Says the largest and the mean difference of what they
make, too.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]

MEASURE = """
import sys, time
import numpy as np
from pipeline.stages.interpolation import between
from pipeline.values import KeyFrame
size, count, out = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
random = np.random.default_rng(0)
smooth = random.integers(0, 256, (size // 8, size // 8, 3), np.uint8).repeat(8, 0).repeat(8, 1)
points = random.uniform(-0.6, 0.6, (count, 3)).astype(np.float32)
moved = [points + random.normal(0, 0.02, points.shape).astype(np.float32) for _ in range(2)]
before, after = (KeyFrame(index, smooth[::-1, ::step].copy(), at) for index, step, at in zip((0, 5), (1, -1), moved))
times = []
for turn in range(12):
    begun = time.process_time()
    made = between(before, after, 2, points)
    times.append(time.process_time() - begun)
np.save(out, made)
print(1e3 * sorted(times[2:])[5])
"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.frames_between", description=__doc__)
    parser.add_argument("--against", type=Path, required=True, help="another checkout, an earlier one for instance")
    parser.add_argument("--size", type=int, default=512, help="of the crop (default: %(default)s)")
    parser.add_argument("--keypoints", type=int, default=478, help="of the pack (default: %(default)s)")
    parser.add_argument("--turns", type=int, default=5, help="default: %(default)s")
    chosen = parser.parse_args()
    taken: dict[Path, list[float]] = {chosen.against: [], ROOT: []}
    with tempfile.TemporaryDirectory() as folder:
        pictures = {checkout: Path(folder) / f"{index}.npy" for index, checkout in enumerate(taken)}
        for _ in range(chosen.turns):
            for checkout, times in taken.items():
                numbers = [str(chosen.size), str(chosen.keypoints)]
                command = [sys.executable, "-c", MEASURE, *numbers, str(pictures[checkout])]
                environment = os.environ | {"PYTHONPATH": str(checkout.resolve())}
                done = subprocess.run(
                    command, cwd=checkout, env=environment, stdout=subprocess.PIPE, text=True, check=True
                )
                times.append(float(done.stdout))
        apart = np.abs(np.subtract(*(np.load(path).astype(int) for path in pictures.values())))
    for checkout, times in taken.items():
        print(f"{checkout}: median {statistics.median(times):.1f} ms, least {min(times):.1f} ms")
    other, this = (statistics.median(times) for times in taken.values())
    print(f"{other / this:.2f} times as fast; apart by at most {apart.max()}, {apart.mean():.4f} in the mean, of 255")


if __name__ == "__main__":
    main()
