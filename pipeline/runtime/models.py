"""The models of one pack, opened when they are first wanted."""

from __future__ import annotations

from ..packs.pack import Pack
from .ladder import Ladder
from .options import RuntimeOptions
from .session import Model, Session


class Models:
    """Sessions of a pack by model name, each made once.

    Not shared between processes: sessions must be made after a fork.
    """

    def __init__(self, pack: Pack, options: RuntimeOptions) -> None:
        self.pack = pack
        self.ladder = Ladder(options)
        self._sessions: dict[tuple[str, str | None], Model] = {}

    def __contains__(self, name: str) -> bool:
        return name in self.pack.manifest.models

    def get(self, name: str, variant: str | None = None) -> Model:
        """The session of a model, or of one of its variants.

        Raises:
            PackError: the pack has no such model, or graph and manifest differ.
            ModelError: the file does not load. RuntimeMissingError: no onnxruntime.
        """
        key = (name, variant)
        if key not in self._sessions:
            spec = self.pack.manifest.model(name)
            self._sessions[key] = Session(self.pack.model_path(spec, variant), spec, self.ladder)
        return self._sessions[key]

    def terminate(self) -> None:
        """End whatever runs, from another thread."""
        for session in list(self._sessions.values()):
            session.terminate()

    def attempts(self, name: str) -> list[Model]:
        """The model, and how a second try after a bad result is made: its float32 variant where the pack
        has one. Else the list holds the model alone, and a second try repeats it, which helps against
        passing faults of a device."""
        variants = self.pack.manifest.model(name).variants
        return [self.get(name), *(self.get(name, variant) for variant in variants)]
