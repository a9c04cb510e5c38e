"""Mixed precision: a float32 graph becomes one that computes in half precision wherever that stays right."""

from .emulation import emulated
from .mixed import Conversion, convert

__all__ = ["Conversion", "convert", "emulated"]
