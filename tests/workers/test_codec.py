"""Values come back bit for bit, and equal values give equal bytes."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields, is_dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from pipeline.stages.film import FilmFacts
from pipeline.stages.film_format import FilmFormat
from pipeline.stages.segments import Segment
from pipeline.stages.sound import SoundFacts
from pipeline.values import Appearance, Crop, KeyFrame, Motion, Portrait, Repair, Sound, Soundtrack, Source
from tests.benchmarks.frame_codec import moving_frames
from workers import codec
from workers.chunks import Chunk, Plan
from workers.codec import VALUES, decode, encode
from workers.errors import ArtifactFormatError


def noise(*shape: int, dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if np.issubdtype(dtype, np.integer):
        return rng.integers(0, 200, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def face(side: int = 64) -> np.ndarray:
    """A smooth picture."""
    y, x = np.mgrid[0:side, 0:side]
    return np.stack([x * 200 // side, y * 200 // side, (x + y) * 100 // side], axis=-1).astype(np.uint8)


SOURCE = Source(
    noise(21, 3), noise(21, 3), noise(3, 3), 1.0625, noise(3), noise(21, 3), basis=noise(5, 21, 3), closed_mouth=None
)

SAMPLES: list[Any] = [
    Sound(noise(16000), 16000, 1.00003),
    Soundtrack(
        noise(99, dtype=np.uint8), np.array([44, 55]), np.array([-312, 648]), np.array([960, 960]), b"Opus\0", 2
    ),
    Crop(noise(2, 3, dtype=np.float64)),
    Portrait(face(66), face(), noise(478, 3), Crop(noise(2, 3, dtype=np.float64)), (66, 67), (1, 2, 30, 40)),
    Motion(noise(50, 52), noise(50), noise(50, 3), noise(50, 3), 25.0),
    SOURCE,
    Appearance({"layer": noise(1, 4, 8, 8), "half": noise(3, 3, dtype=np.float16), "n": np.arange(4)}, SOURCE),
    KeyFrame(7, face(), noise(21, 3)),
    Repair(3, "rendered again", ("flat", "jump")),
    SoundFacts("opus", 48000, 2, None),
    FilmFormat(640, 480, Fraction(30000, 1001), 250),
    FilmFacts(25, 25, 50, 1.0, 1.0000625, -0.0065, 12345),
    Plan(np.array([0, 3, 6]), 7, 2, [[0, 1]]),
    Chunk([KeyFrame(n, face(), noise(21, 3)) for n in range(3)], [Repair(1, "carried on", ("flat",))], True),
    Segment(noise(50, dtype=np.uint8), np.array([30, 20]), np.array([0, 1]), np.array([True, False])),
]


def same(a: Any, b: Any) -> bool:
    """Equal in type and in every bit."""
    if type(a) is not type(b):
        return False
    if isinstance(a, (np.ndarray, np.generic)):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if is_dataclass(a):
        return all(same(getattr(a, field.name), getattr(b, field.name)) for field in fields(a))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


def test_every_value_has_a_sample() -> None:
    assert sorted(type(sample).__name__ for sample in SAMPLES) == sorted(VALUES)


@pytest.mark.parametrize("value", SAMPLES, ids=lambda value: type(value).__name__)
def test_a_value_comes_back(value: Any) -> None:
    data = encode(value)
    assert same(decode(data, type(value)), value)
    assert encode(decode(data, type(value))) == data


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((0, 3), np.float32),
        np.zeros((0, 4, 4, 3), np.uint8),
        np.float32(np.nan) * np.ones(3, np.float32),
        np.array(5.5),
        np.asfortranarray(noise(5, 7)),
        noise(9, 9)[::2, ::-1],
        np.arange(6, dtype=">i4"),
        np.array([True, False]),
        np.array([1 + 2j]),
        np.array([-0.0, np.inf, 5e-324]),
        face()[::-1, ::2],
        noise(1, 1, 3, dtype=np.uint8),
        noise(3, 8, 9, 3, dtype=np.uint8),
        noise(4, 4, 4, dtype=np.uint8),
        np.full((4, 16384, 3), 7, np.uint8),
    ],
    ids=lambda array: f"{array.dtype}{list(array.shape)}",
)
def test_an_array_comes_back(array: np.ndarray) -> None:
    back = decode(encode(array), np.ndarray)
    assert same(back, np.ascontiguousarray(array) if array.ndim else array)


def test_plain_values_come_back() -> None:
    value = {
        "$": "a key of ours",
        "list": [1, -2.5e-300, True, None, "ü", b"\0\xff"],
        "tuple": (Fraction(1, 3), (), {}),
        "scalars": [np.float32(0.1), np.int64(-(2**62))],
        "large": 2**63 - 1,
    }
    assert same(decode(encode(value), dict), value)


def test_the_order_of_a_dict_is_kept() -> None:
    assert list(decode(encode({"b": 1, "a": 2}), dict)) == ["b", "a"]


def test_decoded_arrays_are_read_only() -> None:
    back = decode(encode([noise(3), face(), noise(2, 8, 8, 3, dtype=np.uint8)]), list)
    assert [array.flags.writeable for array in back] == [False] * 3


@settings(max_examples=60, deadline=None)
@given(arrays.arrays(np.uint8, st.tuples(st.integers(1, 4), st.integers(1, 12), st.integers(1, 12), st.just(3))))
def test_any_frames_come_back(frames: np.ndarray) -> None:
    keys = [KeyFrame(n, frame, np.zeros((1, 3), np.float32)) for n, frame in enumerate(frames)]
    assert same(decode(encode(keys), list), keys)
    assert same(decode(encode(frames), np.ndarray), frames)


@settings(max_examples=60, deadline=None)
@given(arrays.arrays(arrays.floating_dtypes(endianness="="), arrays.array_shapes(min_side=0)))
def test_any_floats_come_back(array: np.ndarray) -> None:
    assert same(decode(encode(array), np.ndarray), array)


@pytest.mark.parametrize("kind", ["local", "global"])
def test_moving_frames_are_exact_and_compact(kind: str) -> None:
    y, x = np.mgrid[0:256, 0:256]
    texture = 128 + 60 * np.sin(x / 9) * np.cos(y / 7) + noise(256, 256) * 3
    frames = moving_frames(kind, np.repeat(texture[..., None], 3, axis=2).clip(0, 255), count=4)
    data = encode(frames)
    assert same(decode(data, np.ndarray), frames)
    assert len(data) < sum(len(encode(frame)) for frame in frames) < frames.nbytes * 0.6


def test_a_carried_on_frame_costs_nearly_nothing() -> None:
    image = noise(64, 64, 3, dtype=np.uint8)
    one = len(encode([KeyFrame(0, image, noise(1, 3))]))
    many = len(encode([KeyFrame(n, image, noise(1, 3)) for n in range(11)]))
    assert many - one < 11 * 100


def test_an_unlike_picture_of_the_same_shape_does_not_make_it_larger() -> None:
    other = noise(64, 64, 3, dtype=np.uint8)
    assert len(encode([other, face()])) < len(encode(other)) + len(encode(face())) + 20


def test_smooth_floats_get_smaller() -> None:
    motion = np.cumsum(noise(2000, 52), axis=0).astype(np.float32)
    assert len(encode(motion)) < motion.nbytes * 0.95
    assert len(encode(noise(1000, dtype=np.uint8))) < 1200


def test_another_process_makes_the_same_bytes() -> None:
    program = (
        "import sys; from tests.workers.test_codec import SAMPLES; from workers.codec import encode;"
        "sys.stdout.buffer.write(encode(SAMPLES))"
    )
    made = subprocess.run(
        [sys.executable, "-c", program], cwd=Path(__file__).parents[2], capture_output=True, check=True
    )
    assert made.stdout == encode(SAMPLES)


@pytest.mark.parametrize(
    "value", [pytest.param(object(), id="object"), {1: 2}, {1, 2}, np.array([None]), Path("x"), 1j], ids=repr
)
def test_what_cannot_be_stored_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match="cannot be stored"):
        encode([value])


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "do not begin"),
        (b"PK\3\4", "do not begin"),
        (encode(face())[:-1], "belong there"),
        (encode(face()) + b"x", "belong there"),
        (encode(face())[:40], "no value"),
        (codec.MAGIC + b"\5\0\0\0hello", "no value"),
    ],
    ids=["empty", "other", "short", "long", "in the header", "not packed"],
)
def test_other_bytes_are_refused(data: bytes, says: str) -> None:
    with pytest.raises(ArtifactFormatError, match=says):
        decode(data, np.ndarray)


def test_a_value_of_another_kind_is_refused() -> None:
    with pytest.raises(ArtifactFormatError, match="stored Repair where a Motion is wanted"):
        decode(encode(Repair(1, "carried on")), Motion)


def test_a_value_of_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = encode(Repair(1, "carried on"))
    monkeypatch.delitem(VALUES, "Repair")
    with pytest.raises(ArtifactFormatError, match="Repair is unknown"):
        decode(data, Repair)
    monkeypatch.setitem(VALUES, "Repair", Crop)
    with pytest.raises(ArtifactFormatError, match="no value of this version"):
        decode(data, Repair)
