"""Mixed precision: a float32 graph becomes one that computes in half precision wherever that stays right; and back."""

from .emulation import emulated
from .mixed import Conversion, convert
from .upcast import Upcast, has_halves, upcast

__all__ = ["Conversion", "Upcast", "convert", "emulated", "has_halves", "upcast"]
