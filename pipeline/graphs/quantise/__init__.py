"""Fewer bits: 8-bit convolutions and 4-bit linear layers, chosen by what they do to the picture and the motion."""

from .convs import Int8, Quantised, quantise_convs
from .linears import quantise_linears

__all__ = ["Int8", "Quantised", "quantise_convs", "quantise_linears"]
