"""Stage 8: is a frame good? And what to do when it is not (after timeline-studio's)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from ..errors import FirstFrameError
from ..packs.specs import CheckSpec
from ..values import F32, U8, KeyFrame, Repair
from .generator import to_pixels


def find_faults(image: F32, spec: CheckSpec) -> tuple[str, ...]:
    """What is wrong with a frame by itself.

    Args:
        image: [3, S, S] float, RGB 0..1.

    Returns:
        Reasons, empty for a good frame: not finite, flat, extreme.
    """
    if not np.isfinite(image).all():
        return ("values that are not finite",)
    flat = image.reshape(-1)
    samples = flat[:: max(1, -(-len(flat) // spec.samples))]
    reasons = []
    if float(samples.var()) < spec.least_variance:
        reasons.append(f"flat (variance below {spec.least_variance:g})")
    largest = float(np.abs(samples).max())
    if largest > spec.extreme:
        reasons.append(f"extreme (a value of {largest:.3g}, at most {spec.extreme:g})")
    return tuple(reasons)


def find_jump(image: F32, neighbour: U8, limit: float, points: int) -> tuple[str, ...]:
    """Whether a frame differs too much from its neighbour.

    The distance is the mean absolute difference over points x points a channel, evenly spaced from
    corner to corner, nearest pixel; so the two may differ in size.

    Args:
        image: [3, S, S] float, RGB 0..1. neighbour: [S', S', 3] uint8.
    """
    other = neighbour[_spread(neighbour.shape[0], neighbour.shape[1], points)].astype(np.float32) / 255
    rows, columns = _spread(image.shape[1], image.shape[2], points)
    moved = float(np.abs(image[:, rows, columns] - other.transpose(2, 0, 1)).mean())
    return (f"a jump against its neighbour ({moved:.2f}, at most {limit:g})",) if moved > limit else ()


def _spread(height: int, width: int, points: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    rows = np.round(np.linspace(0, height - 1, points)).astype(np.int64)
    columns = np.round(np.linspace(0, width - 1, points)).astype(np.int64)
    return rows[:, None], columns[None]


def checked_key_frames(
    tries: Iterable[tuple[int, F32, F32]],
    again: Callable[[int], F32],
    portrait: U8,
    spec: CheckSpec,
    *,
    last: KeyFrame | None = None,
    on_repair: Callable[[Repair], None] = lambda repair: None,
) -> Iterator[KeyFrame]:
    """Check key frames in order, each by itself and against the last good one.

    A bad frame is rendered once more; bad again, the last good frame is carried on.
    A frame's verdict depends on the frame and on the last good one before it alone, so frames may be
    divided among workers: who begins in mid-film hands in `last`, the settled key frame before.

    Args:
        tries: number, driving keypoints [K, 3] and first rendering [3, S, S] of each key frame, numbers rising.
        again: renders a key frame a second time -> [3, S, S], differently where there is a difference to make.
        portrait: [S, S, 3] uint8, what the film's first frame is compared with.
        last: the settled key frame before the first of these, None at the film's start.
        on_repair: told of every frame that was not good at once.

    Raises:
        FirstFrameError: the film's first frame is bad twice.
    """
    for frame, points, image in tries:
        neighbour = portrait if last is None else last.image
        limit = spec.first_jump if last is None else spec.jump
        faults = find_faults(image, spec) or find_jump(image, neighbour, limit, spec.points)
        if faults:
            reasons = faults
            image = again(frame)
            faults = find_faults(image, spec) or find_jump(image, neighbour, limit, spec.points)
            reasons += faults
            if not faults:
                on_repair(Repair(frame, "rendered again", reasons))
        if not faults:
            last = KeyFrame(frame, to_pixels(image), points)
        else:
            if last is None:
                raise FirstFrameError(
                    f"frame {frame}, the film's first, is bad after two renderings: {reasons[-1]}; "
                    "try another preset or pack, and check the model's files (talkreel doctor)",
                    reasons,
                )
            on_repair(Repair(frame, "carried on", reasons))
            last = KeyFrame(frame, last.image, last.keypoints)
        yield last
