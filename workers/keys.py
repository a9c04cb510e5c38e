"""Artifact keys: every artifact is named by what it was made from.

A key holds a digest of the inputs' hashes, the settings that matter to it, the pack's and the code's
identity; so a task run twice finds what it made, and jobs share what they have in common.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import pipeline
from pipeline.packs.store import FACES_PACK, open_pack
from pipeline.settings import Settings
from pipeline.versions import version_of

from .order import Order


def digest(*parts: Any) -> str:
    """128 bits over JSON-able parts."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


def input_key(data: bytes) -> str:
    """Key of an input file: its content."""
    return f"input:{hashlib.sha256(data).hexdigest()}"


@cache
def code_identity() -> str:
    """Version and a digest of the library's sources and its face models: two workers with the same make
    the same."""
    sources = hashlib.sha256()
    root = Path(pipeline.__file__).parent
    for path in sorted(root.rglob("*.py")):
        sources.update(f"{path.relative_to(root)} ".encode() + path.read_bytes())
    faces = open_pack(FACES_PACK).identity
    return f"{version_of('talkreel')}+{digest(sources.hexdigest(), faces)[:12]}"


@dataclass(frozen=True)
class Keys:
    """The keys of one job's artifacts."""

    order: Order

    @cached_property
    def settings(self) -> Settings:
        return Settings.from_json(self.order.settings)

    def _key(self, kind: str, *parts: Any) -> str:
        return f"{kind}:{digest(kind, self.order.code, *parts)}"

    @cached_property
    def sound(self) -> str:
        return self._key("sound", self.order.audio)

    @cached_property
    def soundtrack(self) -> str:
        return self._key("soundtrack", self.order.audio)

    @cached_property
    def motion(self) -> str:
        s = self.settings
        return self._key("motion", self.sound, self.order.pack_identity, s.seed, s.guidance, s.smoothing)

    @cached_property
    def _face(self) -> tuple[Any, ...]:
        return (self.order.portrait, self.order.pack_identity, self.settings.background, self.settings.face)

    @cached_property
    def portrait(self) -> str:
        return self._key("portrait", *self._face, self.settings.max_side)

    @cached_property
    def appearance(self) -> str:
        """The same for every size of the film, so that all jobs with one portrait share it."""
        return self._key("appearance", *self._face)

    @cached_property
    def source(self) -> str:
        """The appearance's keypoints, for steps that need no features (a thousandth of the bytes)."""
        return self._key("source", *self._face)

    @cached_property
    def plan(self) -> str:
        s = self.settings
        return self._key(
            "plan", self.motion, self.appearance, s.strength, s.preset, str(s.fps), s.keyframe_fps, self.portrait
        )

    def frames(self, chunk: int, settled: bool = False) -> str:
        """Key frames of a chunk; `settled` after the chunk before turned out to end with a repaired frame."""
        return f"{self._key('frames', self.plan)}/{chunk}{'s' if settled else ''}"

    def segment(self, number: int) -> str:
        return f"{self._key('segment', self.plan, self.settings.frame)}/{number}"

    @cached_property
    def film(self) -> str:
        return self._key("film", self.plan, self.soundtrack, self.settings.frame, self.settings.synthetic_note)
