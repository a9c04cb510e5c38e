"""Static 8-bit quantisation of the convolutions that make a picture of sampled features."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from ...errors import GraphError
from ..feeds import Array, Feeds
from ..lower.conv2d import conv2d
from ..lower.passes import Pass, run_passes
from ..model import describe, name_of
from .calibration import observe
from .candidates import candidates
from .choosing import choose
from .cut import between, inputs_of_tail, tail
from .qdq import boundary, insert, result_of
from .quality import decibel, squared_error, ssim
from .ranges import RANGES, Scale, scale_of
from .report import Part, Report, Variant
from .running import opened, weight_bytes
from .speed import multiply_adds, random_feeds, saturates, speedup


@dataclass(frozen=True)
class Int8:
    """How numbers become integers: values uint8, with a zero point; weights int8, with a scale an output; biases int32.

    Signed values would gain nothing: ONNX Runtime turns them into uint8 on x86, and does not fuse all of them.
    """

    weight_bits: int | None = None
    """8, or 7 for kernels that add products in 16 bits; None: what this processor needs (`speed.saturates`)."""
    ranges: str = "mse"
    """A name in `ranges.RANGES`."""


@dataclass(frozen=True)
class Quantised:
    """A quantised graph, and how it came to be."""

    model: ir.Model
    report: Report


def quantise_convs(
    model: ir.Model,
    feeds: Iterable[Feeds],
    *,
    judged: Sequence[Feeds] | None = None,
    settings: Int8 = Int8(),
    psnr: float = 35.0,
    finish: Sequence[Pass] = (),
    timed: bool = False,
    least_speedup: float | None = None,
    threads: int = 2,
) -> Quantised:
    """A copy of a graph with 8-bit convolutions, in the form (QuantizeLinear, DequantizeLinear) that runtimes fuse.

    What coordinates, masks and softmaxes depend on is never touched (`candidates`). Convolutions that read one value
    are quantised together or not at all. Where the picture with all of them is not as good as asked, each such group
    is quantised alone, and its error seen in the picture; errors add up, so the groups that do most harm for the work
    they save are left in float32 until the picture of the whole is good enough.

    Args:
        model: prepared, or lowered; its first output that the convolutions reach is the picture, of range 1.
            Convolutions in other forms (Winograd's) are not seen: lower without those passes, and give them as
            `finish`. Not changed.
        feeds: inputs to calibrate on: several portraits, several poses.
        judged: inputs to judge on; None: those to calibrate on.
        psnr: the least for each picture of `judged`, dB.
        finish: passes for what stays in float32; run last.
        timed: measure speed: of each group by itself, which then weighs in the choice instead of its number of
            multiplications, and of whole graphs.
        least_speedup: groups that are less than this many times as fast as in float32 stay there; sets `timed`.
        threads: of ONNX Runtime.

    Raises:
        GraphError: no convolution may be quantised, there are no inputs or they do not fit, or unknown settings.
        ModelError: the graph does not run.
    """
    if settings.ranges not in RANGES:
        raise GraphError(f"there are no ranges {settings.ranges!r}; choose one of {', '.join(RANGES)}")
    calibration = list(feeds)
    left: dict[str, str] = {}
    convs = [node for group in candidates(model, left) for node in group]
    if not convs or not calibration:
        raise GraphError(
            f"{name_of(model)} has no convolution that may be quantised; see the reasons: {left}"
            if calibration
            else "no inputs to calibrate on; give some, of several portraits"
        )
    work = _Work(model, convs, calibration, calibration if judged is None else judged, settings, threads)
    timed = timed or least_speedup is not None
    speedups = [work.group_speedup(group, finish) if timed else None for group in work.groups]
    gains = [_gain(group, ratio, least_speedup) for group, ratio in zip(work.groups, speedups, strict=True)]
    budget = 10 ** (-psnr / 10)
    chosen = [index for index, gain in enumerate(gains) if gain > 0]
    alone: dict[int, list[float]] = {}
    if chosen and max(work.errors(chosen)) > budget:  # else there is nothing to choose, and much time saved
        alone = {index: work.errors([index]) for index in chosen}
        chosen = choose(alone, gains, budget, work.errors)

    report = Report(
        "Convolutions in 8 bits",
        f"{len(work.judged)} pictures; PSNR and SSIM of the worst, against float32",
        {"weight bits": work.bits, "ranges": settings.ranges, "PSNR": psnr},
        left=left,
    )
    for index, (group, ratio) in enumerate(zip(work.groups, speedups, strict=True)):
        why = "" if index in chosen else ("slower" if gains[index] <= 0 else "harms the picture most for its work")
        report.parts.append(
            Part(
                [describe(node) for node in group],
                sum(int(conv2d(node).weight.size) for node in group),
                {"int8": decibel(max(alone[index]))} if index in alone else {},
                "int8" if index in chosen else "float32",
                why,
                ratio,
            )
        )
    everything = list(range(len(work.groups)))
    reference = _finished(model.clone(), finish)
    made = {"float32": reference, "all in int8": work.whole(everything, finish), "chosen": work.whole(chosen, finish)}
    rows = {"float32": [], "all in int8": everything, "chosen": chosen}
    for name, graph in made.items():
        ratio = speedup(reference, graph, calibration[0], threads=threads) if timed and graph is not reference else None
        report.variants.append(Variant(name, weight_bytes(graph), work.scores(rows[name]), ratio))
    return Quantised(made["chosen"], report)


def _gain(group: Sequence[ir.Node], ratio: float | None, least: float | None) -> float:
    """Work saved, in multiplications of float32."""
    work = float(multiply_adds(group))
    if ratio is None:
        return work
    return 0.0 if ratio < (least or 0) else work * (1 - 1 / ratio)


def _finished(model: ir.Model, finish: Sequence[Pass]) -> ir.Model:
    run_passes(model, finish)
    return model


class _Work:
    """The part of the graph that quantisation reaches, and what is known of it."""

    def __init__(
        self,
        model: ir.Model,
        convs: Sequence[ir.Node],
        calibration: Sequence[Feeds],
        judged: Sequence[Feeds],
        settings: Int8,
        threads: int,
    ) -> None:
        self.model = model
        self.threads = threads
        self.part = tail(model, convs)
        self.groups = candidates(self.part, {})
        self.bits = settings.weight_bits or (7 if saturates() else 8)
        given = inputs_of_tail(model, self.part, calibration, threads)
        self.judged = given if judged is calibration else inputs_of_tail(model, self.part, judged, threads)
        names = [str(value.name) for value in boundary(node for group in self.groups for node in group)]
        observed = observe(self.part, names, given, threads)
        self.scales: Mapping[str, Scale] = {
            name: scale_of(*RANGES[settings.ranges](seen)) for name, seen in observed.items()
        }
        self.wanted = self._pictures(self.part)
        self._speeds: dict[str, float] = {}

    def quantised(self, model: ir.Model, indices: Iterable[int]) -> ir.Model:
        """A copy of a graph that holds the groups, with some of them quantised."""
        names = {node.outputs[0].name for index in indices for node in self.groups[index]}
        made = model.clone()
        insert(made, [node for node in made.graph if node.outputs[0].name in names], self.scales, self.bits)
        return made

    def whole(self, indices: Iterable[int], finish: Sequence[Pass]) -> ir.Model:
        """The whole graph with some groups quantised."""
        return _finished(self.quantised(self.model, indices), finish)

    def errors(self, indices: Sequence[int]) -> list[float]:
        """Mean squared error of each judged picture with these groups quantised."""
        pictures = self._pictures(self.quantised(self.part, indices))
        return [squared_error(found, wanted) for found, wanted in zip(pictures, self.wanted, strict=True)]

    def scores(self, indices: Sequence[int]) -> dict[str, float]:
        """Of the worst picture."""
        pictures = self._pictures(self.quantised(self.part, indices))
        pairs = list(zip(pictures, self.wanted, strict=True))
        return {
            "PSNR": min(decibel(squared_error(*pair)) for pair in pairs),
            "SSIM": min(ssim(*pair) for pair in pairs),
        }

    def group_speedup(self, group: Sequence[ir.Node], finish: Sequence[Pass]) -> float:
        """Of a group by itself; measured once for groups of the same shapes."""
        key = "|".join(f"{node.inputs[0].shape}{node.inputs[1].shape}{node.attributes}" for node in group)  # type: ignore[union-attr]
        if key not in self._speeds:
            outputs = [str(result_of(node).name) for node in group]
            alone = between(self.part, [str(group[0].inputs[0].name)], outputs)  # type: ignore[union-attr]
            index = next(place for place, other in enumerate(self.groups) if other[0] is group[0])
            integer = self.quantised(alone, [index])
            self._speeds[key] = speedup(
                _finished(alone, finish), integer, random_feeds(integer), threads=self.threads, runs=5
            )
        return self._speeds[key]

    def _pictures(self, part: ir.Model) -> list[Array]:
        with opened(part, self.threads) as runner:
            return [runner.run(runner.feeds([feed]))[runner.names[0]] for feed in self.judged]
