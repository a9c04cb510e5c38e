"""talkreel's library: a portrait and a voice recording become a film of that person speaking."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

TYPE_CHECKING = False  # as type checkers know it; `typing` itself takes longer to import than all else here
if TYPE_CHECKING:
    from .errors import (
        DownloadError,
        FaceTooSmallError,
        FilmError,
        FirstFrameError,
        InputError,
        ModelError,
        NoFaceError,
        OutOfTimeError,
        OutputError,
        PackError,
        PortraitError,
        ProviderError,
        RuntimeMissingError,
        SettingsError,
        SeveralFacesError,
        SoundError,
        TalkreelError,
    )
    from .packs.pack import Pack
    from .packs.store import open_pack
    from .render import render
    from .report import Report
    from .runtime.options import RuntimeOptions
    from .settings import Settings

__all__ = [
    "DownloadError",
    "FaceTooSmallError",
    "FilmError",
    "FirstFrameError",
    "InputError",
    "ModelError",
    "NoFaceError",
    "OutOfTimeError",
    "OutputError",
    "Pack",
    "PackError",
    "PortraitError",
    "ProviderError",
    "Report",
    "RuntimeMissingError",
    "RuntimeOptions",
    "Settings",
    "SettingsError",
    "SeveralFacesError",
    "SoundError",
    "TalkreelError",
    "open_pack",
    "render",
]

_ELSEWHERE = {
    "Pack": ".packs.pack",
    "Report": ".report",
    "RuntimeOptions": ".runtime.options",
    "Settings": ".settings",
    "open_pack": ".packs.store",
    "render": ".render",
}
"""Where a name is that is not an error."""


if not TYPE_CHECKING:  # which know the names from the imports above, and are to refuse others

    def __getattr__(name: str) -> object:
        """Names are imported when first wanted: the command line is not to wait for them before its first line."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(_ELSEWHERE.get(name, ".errors"), __name__), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(ModuleType):
    def __setattr__(self, name: str, value: object) -> None:
        """Importing the submodule `render` binds it here; the function of that name is what is meant."""
        if name in __all__ and isinstance(value, ModuleType):
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
