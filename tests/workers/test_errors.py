"""The fleet's errors cross processes as they are."""

from __future__ import annotations

import json
import pickle

import pytest

from pipeline import errors as pipeline_errors
from pipeline.errors import FirstFrameError, SeveralFacesError, TalkreelError
from workers import errors
from workers.errors import FleetError, error_from_json, error_to_json

EXAMPLES: list[TalkreelError] = [
    errors.FleetError("the fleet"),
    errors.FleetUnreachableError("Redis at redis://cache cannot be reached"),
    errors.FleetFullError("Redis at redis://cache is out of memory"),
    errors.ArtifactMissingError("frames:a"),
    errors.ArtifactsTooLargeError("j1", 1000),
    errors.ArtifactFormatError("3 bytes are no value"),
    errors.JobError("about a job", "j1"),
    errors.JobNotFoundError("j1"),
    errors.JobFailedError("j1", "render", "its worker was killed 3 times"),
    errors.JobLostError("j1", "voice recording"),
    errors.JobReleasedError("j1"),
    errors.JobCancelledError("j1"),
    errors.DeadlineError("j1", 12.5),
    errors.WorkerMismatchError("j1", "pack 2", "pack 1"),
    errors.WorkerStoppedError("j1"),
]


def drawn(module: object) -> set[str]:
    """The names in the tree at the top of an errors module."""
    lines = (line.strip("│├└─ ") for line in str(module.__doc__).splitlines())
    return {
        line.split()[0] for line in lines if line and line.split()[0].endswith("Error") and "." not in line.split()[0]
    }


def defined() -> set[str]:
    return {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, FleetError)}


def test_the_tree_is_drawn_whole() -> None:
    assert drawn(errors) == defined()


def test_every_error_has_an_example() -> None:
    assert {type(error).__name__ for error in EXAMPLES} >= defined()


@pytest.mark.parametrize(
    "error",
    [*EXAMPLES, SeveralFacesError("two faces", [(1, 2, 3, 4)]), FirstFrameError("stayed bad", ["flat"])],
    ids=lambda error: type(error).__name__,
)
def test_an_error_crosses_as_json(error: TalkreelError) -> None:
    back = error_from_json(json.loads(json.dumps(error_to_json(error))))
    assert type(back) is type(error)
    assert (str(back), vars(back), back.exit_code) == (str(error), vars(error), error.exit_code)


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_crosses_celerys_pool(error: TalkreelError) -> None:
    back = pickle.loads(pickle.dumps(error))
    assert (type(back), str(back), vars(back)) == (type(error), str(error), vars(error))


def test_a_message_is_one_line() -> None:
    assert all(str(error) and "\n" not in str(error) for error in EXAMPLES)


def test_an_error_of_a_newer_version_keeps_its_text() -> None:
    back = error_from_json({"error": "NewerError", "message": "something new"})
    assert type(back) is FleetError
    assert str(back) == "something new"
    assert pipeline_errors.TalkreelError in type(back).__mro__
