"""Stand-ins of published packs: every file by its name, with the published tensors and seeded weights, so that
what pulls, builds and renders such packs can be proved where they cannot be downloaded."""

from .writing import write_hub, write_pack

__all__ = ["write_hub", "write_pack"]
