"""Driving keypoints: each rule by itself. The golden vectors are in packs/test_published.py."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from pipeline.packs.specs import DrivingSpec
from pipeline.stages.keypoints import at_film_frames, driving_keypoints
from pipeline.values import Motion, Source
from tests.fakes import FakeModel

GOLDEN = np.load(Path(__file__).parents[2] / "data/golden/driving.npz")
PUBLISHED = DrivingSpec(
    expression_frame="camera",
    rotation="relative",
    expression="relative",
    scale="relative",
    translation="relative",
    lip_points=(6, 12, 14, 17, 19, 20),
    lip_rule="absolute",
)
SOURCE = Source(
    keypoints=GOLDEN["source_keypoints"][0],
    kp=GOLDEN["kp"][0],
    rotation=GOLDEN["rotation"][0],
    scale=float(GOLDEN["scale"].item()),
    translation=GOLDEN["t"][0],
    expression=GOLDEN["exp"][0],
)
MOTION = Motion(
    expression=GOLDEN["driving_exp"].reshape(24, -1),
    scale=GOLDEN["driving_scale"][:, 0],
    translation=GOLDEN["driving_t"],
    angles=GOLDEN["driving_angles"],
    fps=25.0,
)


def still(frames: int, coefficients: int) -> Motion:
    return Motion(
        expression=np.zeros((frames, coefficients), np.float32),
        scale=np.ones(frames, np.float32),
        translation=np.zeros((frames, 3), np.float32),
        angles=np.zeros((frames, 3), np.float32),
        fps=25.0,
    )


def embedded_source() -> Source:
    random = np.random.default_rng(3)
    kp = random.normal(0, 0.3, (6, 3)).astype(np.float32)
    return Source(
        keypoints=kp * 2,
        kp=kp,
        rotation=np.eye(3, dtype=np.float32),
        scale=2.0,
        translation=np.zeros(3, np.float32),
        expression=np.zeros((6, 3), np.float32),
        basis=random.normal(0, 0.1, (4, 6, 3)).astype(np.float32),
        closed_mouth=random.normal(0, 0.02, (6, 3)).astype(np.float32),
    )


OFFSET = replace(
    PUBLISHED,
    expression_frame="head",
    rotation="offset",
    expression="offset",
    scale="offset",
    translation="offset",
    lip_points=(0, 1),
    lip_rule="offset",
)


def test_strength_scales_what_differs_from_the_source() -> None:
    full = driving_keypoints(SOURCE, MOTION, 5, PUBLISHED)
    half = driving_keypoints(SOURCE, MOTION, 5, PUBLISHED, strength=0.5)
    none = driving_keypoints(SOURCE, MOTION, 5, PUBLISHED, strength=0.0)
    np.testing.assert_allclose(half, (full + SOURCE.keypoints) / 2, atol=1e-6)
    np.testing.assert_allclose(none, SOURCE.keypoints, atol=1e-6)


def test_basis_and_closed_mouth() -> None:
    source = embedded_source()
    motion = still(2, 4)
    motion.expression[1, 2] = 0.5
    expected = source.scale * (source.kp + source.closed_mouth + 0.5 * source.basis[2])  # type: ignore[index]
    np.testing.assert_allclose(driving_keypoints(source, motion, 1, OFFSET), expected, atol=1e-6)


def test_the_mouth_stays_closed_at_any_strength() -> None:
    source = embedded_source()
    closed = source.scale * (source.kp + source.closed_mouth)
    for strength in (0.0, 0.5, 2.0):
        made = driving_keypoints(source, still(1, 4), 0, OFFSET, strength=strength)
        np.testing.assert_allclose(made, closed, atol=1e-6)


def test_expression_in_the_head_frame_turns_with_the_head() -> None:
    source = replace(embedded_source(), closed_mouth=None)
    motion = still(1, 4)
    motion.expression[0, 0] = 1
    motion.angles[0, 1] = 90
    head = driving_keypoints(source, motion, 0, OFFSET)
    camera = driving_keypoints(source, motion, 0, replace(OFFSET, expression_frame="camera"))
    turned = head - driving_keypoints(source, replace(motion, expression=motion.expression * 0), 0, OFFSET)
    basis = source.basis[0] * source.scale  # type: ignore[index]
    np.testing.assert_allclose(np.linalg.norm(turned, axis=1), np.linalg.norm(basis, axis=1), rtol=1e-5)
    assert not np.allclose(head, camera, atol=1e-3)


def test_relative_motion_begins_at_the_source() -> None:
    first = driving_keypoints(SOURCE, MOTION, 0, replace(PUBLISHED, lip_rule="relative"))
    expected = SOURCE.keypoints.copy()
    np.testing.assert_allclose(first, expected, atol=1e-5)


def test_stitching_adds_deltas_and_a_shift() -> None:
    delta = np.concatenate([np.full(63, 0.25), [0.5, -0.5]]).astype(np.float32)[None]
    model = FakeModel(lambda inputs: {"delta": delta + 0 * inputs["keypoints"][:, :1]})
    plain = driving_keypoints(SOURCE, MOTION, 3, PUBLISHED)
    stitched = driving_keypoints(SOURCE, MOTION, 3, PUBLISHED, stitching=model)
    np.testing.assert_allclose(stitched - plain, np.broadcast_to([0.75, -0.25, 0.25], (21, 3)), atol=1e-6)


def test_open_lips_are_closed_after_stitching_at_any_strength() -> None:
    closing = np.random.default_rng(1).normal(0, 0.02, (21, 3)).astype(np.float32)
    source = replace(SOURCE, lip_closing=closing)
    model = FakeModel(lambda inputs: {"delta": np.pad(inputs["keypoints"][:, 63:] * 0.01, ((0, 0), (0, 2)))})
    for strength in (0.0, 1.0, 2.0):
        plain = driving_keypoints(SOURCE, MOTION, 3, PUBLISHED, strength=strength, stitching=model)
        closed = driving_keypoints(source, MOTION, 3, PUBLISHED, strength=strength, stitching=model)
        np.testing.assert_allclose(closed - plain, closing, atol=1e-6)


def test_film_frames_at_the_motion_rate_are_the_rows() -> None:
    film = at_film_frames(MOTION, Fraction(25), 24)
    np.testing.assert_array_equal(film.expression, MOTION.expression)
    np.testing.assert_array_equal(film.angles, MOTION.angles)


@pytest.mark.parametrize("fps", [Fraction(24), Fraction(30000, 1001), Fraction(50), Fraction(1)])
def test_film_frames_keep_the_time(fps: Fraction) -> None:
    """A motion that is its own time shows, at every film frame, the time of that frame's middle."""
    seconds = 60
    motion = still(25 * seconds, 1)
    motion.scale[:] = (np.arange(25 * seconds) + 0.5) / 25
    count = int(seconds * fps)
    film = at_film_frames(motion, fps, count)
    middle = (np.arange(count) + 0.5) / float(fps)
    np.testing.assert_allclose(film.scale, np.clip(middle, 0.02, seconds - 0.02), atol=1e-4)
