"""What an ONNX file says of itself, read before any runtime sees it: inputs, outputs, and weights kept elsewhere.

Reads the protobuf by its wire format and jumps over the weights: onnx itself is not needed where models only run, and
nothing of the file is executed or trusted. Numbers of fields are those of onnx.proto3.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import PackError

_BELOW = {
    "Model": {7: "Graph", 25: "Function"},
    "Graph": {1: "Node", 5: "Tensor", 15: "SparseTensor"},
    "Function": {7: "Node", 11: "Attribute"},
    "Node": {5: "Attribute"},
    "Attribute": {5: "Tensor", 6: "Graph", 10: "Tensor", 11: "Graph", 22: "SparseTensor", 23: "SparseTensor"},
    "SparseTensor": {1: "Tensor", 2: "Tensor"},
}
"""Messages below which weights may be, by the field's number."""

_DEEPEST = 64
"""Subgraphs within subgraphs that are looked into."""


@dataclass(frozen=True)
class Declared:
    """An input or output as the graph declares it: ONNX's number of its element type, and its sides, None where
    free; `shape` is None where none is declared."""

    element: int
    shape: tuple[int | None, ...] | None


@dataclass(frozen=True)
class External:
    """A tensor whose bytes lie in another file: its name, the file as the graph names it, and where they end."""

    tensor: str
    location: str
    end: int


@dataclass
class OnnxFile:
    """`inputs` are those that have to be given: without those that have a default."""

    inputs: dict[str, Declared] = field(default_factory=dict)
    outputs: dict[str, Declared] = field(default_factory=dict)
    external: list[External] = field(default_factory=list)


def read_onnx(path: Path) -> OnnxFile:
    """Read what a graph declares.

    Raises:
        PackError: it is not an ONNX graph.
    """
    found = OnnxFile()
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            if not _read_graph(data, found):
                raise ValueError("it holds no graph")
            _find_external(data, "Model", 0, len(data), found.external, 0)
    except ValueError as error:  # an empty file cannot be mapped: a ValueError, too
        raise PackError(f"{path} is not an ONNX graph ({error}); fetch the pack again, or do not use it") from error
    return found


def _read_graph(data: mmap.mmap, found: OnnxFile) -> bool:
    """Inputs and outputs of the model's graph; whether there is one."""
    defaults: set[str] = set()
    graphs = [(a, b) for number, a, b in _fields(data, 0, len(data)) if number == 7]
    for start, stop in graphs:
        for number, a, b in _fields(data, start, stop):
            if number == 5:
                defaults |= {_text(data, c, d) for inner, c, d in _fields(data, a, b) if inner == 8}
            elif number in (11, 12):
                name, declared = _value(data, a, b)
                (found.inputs if number == 11 else found.outputs)[name] = declared
    for name in defaults & found.inputs.keys():
        del found.inputs[name]
    return bool(graphs)


def _value(data: mmap.mmap, start: int, stop: int) -> tuple[str, Declared]:
    """ValueInfoProto: name 1, type 2 (tensor 1: element 1, shape 2 (dimension 1: length 1))."""
    name, element, shape = "", 0, None
    for number, a, b in _fields(data, start, stop):
        if number == 1:
            name = _text(data, a, b)
        elif number == 2:
            for _, c, d in (one for one in _fields(data, a, b) if one[0] == 1):
                for inner, e, f in _fields(data, c, d):
                    if inner == 1:
                        element = e
                    elif inner == 2:
                        sides = [_fields(data, g, h) for side, g, h in _fields(data, e, f) if side == 1]
                        shape = tuple(next((length for part, length, _ in side if part == 1), None) for side in sides)
    return name, Declared(element, shape)


def _find_external(data: mmap.mmap, kind: str, start: int, stop: int, found: list[External], depth: int) -> None:
    if depth > _DEEPEST:
        raise ValueError("its subgraphs are nested too deep")
    if kind == "Tensor":
        _read_tensor(data, start, stop, found)
        return
    for number, a, b in _fields(data, start, stop):
        below = _BELOW[kind].get(number)
        if below is not None:
            _find_external(data, below, a, b, found, depth + (below == "Graph"))


def _read_tensor(data: mmap.mmap, start: int, stop: int, found: list[External]) -> None:
    """TensorProto: name 8, external_data 13 (key 1, value 2), data_location 14 (1 = external)."""
    name, entries, external = "", {}, False
    for number, a, b in _fields(data, start, stop):
        if number == 8:
            name = _text(data, a, b)
        elif number == 13:
            pair = {inner: _text(data, c, d) for inner, c, d in _fields(data, a, b)}
            entries[pair.get(1, "")] = pair.get(2, "")
        elif number == 14:
            external = a == 1
    if external or entries:
        end = int(entries.get("offset") or 0) + int(entries.get("length") or 0)
        found.append(External(name, entries.get("location", ""), end))


def _fields(data: mmap.mmap, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
    """Fields of a message: number, and for a length-delimited one where it starts and stops, else value and -1."""
    while start < stop:
        key, start = _varint(data, start, stop)
        number, wire = key >> 3, key & 7
        if wire == 2:
            size, start = _varint(data, start, stop)
            if start + size > stop:
                raise ValueError(f"it breaks off at byte {stop}")
            yield number, start, start + size
            start += size
        elif wire == 0:
            value, start = _varint(data, start, stop)
            yield number, value, -1
        elif wire in (1, 5):
            start += 8 if wire == 1 else 4
        else:
            raise ValueError(f"byte {start - 1} begins no field")
    if start != stop:
        raise ValueError(f"it breaks off at byte {stop}")


def _varint(data: mmap.mmap, start: int, stop: int) -> tuple[int, int]:
    value = shift = 0
    while start < stop and shift < 70:
        byte = data[start]
        value |= (byte & 127) << shift
        start, shift = start + 1, shift + 7
        if byte < 128:
            return value, start
    raise ValueError(f"it breaks off at byte {start}")


def _text(data: mmap.mmap, start: int, stop: int) -> str:
    if stop < 0:
        raise ValueError("a text is a number")
    return data[start:stop].decode("utf-8")
