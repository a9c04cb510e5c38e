"""The generator on ONNX Runtime's CUDA provider: milliseconds a frame, and the error against float32.

    python -m tests.benchmarks.cuda_generator [--small] [-o RESULT.json]

Runs the full-size stand-in (random weights of the published structure) as it is in float32 and TF32, by the naive
FP16 recipe, converted, and lowered for CUDA and converted. Inputs and outputs stay on the device; all variants take
turns, so that a change of the clock meets them alike. Errors are absolute, on images in 0..1, over keypoints from
still to thrown out of the volume. Needs onnxruntime-gpu, or `--cpu` to try the script.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime as ort

from pipeline.graphs.convert import convert
from pipeline.graphs.convert.casts import apply_precision
from pipeline.graphs.convert.tracing import has_half_form, touches_floats
from pipeline.graphs.lower.cuda import PASSES
from pipeline.graphs.lower.passes import run_passes
from pipeline.graphs.model import prepare, save
from pipeline.graphs.standins import FULL, MOTIONS, SMALL, Spec, generator, inputs

NAIVELY_LEFT = {"CumSum", "GridSample", "Max", "Min", "Range", "Resize", "TopK", "Upsample"}
"""The usual block list: what onnxruntime.transformers.float16 leaves, and GridSample, which has no FP16 kernel."""

HALF_STATISTICS = True
"""cuDNN sums the statistics of a half-precision normalisation in float32."""


def naive(model: ir.Model) -> ir.Model:
    """FP16 by operator names alone."""
    model = model.clone()
    half = ir.DataType.FLOAT16
    halves = {
        node
        for node in model.graph
        if node.op_type not in NAIVELY_LEFT and touches_floats(node) and has_half_form(node, half, model.opset_imports)
    }
    apply_precision(model, halves, half)
    return model


def mixed(model: ir.Model, spec: Spec, dtype: str = "float16") -> ir.Model:
    """Mixed precision, ranges calibrated on one input of every kind."""
    feeds = [inputs(spec, kind, seed=100) for kind in MOTIONS]
    return convert(model, dtype, calibration=feeds, half_statistics=HALF_STATISTICS)[0]


def lowered(model: ir.Model) -> ir.Model:
    """Rewritten for CUDA."""
    model = model.clone()
    run_passes(model, PASSES)
    return model


@dataclass
class Variant:
    """A graph and the provider's options that differ from `OPTIONS`."""

    name: str
    make: Callable[[ir.Model, Spec], ir.Model]
    options: dict[str, str] = field(default_factory=dict)


OPTIONS = {
    "cudnn_conv_algo_search": "EXHAUSTIVE",
    "cudnn_conv_use_max_workspace": "1",
    "enable_cuda_graph": "1",
    "prefer_nhwc": "1",
    "use_tf32": "1",
}
REFERENCE = Variant(
    "5-D, float32", lambda model, _: model, {"use_tf32": "0", "prefer_nhwc": "0", "enable_cuda_graph": "0"}
)
VARIANTS = (
    REFERENCE,
    Variant("5-D, TF32", lambda model, _: model),
    Variant("lowered, TF32", lambda model, _: lowered(model)),
    Variant("5-D, naive FP16", lambda model, _: naive(model)),
    Variant("lowered, naive FP16", lambda model, _: naive(lowered(model))),
    Variant("5-D, mixed FP16", mixed),
    Variant("lowered, mixed FP16", lambda model, spec: mixed(lowered(model), spec)),
)


class Bound:
    """A session whose inputs and outputs stay on the device."""

    def __init__(self, model: ir.Model, options: dict[str, str], device: str) -> None:
        settings = ort.SessionOptions()
        settings.log_severity_level = 3
        provider = ("CUDAExecutionProvider", OPTIONS | options) if device == "cuda" else "CPUExecutionProvider"
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "graph.onnx"
            save(model, path)
            self._session = ort.InferenceSession(path, settings, providers=[provider])
        self._binding = self._session.io_binding()
        self._inputs = {
            value.name: ort.OrtValue.ortvalue_from_shape_and_type(value.shape, np.float32, device, 0)
            for value in self._session.get_inputs()
        }
        (output,) = self._session.get_outputs()
        self._output = ort.OrtValue.ortvalue_from_shape_and_type(output.shape, np.float32, device, 0)
        for name, value in self._inputs.items():
            self._binding.bind_ortvalue_input(name, value)
        self._binding.bind_ortvalue_output(output.name, self._output)

    def image(self, feeds: dict[str, np.ndarray]) -> np.ndarray:
        """The output for other inputs."""
        for name, value in self._inputs.items():
            value.update_inplace(np.ascontiguousarray(feeds[name]).reshape(value.shape()))
        self._session.run_with_iobinding(self._binding)
        return np.array(self._output.numpy())

    def milliseconds(self) -> float:
        """Of one run, the device waited for."""
        start = time.perf_counter()
        self._session.run_with_iobinding(self._binding)
        return (time.perf_counter() - start) * 1e3


def main(arguments: list[str] | None = None) -> int:
    """Run all variants; print a table, and write it as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.cuda_generator", description=__doc__)
    parser.add_argument("-o", "--output", type=Path, help="JSON file to write")
    parser.add_argument("--runs", type=int, default=60, help="timed runs of each variant (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=3, help="inputs of each kind (default: %(default)s)")
    parser.add_argument("--small", action="store_true", help="the small stand-in")
    parser.add_argument("--cpu", action="store_true", help="on the CPU, to try the script")
    chosen = parser.parse_args(arguments)
    spec, device = (SMALL if chosen.small else FULL), ("cpu" if chosen.cpu else "cuda")
    if device == "cuda":
        ort.preload_dlls()
        if "CUDAExecutionProvider" not in ort.get_available_providers():
            parser.error("this onnxruntime has no CUDA provider; install onnxruntime-gpu, or give --cpu")
    model = prepare(ir.from_proto(generator(spec)))
    feeds = {kind: [inputs(spec, kind, seed) for seed in range(chosen.seeds)] for kind in MOTIONS}
    sessions: dict[str, Bound] = {}
    wanted: dict[str, list[np.ndarray]] = {}
    errors: dict[str, dict[str, tuple[float, float]]] = {}
    for variant in VARIANTS:
        session = sessions[variant.name] = Bound(variant.make(model, spec), variant.options, device)
        images = {kind: [session.image(feed) for feed in each] for kind, each in feeds.items()}
        wanted = wanted or images
        errors[variant.name] = {kind: _difference(images[kind], wanted[kind]) for kind in MOTIONS}
        print(f"{variant.name} ready", file=sys.stderr)
    rounds = [{name: session.milliseconds() for name, session in sessions.items()} for _ in range(chosen.runs)]
    rows: list[dict[str, Any]] = []
    for name in sessions:
        times = [each[name] for each in rounds[len(rounds) // 10 :]]
        row: dict[str, Any] = {"variant": name, "ms": float(np.median(times)), "p10": float(np.percentile(times, 10))}
        row |= {"p90": float(np.percentile(times, 90)), "mean": float(np.mean([m for m, _ in errors[name].values()]))}
        rows.append(row | {kind: {"mean": mean, "max": most} for kind, (mean, most) in errors[name].items()})
    print(f"{'':22}{'ms':>8}{'mean':>9}" + "".join(f"{kind:>17}" for kind in MOTIONS))
    for row in rows:
        kinds = "".join(f"{row[kind]['mean']:>10.5f}{row[kind]['max']:>7.3f}" for kind in MOTIONS)
        print(f"{row['variant']:22}{row['ms']:8.2f}{row['mean']:9.5f}{kinds}")
    if chosen.output:
        chosen.output.write_text(json.dumps({"onnxruntime": ort.__version__, "rows": rows}, indent=1))
    return 0


def _difference(images: list[np.ndarray], wanted: list[np.ndarray]) -> tuple[float, float]:
    """Mean and largest absolute difference."""
    apart = np.abs(np.stack(images) - np.stack(wanted))
    return float(apart.mean()), float(apart.max())


if __name__ == "__main__":
    raise SystemExit(main())
