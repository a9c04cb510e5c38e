"""The faces pack is whole, and its detector is the converted one but for the declared shapes."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from pipeline.errors import PackError
from pipeline.faces.spec import FaceSpec
from pipeline.packs.faces.authoring import free_shapes
from pipeline.packs.pack import Pack
from pipeline.packs.section import Section


def test_every_file_has_its_hash_and_licence(faces_pack: Pack) -> None:
    faces_pack.verify()
    assert faces_pack.manifest.commercial_use
    assert {entry.licence for entry in faces_pack.manifest.files.values()} == {"Apache-2.0"}
    assert "Apache License" in faces_pack.path("LICENSE-APACHE-2.0.txt").read_text()


def test_authoring_frees_the_declared_shapes_and_nothing_else(faces_pack: Pack) -> None:
    """Tied to 128 pixels again and freed again, the file is the same bit for bit."""
    path = faces_pack.path("face_detector.onnx")
    model = onnx.load(path)
    graph = model.graph
    for tensor, sides in zip((*graph.input, *graph.output), ((1, 128, 128, 3), (1, 896, 16), (1, 896, 1)), strict=True):
        for dim, side in zip(tensor.type.tensor_type.shape.dim, sides, strict=True):
            dim.dim_value = side
    assert free_shapes(model).SerializeToString(deterministic=True) == path.read_bytes()


@pytest.mark.parametrize("part", ["detector", "landmarks", "face"])
def test_a_missing_field_is_named(faces_pack: Pack, part: str) -> None:
    root = faces_pack.manifest.root.data
    for name in root[part]:
        damaged = {**root, part: {key: value for key, value in root[part].items() if key != name}}
        with pytest.raises(PackError, match=rf"faces\.{part}\.{name} must be"):
            FaceSpec.read(Section(damaged, "faces"))


def test_numbers_of_landmarks_exist(faces_pack: Pack) -> None:
    spec = FaceSpec.read(faces_pack.manifest.root)
    numbers = np.array([*spec.outline, *spec.cheeks, *spec.landmarks.eye_corners])
    assert numbers.min() >= 0
    assert numbers.max() < spec.landmarks.points
