"""Execution providers by name: the rungs of the ladder that a user states.

A rung is written `cuda`, `cuda:1` or `openvino:GPU`: a kind, and where it has several, a device.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..errors import SettingsError
from .builds import Build, builds_problem, installed_builds, names_of
from .library import onnxruntime


@dataclass(frozen=True)
class Kind:
    """One execution provider of ONNX Runtime.

    `provider`: its name there. `build`: the distribution that brings it. `device_option`: the provider's option
    that takes the device, None where it has only one; `numbered`: whether devices are numbers. `memory_option`: the
    one that bounds its memory, in bytes. `memory`: name of the memory in which values can be kept for it; what lies
    in the host's is copied at each run. `options`: what it is always given; `{threads}` stands for the number of
    threads. `otherwise`: options instead, tried in turn, where a model's first run fails with these. `session`:
    attributes of the session's options that it needs.
    """

    provider: str
    build: str
    device_option: str | None = None
    numbered: bool = True
    memory_option: str | None = None
    memory: str = "cpu"
    options: Mapping[str, str] = field(default_factory=dict)
    otherwise: Sequence[Mapping[str, str]] = ()
    session: Mapping[str, object] = field(default_factory=dict)


KINDS: Mapping[str, Kind] = {
    "cuda": Kind(
        "CUDAExecutionProvider",
        "onnxruntime-gpu",
        "device_id",
        memory_option="gpu_mem_limit",
        memory="cuda",
        # Each search asks cuDNN for its choice in another mode (A; exhaustive: B; default: fallback), and none takes
        # times: three processes made the same picture. On an H200, A opens a generator in 0.6 s and B in 1.8 s, for
        # 4 % of its time; A finds nothing for some half-precision convolutions of volumes (1 x 7 x 7, 142 channels),
        # where B's 9.3 ms a run are the fastest of all as well.
        # The arena grows by what is asked for: doubling would keep up to half of the device for nothing.
        options={"cudnn_conv_algo_search": "HEURISTIC", "arena_extend_strategy": "kSameAsRequested"},
        otherwise=(
            {"cudnn_conv_algo_search": "EXHAUSTIVE", "prefer_nhwc": "1"},
            {"cudnn_conv_algo_search": "DEFAULT"},
        ),
    ),
    "tensorrt": Kind("TensorrtExecutionProvider", "onnxruntime-gpu", "device_id", memory="cuda"),
    "openvino": Kind(
        "OpenVINOExecutionProvider",
        "onnxruntime-openvino",
        "device_type",
        numbered=False,
        # The model's own precision: a GPU would be given FP16 otherwise.
        options={"num_of_threads": "{threads}", "precision": "ACCURACY"},
    ),
    "directml": Kind(
        "DmlExecutionProvider", "onnxruntime-directml", "device_id", session={"enable_mem_pattern": False}
    ),
    "coreml": Kind("CoreMLExecutionProvider", "onnxruntime", options={"ModelFormat": "MLProgram"}),
    "webgpu": Kind("WebGpuExecutionProvider", "onnxruntime-webgpu"),
    "cpu": Kind("CPUExecutionProvider", "onnxruntime"),
}
"""What may stand before the colon."""


@dataclass(frozen=True)
class Rung:
    """One step of the ladder. `kind`: a key of `KINDS`. `device`: a number or a name, None for the first."""

    kind: str
    device: str | None = None

    @property
    def provider(self) -> str:
        """As ONNX Runtime names it."""
        return KINDS[self.kind].provider

    @property
    def memory(self) -> tuple[str, int]:
        """Where values can be kept for it: the memory's name in ONNX Runtime, and the device's number."""
        name = KINDS[self.kind].memory
        return name, int(self.device or 0) if name != "cpu" else 0

    def __str__(self) -> str:
        return self.kind if self.device is None else f"{self.kind}:{self.device}"

    def options(self, threads: int, memory: int | None = None) -> dict[str, str]:
        """The provider's options.

        Args:
            threads: that a model may use. memory: bytes of the device that a session may use, None for no bound.
        """
        kind = KINDS[self.kind]
        found = {name: value.format(threads=threads) for name, value in kind.options.items()}
        if kind.device_option and self.device is not None:
            found[kind.device_option] = self.device
        if kind.memory_option and memory is not None:
            found[kind.memory_option] = str(memory)
        return found


CPU = Rung("cpu")


def parse_rungs(text: str) -> tuple[Rung, ...]:
    """The rungs of a list such as `cuda:0,cpu`, whether or not they are installed.

    Raises:
        SettingsError: it names none, one that there is not, an impossible device, or one twice.
    """
    rungs = tuple(_rung(part.strip()) for part in text.split(",") if part.strip())
    if not rungs:
        raise SettingsError(f"providers {text!r} names none; give some of {', '.join(KINDS)}")
    met: set[Rung] = set()
    for rung in rungs:
        if (same := _first_device(rung)) in met:
            raise SettingsError(f"providers {text!r} names {rung} twice; name each once, best first")
        met.add(same)
    return rungs


def read_rungs(text: str) -> tuple[Rung, ...]:
    """The rungs of a list such as `cuda:0,cpu`, all of them in the installed onnxruntime.

    Raises:
        SettingsError: see `parse_rungs`, or one is not in the installed build.
        RuntimeMissingError: no onnxruntime.
    """
    rungs = parse_rungs(text)
    here = installed_kinds()
    if lacking := next((rung.kind for rung in rungs if rung.kind not in here), None):
        builds = installed_builds()
        raise SettingsError(
            f"provider {lacking} is not in the installed onnxruntime ({names_of(builds) or 'of unknown origin'}); "
            f"give some of {', '.join(here)}, or mend it: {builds_problem(builds) or _cure(lacking, builds)}"
        )
    return rungs


def installed_kinds() -> list[str]:
    """Kinds that the installed onnxruntime has, in the order of `KINDS`.

    Raises:
        RuntimeMissingError: no onnxruntime.
    """
    available = set(onnxruntime().get_available_providers())
    return [name for name, kind in KINDS.items() if kind.provider in available]


def default_rungs() -> tuple[Rung, ...]:
    """What the installed build is for, then the CPU.

    A build is chosen by installing it: onnxruntime-gpu stands for CUDA, onnxruntime-openvino for OpenVINO. TensorRT
    is never chosen unasked, because it compiles each model for minutes; nor CoreML, which is in every build for
    macOS and computes in lower precision.

    Raises:
        RuntimeMissingError: no onnxruntime.
    """
    best = [Rung(name) for name in installed_kinds() if name not in ("tensorrt", "coreml", "cpu")]
    return (*best[:1], CPU)


def _rung(text: str) -> Rung:
    name, colon, device = text.partition(":")
    kind = KINDS.get(name)
    if kind is None:
        raise SettingsError(f"provider {text!r} is unknown; give some of {', '.join(KINDS)}, best first")
    if not colon:
        return Rung(name)
    if kind.device_option is None:
        raise SettingsError(f"provider {text!r}: {name} has no devices to choose from; give {name}")
    if kind.numbered and not (device.isascii() and device.isdecimal() and device == str(int(device))):
        raise SettingsError(f"provider {text!r}: the device must be a number from 0, for instance {name}:0")
    if not device:
        raise SettingsError(f"provider {text!r} names no device; give {name}, or for instance {name}:GPU")
    return Rung(name, device)


def _first_device(rung: Rung) -> Rung:
    """The same rung with its device, where devices are numbers: without one it is number 0."""
    kind = KINDS[rung.kind]
    return Rung(rung.kind, "0") if kind.device_option and kind.numbered and rung.device is None else rung


def _cure(kind: str, builds: Sequence[Build]) -> str:
    """How to come by a kind that the installed build lacks."""
    wanted = KINDS[kind].build
    if [build.name for build in builds] == [wanted]:
        return f"{wanted} has {kind} on other systems than this one"
    remove = f"pip uninstall -y {' '.join(build.name for build in builds)}; " if builds else ""
    return f"{remove}pip install {wanted}"
