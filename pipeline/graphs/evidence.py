"""The evidence that a rewritten graph is the same function: one JSON file, and one to read.

All of it but `speed` is the same whenever it is made again from the same file on the same kind of CPU.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import OutputError
from ..machine import cpu_name
from ..versions import version_of
from .audit import Audit
from .comparison import Comparison, error_table, over
from .lower.passes import Outcome
from .runner import RunOptions
from .timing import Speed


@dataclass(frozen=True)
class GraphFile:
    """A file by name, size and hash."""

    name: str
    bytes: int
    sha256: str

    @classmethod
    def read(cls, path: Path) -> GraphFile:
        """Of a file, read once for its hash."""
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return cls(path.name, path.stat().st_size, digest)

    def to_json(self) -> dict[str, Any]:
        return {"file": self.name, "bytes": self.bytes, "sha256": self.sha256}


@dataclass(frozen=True)
class Bounds:
    """What must hold; None for what need not."""

    floors: float | None = 2.0
    """Greatest error of an output, in noise floors."""
    mean: float | None = None
    """Greatest mean error of an output."""
    rms: float | None = None
    """Greatest root mean squared error of an output."""
    faster: float | None = None
    """How many times as fast the result must be, a frame."""

    def broken(self, comparison: Comparison, speed: Speed | None) -> list[str]:
        """Those that do not hold, one line each."""
        lines = over(comparison, self.floors, mean=self.mean, rms=self.rms)
        if speed is not None and self.faster is not None and speed.ratio < self.faster:
            lines.append(f"it is {speed.ratio:.2f} times as fast, less than {self.faster:g}")
        return lines

    def text(self) -> str:
        """Those of the errors, in words."""
        found = [] if self.floors is None else [f"error at most {self.floors:g} times the noise floor"]
        found += [] if self.mean is None else [f"mean error at most {self.mean:g}"]
        found += [] if self.rms is None else [f"root mean squared error at most {self.rms:.4g}"]
        return ", ".join(found)


@dataclass
class Evidence:
    """What `prove` found."""

    preset: str
    """What was done: a preset of `lower`, or another step's name."""
    before: GraphFile
    after: GraphFile
    audits: tuple[Audit, Audit]
    passes: dict[str, Outcome]
    comparison: Comparison
    bounds: Bounds
    options: RunOptions
    batch: int = 1
    speed: Speed | None = None
    broken: list[str] = field(default_factory=list)
    """Bounds that do not hold, one line each."""

    def to_json(self) -> dict[str, Any]:
        """Everything, in one order."""
        return {
            "preset": self.preset,
            "holds": not self.broken,
            "broken": self.broken,
            "before": self.before.to_json(),
            "after": self.after.to_json(),
            "batch": self.batch,
            "bound": self.bounds.floors,
            "other_bounds": {"mean": self.bounds.mean, "rms": self.bounds.rms},
            "errors": self.comparison.to_json(),
            "passes": [
                {"name": name, "rewritten": outcome.rewritten, "left": outcome.left}
                for name, outcome in self.passes.items()
            ],
            "audit": {"before": self.audits[0].to_json(), "after": self.audits[1].to_json()},
            "speed": None if self.speed is None else self.speed.to_json() | environment(self.options),
        }

    def write(self, graph: Path) -> tuple[Path, Path]:
        """Write `<graph>.evidence.json` and `.md` beside the graph; their paths.

        Raises:
            OutputError: they cannot be written there.
        """
        data, page = (graph.with_suffix(f".evidence.{kind}") for kind in ("json", "md"))
        try:
            data.write_text(json.dumps(self.to_json(), indent=1, allow_nan=False) + "\n", "utf-8")
            page.write_text(self.markdown(), "utf-8")
        except OSError as error:
            raise OutputError(f"{data} cannot be written ({error.strerror}); choose another place") from error
        return data, page

    def markdown(self) -> str:
        """The same to read, in tables."""
        return "\n".join(_page(self)) + "\n"


def environment(options: RunOptions) -> dict[str, Any]:
    """Where and with what times were taken."""
    builds = ("onnxruntime", "onnxruntime-gpu", "onnxruntime-openvino", "onnx", "onnx-ir", "talkreel")
    found = {name: version_of(name) for name in builds}
    return {
        "threads": options.threads,
        "provider": options.provider,
        "settings": dict(options.settings),
        "machine": {"system": platform.platform(), "cpu": cpu_name()},
        "versions": {name: version for name, version in found.items() if version != "not installed"},
    }


def _page(evidence: Evidence) -> Iterator[str]:
    e = evidence
    yield f"# {e.after.name}: {e.before.name} by `{e.preset}`"
    yield ""
    yield f"Every bound holds ({e.bounds.text()})." if not e.broken else "**Broken:**"
    yield from (f"- {line}" for line in e.broken)
    yield ""
    yield "| | file | bytes | SHA-256 |"
    yield "|---|---|---|---|"
    for title, file in (("before", e.before), ("after", e.after)):
        yield f"| {title} | {file.name} | {file.bytes} | {file.sha256} |"
    c = e.comparison
    yield ""
    yield "## Errors"
    yield ""
    floors = ["without ONNX Runtime's rewriting"] if c.rewriting else []
    floors += [f"with its sums in {c.orders} other order{'s' if c.orders > 1 else ''}"] if c.orders else []
    told = f"In brackets the noise floor: the first graph {' and '.join(floors)}." if floors else ""
    yield f"Inputs: {c.scheme}, seed {c.seed}, {c.frames} frame{'s' if c.frames > 1 else ''} a run. {told}".rstrip()
    yield ""
    yield from error_table(c.outputs)
    if c.layers:
        yield ""
        yield "### Values that both graphs hold"
        yield ""
        yield from error_table(c.layers)
    if e.speed is not None:
        place = environment(e.options)
        yield ""
        yield "## Speed"
        yield ""
        versions = ", ".join(f"{name} {version}" for name, version in place["versions"].items())
        yield (
            f"{e.speed.first:.3f} s a frame before, {e.speed.second:.3f} s after: "
            f"**{e.speed.ratio:.2f} times as fast** (medians of {e.speed.runs} alternating pairs, batch {e.batch}, "
            f"{place['threads']} threads, {place['provider']}, {place['machine']['cpu']}, {versions})."
        )
    yield ""
    yield "## Passes"
    yield ""
    yield "| pass | nodes rewritten | left |"
    yield "|---|---|---|"
    for name, outcome in e.passes.items():
        yield f"| {name} | {len(outcome.rewritten)} | {'; '.join(outcome.reasons())} |"
    for title, audit in zip(("before", "after"), e.audits, strict=True):
        yield ""
        yield f"## Audit {title}"
        yield ""
        yield "```"
        yield audit.text().rstrip()
        yield "```"
