"""Versions of what is installed."""

from __future__ import annotations

from importlib import metadata


def version_of(distribution: str) -> str:
    """A distribution's version, or "not installed"."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "not installed"
