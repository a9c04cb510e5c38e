"""The SPADE half: warped features become an image, each normalisation modulated by those features."""

from __future__ import annotations

from dataclasses import dataclass

from .spec import Spec
from .weights import LEAKY_RELU, LINEAR, RELU
from .writer import GraphWriter

MIDDLE_BLOCKS = 6
KERNEL = (3, 3)
EPSILON = 1e-5
SLOPE = 0.2
# Standard deviations of gamma, added to 1, and of beta, added to normalised values.
GAMMA, BETA = 0.3, 0.5
# What a residual branch adds to a trunk of standard deviation 1.
BRANCH = 0.5 * LEAKY_RELU
# Standard deviation of the logits of the image: 0.2 to 0.26 in the image.
LOGITS = 1.35


@dataclass(frozen=True)
class Modulation:
    """A trained affine map of normalised values, one factor and one offset a channel and point."""

    factor: str
    offset: str


@dataclass(frozen=True)
class Site:
    """Where a modulation is used: its name, the features it reads, and the channels it modulates."""

    name: str
    features: str
    channels: int


def spade(writer: GraphWriter, spec: Spec, warped: str, name: str) -> str:
    """Add the half to `writer`.

    Args:
        warped: [1, warped_channels, H, W].
        name: of the output.

    Returns:
        [1, 3, image_size, image_size] in 0..1.
    """
    middle, upper, last = spec.spade_channels, spec.spade_channels // 2, spec.spade_channels // 8
    x = writer.conv(warped, "spade/first", (spec.warped_channels, middle), KERNEL, gain=2 * LINEAR)
    sizes = (spec.size, 2 * spec.size, spec.image_size // 2)
    level0, level1, level2 = (writer.nearest(warped, sizes=(1, spec.warped_channels, size, size)) for size in sizes)
    normalised = _normalise(writer, x, "spade/middle0/norm0", middle)
    sites = [Site(f"spade/middle{block}/norm{i}", level0, middle) for block in range(MIDDLE_BLOCKS) for i in (0, 1)]
    sites += [Site(f"spade/up0/{part}", level1, width) for part, width in _parts(middle, upper)]
    sites += [Site(f"spade/up1/{part}", level2, width) for part, width in _parts(upper, last)]
    modulations = iter(_modulations(writer, spec, sites))

    for block in range(MIDDLE_BLOCKS):
        if block:
            normalised = _normalise(writer, x, f"spade/middle{block}/norm0", middle)
        inner = writer.node("LeakyRelu", _modulate(writer, normalised, next(modulations)), alpha=SLOPE)
        inner = writer.conv(inner, f"spade/middle{block}/conv0", (middle, middle), KERNEL, gain=LEAKY_RELU)
        x = writer.node("Add", x, _second(writer, inner, f"spade/middle{block}", middle, middle, next(modulations)))
    doubled = writer.nearest(x, scales=(1.0, 1.0, 2.0, 2.0))
    x = _up_block(writer, doubled, "spade/up0", middle, upper, [next(modulations) for _ in range(3)])
    if not spec.preview:
        x = writer.nearest(x, scales=(1.0, 1.0, 2.0, 2.0))
    x = _up_block(writer, x, "spade/up1", upper, last, [next(modulations) for _ in range(3)])
    x = writer.node("LeakyRelu", x, alpha=SLOPE)
    x = writer.conv(x, "spade/image", (last, 12), KERNEL, gain=LOGITS)
    x = writer.node("DepthToSpace", x, mode="CRD", blocksize=2)
    return writer.node("Sigmoid", x, name=name)


def _parts(given: int, made: int) -> list[tuple[str, int]]:
    return [("shortcut", given), ("norm0", given), ("norm1", made)]


def _modulations(writer: GraphWriter, spec: Spec, sites: list[Site]) -> list[Modulation]:
    """All modulations side by side: they depend on the warped features alone."""
    hidden = spec.modulation_channels
    given = spec.warped_channels
    shared = [
        writer.conv(site.features, f"{site.name}/shared", (given, hidden), KERNEL, gain=2 * LINEAR) for site in sites
    ]
    shared = [writer.node("Relu", value) for value in shared]
    maps = [
        [
            writer.conv(value, f"{site.name}/{kind}", (hidden, site.channels), KERNEL, gain=std * RELU)
            for kind, std in (("gamma", GAMMA), ("beta", BETA))
        ]
        for value, site in zip(shared, sites, strict=True)
    ]
    return [Modulation(writer.node("Add", gamma, writer.scalar(1.0)), beta) for gamma, beta in maps]


def _normalise(writer: GraphWriter, x: str, name: str, channels: int) -> str:
    scale = writer.parameter(f"{name}.scale", [channels], std=0.05, mean=1.0)
    bias = writer.parameter(f"{name}.bias", [channels], std=0.05)
    return writer.node("InstanceNormalization", x, scale, bias, epsilon=EPSILON)


def _modulate(writer: GraphWriter, normalised: str, modulation: Modulation) -> str:
    return writer.node("Add", writer.node("Mul", normalised, modulation.factor), modulation.offset)


def _second(writer: GraphWriter, x: str, name: str, given: int, made: int, modulation: Modulation) -> str:
    """The second half of a block's branch."""
    x = _modulate(writer, _normalise(writer, x, f"{name}/norm1", given), modulation)
    x = writer.node("LeakyRelu", x, alpha=SLOPE)
    return writer.conv(x, f"{name}/conv1", (given, made), KERNEL, gain=BRANCH)


def _up_block(writer: GraphWriter, x: str, name: str, given: int, made: int, modulations: list[Modulation]) -> str:
    """A block whose shortcut changes the channels; shortcut and branch share the normalisation."""
    shortcut, first, second = modulations
    normalised = _normalise(writer, x, f"{name}/norm0", given)
    scaled = [writer.node("Mul", normalised, modulation.factor) for modulation in (shortcut, first)]
    moved = [
        writer.node("Add", value, modulation.offset)
        for value, modulation in zip(scaled, (shortcut, first), strict=True)
    ]
    direct = writer.conv(moved[0], f"{name}/shortcut", (given, made), (1, 1), gain=LINEAR, bias=None)
    inner = writer.node("LeakyRelu", moved[1], alpha=SLOPE)
    inner = writer.conv(inner, f"{name}/conv0", (given, made), KERNEL, gain=LEAKY_RELU)
    return writer.node("Add", direct, _second(writer, inner, name, made, made, second))
