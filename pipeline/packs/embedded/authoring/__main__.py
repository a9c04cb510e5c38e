"""Rebuild the embedded pack: `python -m pipeline.packs.embedded.authoring [FOLDER]`."""

from __future__ import annotations

import sys
from pathlib import Path

from .face import build_face_graphs
from .manifest import build_manifest
from .speech import build_speech_graphs


def main() -> None:
    """Write every file of the pack, by default where it ships."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1]
    folder.mkdir(parents=True, exist_ok=True)
    build_face_graphs(folder)
    build_speech_graphs(folder)
    build_manifest(folder)


if __name__ == "__main__":
    main()
