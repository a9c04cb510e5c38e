"""Makes the pack's face_detector.onnx of the converted BlazeFace (provenance: README.md beside this file).

    python -m pipeline.packs.faces.authoring CONVERTED.onnx face_detector.onnx

The network is fully convolutional; only its declared shapes tie it to 128 x 128 pixels. They are made free,
so that one run searches a tile of any size: a third of the time that tiles of 128 pixels take, because
neighbours need not overlap by half. Nodes and weights stay as they are.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import onnx

CONVERTED_SHA256 = "fb6f7a798f890dd1e926808d0fc0deffc55300c22675f2032e1a2fa9a9c2c871"


def free_shapes(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy whose input has free height and width and whose outputs have a free count of anchors."""
    freed = onnx.ModelProto()
    freed.CopyFrom(model)
    for tensors, names in ((freed.graph.input, {1: "height", 2: "width"}), (freed.graph.output, {1: "anchors"})):
        for tensor in tensors:
            for axis, name in names.items():
                tensor.type.tensor_type.shape.dim[axis].dim_param = name
    del freed.graph.value_info[:]
    onnx.checker.check_model(freed)
    return freed


def main(converted: Path, target: Path) -> None:
    data = converted.read_bytes()
    if hashlib.sha256(data).hexdigest() != CONVERTED_SHA256:
        raise SystemExit(f"{converted} is not the converted detector (SHA-256 {CONVERTED_SHA256[:12]}…)")
    freed = free_shapes(onnx.load_from_string(data))
    target.write_bytes(freed.SerializeToString(deterministic=True))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
