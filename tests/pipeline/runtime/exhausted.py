"""A process whose memory is limited for real (RLIMIT_AS): what a model does without enough of it. Prints JSON.

python -m tests.pipeline.runtime.exhausted FOLDER
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.errors import DeviceFaultError
from pipeline.packs.embedded.authoring.writer import Graph
from pipeline.packs.manifest import ModelSpec, Tensor
from pipeline.runtime.ladder import Ladder
from pipeline.runtime.options import RuntimeOptions
from pipeline.runtime.recovery import ManagedModel
from pipeline.runtime.residents import Residents
from pipeline.runtime.session import Session

MIB = 1 << 20
FEED = {"x": np.ones((1, 64), np.float32)}


def limit(more: int | None) -> None:
    """Let the process map so many bytes more than it has, or as many as it wants."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    soft = resource.RLIM_INFINITY if more is None else pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (soft, resource.RLIM_INFINITY))


def main(folder: Path) -> None:
    graph = Graph("wide")
    value = graph.input("x", [1, 64]).unsqueeze(2).expand(1, 64, MIB) * 2  # 256 MiB
    graph.output("y", value.abs().mean(2), [1, 64])
    graph.save(folder / "wide.onnx")
    inputs, outputs = {"x": Tensor("x", (1, 64), "float32")}, {"y": Tensor("y", (1, 64), "float32")}
    spec = ModelSpec("wide.onnx", inputs, outputs, {})
    opened, relief = [], [2]

    def make(*args: Any, **options: Any) -> Session:
        opened.append(1)
        if len(opened) == relief[0]:
            limit(None)
        return Session(*args, **options)

    ladder = Ladder(RuntimeOptions(threads=1))
    model = ManagedModel(folder / "wide.onnx", spec, ladder, Residents(), None, 0, make)
    model.side("x")
    limit(100 * MIB)
    found: dict[str, Any] = {"repaired": float(model.run(FEED)["y"][0, 0])}
    found["recoveries"] = [str(each) for each in model.spent().recoveries]
    model.close()
    relief[0] = -1
    model = ManagedModel(folder / "wide.onnx", spec, ladder, Residents(), None, 0, make)
    model.side("x")
    limit(100 * MIB)
    try:
        model.run(FEED)
    except DeviceFaultError as error:
        found |= {"fault": error.fault, "message": str(error)}
    limit(None)
    found["afterwards"] = float(model.run(FEED)["y"][0, 0])
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
