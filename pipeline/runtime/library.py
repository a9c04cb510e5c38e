"""The installed onnxruntime, imported late, so that a missing build is one clear error and not an import failure."""

from __future__ import annotations

from types import ModuleType

from ..errors import RuntimeMissingError
from .messages import first_line

INSTALL_HINT = (
    "onnxruntime is not installed; install one of its builds: "
    'pip install "talkreel[cpu]" (or [gpu], [openvino]; one only, two together break each other)'
)


def onnxruntime() -> ModuleType:
    """The installed onnxruntime.

    Raises:
        RuntimeMissingError: none is installed, or it does not load.
    """
    try:
        import onnxruntime as module
    except ModuleNotFoundError as error:
        raise RuntimeMissingError(INSTALL_HINT) from error
    except ImportError as error:
        raise RuntimeMissingError(f"onnxruntime does not load ({first_line(error)}); install it again") from error
    if not hasattr(module, "InferenceSession"):  # the folder is left behind when one of two builds is removed
        raise RuntimeMissingError("onnxruntime is damaged (two builds together?); remove them, then: " + INSTALL_HINT)
    return module
