"""What training found (data/speech_weights.npz, float16), for the graphs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .writer import Graph, Value

WEIGHTS = Path(__file__).parent / "data" / "speech_weights.npz"


class Weights:
    """The parameters of one part by name; in a graph they stay float16 and are widened once, when it is loaded."""

    def __init__(self, g: Graph, part: str) -> None:
        self._g = g
        with np.load(WEIGHTS) as tables:
            self._tables: dict[str, NDArray[np.float16]] = {
                name.removeprefix(f"{part}."): tables[name] for name in tables.files if name.startswith(f"{part}.")
            }

    def __getitem__(self, name: str) -> Value:
        return self._g.constant(self._tables[name]).cast()

    def conv(
        self, x: Value, name: str, *, dilation: int = 1, groups: int = 1, stride: int = 1, pad: bool = True
    ) -> Value:
        """[B, C, T] through the convolution of that name; padded so that its length stays, unless told not to."""
        kernel = self._tables[f"{name}.weight"].shape[2]
        reach = dilation * (kernel // 2) if pad else 0
        return self._g.op(
            "Conv", x, self[f"{name}.weight"], self[f"{name}.bias"],
            pads=[reach, reach], dilations=[dilation], group=groups, strides=[stride],
        )  # fmt: skip

    def linear(self, x: Value, name: str) -> Value:
        """[B, n] through the linear layer of that name."""
        return self._g.op("Gemm", x, self[f"{name}.weight"], self[f"{name}.bias"], transB=1)
