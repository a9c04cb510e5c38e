"""Putting the parts of a picture, each with every s-th pixel, in their places.

Two transpositions that each move one axis: ONNX Runtime does them with vector instructions on every core, which
its DepthToSpace, moving element by element on one core, does not (7.9 ms against 2.5 ms for 512 channels of 64x64).
"""

from __future__ import annotations

import onnx_ir as ir

from ..model import static_shape
from .editing import Editor


def interleave(editor: Editor, parts: ir.Value, steps: tuple[int, int]) -> ir.Value:
    """[sH·sW, L, h, w] to [L, h·sH, w·sW]: part (i, j) holds the pixels (sH·y + i, sW·x + j) of each of L pictures."""
    _, pictures, height, width = static_shape(parts)
    lines = pictures * height
    if steps[1] > 1:
        parts = editor.reshape(parts, [*steps, lines * width])
        parts = editor.transpose(parts, [0, 2, 1])
    if steps[0] > 1:
        parts = editor.reshape(parts, [steps[0], lines, width * steps[1]])
        parts = editor.transpose(parts, [1, 0, 2])
    return editor.reshape(parts, [pictures, height * steps[0], width * steps[1]])
