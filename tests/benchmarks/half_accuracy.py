"""What half precision costs in exactness, without a GPU: every half-precision value rounded, sums in float32.

    python -m tests.benchmarks.half_accuracy [--small] [--seeds 1]

The stand-in as it is (float32) against mixed FP16 and BF16 of the 5-D graph and of the graph lowered for CUDA, and
the naive recipe. Errors are absolute, on images in 0..1. Takes about 10 minutes and 8 GB at full size. PyTorch's
autocast, as emulated here, is what a conversion is measured against.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import onnx_ir as ir
import onnxruntime as ort

from pipeline.graphs.convert import emulated
from pipeline.graphs.convert.casts import apply_precision
from pipeline.graphs.convert.mixed import BFLOAT16_OPSET, DTYPES
from pipeline.graphs.model import prepare, save
from pipeline.graphs.standins import FULL, MOTIONS, SMALL, generator, inputs

from .cuda_generator import lowered, mixed, naive

PRODUCTS = {"Conv", "Gemm", "MatMul"}
FOLLOWING = {"Add", "AveragePool", "Concat", "DepthToSpace", "LeakyRelu", "Mul", "Relu", "Reshape", "Resize", "Sigmoid"}
FOLLOWING |= {"Slice", "Split", "Squeeze", "Sub", "Transpose", "Unsqueeze"}


def autocast(model: ir.Model, dtype: str) -> ir.Model:
    """What PyTorch's autocast does by default: products in half precision, element-wise operators in what they are
    given, samples, exponentials, sums and normalisations in float32."""
    model = model.clone()
    if dtype == "bfloat16":
        model.opset_imports[""] = BFLOAT16_OPSET
    halves: set[ir.Node] = set()
    for node in model.graph:
        given = [value.producer() for value in node.inputs if value is not None and not value.is_initializer()]
        follows = node.op_type in FOLLOWING and bool(given) and all(before in halves for before in given)
        if node.op_type in PRODUCTS or follows:
            halves.add(node)
    apply_precision(model, halves, DTYPES[dtype])
    return model


def images(model: ir.Model, feeds: dict[str, list[dict[str, np.ndarray]]]) -> dict[str, np.ndarray]:
    """Outputs by kind of motion: [seeds, 1, 3, S, S]."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.onnx"
        save(model, path)
        settings = ort.SessionOptions()
        settings.log_severity_level = 3
        session = ort.InferenceSession(path, settings, providers=["CPUExecutionProvider"])
        return {kind: np.stack([session.run(None, feed)[0] for feed in each]) for kind, each in feeds.items()}


def main(arguments: list[str] | None = None) -> int:
    """Run all variants; print a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.half_accuracy", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1, help="inputs of each kind (default: %(default)s)")
    parser.add_argument("--small", action="store_true", help="the small stand-in")
    chosen = parser.parse_args(arguments)
    spec = SMALL if chosen.small else FULL
    model = prepare(ir.from_proto(generator(spec)))
    feeds = {kind: [inputs(spec, kind, seed) for seed in range(chosen.seeds)] for kind in MOTIONS}
    wanted = images(model, feeds)
    print(f"{'':24}{'mean':>9}" + "".join(f"{kind:>17}" for kind in MOTIONS), flush=True)
    variants = {
        "5-D, naive FP16": lambda: naive(model),
        "5-D, autocast FP16": lambda: autocast(model, "float16"),
        "5-D, mixed FP16": lambda: mixed(model, spec),
        "lowered, mixed FP16": lambda: mixed(lowered(model), spec),
        "5-D, autocast BF16": lambda: autocast(model, "bfloat16"),
        "5-D, mixed BF16": lambda: mixed(model, spec, "bfloat16"),
        "lowered, mixed BF16": lambda: mixed(lowered(model), spec, "bfloat16"),
    }
    for name, make in variants.items():
        found = images(emulated(make()), feeds)
        apart = {kind: np.abs(found[kind] - wanted[kind]) for kind in MOTIONS}
        mean = np.mean([each.mean() for each in apart.values()])
        kinds = "".join(f"{apart[kind].mean():>10.5f}{apart[kind].max():>7.3f}" for kind in MOTIONS)
        print(f"{name:24}{mean:9.5f}{kinds}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
