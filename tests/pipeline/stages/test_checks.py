"""Frame checks: what is bad, what is tried, what is carried on."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.errors import FirstFrameError
from pipeline.packs.specs import CheckSpec
from pipeline.stages.checks import checked_key_frames, find_faults, find_jump
from pipeline.values import KeyFrame, Repair

SPEC = CheckSpec(points=32, samples=512, least_variance=1e-6, extreme=8, first_jump=0.34, jump=0.22)
SIZE = 64


def picture(seed: int = 0) -> np.ndarray:
    """[3, S, S]: a gradient with a little noise; different seeds stay close to each other."""
    ramp = np.linspace(0.05, 0.95, SIZE, dtype=np.float32)
    noise = np.random.default_rng(seed).normal(0, 0.02, (3, SIZE, SIZE)).astype(np.float32)
    return ramp[None, :, None] + noise


PORTRAIT = (picture() * 255).astype(np.uint8).transpose(1, 2, 0)
NAN = np.where(np.arange(SIZE)[None, None] == 3, np.nan, picture()).astype(np.float32)
FLAT = np.full((3, SIZE, SIZE), 0.5, np.float32)
JUMP = 1 - picture()
EXTREME = picture() * 40


def test_a_good_frame_has_no_faults() -> None:
    assert find_faults(picture(), SPEC) == ()


@pytest.mark.parametrize(
    ("image", "reason"), [(NAN, "not finite"), (FLAT, "flat"), (EXTREME, "extreme"), (picture() * -20, "extreme")]
)
def test_faults_of_one_frame(image: np.ndarray, reason: str) -> None:
    assert reason in " ".join(find_faults(image, SPEC))


def test_one_value_that_is_not_finite_is_found_wherever_it_is() -> None:
    image = picture()
    image[2, 63, 62] = np.inf
    assert find_faults(image, SPEC)


def test_jump_is_the_mean_difference() -> None:
    pixels = np.full((SIZE, SIZE, 3), 51, np.uint8)
    image = np.full((3, 2 * SIZE, 2 * SIZE), 0.2 + 0.219, np.float32)
    assert find_jump(image, pixels, 0.22, 32) == ()
    assert "0.22" in find_jump(image + 0.004, pixels, 0.22, 32)[0]


class Renderer:
    """Renders good frames except those given: frame -> the bad pictures of its first and second try."""

    def __init__(self, bad: dict[int, list[np.ndarray]]) -> None:
        self.bad = {frame: list(images) for frame, images in bad.items()}
        self.runs: list[int] = []

    def __call__(self, points: np.ndarray) -> np.ndarray:
        frame = int(points[0, 0])
        self.runs.append(frame)
        left = self.bad.get(frame)
        return left.pop(0) if left else picture(frame)

    def again(self, frame: int) -> np.ndarray:
        return self(keypoints(frame))


def keypoints(frame: int) -> np.ndarray:
    return np.full((2, 3), frame, np.float32)


def settle(
    bad: dict[int, list[np.ndarray]], frames: range = range(8), last: KeyFrame | None = None
) -> tuple[list[KeyFrame], list[Repair], Renderer]:
    renderer, repairs = Renderer(bad), list[Repair]()
    tries = ((frame, keypoints(frame), renderer(keypoints(frame))) for frame in frames)
    made = checked_key_frames(tries, renderer.again, PORTRAIT, SPEC, last=last, on_repair=repairs.append)
    return list(made), repairs, renderer


def test_good_frames_are_rendered_once() -> None:
    made, repairs, renderer = settle({})
    assert renderer.runs == list(range(8))
    assert repairs == []
    assert [key.index for key in made] == list(range(8))
    assert (made[3].keypoints == 3).all()


@pytest.mark.parametrize(("image", "reason"), [(NAN, "finite"), (FLAT, "flat"), (JUMP, "jump"), (EXTREME, "extreme")])
def test_once_bad_is_rendered_again(image: np.ndarray, reason: str) -> None:
    made, repairs, renderer = settle({4: [image]})
    assert renderer.runs.count(4) == 2
    assert [(r.index, r.kind) for r in repairs] == [(4, "rendered again")]
    assert reason in repairs[0].reasons[0]
    np.testing.assert_array_equal(made[4].image, settle({})[0][4].image)


@pytest.mark.parametrize("image", [NAN, FLAT, JUMP, EXTREME])
def test_twice_bad_carries_the_last_good_frame_on(image: np.ndarray) -> None:
    made, repairs, _ = settle({4: [image, image]})
    assert [(r.index, r.kind) for r in repairs] == [(4, "carried on")]
    assert len(repairs[0].reasons) == 2
    np.testing.assert_array_equal(made[4].image, made[3].image)
    np.testing.assert_array_equal(made[4].keypoints, made[3].keypoints)
    assert made[4].index == 4


def test_bad_frames_in_a_row_carry_the_same_frame() -> None:
    made, repairs, _ = settle({frame: [NAN, FLAT] for frame in (3, 4, 5)})
    assert [r.index for r in repairs] == [3, 4, 5]
    for frame in (3, 4, 5):
        np.testing.assert_array_equal(made[frame].image, made[2].image)
    assert not np.array_equal(made[6].image, made[2].image)


def test_second_try_is_made_by_the_second_attempt() -> None:
    first, second = Renderer({2: [NAN]}), Renderer({})
    tries = ((frame, keypoints(frame), first(keypoints(frame))) for frame in range(4))
    made = list(checked_key_frames(tries, second.again, PORTRAIT, SPEC))
    assert first.runs == [0, 1, 2, 3]
    assert second.runs == [2]
    assert len(made) == 4


@pytest.mark.parametrize(("image", "reason"), [(NAN, "finite"), (FLAT, "flat"), (JUMP, "jump")])
def test_first_frame_that_stays_bad_fails(image: np.ndarray, reason: str) -> None:
    with pytest.raises(FirstFrameError, match=reason) as caught:
        settle({0: [image, image]})
    assert len(caught.value.faults) == 2


def test_first_frame_bad_once_is_repaired() -> None:
    _, repairs, _ = settle({0: [NAN]})
    assert [(r.index, r.kind) for r in repairs] == [(0, "rendered again")]


@pytest.mark.parametrize("bad", [{}, {4: [NAN, NAN]}, {3: [JUMP, JUMP], 4: [JUMP, JUMP]}, {5: [FLAT]}])
def test_verdicts_do_not_depend_on_the_division(bad: dict[int, list[np.ndarray]]) -> None:
    whole, repairs, _ = settle(bad)
    for cut in range(1, 8):
        before, first, _ = settle(bad, range(cut))
        after, second, _ = settle(bad, range(cut, 8), last=before[-1])
        assert first + second == repairs
        for one, other in zip(before + after, whole, strict=True):
            np.testing.assert_array_equal(one.image, other.image)


def test_frames_come_one_by_one() -> None:
    renderer = Renderer({})
    tries = ((frame, keypoints(frame), renderer(keypoints(frame))) for frame in range(100))
    made = checked_key_frames(tries, renderer.again, PORTRAIT, SPEC)
    next(made)
    assert renderer.runs == [0]
