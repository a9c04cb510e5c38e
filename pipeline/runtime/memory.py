"""What models take, predicted, and whether it fits in the memory that this process may use."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from ..errors import TooLittleMemoryError
from ..graphs.prediction import RUNTIME, SHARE
from ..machine import memory_allowed
from ..packs.manifest import ModelSpec
from ..packs.pack import Pack
from .options import RuntimeOptions

PROCESS = 150 << 20
"""Bytes of a process besides its models: interpreter, libraries, face models, a few frames (136 MiB measured)."""

DOUBT = 1 / 16
"""A graph without a stated figure is looked into when its weights take more than this part of the memory."""


@dataclass(frozen=True)
class Predicted:
    """Bytes that a model's session takes, and how that is known: "manifest", "graph", or "weights" (at least)."""

    bytes: int
    source: str


def memory_for_process(options: RuntimeOptions) -> int:
    """Bytes that this process may use: its share where that is stated, else the machine's or its container's."""
    return options.memory or memory_allowed()


def memory_for_models(options: RuntimeOptions) -> int:
    """Bytes that the open sessions of this process may take together, with some left for everything else."""
    return int(memory_for_process(options) * SHARE)


def predict(pack: Pack, spec: ModelSpec, options: RuntimeOptions, variant: str | None = None) -> Predicted:
    """What a model takes: its session on the CPU, for as many runs side by side as there will be.

    As the manifest states it; else predicted from the graph where that is in doubt and `onnx` is installed (a second
    or more for a large graph); else at least its weights.
    """
    runs = options.thread_count if spec.parallel == "runs" else 1
    if spec.memory_bytes is not None:
        return Predicted(spec.memory_bytes * runs, "manifest")
    path = pack.model_path(spec, variant)
    weights = path.stat().st_size
    if weights > DOUBT * memory_for_process(options) and find_spec("onnx_ir") is not None:
        return Predicted(_from_graph(path, options.thread_count) * runs, "graph")
    return Predicted(weights * runs, "weights")


@cache
def _from_graph(path: Path, threads: int) -> int:
    from ..graphs.memory import MemoryOptions, peak_memory  # needs the extra "graphs"

    return peak_memory(path, MemoryOptions(threads=threads, pattern=False)).session


def memory_needed(pack: Pack, preset: str, options: RuntimeOptions) -> tuple[int, str]:
    """Bytes that a process needs for a film of a preset, and the model that takes most of them.

    One model at a time has to fit, for the others can be let go while it runs (see `residents`). On a rung with a
    memory of its own only the weights pass through this one's.
    """
    manifest = pack.manifest
    others = {each.generator for each in manifest.presets.values()} - {manifest.preset(preset).generator}
    on_host = options.providers is None or options.providers[0].memory[0] == "cpu"

    def size(name: str) -> int:
        spec = manifest.models[name]
        return predict(pack, spec, options).bytes if on_host else pack.model_path(spec).stat().st_size

    largest = max((name for name in manifest.models if name not in others), key=size)
    return PROCESS + RUNTIME + size(largest), largest


def require_memory(pack: Pack, preset: str, options: RuntimeOptions) -> None:
    """Raises TooLittleMemoryError: a film of this preset does not fit in the memory that this process may use."""
    allowed = memory_for_process(options)
    needed, model = memory_needed(pack, preset, options)
    if needed <= allowed:
        return
    fitting = [
        name for name in pack.manifest.presets if name != preset and memory_needed(pack, name, options)[0] <= allowed
    ]
    cure = f"choose preset {' or '.join(fitting)}, or give it more memory" if fitting else "give it more memory"
    raise TooLittleMemoryError(
        f"preset {preset} of pack {pack.name} is predicted to take {gib(needed)}, most of it for {model}, and this "
        f"process may use {gib(allowed)}; {cure}",
        needed,
        allowed,
    )


def gib(size: int) -> str:
    """A size for a message."""
    return f"{size / 2**30:.2f} GiB"
