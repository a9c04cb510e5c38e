"""Convolutions with large kernels by the discrete Fourier transform of overlapping tiles, as products of matrices.

Overlap-save in H and W: a tile of n = m + k - 1 pixels gives m outputs an axis, the rest of the circular convolution
being thrown away; zero padding and cutting are part of the transform's matrix. In real arithmetic:

1. H: cosines and sines of n/2 + 1 frequencies for every tile, [th·fh·(re, im), H] times each picture [H, W].
2. W: all n frequencies, [(re, im)·W, fw·tw·(re, im)]; with half of the frequencies in H that is all of a real picture.
3. Frequencies to the front, channels to the back: two transpositions that move one axis each.
4. For each of the fh·fw frequencies a product with the weights' spectrum [2·C, kD·2·O]; its taps in depth are summed
   there (`depth_sum`), where there is the least to sum.
5. Back: all frequencies of a tile to its m·m outputs, and the tiles to their places.

A 7x7 kernel on tiles of 22 takes 4 · 264 multiplications for 256 outputs and channel pair, where the direct form
takes 49 · 256: a twelfth. Every step is a rotation up to a scale, so rounding stays at the direct form's level.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from ..model import describe, static_shape
from .conv2d import Conv2d, add_bias, convolutions
from .conv3d import Conv3d
from .depth_sum import depth_sum
from .editing import Editor
from .passes import Outcome, Pass
from .volumes import Window
from .winograd import crop

OUTPUTS = (8, 16, 32)
"""Outputs of a tile along each axis that are tried."""

MAX_SPECTRUM = 128 * 2**20
"""Bytes of a weight's spectrum above which the form is not used: it would be read from memory at every run."""

# Time on ONNX Runtime's CPU provider in multiplications of its direct convolution, as in `winograd`.
PRODUCT = 2.0
"""One multiplication of a product of matrices, most of which have few rows."""
MOVE = 100
"""One number written in another order."""


@dataclass(frozen=True)
class Tiling:
    """How pictures are cut for a convolution: m outputs a tile, `count` tiles an axis."""

    outputs: int
    kernel: tuple[int, int]
    before: tuple[int, int]
    lengths: tuple[int, int]
    count: tuple[int, int]

    def size(self, axis: int) -> int:
        """n, pixels of a tile."""
        return self.outputs + self.kernel[axis] - 1

    @property
    def frequencies(self) -> int:
        """fh · fw."""
        return (self.size(0) // 2 + 1) * self.size(1)

    def cost(self, conv: Conv3d) -> float:
        """In multiplications of the direct form."""
        (slices, channels), out = static_shape(conv.value)[:2], conv.weight.shape[0]
        rows, columns = 2 * self.count[0] * (self.size(0) // 2 + 1), 2 * self.count[1] * self.size(1)
        tiles, taps = math.prod(self.count), conv.window.kernel[0]
        planes, results = slices * channels, conv.shape[0] * conv.shape[2] * out
        forward = planes * rows * (math.prod(self.lengths) + self.lengths[1] * columns)
        spectrum = self.frequencies * tiles * slices
        each = spectrum * 4 * channels * taps * out
        back = results * tiles * self.frequencies * (2 * self.outputs**2 + 2 * taps * slices)
        moved = 2 * planes * rows * columns // 2 + 2 * spectrum * taps * out + 5 * results * math.prod(self.lengths)
        return PRODUCT * (forward + each + back) + MOVE * moved

    def spectrum_bytes(self, conv: Conv3d) -> int:
        """Bytes of the weights' spectrum."""
        return self.frequencies * 4 * int(np.prod(conv.weight.shape[:3])) * 4


def tiling(conv: Conv3d) -> Tiling | None:
    """The cheapest tiling whose spectrum is small enough, or None."""
    kernel = (int(conv.weight.shape[3]), int(conv.weight.shape[4]))
    before, lengths = conv.window.before[1:], static_shape(conv.value)[2:]
    tried = [
        Tiling(m, kernel, (before[0], before[1]), (lengths[0], lengths[1]),
               (math.ceil(conv.shape[3] / m), math.ceil(conv.shape[4] / m)))
        for m in OUTPUTS
    ]  # fmt: skip
    fitting = [one for one in tried if one.spectrum_bytes(conv) <= MAX_SPECTRUM]
    return min(fitting, key=lambda one: one.cost(conv)) if fitting else None


def conv3d_by_dft(editor: Editor, conv: Conv3d, cut: Tiling) -> ir.Value:
    """Slices [N·D', O, H', W'] of a convolution that `plain` allows."""
    slices, channels, height, width = static_shape(conv.value)
    (rows, columns), out, taps = cut.count, conv.weight.shape[0], conv.window.kernel[0]
    planes = editor.reshape(conv.value, [slices * channels, height, width])
    found = editor.op("MatMul", editor.const(_first(cut)), planes)
    found = editor.reshape(found, [math.prod(static_shape(found)) // (2 * width), 2 * width])
    found = editor.op("MatMul", found, editor.const(_second(cut)))
    found = editor.reshape(found, [slices, channels, math.prod(static_shape(found)) // (slices * channels)])
    found = editor.transpose(found, [0, 2, 1])
    found = editor.reshape(found, [slices, rows, cut.frequencies * columns, 2 * channels])
    found = editor.transpose(found, [2, 1, 0, 3])
    found = editor.reshape(found, [cut.frequencies, columns, rows * slices, 2 * channels])
    found = editor.op("MatMul", found, editor.const(_spectrum(conv.weight, cut)))
    found = editor.reshape(found, [cut.frequencies * columns * rows, slices * taps, 2 * out])
    found = depth_sum(editor, conv, found)
    depth = static_shape(found)[1]
    found = editor.reshape(found, [cut.frequencies, columns * rows * depth, 2, out])
    found = editor.transpose(found, [0, 2, 1, 3])
    found = editor.reshape(found, [cut.frequencies * 2, columns * rows * depth * out])
    found = editor.op("MatMul", editor.const(_inverse(cut)), found)
    found = editor.reshape(found, [cut.outputs, cut.outputs * columns, rows, depth * out])
    found = editor.transpose(found, [2, 0, 1, 3])
    found = editor.reshape(found, [rows * cut.outputs, cut.outputs, columns, depth * out])
    found = editor.transpose(found, [0, 2, 1, 3])
    found = editor.reshape(found, [rows * cut.outputs * columns * cut.outputs, depth * out])
    found = editor.transpose(found, [1, 0])
    found = editor.reshape(found, [depth, out, rows * cut.outputs, columns * cut.outputs])
    return add_bias(editor, crop(editor, found, conv.shape[3:]), conv.bias)


def _window(cut: Tiling, axis: int) -> np.ndarray:
    """Place in each tile [tiles, length] of every pixel, -1 outside."""
    place = np.arange(cut.lengths[axis]) + cut.before[axis] - cut.outputs * np.arange(cut.count[axis])[:, None]
    return np.where((place >= 0) & (place < cut.size(axis)), place, -1)


def _waves(place: np.ndarray, count: int, size: int) -> np.ndarray:
    """exp(-2πi f p / n), zero outside: [tiles, frequencies, length]."""
    waves = np.exp(-2j * np.pi * np.arange(count)[:, None] * place[:, None] / size)
    return np.where(place[:, None] >= 0, waves, 0)


def _first(cut: Tiling) -> np.ndarray:
    """[th · fh · (re, im), H]."""
    waves = _waves(_window(cut, 0), cut.size(0) // 2 + 1, cut.size(0))
    return np.stack([waves.real, waves.imag], 2).reshape(-1, cut.lengths[0]).astype(np.float32)


def _second(cut: Tiling) -> np.ndarray:
    """[(re, im) · W, fw · tw · (re, im)]: a complex product as a real one."""
    waves = _waves(_window(cut, 1), cut.size(1), cut.size(1)).transpose(2, 1, 0)
    matrix = np.stack([np.stack([waves.real, waves.imag], 3), np.stack([-waves.imag, waves.real], 3)])
    return np.ascontiguousarray(matrix.reshape(2 * cut.lengths[1], -1), dtype=np.float32)


def _spectrum(weight: np.ndarray, cut: Tiling) -> np.ndarray:
    """[fh · fw, 1, (re, im) · C, kD · (re, im) · O]: the conjugate, as Conv is a correlation."""
    full = np.fft.fft2(weight.astype(np.float64), (cut.size(0), cut.size(1))).conj()
    half = full[..., : cut.size(0) // 2 + 1, :].transpose(3, 4, 1, 2, 0)  # fh, fw, C, kD, O
    matrix = np.stack([np.stack([half.real, half.imag], 4), np.stack([-half.imag, half.real], 4)], 2)
    channels = 2 * weight.shape[1]
    return np.ascontiguousarray(matrix.reshape(cut.frequencies, 1, channels, -1), dtype=np.float32)


def _inverse(cut: Tiling) -> np.ndarray:
    """[m · m, fh · fw · (re, im)]: real outputs from half of the frequencies."""
    high, wide, m = cut.size(0), cut.size(1), cut.outputs
    rows = np.exp(2j * np.pi * np.arange(m)[:, None] * np.arange(high // 2 + 1) / high)
    columns = np.exp(2j * np.pi * np.arange(m)[:, None] * np.arange(wide) / wide)
    counted = np.where((np.arange(high // 2 + 1) * 2) % high == 0, 1, 2)[:, None] / (high * wide)
    waves = np.einsum("if,jg->ijfg", rows, columns) * counted
    return np.stack([waves.real, -waves.imag], 4).reshape(m * m, -1).astype(np.float32)


def as_volume(conv: Conv2d) -> Conv3d:
    """A convolution of pictures as one of volumes of one slice."""
    flat = conv.window
    deep = Window((1, *flat.kernel), (1, *flat.strides), (1, *flat.dilations), (0, *flat.before), (0, *flat.after))
    batch, out, *area = conv.out_shape
    return Conv3d(conv.value, batch, 1, conv.weight[:, :, None], conv.bias, deep, conv.groups, (batch, out, 1, *area))


def apply(model: ir.Model) -> Outcome:
    """Rewrite the 2-D convolutions for which it pays."""
    outcome = Outcome()
    for conv in convolutions(model, outcome.left):
        name = describe(conv.node)
        if not conv.plain:
            outcome.left[name] = "it has groups, steps or holes"
            continue
        volume = as_volume(conv)
        cut = tiling(volume)
        if cut is None or cut.cost(volume) >= conv.multiplications:
            outcome.left[name] = "the direct form is faster"
            continue
        outcome.rewritten.append(name)
        editor = Editor(model, conv.node)
        editor.replace([conv3d_by_dft(editor, volume, cut)])
    return outcome


PASS = Pass("overlap-save", "large kernels by the Fourier transform of overlapping tiles", apply)
