"""How many processes a worker runs: as many as cores and memory allow, by what its models are predicted to take."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from pipeline.graphs.prediction import SHARE, processes_that_fit
from pipeline.packs.manifest import Manifest, ModelSpec

from .config import threads_per_process

MOST_PROCESSES = 512

PROCESS_BYTES = 384 << 20
"""A process without the pack's models. Interpreter, libraries and face models: 136 MiB measured. A chunk's 50 key
frames of 512 x 512 in float32: 150 MiB. The rest is room for photographs, the encoder and messages."""


@dataclass(frozen=True)
class Choice:
    """A number of processes, whether the memory is predicted to suffice for it, and why it is that."""

    processes: int
    fits: bool
    reason: str


@dataclass(frozen=True)
class Capacity:
    """What one worker may take.

    `manifest`: of the pack whose models its processes hold. `queues`: what it works on. `cores`: that it may use.
    `memory`: bytes that it may use.
    """

    manifest: Manifest
    queues: Collection[str]
    cores: int
    memory: int

    def process_bytes(self, processes: int) -> int:
        """Predicted bytes of each of so many processes."""
        threads = threads_per_process(processes, self.cores)
        return PROCESS_BYTES + sum(self._model_bytes(spec, threads) for spec in self._models())

    def fits(self, processes: int) -> bool:
        """Whether the memory suffices for so many."""
        return processes_that_fit(self.process_bytes(processes), self.memory) >= processes

    def most(self) -> int:
        """The most processes that fit in the memory, with no more threads than cores; 0 when not one fits."""
        more = range(2, min(self.cores, MOST_PROCESSES) + 1)
        counts = [1, *(n for n in more if n * threads_per_process(n, self.cores) <= self.cores)]
        return max((n for n in counts if self.fits(n)), default=0)

    def choose(self, wanted: int | None) -> Choice:
        """As many as wanted, else as many as there is room for, and at least one."""
        most = self.most()
        processes = wanted or max(1, most)
        each, room = self.process_bytes(processes), f"{SHARE:.0%} of the {_gib(self.memory)} that it may use"
        reason = f"processes: {processes}, each {_gib(each)}, together {_gib(processes * each)}, on {self.cores} cores"
        if self.fits(processes):
            return Choice(processes, True, f"{reason}; they fit in {room}")
        cure = f"give --processes {most}" if most else "give it more memory, or fewer --queues"
        return Choice(processes, False, f"{reason}: more than {room}, so they may be killed; {cure}")

    def _models(self) -> Iterator[ModelSpec]:
        speech = self.manifest.root.section("speech")
        names = {speech.text("encoder"), speech.text("denoiser")}
        for name, spec in self.manifest.models.items():
            if ("motion" if name in names else "render") in self.queues:
                yield spec

    def _model_bytes(self, spec: ModelSpec, threads: int) -> int:
        """Its sessions, a second try's too; where the manifest does not state them, at least the weights."""
        files = (spec.file, *spec.variants.values())
        once = spec.memory_bytes or max(self.manifest.files[file].bytes for file in files)
        return once * len(files) * (threads if spec.parallel == "runs" else 1)


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"
