"""Writes the nodes of a graph one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from .weights import WeightSource

OPSET = 20
IR_VERSION = 9  # the one of opset 20, so that every runtime that knows the operators loads the file


class GraphWriter:
    """Collects nodes and initializers; every method that adds a node returns the name of its output.

    Args:
        weights: makes the trained parameters.
        auto_pad: write `auto_pad=NOTSET` on windowed operators, as some exporters do.
    """

    def __init__(self, weights: WeightSource, *, auto_pad: bool = False) -> None:
        self._weights = weights
        self._window: dict[str, Any] = {"auto_pad": "NOTSET"} if auto_pad else {}
        self._nodes: list[NodeProto] = []
        self._initializers: list[TensorProto] = []
        self._constants: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._counts: Counter[str] = Counter()

    def node(self, operator: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:
        """Add an operator; without a `name` it is called by its operator and a count."""
        if name is None:
            name = f"{operator}_{self._counts[operator]}"
            self._counts[operator] += 1
        self._nodes.append(helper.make_node(operator, inputs, [name], name=name, **attributes))
        return name

    def constant(self, values: NDArray[Any]) -> str:
        """A fixed initializer; equal ones are stored once."""
        key = (values.dtype.str, values.shape, values.tobytes())
        if key not in self._constants:
            self._constants[key] = name = f"constant_{len(self._constants)}"
            self._initializers.append(numpy_helper.from_array(values, name))
        return self._constants[key]

    def integers(self, *values: int) -> str:
        """A fixed int64 vector."""
        return self.constant(np.array(values, np.int64))

    def floats(self, *values: float) -> str:
        """A fixed float32 vector."""
        return self.constant(np.array(values, np.float32))

    def scalar(self, value: float) -> str:
        """A fixed float32 scalar."""
        return self.constant(np.array(value, np.float32))

    def parameter(self, name: str, shape: Sequence[int], *, std: float, mean: float = 0.0) -> str:
        """A trained parameter."""
        self._initializers.append(self._weights.tensor(name, shape, std, mean, centred=False))
        return name

    def conv(
        self,
        x: str,
        name: str,
        channels: tuple[int, int],
        kernel: Sequence[int],
        *,
        gain: float,
        bias: float | None = 0.0,
    ) -> str:
        """A convolution that keeps the size.

        Args:
            x: [N, C, ...].
            channels: of the input and of the output.
            kernel: odd sizes, one a spatial axis.
            gain: standard deviation of the output for inputs of standard deviation 1.
            bias: mean of the biases; None for none.
            auto_pad: write the attribute `auto_pad=NOTSET`, as some exporters do.
        """
        given, made = channels
        weight = (made, given, *kernel)
        std = gain * float(np.prod(weight[1:])) ** -0.5
        self._initializers.append(self._weights.tensor(f"{name}.weight", weight, std, 0.0, centred=True))
        inputs = [x, f"{name}.weight"]
        if bias is not None:
            inputs.append(self.parameter(f"{name}.bias", [made], std=0.1 * gain, mean=bias))
        return self.node(
            "Conv",
            *inputs,
            name=name,
            group=1,
            pads=[size // 2 for size in kernel] * 2,
            strides=[1] * len(kernel),
            dilations=[1] * len(kernel),
            kernel_shape=list(kernel),
            **self._window,
        )

    def average_pool(self, x: str, kernel: Sequence[int]) -> str:
        """The mean of blocks of `kernel`."""
        return self.node(
            "AveragePool",
            x,
            count_include_pad=1,
            ceil_mode=0,
            pads=[0] * (2 * len(kernel)),
            strides=list(kernel),
            kernel_shape=list(kernel),
            **self._window,
        )

    def nearest(self, x: str, *, scales: Sequence[float] = (), sizes: Sequence[int] = ()) -> str:
        """Nearest-neighbour upsampling, by `scales` or to `sizes`, as PyTorch does it."""
        target = ["", "", self.integers(*sizes)] if sizes else ["", self.floats(*scales)]
        return self.node(
            "Resize",
            x,
            *target,
            keep_aspect_ratio_policy="stretch",
            antialias=0,
            extrapolation_value=0.0,
            exclude_outside=0,
            nearest_mode="floor",
            coordinate_transformation_mode="asymmetric",
            cubic_coeff_a=-0.75,
            mode="nearest",
        )

    def model(self, name: str, inputs: Mapping[str, Sequence[int]], outputs: Mapping[str, Sequence[int]]) -> ModelProto:
        """The finished model; all inputs and outputs are float32."""
        graph = helper.make_graph(
            self._nodes,
            name,
            [helper.make_tensor_value_info(key, TensorProto.FLOAT, shape) for key, shape in inputs.items()],
            [helper.make_tensor_value_info(key, TensorProto.FLOAT, shape) for key, shape in outputs.items()],
        )
        graph.initializer.extend(self._initializers)
        opset = helper.make_opsetid("", OPSET)
        return helper.make_model(graph, opset_imports=[opset], ir_version=IR_VERSION, producer_name="talkreel")
