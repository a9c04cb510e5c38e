"""A pack's manifest: all that the code knows of its models.

The JSON is read into the value objects below; a field that is missing or of the wrong kind is a
PackError that names it. Roles are the code's own names for tensors ("audio", "kp_driving"); the
manifest binds each to a tensor of the model by name.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import PackError
from .section import Section

if TYPE_CHECKING:  # whoever pulls a pack does not wait for numpy
    import numpy as np
    from numpy.typing import NDArray

FORMAT = 1
"""The manifest format that this version reads."""

T = TypeVar("T")


@dataclass(frozen=True)
class FileEntry:
    """One file of the pack: size, hash, and where it comes from under which licence."""

    bytes: int
    sha256: str
    licence: str
    provenance: str


@dataclass(frozen=True)
class Tensor:
    """A model's tensor. `shape` holds None where a side is free."""

    name: str
    shape: tuple[int | None, ...]
    dtype: str

    def zeros(self, free: int = 1) -> NDArray[np.generic]:
        """An array of its kind. `free`: length of free sides; that of the leading one is 1."""
        import numpy as np

        return np.zeros([side or (free if axis else 1) for axis, side in enumerate(self.shape)], self.dtype)


@dataclass(frozen=True)
class ModelSpec:
    """One graph: its file, and its tensors by role. `variants`: other files of the same function by
    name (for instance "float32"), for a second try after a bad frame. `parallel`: what a machine's cores
    share out, "operators" within a run, or "runs" (several at a time, one thread each: faster for a model of
    many small operators, at the cost of so many times its memory). `memory_bytes`: what one session of it is
    predicted to add to a process on the CPU, a run at a time; None where the manifest does not say. `rewritten`:
    whether the runtime rewrites the graph as it opens it, which for a large graph that runs once a portrait takes
    longer than it saves."""

    file: str
    inputs: Mapping[str, Tensor]
    outputs: Mapping[str, Tensor]
    variants: Mapping[str, str]
    parallel: str = "operators"
    memory_bytes: int | None = None
    rewritten: bool = True


@dataclass(frozen=True)
class Preset:
    """A picture size: side in pixels and the generator that makes it."""

    size: int
    generator: str


def _tensors(section: Section, name: str) -> dict[str, Tensor]:
    tensors = {}
    for role, entry in section.sections(name).items():
        shape = entry.data.get("shape")
        if not isinstance(shape, list) or not all(v is None or isinstance(v, int) for v in shape):
            raise entry.fail("shape", "a list of whole numbers and nulls")
        tensors[role] = Tensor(entry.text("name"), tuple(shape), entry.text("dtype"))
    return tensors


@dataclass(frozen=True)
class Manifest:
    """The parts that every pack has. Parts that only some code needs (speech, motion, crop, ...) stay
    sections and are read by that code's own spec class."""

    name: str
    revision: str
    licence: str
    commercial_use: bool
    files: Mapping[str, FileEntry]
    models: Mapping[str, ModelSpec]
    presets: Mapping[str, Preset]
    root: Section

    def model(self, name: str) -> ModelSpec:
        """Raises PackError: there is none of that name."""
        try:
            return self.models[name]
        except KeyError:
            raise PackError(f"pack {self.name} has no model {name!r}; choose another pack") from None

    def preset(self, name: str) -> Preset:
        """Raises PackError, which names those that there are."""
        try:
            return self.presets[name]
        except KeyError:
            known = ", ".join(self.presets)
            raise PackError(f"pack {self.name} has no preset {name!r}; choose one of: {known}") from None


def read_json(path: Path) -> Any:
    """The content of a JSON file of ours.

    Raises:
        PackError: unreadable, or not JSON.
    """
    try:
        return json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise PackError(f"{path} cannot be read ({error.strerror}); is this the folder of a pack?") from error
    except ValueError as error:
        raise PackError(f"{path} is not JSON ({error}); fetch the pack again") from error


def read_manifest(path: Path) -> Manifest:
    """Read and check a manifest.

    Raises:
        PackError: unreadable file, not JSON, another format, a field missing or of the wrong kind.
    """
    data = read_json(path)
    name = data.get("name") if isinstance(data, dict) else None
    return parse_manifest(Section(data, name if isinstance(name, str) else path.parent.name))


def parse_manifest(root: Section) -> Manifest:
    """Check a manifest that was read; the section's path is how errors call it.

    Raises:
        PackError: another format, a field missing or of the wrong kind.
    """
    if root.integer("format") != FORMAT:
        raise PackError(
            f"{root.path} has format {root.data['format']}, this version reads {FORMAT}; update talkreel or the pack"
        )
    licence = root.section("licence")
    return Manifest(
        name=root.text("name"),
        revision=root.text("revision"),
        licence=licence.text("summary"),
        commercial_use=licence.flag("commercial_use"),
        files=_each(
            root,
            "files",
            lambda s: FileEntry(s.integer("bytes"), s.text("sha256"), s.text("licence"), s.text("provenance")),
        ),
        models=_each(
            root,
            "models",
            lambda s: ModelSpec(
                s.text("file"),
                _tensors(s, "inputs"),
                _tensors(s, "outputs"),
                {k: str(v) for k, v in s.section("variants").data.items()} if "variants" in s else {},
                s.choice("parallel", "operators", "runs") if "parallel" in s else "operators",
                s.size("memory_bytes") if "memory_bytes" in s else None,
                s.flag("rewritten") if "rewritten" in s else True,
            ),
        ),
        presets=_each(root, "presets", lambda s: Preset(s.integer("size"), s.text("generator")))
        if "presets" in root
        else {},
        root=root,
    )


def _each(root: Section, name: str, read: Callable[[Section], T]) -> dict[str, T]:
    return {key: read(section) for key, section in root.sections(name).items()}
