"""Half the size: the last upsampling left out, found by what the graph does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx_ir as ir
import pytest
from onnx import helper

from pipeline.errors import GraphError
from pipeline.graphs.half_size import half_size
from pipeline.graphs.model import prepare
from pipeline.graphs.standins import SMALL, generator, inputs
from tests.pipeline.graphs.graphs import model, random, run

TINY = replace(
    SMALL, feature_channels=2, depth=2, compressed_channels=1, hourglass_channels=1, warped_channels=8,
    spade_channels=16, modulation_channels=4, mask_kernel=3,
)  # fmt: skip


def test_the_published_structure_gives_the_published_preview() -> None:
    """One Resize is left out, as in timeline-studio, and what the last block is modulated by has half the sides."""
    made = prepare(ir.from_proto(generator(TINY)))
    before = len(made.graph)
    done = half_size(made)
    assert done.sides == (4 * TINY.size, 4 * TINY.size)
    assert len(done.resized) == 1
    assert len(made.graph) == before - 1
    feeds = inputs(TINY, "typical")
    (found,) = run(made, feeds).values()
    (wanted,) = run(generator(replace(TINY, preview=True)), feeds).values()
    np.testing.assert_array_equal(found, wanted)


def decoder(nodes: list[object], **constants: np.ndarray) -> ir.Model:
    """`x` [1, 4, 6, 6] to `y`."""
    return model(nodes, {"x": [1, 4, 6, 6]}, ["y"], constants)  # type: ignore[arg-type]


SCALES = np.array([1, 1, 2, 2], np.float32)
NEAREST = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}


def test_a_plain_decoder_loses_its_last_upsampling_alone() -> None:
    nodes = [
        helper.make_node("Resize", ["x", "", "s"], ["a"], name="first", **NEAREST),
        helper.make_node("Conv", ["a", "w"], ["b"], pads=[1] * 4),
        helper.make_node("Resize", ["b", "", "s"], ["c"], name="last", **NEAREST),
        helper.make_node("Conv", ["c", "w"], ["y"], pads=[1] * 4),
    ]
    weight = random([4, 4, 3, 3])
    made = decoder(nodes, s=SCALES, w=weight)
    assert half_size(made).left_out == "Resize 'last'"
    rest = [nodes[0], nodes[1], helper.make_node("Conv", ["b", "w"], ["y"], pads=[1] * 4)]
    feeds = {"x": random([1, 4, 6, 6])}
    assert (run(made, feeds)["y"] == run(decoder(rest, s=SCALES, w=weight), feeds)["y"]).all()


def test_maps_that_meet_the_picture_are_followed_through_their_layers() -> None:
    """A map that a Resize of twice the sides makes is taken as it is; one of four times goes half as far."""
    four = np.array([1, 1, 4, 4], np.float32)
    nodes = [
        helper.make_node("Resize", ["x", "", "s"], ["m"], name="map", **NEAREST),
        helper.make_node("Conv", ["m", "w"], ["n"], pads=[1] * 4),
        helper.make_node("Relu", ["n"], ["f"]),
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Resize", ["a", "", "s"], ["b"], name="last", **NEAREST),
        helper.make_node("Mul", ["b", "f"], ["c"]),
        helper.make_node("Add", ["c", "channel"], ["y"]),
    ]
    channel = random([1, 4, 1, 1])
    made = decoder(nodes, s=SCALES, w=random([4, 4, 3, 3]), channel=channel)
    assert half_size(made).sides == (6, 6)
    assert not [node for node in made.graph if node.op_type == "Resize"]
    nodes[0] = helper.make_node("Resize", ["x", "", "four"], ["m"], name="map", **NEAREST)
    nodes[3:5] = [
        helper.make_node("Resize", ["x", "", "s"], ["a"], name="first", **NEAREST),
        helper.make_node("Resize", ["a", "", "s"], ["b"], name="last", **NEAREST),
    ]
    made = decoder(nodes, s=SCALES, four=four, w=random([4, 4, 3, 3]), channel=channel)
    done = half_size(made)
    assert (done.left_out, done.resized, done.sides) == ("Resize 'last'", ["Resize 'map'"], (12, 12))


@pytest.mark.parametrize(
    ("last", "why"),
    [
        (helper.make_node("Reshape", ["b", "shape"], ["y"]), "may not keep to half the sides"),
        (helper.make_node("Mul", ["b", "fixed"], ["y"]), "is needed at its own size|own size"),
        (helper.make_node("Conv", ["b", "w"], ["y"], strides=[2, 2]), "may not keep"),
    ],
)
def test_what_states_a_size_is_refused(last: object, why: str) -> None:
    nodes = [helper.make_node("Resize", ["x", "", "s"], ["b"], name="last", **NEAREST), last]
    constants = {"s": SCALES, "shape": np.array([1, 4, 144, 1]), "fixed": random([1, 1, 12, 12])}
    used = {
        name: array for name, array in (constants | {"w": random([4, 4, 1, 1])}).items() if name in ("s", *last.input)
    }  # type: ignore[attr-defined]
    with pytest.raises(GraphError, match=f"no upsampling that can be left out.*({why})"):
        half_size(decoder(nodes, **used))


def test_no_picture_and_no_upsampling() -> None:
    with pytest.raises(GraphError, match="it has none"):
        half_size(decoder([helper.make_node("Relu", ["x"], ["y"])]))
    flat = helper.make_node("Flatten", ["x"], ["y"])
    with pytest.raises(GraphError, match="makes 0 pictures"):
        half_size(decoder([flat]))
