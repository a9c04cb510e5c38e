"""The error tree: one root, drawn as it is, with exit codes."""

from __future__ import annotations

import inspect
import re

from pipeline import errors


def classes() -> dict[str, type[errors.TalkreelError]]:
    return {
        name: value
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, errors.TalkreelError)
    }


def test_the_drawing_names_every_class_below_its_parent() -> None:
    drawn: dict[str, str | None] = {}
    parents: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        if match := re.match(r"([│ ├└─]*)([A-Z]\w+Error)\b", line):
            depth = len(match[1]) // 4
            parents[depth:] = [match[2]]
            drawn[match[2]] = parents[depth - 1] if depth else None
    assert drawn == {
        name: kind.__base__.__name__ if name != "TalkreelError" and kind.__base__ else None
        for name, kind in classes().items()
    }


def test_exit_codes() -> None:
    for kind in classes().values():
        late = kind is errors.OutOfTimeError
        assert kind.exit_code == (2 if issubclass(kind, errors.InputError) else 4 if late else 1)


def test_every_class_says_what_it_is() -> None:
    for kind in classes().values():
        assert kind.__doc__


def test_errors_cross_processes_as_json() -> None:
    assert errors.SoundError("silent").to_json() == {"error": "SoundError", "message": "silent"}
