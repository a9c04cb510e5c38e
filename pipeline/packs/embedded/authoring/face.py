"""The face graphs of the embedded pack."""

from __future__ import annotations

from pathlib import Path

from .appearance import appearance_graph
from .generator import generator_graph
from .portrait import portrait_graph


def build_face_graphs(folder: Path) -> None:
    """Write portrait, appearance and both generators into a folder, the same bytes on every machine."""
    portrait_graph().save(folder / "portrait.onnx")
    appearance_graph().save(folder / "appearance.onnx")
    for size in (256, 512):
        generator_graph(size).save(folder / f"generator_{size}.onnx")
