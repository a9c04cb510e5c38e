"""`talkreel pack build`: a pack's models in the forms that a machine runs best, each with its proof."""

from .builder import build
from .options import BuildOptions

__all__ = ["BuildOptions", "build"]
