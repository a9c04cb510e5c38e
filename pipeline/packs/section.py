"""One JSON object of a pack's manifest, read field by field."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, ClassVar, TypeVar, get_type_hints

from ..errors import PackError

T = TypeVar("T")


class Section:
    """One JSON object of the manifest, read field by field.

    Every reader raises PackError, which names the field's path, where the field is missing or of the wrong kind.
    """

    def __init__(self, data: Any, path: str) -> None:
        if not isinstance(data, dict):
            raise PackError(f"{path} must be an object; the pack's manifest is damaged or of another format")
        self.data: dict[str, Any] = data
        self.path = path

    def fail(self, name: str, wanted: str) -> PackError:
        """The error to raise about a field: what it must be."""
        return PackError(f"{self.path}.{name} must be {wanted}; the pack's manifest is damaged or of another format")

    def __contains__(self, name: str) -> bool:
        return self.data.get(name) is not None

    def _get(self, name: str, kinds: type | tuple[type, ...], wanted: str) -> Any:
        value = self.data.get(name)
        if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool):
            raise self.fail(name, wanted)
        return value

    def text(self, name: str) -> str:
        value: str = self._get(name, str, "text")
        return value

    def integer(self, name: str) -> int:
        value: int = self._get(name, int, "a whole number")
        return value

    def size(self, name: str) -> int:
        """A whole number above 0."""
        value = self.integer(name)
        if value <= 0:
            raise self.fail(name, "a whole number above 0")
        return value

    def number(self, name: str) -> float:
        return float(self._get(name, (int, float), "a number"))

    def flag(self, name: str) -> bool:
        value: bool = self._get(name, bool, "true or false")
        return value

    def numbers(self, name: str) -> tuple[float, ...]:
        return tuple(float(v) for v in self._list(name, (int, float), "a list of numbers"))

    def integers(self, name: str) -> tuple[int, ...]:
        return tuple(self._list(name, int, "a list of whole numbers"))

    def texts(self, name: str) -> tuple[str, ...]:
        return tuple(self._list(name, str, "a list of texts"))

    def _list(self, name: str, kinds: type | tuple[type, ...], wanted: str) -> list[Any]:
        value = self.data.get(name)
        if not isinstance(value, list) or not all(isinstance(v, kinds) for v in value):
            raise self.fail(name, wanted)
        return value

    def section(self, name: str) -> Section:
        return Section(self.data.get(name), f"{self.path}.{name}")

    def optional(self, name: str) -> Section | None:
        """The section of that name; None where there is none."""
        return self.section(name) if name in self else None

    def sections(self, name: str) -> dict[str, Section]:
        """All sections of a section, by their names."""
        inner = self.section(name)
        return {key: Section(value, f"{inner.path}.{key}") for key, value in inner.data.items()}

    def record(self, kind: type[T], **values: Any) -> T:
        """A dataclass whose fields stand here under their own names, each read by the kind that it is annotated with.

        Args:
            values: fields that are read in another way.

        Raises:
            PackError: a field is missing or of the wrong kind.
        """
        hints = get_type_hints(kind)
        for entry in fields(kind):  # type: ignore[arg-type]
            if entry.name not in values:
                values[entry.name] = self._READERS[hints[entry.name]](self, entry.name)
        return kind(**values)

    def choice(self, name: str, *allowed: str) -> str:
        """A text that is one of those allowed."""
        value = self.text(name)
        if value not in allowed:
            raise self.fail(name, "one of " + ", ".join(allowed))
        return value

    _READERS: ClassVar[dict[Any, Callable[[Section, str], Any]]] = {
        int: integer,
        float: number,
        str: text,
        bool: flag,
        tuple[int, ...]: integers,
        tuple[float, ...]: numbers,
        tuple[str, ...]: texts,
    }
