"""Which builds of onnxruntime are installed here: one is right, two overwrite each other's files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

PACKAGE = "onnxruntime"
"""The folder that every build installs, whatever its distribution is called."""


@dataclass(frozen=True)
class Build:
    """A distribution that brings the package `onnxruntime`."""

    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


def installed_builds() -> list[Build]:
    """Distributions that have files in the package onnxruntime, by name: of the folder that Python finds first."""
    found: dict[Path, dict[str, Build]] = {}
    for distribution in metadata.distributions():
        name = (distribution.metadata["Name"] or "").lower().replace("_", "-")
        # Only these: reading every distribution's list of files takes a second.
        if name.startswith(("onnxruntime", "ort-")) and _has_package(distribution):
            place = Path(str(distribution.locate_file(PACKAGE))).resolve()
            found.setdefault(place, {}).setdefault(name, Build(name, distribution.version))
    first = next(iter(found.values()), {})
    return sorted(first.values(), key=lambda build: build.name)


def names_of(builds: Sequence[Build]) -> str:
    """The builds with their versions, for messages."""
    return ", ".join(map(str, builds))


def builds_problem(builds: Sequence[Build]) -> str | None:
    """What is wrong when there are several, with the cure."""
    if len(builds) < 2:
        return None
    names = " ".join(build.name for build in builds)
    return (
        f"{len(builds)} builds of onnxruntime are installed together ({names_of(builds)}) and overwrite each other's "
        f"files, so providers are missing; keep one: pip uninstall -y {names}; pip install {_best(builds).name}"
    )


def _best(builds: Sequence[Build]) -> Build:
    """The one that was meant: not the plain one, which others bring along as a dependency."""
    return next((build for build in builds if build.name != PACKAGE), builds[0])


def _has_package(distribution: metadata.Distribution) -> bool:
    return any(file.parts[:1] == (PACKAGE,) for file in distribution.files or ())
