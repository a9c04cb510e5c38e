"""The models of one pack, opened when they are first wanted."""

from __future__ import annotations

from ..packs.pack import Pack
from .ladder import Ladder
from .memory import memory_for_models, predict
from .options import RuntimeOptions
from .recovery import ManagedModel
from .residents import RESIDENTS, Residents

SECOND_TRY = "float32"
"""The variant that is tried after a bad result where a pack has several."""


class Models:
    """A pack's models by name. Their sessions are made when first wanted, one after another, and let go where the
    memory does not hold those of all models that were wanted.

    Not shared between processes: sessions must be made after a fork.

    Args:
        ladder: one that other models of the process use, too.
        residents: the sessions that share the memory; the process's.
    """

    def __init__(
        self, pack: Pack, options: RuntimeOptions, ladder: Ladder | None = None, residents: Residents = RESIDENTS
    ) -> None:
        self.pack = pack
        self.options = options
        self.ladder = ladder or Ladder(options)
        self._residents = residents
        self._models: dict[tuple[str, str | None], ManagedModel] = {}

    def __contains__(self, name: str) -> bool:
        return name in self.pack.manifest.models

    @property
    def opened(self) -> set[tuple[str, str | None]]:
        """Name and variant of the models that hold a session."""
        return {key for key, model in self._models.items() if model.is_open}

    def get(self, name: str, variant: str | None = None) -> ManagedModel:
        """A model, or one of its variants.

        Raises:
            PackError: the pack has no such model or variant, or its file is not there.
        """
        key = (name, variant)
        if key not in self._models:
            spec = self.pack.manifest.model(name)
            self._models[key] = ManagedModel(
                self.pack.model_path(spec, variant),
                spec,
                self.ladder,
                self._residents,
                memory_for_models(self.options),
                predict(self.pack, spec, self.options, variant).bytes,
            )
        return self._models[key]

    def second_try(self, name: str) -> ManagedModel:
        """What runs after a bad result: the model's float32 variant where the pack has one, else the model itself,
        which helps against passing faults of a device. Its session is made only when it runs."""
        variants = self.pack.manifest.model(name).variants
        return self.get(name, SECOND_TRY if SECOND_TRY in variants else next(iter(variants), None))

    def terminate(self) -> None:
        """End whatever runs, from another thread."""
        for model in list(self._models.values()):
            model.terminate()
