"""Inputs: seeded, of the graph's shapes, and frames that differ where they should."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pipeline.errors import GraphError
from pipeline.graphs.feeds import Port, read
from pipeline.graphs.schemes import Inputs, choose

F32, I64 = np.dtype(np.float32), np.dtype(np.int64)
FACE = {
    "kp_driving": Port((1, 21, 3), F32),
    "volume": Port((1, 2, 4, 6, 5), F32),
    "kp_source": Port((1, 21, 3), F32),
    "style": Port((1, 8), F32),
}
PLAIN = {"x": Port((2, 3), F32), "index": Port((7,), I64), "flag": Port((4,), np.dtype(bool))}


def test_a_graph_with_keypoints_gets_them_near_and_far() -> None:
    name, feeds = Inputs().make(FACE)
    assert (name, list(feeds)) == ("keypoints", ["near", "typical", "far", "out"])
    moved = {}
    for kind, (row,) in feeds.items():
        assert {name: (array.shape, array.dtype) for name, array in row.items()} == {
            name: (port.shape, port.dtype) for name, port in FACE.items()
        }
        moved[kind] = float(np.abs(row["kp_driving"] - row["kp_source"]).mean())
    assert moved["near"] < moved["typical"] < moved["far"] < moved["out"]
    assert moved["near"] < 0.01
    assert moved["out"] > 0.5


def test_any_graph_gets_normal_numbers() -> None:
    name, feeds = Inputs().make(PLAIN)
    assert (name, list(feeds)) == ("normal", ["small", "unit", "large"])
    np.testing.assert_allclose(100 * feeds["small"][0]["x"], feeds["large"][0]["x"], rtol=1e-5)
    assert set(feeds["large"][0]["index"].tolist()) <= {0, 1}
    assert feeds["large"][0]["flag"].dtype == bool


@pytest.mark.parametrize("ports", [FACE, PLAIN], ids=["keypoints", "normal"])
def test_a_seed_is_a_set_of_inputs(ports: dict[str, Port]) -> None:
    (first, again, other) = (Inputs(seed=seed).make(ports)[1] for seed in (0, 0, 1))
    for kind, rows in first.items():
        for name, array in rows[0].items():
            np.testing.assert_array_equal(array, again[kind][0][name])
        assert any((array != other[kind][0][name]).any() for name, array in rows[0].items())


@pytest.mark.parametrize(("ports", "batched"), [(FACE, "kp_driving"), (PLAIN, "x")], ids=["keypoints", "normal"])
def test_frames_differ_in_what_is_batched_alone(ports: dict[str, Port], batched: str) -> None:
    _, feeds = Inputs().make(ports, frames=3, batched={batched})
    for rows in feeds.values():
        assert len(rows) == 3
        for name in ports:
            same = all((row[name] == rows[0][name]).all() for row in rows)
            assert same == (name != batched)


def test_keypoints_of_other_shapes_are_plain_inputs() -> None:
    assert choose({"kp_driving": Port((1, 21, 2), F32), "kp_source": Port((1, 21, 2), F32)}).name == "normal"


def test_some_kinds() -> None:
    assert list(Inputs(kinds=["far"]).make(FACE)[1]) == ["far"]


@pytest.mark.parametrize(
    ("inputs", "text"),
    [
        (Inputs("faces"), "no scheme of inputs 'faces'"),
        (Inputs("keypoints"), "does not fit"),
        (Inputs(kinds=["far"]), "no inputs of the kind far; choose of small, unit, large"),
    ],
)
def test_what_is_not_there_is_told(inputs: Inputs, text: str) -> None:
    with pytest.raises(GraphError, match=text):
        inputs.make(PLAIN)


def test_inputs_from_files(tmp_path: Path) -> None:
    arrays = {name: np.ones(port.shape, port.dtype) for name, port in PLAIN.items()}
    np.savez(tmp_path / "mine.npz", **arrays, more=np.zeros(1))
    name, feeds = Inputs(files=[tmp_path / "mine.npz"]).make(PLAIN)
    assert name == "files"
    np.testing.assert_array_equal(feeds["mine"][0]["x"], arrays["x"])
    assert feeds["mine"][0].keys() == PLAIN.keys()


def test_bad_files_are_told(tmp_path: Path) -> None:
    np.savez(tmp_path / "few.npz", x=np.ones((2, 3)))
    np.savez(tmp_path / "other.npz", x=np.ones((3, 2)), index=np.ones(7), flag=np.ones(4))
    (tmp_path / "text.npz").write_text("no")
    for name, text in (
        ("few", "lacks the input index"),
        ("other", "has shape"),
        ("text", "not a .npz"),
        ("no", "not a"),
    ):
        with pytest.raises(GraphError, match=text):
            read([tmp_path / f"{name}.npz"], PLAIN)
