"""Backward maps and tiles of the embedded generators, each as a graph of its own."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest
from numpy.typing import NDArray

from pipeline.packs.embedded.authoring.background_fill import HALF
from pipeline.packs.embedded.authoring.backward_maps import across, down, solved
from pipeline.packs.embedded.authoring.head_frame import HeadFrame
from pipeline.packs.embedded.authoring.placement import nodes
from pipeline.packs.embedded.authoring.sampling import dense, densified
from pipeline.packs.embedded.authoring.warp_fields import enlarged
from pipeline.packs.embedded.authoring.windows import CROP, SIZE, SLITS, STEP, Window
from pipeline.packs.embedded.authoring.writer import Graph

F32 = NDArray[np.float32]


def evaluate(g: Graph, **inputs: F32) -> F32:
    session = ort.InferenceSession(g.model().SerializeToString(), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, inputs)[0])


@pytest.mark.parametrize("step", [2, 4])
def test_between_nodes_a_map_is_linear(step: int) -> None:
    g = Graph("upsampling")
    places = g.input("places", [1, 2, 5, 7])
    pixels = down(across(places, 5, 5, step), 3, step).reshape(1, 3 * step, 5 * step, 2)
    wanted = enlarged(places, Window(0, 0, 5 * step, 7 * step))[:, :, step : 4 * step, step : 6 * step]
    g.output("apart", pixels - wanted.transpose(0, 2, 3, 1), [1, 3 * step, 5 * step, 2])
    random = np.random.default_rng(0).normal(size=(1, 2, 5, 7)).astype(np.float32)
    assert np.abs(evaluate(g, places=random)).max() < 1e-5


def test_what_moves_on_arrives() -> None:
    """Sources of the nodes, moved forward, are the nodes again; where skin is pressed together and stretched, too."""
    cells = CROP.over(STEP)
    y, x = np.meshgrid(*[(np.arange(cells.height) + 0.5) / cells.height * 2 - 1] * 2, indexing="ij")
    bump = np.exp(-(x * x + y * y) * 8)
    forward = np.stack([0.1 * bump * np.sin(3 * y), 0.15 * bump])[None].astype(np.float32)
    g = Graph("solving")
    moves = g.input("forward", [1, 2, cells.height, cells.width])
    here = nodes(g, cells)
    places = solved(moves, here, here - moves * 0.7, 8, cells.height)
    at = g.op("GridSample", moves, places.transpose(0, 2, 3, 1), mode="linear", padding_mode="border", align_corners=0)
    g.output("missed", places + at - here, [1, 2, cells.height, cells.width])
    assert np.abs(evaluate(g, forward=forward)).max() < 0.1 * 2 / SIZE  # a tenth of a pixel


@pytest.mark.parametrize("shrink", [1, 2])
def test_tiles_of_a_map_that_stands_still_make_the_picture(shrink: int) -> None:
    size, slits = SIZE // shrink, SLITS.over(shrink)
    picture = np.random.default_rng(1).uniform(0, 1, (1, 3, SIZE, SIZE)).astype(np.float32)
    change = np.zeros((1, 3, slits.height, slits.width), np.float32)
    change[0, 1, 5, 7] = 255
    g = Graph("tiles")
    texture = densified(g.input("picture", [1, 3, SIZE, SIZE]) * 255, 1, 3, SIZE, SIZE)
    alpha, behind = g.constant(np.full((1, 1, HALF, HALF), 255.0)), g.constant(np.full((1, 3, SIZE, SIZE), 99.0))
    frame = HeadFrame(g, texture, alpha, behind, nodes(g, CROP.over(STEP), ring=1), shrink)
    g.output("image", frame.with_changes([g.input("change", list(change.shape))]), [1, 3, size, size])
    made = evaluate(g, picture=picture, change=change)
    wanted = picture.reshape(1, 3, size, shrink, size, shrink).mean((3, 5))
    wanted[0, 1, slits.top + 5, slits.left + 7] = 1
    np.testing.assert_allclose(made, wanted, atol=1e-3)


@pytest.mark.parametrize("shrink", [1, 2])
def test_the_head_uncovers_what_stands_still_behind_it(shrink: int) -> None:
    """A black disc moved by 8 pixels over a random picture."""
    size, shift = SIZE // shrink, 8
    behind = np.random.default_rng(3).uniform(0, 255, (1, 3, SIZE, SIZE)).astype(np.float32)
    y, x = np.mgrid[0:HALF, 0:HALF] * 2 + 0.5
    disc = np.clip(80 - np.hypot(x - 250, y - 300), 0, 1)
    g = Graph("uncovering")
    texture = g.constant(np.zeros((1, 3, dense(SIZE), dense(SIZE)), np.float32))
    alpha = g.constant(disc[None, None] * 255)
    places = nodes(g, CROP.over(STEP), ring=1) - np.array([shift * 2 / SIZE, 0]).reshape(1, 2, 1, 1)
    frame = HeadFrame(g, texture, alpha, g.input("behind", [1, 3, SIZE, SIZE]), places, shrink)
    g.output("image", frame.with_changes([]), [1, 3, size, size])
    made = evaluate(g, behind=behind)[0].transpose(1, 2, 0)
    picture = behind.reshape(3, size, shrink, size, shrink).mean((2, 4)).transpose(1, 2, 0) / 255
    rows, columns = (np.mgrid[0:size, 0:size] + 0.5) * shrink - 0.5
    away = np.hypot(columns - 250 - shift, rows - 300) - 80
    assert np.abs(made - picture)[away > 4].max() < 1e-5
    assert made[away < -4].max() < 1e-5


def test_linear_samples_of_a_dense_texture_are_nearly_cubic_ones() -> None:
    rows, columns = np.mgrid[0:24, 0:32]
    image = (np.sin(rows * 0.9) * np.cos(columns * 1.1))[None, None].astype(np.float32)
    at = np.random.default_rng(2).uniform(-0.8, 0.8, (1, 20, 20, 2)).astype(np.float32)
    g = Graph("dense")
    picture, where = g.input("image", list(image.shape)), g.input("at", list(at.shape))
    cubic = g.op("GridSample", picture, where, mode="cubic", padding_mode="border", align_corners=0)
    scaled = where * np.array([2 * 32 / dense(32), 2 * 24 / dense(24)])
    texture = densified(picture, 1, 1, 24, 32)
    linear = g.op("GridSample", texture, scaled, mode="linear", padding_mode="border", align_corners=0)
    g.output("apart", linear - cubic, [1, 1, 20, 20])
    apart = evaluate(g, image=image, at=at)
    assert np.sqrt(np.mean(apart**2)) < 0.05 * image.std()


def test_equal_nodes_are_written_once() -> None:
    g = Graph("twice")
    x = g.input("x", [4])
    parts = [x[1] * 2, x[1] * 2, x[2] * 2]
    g.output("parts", g.concat([part.reshape(1) for part in parts], axis=0), [3])
    kinds = [node.op_type for node in g.model().graph.node]
    assert [kinds.count(kind) for kind in ("Slice", "Squeeze", "Mul", "Reshape")] == [2, 2, 2, 2]
    np.testing.assert_array_equal(evaluate(g, x=np.arange(4, dtype=np.float32)), [2, 2, 4])
