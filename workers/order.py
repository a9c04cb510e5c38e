"""What a client asks for."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Order:
    """What the client asked for: settings, inputs by artifact key
    and file name, and which code and pack shall make it.

    `submitted` and `deadline` are Redis times in seconds (deadline None = none).
    """

    job: str
    settings: dict[str, Any]
    portrait: str
    audio: str
    portrait_name: str
    audio_name: str
    pack: str
    pack_identity: str
    code: str
    priority: str = "normal"
    submitted: float = 0.0
    deadline: float | None = None

    def lowered(self, budget: dict[str, Any] | None) -> Order:
        """The order as it is made: with what a budget (see `pipeline.budget.Decision`) lowered."""
        changes = {name: made for name, (_, made) in budget["lowered"].items()} if budget else {}
        return replace(self, settings={**self.settings, **changes}) if changes else self

    def to_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str | bytes) -> Order:
        return cls(**json.loads(text))
