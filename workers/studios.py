"""The models of a worker process."""

from __future__ import annotations

from collections.abc import Callable

from pipeline.packs.pack import Pack
from pipeline.studio import Studio

from .errors import WorkerMismatchError
from .keys import code_identity
from .order import Order


class Studios:
    """Studios of a worker process by pack, opened when first wanted, after the fork."""

    def __init__(self, open_studio: Callable[[str], Studio]) -> None:
        self._open = open_studio
        self._studios: dict[str, Studio] = {}

    def open(self, pack: str) -> Studio:
        """The studio of a pack, the same one each time."""
        if pack not in self._studios:
            self._studios[pack] = self._open(pack)
        return self._studios[pack]

    def of(self, order: Order) -> Studio:
        """The studio that a job needs.

        Raises:
            WorkerMismatchError: this worker's code or pack is not what the job was submitted for.
        """
        if order.code != code_identity():
            raise WorkerMismatchError(order.job, f"code {order.code}", code_identity())
        studio = self.open(order.pack)
        found: Pack = studio.pack
        if found.identity != order.pack_identity:
            raise WorkerMismatchError(order.job, f"pack {order.pack_identity}", found.identity)
        return studio
