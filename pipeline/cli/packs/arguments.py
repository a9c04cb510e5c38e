"""What the commands below `talkreel pack` have in common."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...packs.registry import Registry


def add_registry(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--registry", type=Path, metavar="FILE", help="known packs (default: TALKREEL_REGISTRY, else those of talkreel)"
    )


def registry_of(args: argparse.Namespace) -> Registry:
    """Raises PackError: the file is unreadable or damaged."""
    from ...packs.registry import read_registry

    return read_registry(args.registry)


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="as JSON")


def show(args: argparse.Namespace, data: Any, text: str) -> None:
    """One or the other on standard output."""
    print(json.dumps(data, indent=2, ensure_ascii=False) if args.json else text)


def megabytes(count: int) -> str:
    """A size for people, in units of 10^6."""
    return f"{count / 1e6:,.1f} MB"
