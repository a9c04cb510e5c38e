"""The pipeline's values to bytes and back: without loss, and the same bytes every time. No pickle.

    encode(appearance) -> bytes          decode(data, Appearance) -> Appearance

What goes: the dataclasses of `VALUES`, arrays, bytes, tuples, lists, dicts with str keys, fractions, numbers,
str, None; nested at will, a list of key frames for instance.

Format: "TRV1", bytes of the header (uint32, little-endian), the header, then the blobs end to end. The header
is zlib-packed JSON {"blobs": [bytes of each], "value": tree}; in the tree an object is {"$": kind, ...}.
Pictures go through frame_codec.py, each as the difference to the last one of its shape where that pays; other
arrays as their bytes, split into planes (all first bytes, all second ...: a float's exponents pack better
beside one another) and zlib-packed where that makes them smaller.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from pipeline import values
from pipeline.stages.film import FilmFacts
from pipeline.stages.film_format import FilmFormat
from pipeline.stages.segments import Segment
from pipeline.stages.sound import SoundFacts
from pipeline.values import U8

from .chunks import Chunk, Plan
from .errors import ArtifactFormatError
from .frame_codec import Stored, is_picture, restore, store

T = TypeVar("T")

MAGIC = b"TRV1"

# On planes level 6 gains 1 to 3 % of noise and sound and up to 9 % of pictures as floats, for 1.2 to 6 times the time.
ZLIB_LEVEL = 1

VALUES: dict[str, type] = {
    cls.__name__: cls
    for cls in (
        values.Sound,
        values.Soundtrack,
        values.Crop,
        values.Portrait,
        values.Motion,
        values.Source,
        values.Appearance,
        values.KeyFrame,
        values.Repair,
        SoundFacts,
        FilmFormat,
        FilmFacts,
        Segment,
        Plan,
        Chunk,
    )
}
"""The dataclasses that may be stored, by name. A new one: a line here."""


def encode(value: Any) -> bytes:
    """Bytes of a value. Raises TypeError: something in it is of a kind that is not stored."""
    writer = _Writer()
    tree = writer.node(value)
    head = {"blobs": [len(blob) for blob in writer.blobs], "value": tree}
    text = json.dumps(head, separators=(",", ":"), ensure_ascii=False).encode()
    packed = zlib.compress(text, ZLIB_LEVEL)
    return b"".join([MAGIC, struct.pack("<I", len(packed)), packed, *writer.blobs])


def decode(data: bytes, kind: type[T]) -> T:
    """The value again, its arrays read-only.

    Args:
        kind: what it must be: a class of `VALUES`, list, dict ...

    Raises:
        ArtifactFormatError: these are not such bytes, or another version's.
    """
    try:
        if data[:4] != MAGIC:
            raise ValueError("they do not begin as such")
        (length,) = struct.unpack_from("<I", data, 4)
        head = json.loads(zlib.decompress(data[8 : 8 + length]))
        value = _Reader(data, 8 + length, head["blobs"]).value(head["value"])
    except (ValueError, TypeError, LookupError, AttributeError, struct.error, zlib.error) as error:
        raise ArtifactFormatError(f"{len(data)} bytes are no value of this version: {error}") from None
    if not isinstance(value, kind):
        raise ArtifactFormatError(f"a stored {type(value).__name__} where a {kind.__name__} is wanted")
    return value


class _Pictures:
    """The last picture of each shape: what the next one may be stored against. Both sides keep it alike."""

    def __init__(self) -> None:
        self._last: dict[tuple[int, ...], U8] = {}

    def last(self, shape: tuple[int, ...]) -> U8 | None:
        return self._last.get(shape)

    def add(self, picture: U8) -> None:
        self._last[picture.shape] = picture


class _Writer:
    def __init__(self) -> None:
        self.blobs: list[bytes] = []
        self._pictures = _Pictures()

    def node(self, value: Any) -> Any:
        """A value's place in the tree; its arrays and bytes go to the blobs."""
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, np.generic):
            return {**self._array(np.asarray(value)), "scalar": True}
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, list):
            return [self.node(item) for item in value]
        if isinstance(value, tuple):
            return {"$": "tuple", "items": [self.node(item) for item in value]}
        if isinstance(value, bytes):
            return {"$": "bytes", "blob": self._blob(value)}
        if isinstance(value, Fraction):
            return {"$": "fraction", "ratio": str(value)}
        if is_dataclass(value) and VALUES.get(type(value).__name__) is type(value):
            parts = {field.name: self.node(getattr(value, field.name)) for field in fields(value)}
            return {"$": type(value).__name__, "fields": parts}
        if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
            return {"$": "dict", "items": {key: self.node(item) for key, item in value.items()}}
        raise TypeError(f"{type(value).__name__} cannot be stored; add it to workers.codec.VALUES")

    def _array(self, array: np.ndarray) -> dict[str, Any]:
        if array.dtype.hasobject or array.dtype.names:
            raise TypeError(f"an array of {array.dtype} cannot be stored")
        if is_picture(array):
            return self._picture(array)
        if array.ndim == 4 and len(array) and is_picture(array[0]):
            return {"$": "pictures", "items": [self._picture(picture) for picture in array]}
        planes = np.frombuffer(array.tobytes(), np.uint8).reshape(-1, array.itemsize or 1).T
        packed = zlib.compress(planes.tobytes(), ZLIB_LEVEL)
        small = len(packed) < array.nbytes
        blob = self._blob(packed if small else array.tobytes())
        return {"$": "array", "blob": blob, "dtype": array.dtype.str, "shape": array.shape, "packed": small}

    def _picture(self, picture: U8) -> dict[str, Any]:
        stored = store(picture, self._pictures.last(picture.shape))
        self._pictures.add(picture)
        blob = self._blob(stored.data)
        return {"$": "picture", "blob": blob, "shape": picture.shape, "box": stored.box, "diff": stored.difference}

    def _blob(self, data: bytes) -> int:
        self.blobs.append(data)
        return len(self.blobs) - 1


class _Reader:
    def __init__(self, data: bytes, start: int, sizes: list[int]) -> None:
        self._blobs = []
        for size in sizes:
            self._blobs.append(data[start : start + size])
            start += size
        if start != len(data):
            raise ValueError(f"{start} bytes belong there")
        self._pictures = _Pictures()

    def value(self, node: Any) -> Any:
        if isinstance(node, list):
            return [self.value(item) for item in node]
        if not isinstance(node, dict):
            return node
        kind = node["$"]
        if kind == "array":
            return self._array(node)
        if kind == "picture":
            return self._picture(node)
        if kind == "pictures":
            return _read_only(np.stack([self._picture(item) for item in node["items"]]))
        if kind == "tuple":
            return tuple(self.value(item) for item in node["items"])
        if kind == "dict":
            return {key: self.value(item) for key, item in node["items"].items()}
        if kind == "bytes":
            return self._blobs[node["blob"]]
        if kind == "fraction":
            return Fraction(node["ratio"])
        if kind not in VALUES:
            raise ValueError(f"{kind} is unknown")
        return VALUES[kind](**{name: self.value(item) for name, item in node["fields"].items()})

    def _array(self, node: dict[str, Any]) -> Any:
        data, dtype = self._blobs[node["blob"]], np.dtype(node["dtype"])
        if node["packed"]:
            planes = np.frombuffer(zlib.decompress(data), np.uint8).reshape(dtype.itemsize, -1)
            data = planes.T.tobytes()
        array = np.frombuffer(data, dtype).reshape(node["shape"])
        return array[()] if node.get("scalar") else array

    def _picture(self, node: dict[str, Any]) -> U8:
        shape = tuple(node["shape"])
        left, top, right, bottom = node["box"]
        stored = Stored(self._blobs[node["blob"]], (left, top, right, bottom), node["diff"])
        picture = _read_only(restore(stored, shape, self._pictures.last(shape)))
        self._pictures.add(picture)
        return picture


def _read_only(array: U8) -> U8:
    array.setflags(write=False)
    return array
