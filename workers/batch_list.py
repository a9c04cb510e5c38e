"""The list of a batch: CSV with a line of names, or JSON lines; each line portrait, audio, output, and any of the
settings, pack, priority and deadline."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.errors import OutputError, SettingsError, TalkreelError
from pipeline.render import check_film_name
from pipeline.settings import Settings, parse_background
from pipeline.stages.film_format import exact_fps

FILES = ("portrait", "audio", "output")


def _yes(value: str) -> bool:
    if value.lower() not in ("true", "false", "yes", "no", "1", "0"):
        raise ValueError(value)
    return value.lower() in ("true", "yes", "1")


FROM_TEXT: dict[str, Callable[[str], Any]] = {
    "preset": str,
    "fps": lambda text: str(exact_fps(text)),
    "keyframe_fps": float,
    "seed": int,
    "strength": float,
    "guidance": float,
    "smoothing": float,
    "frame": str,
    "max_side": int,
    "face": int,
    "background": lambda text: list(parse_background(text)),
    "synthetic_note": _yes,
    "pack": str,
    "priority": str,
    "deadline": float,
}
"""How a CSV cell becomes a setting; JSON has its own types, but for texts where a number belongs."""


@dataclass(frozen=True)
class Row:
    """One line of the list. Paths are relative to the list's folder."""

    line: int
    portrait: Path
    audio: Path
    output: Path
    settings: dict[str, Any]

    @property
    def digest(self) -> str:
        """Changes with what is asked for, so that a line that was edited is made again."""
        parts = [str(self.portrait), str(self.audio), str(self.output), self.settings]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def read_list(path: Path) -> list[Row]:
    """All rows. Raises SettingsError: the list, or one of its lines, cannot be used; names the line."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"list {path} cannot be read: {error}; give CSV or JSON lines in UTF-8") from None
    as_json = path.suffix.lower() in (".jsonl", ".ndjson", ".json") or text.lstrip().startswith("{")
    rows = [_row(path, line, data) for line, data in (_json_lines if as_json else _csv_lines)(path, text)]
    if not rows:
        raise SettingsError(f"list {path} holds no jobs; its columns are {', '.join(FILES)} and any setting")
    lines: dict[Path, int] = {}
    for row in rows:
        if row.output in lines:
            raise SettingsError(f"{path}:{row.line}: output {row.output} is that of line {lines[row.output]} too")
        lines[row.output] = row.line
    inputs = {os.path.realpath(file) for row in rows for file in (row.portrait, row.audio)}
    for row in rows:
        if os.path.realpath(row.output) in inputs:
            where = f"{path}:{row.line}: output {row.output}"
            raise SettingsError(f"{where} is an input too, which the film would replace; give it another name")
    return rows


def _csv_lines(path: Path, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    reader = csv.DictReader(io.StringIO(text, newline=""), skipinitialspace=True)
    for cells in reader:
        if None in cells:
            raise SettingsError(f"{path}:{reader.line_num}: more cells than the first line has names")
        yield reader.line_num, {name.strip(): cell.strip() for name, cell in cells.items() if cell and cell.strip()}


def _json_lines(path: Path, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            data = json.loads(line)
        except ValueError as error:
            raise SettingsError(f"{path}:{number}: not JSON ({error})") from None
        if not isinstance(data, dict):
            raise SettingsError(f"{path}:{number}: not a JSON object; give one a line")
        yield number, {name: value for name, value in data.items() if value is not None}


def _row(path: Path, line: int, data: dict[str, Any]) -> Row:
    where = f"{path}:{line}"
    if missing := [name for name in FILES if not isinstance(data.get(name), str)]:
        raise SettingsError(f"{where}: {', '.join(missing)} missing; every line names {', '.join(FILES)}")
    if bad := [name for name in FILES if "\0" in data[name]]:
        raise SettingsError(f"{where}: {', '.join(bad)} holds a NUL, which no file's name does")
    settings = {name: value for name, value in data.items() if name not in FILES}
    if unknown := sorted(set(settings) - set(FROM_TEXT)):
        raise SettingsError(f"{where}: {', '.join(unknown)} unknown; there are: {', '.join(FROM_TEXT)}")
    for name, value in settings.items():
        if isinstance(value, str):
            try:
                settings[name] = FROM_TEXT[name](value)
            except ValueError:
                raise SettingsError(f"{where}: {name} {value!r} cannot be used") from None
            except SettingsError as error:
                raise SettingsError(f"{where}: {error}") from None
    try:
        own = {name: value for name, value in settings.items() if name not in ("pack", "priority", "deadline")}
        Settings.from_json({**Settings().to_json(), **own})
    except (TalkreelError, TypeError) as error:
        raise SettingsError(f"{where}: {error}") from None
    folder = path.absolute().parent
    portrait, audio, output = (folder / data[name] for name in FILES)
    try:
        check_film_name(output)
    except OutputError as error:
        raise SettingsError(f"{where}: {error}") from None
    return Row(line, portrait, audio, output, settings)
