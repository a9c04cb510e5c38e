"""Where the fleet keeps what its stages hand to one another."""

from __future__ import annotations

from .memory import MemoryStore
from .redis import RedisStore
from .store import ArtifactStore, Claim, kind_of

__all__ = ["ArtifactStore", "Claim", "MemoryStore", "RedisStore", "kind_of"]
