"""What happened while a film was made."""

from __future__ import annotations

import platform
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from .budget import Decision
from .packs.pack import Pack
from .runtime.builds import builds_problem, installed_builds
from .runtime.places import Fall
from .runtime.session import Model
from .runtime.spent import Recovery
from .settings import Settings
from .stage_record import PeakMemory, StageRecord
from .stages.film import FilmFacts
from .stages.film_format import FilmFormat
from .values import Portrait, Repair
from .versions import version_of

SYNTHETIC_NOTE = "This video is synthetic: a still portrait animated from a voice recording by talkreel."


@dataclass
class FrameCounts:
    """Frames in all, rendered by the generator, and made between key frames."""

    total: int = 0
    key_frames: int = 0
    interpolated: int = 0

    def plan(self, total: int, key_frames: int) -> None:
        self.total, self.key_frames, self.interpolated = total, key_frames, total - key_frames


def versions() -> dict[str, str]:
    """Versions of what makes the film."""
    found = {"talkreel": version_of("talkreel"), "python": platform.python_version()}
    found |= {name: version_of(name) for name in ("numpy", "av", "pillow")}
    return found | {build.name: build.version for build in installed_builds()}


@dataclass
class Report:
    """What `render` returns and `--report` writes. `budget`: with a deadline, see `budget.Decision`. `peak_memory`:
    bytes resident in this process; on a fleet, in the one that had the most."""

    pack: str = ""
    pack_revision: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=versions)
    stages: dict[str, StageRecord] = field(default_factory=dict)
    frames: FrameCounts = field(default_factory=FrameCounts)
    repairs: list[Repair] = field(default_factory=list)
    portrait: dict[str, Any] = field(default_factory=dict)
    film: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    budget: dict[str, Any] | None = None
    synthetic: str | None = None
    threads: int = 0
    seconds: float = 0.0
    peak_memory: int = 0

    def __post_init__(self) -> None:
        self._lock = threading.Lock()  # frames are rendered in several threads

    @classmethod
    def begin(cls, pack: Pack, settings: Settings, threads: int) -> Report:
        """A report that knows how the film is to be made."""
        return cls(
            pack=pack.name,
            pack_revision=pack.revision,
            settings=settings.to_json(),
            threads=threads,
            notes=[problem] if (problem := builds_problem(installed_builds())) else [],
            synthetic=SYNTHETIC_NOTE if settings.synthetic_note else None,
        )

    def describe_portrait(self, portrait: Portrait) -> None:
        """Where the face was found, and, said once, whether the film shows the picture smaller than stored."""
        height, width = portrait.picture.shape[:2]
        self.portrait = {
            "stored_size": list(portrait.stored_size),
            "film_size": [width, height],
            "face_box": list(portrait.face_box),
            "shrunk": portrait.shrunk,
        }
        if portrait.shrunk and self.settings.get("frame") == "portrait":
            stored = "x".join(map(str, portrait.stored_size))
            self.notes.append(f"the picture was shrunk from {stored} to {width}x{height}; --max-side sets the limit")

    def describe_budget(self, decision: Decision) -> None:
        """How the film was made so as to be done in time: `settings` are then those that it was made with."""
        self.settings = decision.settings.to_json()
        self.budget = decision.to_json()
        if note := decision.note():
            self.notes.append(note)

    def describe_film(self, film: FilmFormat, facts: FilmFacts) -> None:
        """Size, rate, durations, and how far the sound begins after the picture."""
        self.film = {"width": film.width, "height": film.height, "fps": str(film.fps), **asdict(facts)}

    def rungs(self) -> list[str]:
        """Rungs of the ladder that models ran on, in the order of their use."""
        return list(dict.fromkeys(rung for stage in self.stages.values() for rung in stage.rungs))

    def falls(self) -> list[Fall]:
        """What failed on rungs of the ladder, each once."""
        return list(dict.fromkeys(fall for stage in self.stages.values() for fall in stage.falls))

    def film_metadata(self) -> dict[str, str]:
        """Tags of the film."""
        return {"SYNTHETIC": self.synthetic} if self.synthetic else {}

    def recoveries(self) -> list[Recovery]:
        """Sessions that were made again after a fault."""
        return [recovery for stage in self.stages.values() for recovery in stage.recoveries]

    @contextmanager
    def timing(self, stage: str, *models: Model) -> Iterator[None]:
        """Add the time spent inside to a stage, and what is to be said of the models that ran in it."""
        with self._lock:
            self.stages.setdefault(stage, StageRecord())
        memory, start = PeakMemory(), time.perf_counter()
        yield
        with self._lock:
            new = StageRecord.of_run(time.perf_counter() - start, models, memory.end())
            self.stages[stage] = self.stages[stage].plus(new)

    def to_json(self) -> dict[str, Any]:
        data = asdict(self)
        repairs = data.pop("repairs")
        for kind in ("rendered again", "carried on"):
            data["frames"][kind.replace(" ", "_")] = [
                {"frame": repair["index"], "reasons": list(repair["reasons"])}
                for repair in repairs
                if repair["kind"] == kind
            ]
        return data
