"""How one model's graph becomes what a preset wants: steps, each with a proof or a judgement beside its file.

A step reads a graph file and writes another with its evidence; a step whose bounds break raises ProofError.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import GraphError
from ...graphs.compare import Known
from ...graphs.convert import convert, emulated, has_halves, upcast
from ...graphs.evidence import Bounds, Evidence
from ...graphs.feeds import Feeds, Signature, signature
from ...graphs.half_size import half_size
from ...graphs.lower.boundary import restore_boundary
from ...graphs.lower.passes import Outcome
from ...graphs.lower.presets import PRESETS, lower
from ...graphs.model import load, prepare, save
from ...graphs.prove import prove, settle, witness
from ...graphs.quantise import quantise_convs
from ...graphs.runner import RunOptions
from ...graphs.schemes import Inputs
from ...runtime.library import onnxruntime
from ..manifest import ModelSpec
from .options import GAIN, BuildOptions
from .samples import Samples

UPCAST_FLOORS = 2.0
"""Greatest error of an upcast graph in noise floors of the half-precision graph, whose own rounding they show
(measured: 0.6)."""

HALF_MEAN = 0.01
"""Greatest mean error of a picture in mixed precision, of any kind of motion; PyTorch's autocast has 0.004 over near
and far motions, the usual conversion by operator names 0.03 (image 0..1)."""

FLOAT32 = "float32"
"""Name of the variant that a second try uses."""

PROOF: dict[str, Any] = {"inputs": Inputs(few=True), "orders": 1, "rewriting": False}
"""How much a proof runs: a generator's run takes many seconds, and there is one for each kind of inputs, graph and
form of the noise floor. `graph prove` has them all."""


@dataclass
class Made:
    """A model's new files, by path; what was done, a line a step."""

    file: Path
    variants: dict[str, Path] = field(default_factory=dict)
    steps: list[str] = field(default_factory=list)
    kept: list[Path] = field(default_factory=list)
    """Other files that belong to the build: evidence."""


class Recipe:
    """Makes the files of one build. `collect`: finds what a generator is fed, to calibrate on."""

    def __init__(self, options: BuildOptions, collect: Callable[[], Samples]) -> None:
        self.options = options
        self._collect = collect
        self.run = RunOptions(threads=options.threads)
        """Proofs are made on the CPU, whose float32 is float32."""
        cuda = "CUDAExecutionProvider"
        here = cuda in onnxruntime().get_available_providers()
        self.cuda = RunOptions(threads=options.threads, provider=cuda) if here else None

    @cached_property
    def samples(self) -> Samples:
        """Found when a preset first wants them."""
        return self._collect()

    def generator(self, source: Path, spec: ModelSpec, output: Path) -> Made:
        """What makes pictures, for the build's preset.

        Args:
            source: a graph file; `output`: the name of the file to make.

        Raises:
            GraphError: the graph cannot be rewritten. ProofError: a bound is broken.
        """
        known: Known = {}
        plain, steps = self._float32(source, output, known)
        kind = {"cpu": self._cpu, "cuda": self._cuda, "int8": self._int8}[self.options.preset]
        made = kind(plain, spec, output, known)
        made.steps[:0] = steps
        if plain != source and FLOAT32 not in made.variants:
            made.variants[FLOAT32] = plain
        if plain in made.variants.values() and plain != source:
            made.kept += _evidence(plain)
        return made

    def other(self, source: Path, output: Path) -> Made | str:
        """A model of any other kind: rewritten where that is faster here, else the reason why it stays.

        The rule: it stays when nothing in it is half precision or rewritten by the preset's passes; else both forms
        are run in turns, and the new one is taken when it is `GAIN` times as fast.
        """
        preset, timed = ("cuda", self.cuda) if self.options.preset == "cuda" else ("cpu", self.run)
        if timed is None:
            return "not measured: there is no CUDA provider here"
        try:
            lowered = lower(load(source), preset, boundary=True)
            if not any(outcome.rewritten for outcome in lowered.outcomes.values()):
                return "no pass has anything to rewrite in it"
            if has_halves(prepare(load(source))):
                return "it computes in half precision and makes no picture to be judged by"
            save(lowered.model, output)
            evidence = witness(
                source,
                output,
                preset,
                Bounds(faster=GAIN),
                passes=lowered.outcomes,
                options=self.run,
                timed=timed,
                **PROOF,
            )
        except GraphError as error:
            return str(error)
        if evidence.broken:
            return "; ".join(evidence.broken)
        settle(evidence, output)
        return Made(output, {}, [_told(preset, evidence)], _evidence(output))

    def half_size(self, source: Path, output: Path) -> list[str]:
        """A generator of pictures of half the sides; the steps.

        Raises:
            GraphError: there is nothing that can be left out.
        """
        model = prepare(load(source))
        made = half_size(model)
        save(model, output)
        height, width = made.sides
        return [f"half size: {made.left_out} left out, {', '.join(made.resized)} halved: {width} x {height} pixels"]

    def _float32(self, source: Path, output: Path, known: Known) -> tuple[Path, list[str]]:
        """The graph in float32 throughout; itself when it is."""
        model = prepare(load(source))
        if not has_halves(model):
            return source, []
        done = upcast(model)
        plain = output.with_name(f"{output.stem}.{FLOAT32}.onnx")
        save(model, plain)
        del model
        gc.collect()  # its weights, before sessions come: the parts of a graph hold each other
        evidence = witness(
            source,
            plain,
            "upcast",
            Bounds(UPCAST_FLOORS),
            passes={"upcast": Outcome(done.nodes, dict.fromkeys(done.kept, "its meaning is not known"))},
            options=self.run,
            runs=0,
            known=known,
            **PROOF,
        )
        return plain, [_told("upcast", settle(evidence, plain))]

    def _prove(self, plain: Path, preset: str, output: Path, known: Known, pairs: int) -> Evidence:
        return prove(plain, preset, output, boundary=True, options=self.run, runs=pairs, known=known, **PROOF)

    def _cpu(self, plain: Path, spec: ModelSpec, output: Path, known: Known) -> Made:
        evidence = self._prove(plain, "cpu", output, known, self.options.pairs)
        return Made(output, {}, [_told("cpu", evidence)], _evidence(output))

    def _cuda(self, plain: Path, spec: ModelSpec, output: Path, known: Known) -> Made:
        exact = output.with_name(f"{output.stem}.{FLOAT32}.onnx")
        if exact == plain:
            exact = output.with_name(f"{output.stem}.lowered.onnx")
        steps = [_told("cuda", self._prove(plain, "cuda", exact, known, 0))]
        model = prepare(load(exact))
        ports = signature(model)
        seen = [*self.samples.feeds(spec, ports), *_spread(ports)]
        converted, report = convert(model, calibration=seen, half_statistics=True)
        save(converted, output)
        rounded = output.with_name(f"{output.stem}.rounded.onnx")  # float32 kernels here, with every half value rounded
        save(emulated(converted), rounded)
        evidence = witness(
            exact,
            output,
            "float16",
            Bounds(floors=None, mean=HALF_MEAN),
            passes={"convert": Outcome(report.halves, report.exact)},
            options=self.run,
            timed=self.cuda,
            emulation=rounded,
            runs=self.options.pairs if self.cuda else 0,
            known=known,
            **PROOF | {"orders": 0},
        )
        steps.append(_told("float16", settle(evidence, output)))
        return Made(output, {FLOAT32: exact}, steps, [*_evidence(exact), *_evidence(output)])

    def _int8(self, plain: Path, spec: ModelSpec, output: Path, known: Known) -> Made:
        model = lower(load(plain), "cpu", finish=False).model
        ports = signature(model)
        judged = self.samples.feeds(spec, ports, judged=True)
        found = quantise_convs(
            model,
            self.samples.feeds(spec, ports),
            judged=judged,
            psnr=self.options.psnr,
            finish=PRESETS["cpu"].finish,
            threads=self.options.threads,
        )
        restore_boundary(found.model)
        save(found.model, output)
        choices = output.with_suffix(".choices.md")
        choices.write_text(found.report.to_markdown(), "utf-8")
        chosen = [node for part in found.report.parts if part.choice == "int8" for node in part.nodes]
        left = {node: part.why for part in found.report.parts if part.choice != "int8" for node in part.nodes}
        inputs = _files(judged, output)
        try:
            evidence = witness(
                plain,
                output,
                "int8",
                Bounds(floors=None, rms=10 ** (-self.options.psnr / 20)),
                passes={"int8": Outcome(chosen, left | found.report.left)},
                inputs=inputs,
                options=self.run,
                runs=self.options.pairs,
                orders=0,
                rewriting=False,
            )
        finally:
            for path in inputs.files:
                path.unlink()
        steps = [_told("int8", settle(evidence, output)), f"calibrated on {self.samples.origin}"]
        return Made(output, {}, steps, [*_evidence(output), choices])


def _spread(ports: Signature) -> list[Feeds]:
    """Seeded inputs from near to far, besides a portrait's: overflow shows at the extremes."""
    return [row for rows in Inputs().make(ports)[1].values() for row in rows]


def _files(rows: Sequence[Feeds], output: Path) -> Inputs:
    paths = [output.with_name(f"judged_{index}.npz") for index in range(len(rows))]
    for path, row in zip(paths, rows, strict=True):
        np.savez(path, allow_pickle=False, **row)
    return Inputs(files=paths)


def _evidence(graph: Path) -> list[Path]:
    return [graph.with_suffix(f".evidence.{kind}") for kind in ("json", "md")]


def _told(what: str, evidence: Evidence) -> str:
    errors = [found.error for row in evidence.comparison.outputs.values() for found in row.values()]
    rewritten = sum(len(outcome.rewritten) for outcome in evidence.passes.values())
    said = f"{what}: {rewritten} rewrites, greatest mean error {max(error.mean for error in errors):.2e}"
    if evidence.bounds.floors is not None:
        said += f", {evidence.comparison.ratio:.2f} times the noise floor"
    return said if evidence.speed is None else f"{said}, {evidence.speed.ratio:.2f} times as fast"
