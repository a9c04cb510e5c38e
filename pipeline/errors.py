"""Everything talkreel raises on purpose.

TalkreelError
├── InputError                 what the user gave cannot be used           exit 2
│   ├── SettingsError          a setting is out of its range
│   ├── SoundError             the voice recording
│   ├── PortraitError          the picture
│   │   ├── NoFaceError        no face found
│   │   ├── FaceTooSmallError  the face is under the smallest side
│   │   └── SeveralFacesError  more than one face and none chosen
│   ├── OutputError            the place where the film should appear
│   ├── TooLittleMemoryError   a preset's models do not fit in the memory
│   ├── PackError              a pack is missing, damaged or of another format
│   └── GraphError             an ONNX graph cannot be read or rewritten
├── RuntimeMissingError        no onnxruntime is installed                 exit 1
├── DownloadError              a pack could not be fetched or written      exit 1
├── ModelError                 a model did not load or run                 exit 1
│   ├── DeviceFaultError       its device or memory failed it, again and again
│   └── RunEndedError          its run was ended on purpose
├── ProviderError              no stated provider ran a model, or in part  exit 1
├── FirstFrameError            the first frame stayed bad                  exit 1
├── ProofError                 a rewritten graph breaks a stated bound     exit 1
├── OutOfTimeError             the film cannot be, or was not, done in time   exit 4
└── FilmError                  encoding or muxing failed                   exit 1

A message says what is wrong, with which input, and what to do. The command
line prints it and exits with `exit_code`; extra fields are for programs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Box = tuple[int, int, int, int]
"""Left, top, right, bottom in pixels of the stored picture."""


class TalkreelError(Exception):
    """Root of every error raised on purpose."""

    exit_code = 1

    def to_json(self) -> dict[str, Any]:
        """Class name and message, for reports and for errors that cross processes."""
        return {"error": type(self).__name__, "message": str(self)}


class InputError(TalkreelError):
    """What the user gave cannot be used; raised before any work is begun."""

    exit_code = 2


class SettingsError(InputError):
    """A setting is out of its range or of the wrong kind."""


class SoundError(InputError):
    """The voice recording is unreadable, empty, silent, too short or too long."""


class PortraitError(InputError):
    """The picture is unreadable, too large, or its face cannot be used."""


class NoFaceError(PortraitError):
    """No face was found in the picture."""


class FaceTooSmallError(PortraitError):
    """The face's box is smaller than the least side."""


class SeveralFacesError(PortraitError):
    """Several faces and none chosen, or a number that is not among them."""

    def __init__(self, message: str, boxes: Sequence[Box]) -> None:
        super().__init__(message)
        self.boxes = tuple(boxes)


class OutputError(InputError):
    """The film cannot be written where it was asked for."""


class PackError(InputError):
    """A pack is missing, damaged, or its manifest does not fit this version."""


class TooLittleMemoryError(InputError):
    """A preset's models take more memory than this process may use.

    `needed`, `allowed`: bytes.
    """

    def __init__(self, message: str, needed: int, allowed: int) -> None:
        super().__init__(message)
        self.needed, self.allowed = needed, allowed


class GraphError(InputError):
    """An ONNX graph cannot be read, or holds what the asked rewrite cannot keep the same."""


class ProofError(TalkreelError):
    """A rewritten graph differs from its source by more than the stated bound, or misses another bound."""


class RuntimeMissingError(TalkreelError):
    """No build of onnxruntime is installed, or a command's package does not load."""


class DownloadError(TalkreelError):
    """A pack's files could not be fetched or written: network, server, disk. Pulling again carries on."""


class ModelError(TalkreelError):
    """A model did not load, or failed while running."""


class DeviceFaultError(ModelError):
    """The device or the memory failed a model's run. `fault`: out of memory, driver reset or device lost."""

    def __init__(self, message: str, fault: str) -> None:
        super().__init__(message)
        self.fault = fault


class RunEndedError(ModelError):
    """A model's run was ended on purpose, from another thread."""


class ProviderError(TalkreelError):
    """No stated execution provider ran a model; or where no fall-back is allowed, the first one did not run all."""


class FirstFrameError(TalkreelError):
    """The first frame stayed bad after its second rendering, so there is nothing to carry on."""

    def __init__(self, message: str, faults: Sequence[str]) -> None:
        super().__init__(message)
        self.faults = tuple(faults)


class OutOfTimeError(TalkreelError):
    """The film cannot be done by its deadline, or was not."""

    exit_code = 4


class FilmError(TalkreelError):
    """Encoding or muxing failed."""
