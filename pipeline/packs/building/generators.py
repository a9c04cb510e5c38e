"""Which model of another pack stands in a generator's place, told by tensors."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from ...errors import PackError
from ..manifest import ModelSpec
from ..pack import Pack

IMAGE = "image"
"""Role of a generator's picture, [1, 3, S, S]."""


@dataclass(frozen=True)
class Place:
    """A model to be built: whose file, and whether its picture has to be made half as large."""

    name: str
    """In the build."""
    pack: Pack
    model: str
    """In `pack`."""
    halved: bool = False

    @property
    def spec(self) -> ModelSpec:
        """As it stands in its pack."""
        return self.pack.manifest.model(self.model)

    def entry(self) -> dict[str, Any]:
        """The model's part of the build's manifest; its file is yet to be set."""
        made: dict[str, Any] = copy.deepcopy(self.pack.section("models").data[self.model])
        made.pop("memory_bytes", None)
        if self.halved:
            shape = made["outputs"][IMAGE]["shape"]
            made["outputs"][IMAGE]["shape"] = [*shape[:-2], *(side // 2 for side in shape[-2:])]
        return made


def generators(pack: Pack, other: Pack | None) -> dict[str, Place]:
    """The generators of a pack's presets, by name; with `other`, the models of it that take their places.

    A model fits when it takes the same roles in the same shapes, and its picture has the sides or twice the sides.

    Raises:
        PackError: the pack has no generator, or the other has none that fits.
    """
    names = {preset.generator for preset in pack.manifest.presets.values()}
    if not names:
        raise PackError(f"pack {pack.name} has no presets, so no generator to build; name it with --generator instead")
    return {name: _fit(pack, name, other) if other else Place(name, pack, name) for name in sorted(names)}


def companions(pack: Pack, other: Pack | None) -> list[str]:
    """Models of the other pack that come along with its generators: those that make no picture and have no namesake in
    the pack, such as the one that closes an open mouth."""
    models = other.manifest.models if other else {}
    return [name for name, spec in models.items() if IMAGE not in spec.outputs and name not in pack.manifest.models]


def _fit(pack: Pack, name: str, other: Pack) -> Place:
    wanted = pack.manifest.model(name)
    for halved in (False, True):
        for model, spec in other.manifest.models.items():
            if _takes_the_same(spec, wanted) and _sides(spec, halved) == _sides(wanted, False):
                return Place(name, other, model, halved)
    raise PackError(
        f"pack {other.name} has no model that fits in the place of {name} of pack {pack.name}: the same inputs, and "
        f"a picture of {_sides(wanted, False)} pixels or twice that; choose another --generator"
    )


def _takes_the_same(spec: ModelSpec, wanted: ModelSpec) -> bool:
    mine, theirs = ({role: t.shape for role, t in each.inputs.items()} for each in (spec, wanted))
    return mine == theirs


def _sides(spec: ModelSpec, halved: bool) -> tuple[int, ...] | None:
    image = spec.outputs.get(IMAGE)
    if image is None or len(image.shape) != 4 or None in image.shape:
        return None
    return tuple((side or 0) // 2 if halved else side or 0 for side in image.shape[-2:])
