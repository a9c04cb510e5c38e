"""talkreel's library: a portrait and a voice recording become a film of that person speaking."""

from .errors import (
    FaceTooSmallError,
    FilmError,
    FirstFrameError,
    InputError,
    ModelError,
    NoFaceError,
    OutputError,
    PackError,
    PortraitError,
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
from .runtime.session import RuntimeOptions
from .settings import Settings

__all__ = [
    "FaceTooSmallError",
    "FilmError",
    "FirstFrameError",
    "InputError",
    "ModelError",
    "NoFaceError",
    "OutputError",
    "Pack",
    "PackError",
    "PortraitError",
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
