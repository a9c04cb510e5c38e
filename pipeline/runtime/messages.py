"""What ONNX Runtime says, made one line."""

from __future__ import annotations

import re

LONGEST = 300
"""Characters of a line; what ONNX Runtime says may hold a whole model."""

_ARGUMENTS = r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
"""Brackets and what is in them, up to three deep."""

_NOISE = (
    re.compile(r"\x1b\[[0-9;]*m"),  # colours
    # Where in its sources: a file with its line, then the function's signature.
    re.compile(
        rf"/\S+\.(?:cc|cpp|h|hpp|cu|cuh):\d+ [^()]*(?:operator\(\))?{_ARGUMENTS}(?: const)?(?: \[with [^\]]*\])?"
    ),
    re.compile(r"\[ONNXRuntimeError\] : \d+ : "),
    re.compile(r"\b[A-Z]+(?:_[A-Z]+)* : "),  # FAIL, INVALID_ARGUMENT
    re.compile(r"Exception during initialization: "),
    re.compile(r" *; GPU=-?\d+ ; hostname=.*? ; file=.*? ; line=\d+ ; expr=[^;]*;?"),  # behind CUDA's own text
)


def first_line(error: BaseException | str) -> str:
    """The first line of an error, or its class where it says nothing."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def one_line(error: BaseException | str) -> str:
    """What an error of ONNX Runtime says, without colours, source positions and line breaks, at most `LONGEST`."""
    text = " ".join(str(error).split())
    for pattern in _NOISE:
        text = pattern.sub("", text)
    text = " ".join(text.split()).strip(" .") or type(error).__name__
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
