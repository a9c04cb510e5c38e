"""What a comparison of two graphs found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .differences import ROUNDING, Error, number


@dataclass(frozen=True)
class Compared:
    """One output on one kind of inputs."""

    error: Error
    floor: Error | None
    """None: not measured."""
    magnitude: float
    """The reference's largest."""

    @property
    def ratio(self) -> float:
        """How many times the floor the error is, in its largest or its mean, whichever is worse.

        The floor counts as one rounding of the largest magnitude at least.
        """
        least = ROUNDING * self.magnitude
        floors = (self.floor.max, self.floor.mean) if self.floor else (0.0, 0.0)
        pairs = zip((self.error.max, self.error.mean), floors, strict=True)
        return max(0.0 if error == 0 else error / max(floor, least, 1e-45) for error, floor in pairs)

    def to_json(self) -> dict[str, Any]:
        return {
            "error": self.error.to_json(),
            "floor": self.floor.to_json() if self.floor else None,
            "ratio": number(self.ratio),
            "magnitude": number(self.magnitude),
        }


Table = dict[str, dict[str, Compared]]
"""By kind and name."""


@dataclass
class Comparison:
    """All outputs, and on request all values that both graphs hold."""

    scheme: str
    seed: int
    frames: int
    orders: int
    rewriting: bool = True
    """Whether the floor was measured without ONNX Runtime's rewriting, too."""
    outputs: Table = field(default_factory=dict)
    layers: Table = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        """The worst output's."""
        return max((found.ratio for row in self.outputs.values() for found in row.values()), default=0.0)

    def to_json(self) -> dict[str, Any]:
        def table(rows: Table) -> dict[str, Any]:
            return {kind: {name: found.to_json() for name, found in row.items()} for kind, row in rows.items()}

        plain = {"inputs": self.scheme, "seed": self.seed, "frames": self.frames}
        plain |= {"orders": self.orders, "rewriting": self.rewriting}
        return plain | {"ratio": number(self.ratio), "outputs": table(self.outputs), "layers": table(self.layers)}


def over(
    comparison: Comparison,
    bound: float | None = None,
    *,
    mean: float | None = None,
    rms: float | None = None,
    psnr: float | None = None,
) -> list[str]:
    """Outputs that break a bound, a line each.

    Args:
        bound: greatest error in noise floors.
        mean: greatest mean error. rms: greatest root mean squared error.
        psnr: least PSNR, dB.
    """
    broken = []
    for kind, row in comparison.outputs.items():
        for name, found in row.items():
            what = f"{name} ({kind} inputs)"
            if bound is not None and not found.ratio <= bound:
                broken.append(f"{what} is off by {found.ratio:.2f} times the noise floor, more than {bound:g}")
            if mean is not None and not found.error.mean <= mean:
                broken.append(f"{what} has a mean error of {found.error.mean:.3g}, more than {mean:g}")
            if rms is not None and not found.error.rms <= rms:
                broken.append(f"{what} has a root mean squared error of {found.error.rms:.3g}, more than {rms:.3g}")
            if psnr is not None and not found.error.psnr >= psnr:
                broken.append(f"{what} has a PSNR of {found.error.psnr:.1f} dB, less than {psnr:g}")
    return broken


def error_table(table: Table) -> list[str]:
    """Errors beside their floor as Markdown."""
    lines = [
        "| inputs | value | max | mean | 99 % | 99.9 % | PSNR, dB | times the floor |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for kind, row in table.items():
        for name, found in row.items():
            cells = [
                f"{getattr(found.error, figure):{form}}"
                + (f" ({getattr(found.floor, figure):{form}})" if found.floor else "")
                for figure, form in (("max", ".2e"), ("mean", ".2e"), ("p99", ".2e"), ("p999", ".2e"), ("psnr", ".1f"))
            ]
            ratio = f"{found.ratio:.2f}" if found.floor else "–"
            lines.append(f"| {kind} | {name} | {' | '.join(cells)} | {ratio} |")
    return lines
