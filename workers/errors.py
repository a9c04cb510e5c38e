"""What can go wrong on the fleet, below pipeline's root of errors.

pipeline.errors.TalkreelError
└── FleetError
    ├── FleetUnreachableError       a Redis server does not answer or refuses us      exit 3, passing
    ├── FleetFullError              a Redis server is out of memory                   exit 3, passing
    ├── ArtifactMissingError        an artifact expired, was deleted or is damaged    exit 1
    ├── ArtifactsTooLargeError      a job keeps more bytes than it may                exit 2
    ├── ArtifactFormatError         bytes that this version's codec did not write     exit 1
    └── JobError                    one job
        ├── JobNotFoundError        no such job, or it is forgotten                   exit 2
        ├── JobFailedError          a stage gave up                                   exit 1
        ├── JobLostError            its record or its inputs are gone                 exit 1
        ├── JobReleasedError        it is over, and keeps no new artifacts            exit 1
        ├── JobCancelledError       somebody cancelled it                             exit 4
        ├── DeadlineError           it was not done in time                           exit 4
        ├── WorkerMismatchError     worker and job are of different versions          exit 1, passing
        └── WorkerStoppedError      the worker was told to stop in the middle of it   exit 1, passing

`passing` errors may go away by themselves: a task that meets one is tried again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pipeline.errors import TalkreelError


class FleetError(TalkreelError):
    """Root of the fleet's errors."""

    passing = False

    def __reduce__(self) -> tuple[Any, ...]:
        # Celery's pool hands errors between processes by pickle, which would call __init__ with the message alone.
        return error_from_json, (error_to_json(self),)


class FleetUnreachableError(FleetError):
    """A Redis server does not answer, or refuses the login or the certificate."""

    exit_code = 3
    passing = True


class FleetFullError(FleetError):
    """A Redis server takes no more data."""

    exit_code = 3
    passing = True


class ArtifactMissingError(FleetError):
    """An artifact is not there, or not whole: make it again from what it derives from."""

    def __init__(self, key: str) -> None:
        super().__init__(f"artifact {key} is missing: it expired, was deleted or is damaged; make it again")
        self.key = key


class ArtifactsTooLargeError(FleetError):
    """A job keeps more bytes than the limit."""

    exit_code = 2

    def __init__(self, job: str, limit: int) -> None:
        super().__init__(
            f"job {job} keeps more than {limit:,} bytes of artifacts; give a shorter recording or a smaller preset,"
            " or raise the limit"
        )
        self.job, self.limit = job, limit


class ArtifactFormatError(FleetError):
    """Bytes that this version's codec did not write."""


class JobError(FleetError):
    """Something about one job."""

    def __init__(self, message: str, job: str) -> None:
        super().__init__(message)
        self.job = job


class JobNotFoundError(JobError):
    """There is no such job, or no longer."""

    exit_code = 2

    def __init__(self, job: str) -> None:
        super().__init__(f"there is no job {job} on this fleet; it may have been forgotten or expired", job)


class JobFailedError(JobError):
    """A stage of the job gave up."""

    def __init__(self, job: str, stage: str, reason: str) -> None:
        super().__init__(f"job {job} failed in stage {stage}: {reason}", job)
        self.stage, self.reason = stage, reason


class JobLostError(JobError):
    """The fleet lost the job's record or its inputs."""

    def __init__(self, job: str, what: str) -> None:
        super().__init__(f"job {job} is lost: its {what} is no longer on the fleet; submit it again", job)
        self.what = what


class JobReleasedError(JobError):
    """The job is over: it keeps no new artifacts."""

    def __init__(self, job: str) -> None:
        super().__init__(f"job {job} is over and keeps no new artifacts", job)


class JobCancelledError(JobError):
    """Somebody cancelled the job."""

    exit_code = 4

    def __init__(self, job: str) -> None:
        super().__init__(f"job {job} was cancelled", job)


class DeadlineError(JobError):
    """The job was not done in time."""

    exit_code = 4

    def __init__(self, job: str, seconds: float, reason: str = "") -> None:
        why = f": {reason}" if reason else ""
        super().__init__(f"job {job} was not done within its deadline of {seconds:g} s{why}; give it more time", job)
        self.seconds = seconds


class WorkerMismatchError(JobError):
    """This worker's code or pack is not what the job was submitted for."""

    passing = True

    def __init__(self, job: str, wanted: str, found: str) -> None:
        super().__init__(f"job {job} needs {wanted} and this worker has {found}; it is handed back", job)
        self.wanted, self.found = wanted, found


class WorkerStoppedError(JobError):
    """The worker was told to stop while it worked on the job."""

    passing = True

    def __init__(self, job: str) -> None:
        super().__init__(f"a worker was stopped while it worked on job {job}; it is handed back", job)


def error_to_json(error: TalkreelError) -> dict[str, Any]:
    """Class, message and extra fields of an error, for `error_from_json` in another process."""
    return {**error.to_json(), "fields": {name: value for name, value in vars(error).items() if name[0] != "_"}}


def error_from_json(data: dict[str, Any]) -> TalkreelError:
    """The same error again; one of a class that this version does not know becomes a FleetError with its text."""
    known = {cls.__name__: cls for cls in _family(TalkreelError)}
    cls = known.get(data["error"], FleetError)
    error = cls.__new__(cls, data["message"])
    error.__dict__.update({name: _tuples(value) for name, value in data.get("fields", {}).items()})
    return error


def _family(cls: type[TalkreelError]) -> Iterator[type[TalkreelError]]:
    yield cls
    for child in cls.__subclasses__():
        yield from _family(child)


def _tuples(value: Any) -> Any:
    """JSON knows lists only; the errors' fields are tuples."""
    return tuple(map(_tuples, value)) if isinstance(value, (list, tuple)) else value
