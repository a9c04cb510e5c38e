"""Arguments that several subcommands share."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...graphs.runner import RunOptions
    from ...graphs.schemes import Inputs


def add_graph(parser: argparse.ArgumentParser, *, output: str | None = None) -> None:
    """The graph, lengths of its dimensions, `--json`; and `-o` where one is made, `output` its default in words."""
    parser.add_argument("model", metavar="MODEL.onnx", type=Path)
    parser.add_argument(
        "--dim", dest="dims", action="append", default=[], type=_dimension, metavar="NAME=N",
        help="length of a named dimension of the inputs; may be given again",
    )  # fmt: skip
    if output is not None:
        parser.add_argument("-o", "--output", type=Path, metavar="OUT.onnx", help=f"default: {output}, beside it")
    add_json(parser)


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="as JSON")


def add_batch(parser: argparse.ArgumentParser) -> None:
    """Several frames in one run."""
    parser.add_argument("--batch", type=_count, default=1, metavar="N", help="frames in one run (default 1)")
    parser.add_argument(
        "--batched",
        action="append",
        default=[],
        metavar="NAME",
        help="an input with as many frames; may be given again",
    )


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """On what the graph is run."""
    parser.add_argument("--inputs", metavar="SCHEME", help="keypoints or normal (default: the first that fits)")
    parser.add_argument("--kind", dest="kinds", action="append", default=[], help="one of the scheme's; default: all")
    parser.add_argument("--seed", type=int, default=0, help="of the inputs (default 0)")
    parser.add_argument(
        "--feeds", type=Path, action="append", default=[], metavar="FILE.npz", help="inputs of your own, by name"
    )


def add_run(parser: argparse.ArgumentParser) -> None:
    """How graphs are run."""
    parser.add_argument("--threads", type=_count, default=2, help="threads a session (default 2)")
    parser.add_argument(
        "--provider", default="CPU", metavar="NAME[:KEY=VALUE,…]", help="execution provider (default CPU)"
    )


def inputs_of(args: argparse.Namespace) -> Inputs:
    """What `add_inputs` was given."""
    from ...graphs.schemes import Inputs

    return Inputs(args.inputs, args.seed, args.kinds, args.feeds)


def options_of(args: argparse.Namespace) -> RunOptions:
    """What `add_run` was given.

    Raises:
        GraphError: the provider cannot be read.
    """
    from ...graphs.runner import RunOptions

    return RunOptions.parse(args.provider, args.threads)


def output_of(args: argparse.Namespace, kind: str) -> Path:
    """Where the made graph goes: what was asked for, or `<model>.<kind>.onnx` beside the model.

    Raises:
        OutputError: it would replace the model.
    """
    from ...errors import OutputError

    output: Path = args.output or args.model.with_name(f"{args.model.stem}.{kind}.onnx")
    if output.resolve() == args.model.resolve():
        raise OutputError(f"{output} would replace the graph it is made from; give another name with -o")
    return output


def show(args: argparse.Namespace, data: Any, text: str) -> None:
    """Print a result as it was asked for."""
    print(json.dumps(data, indent=1, allow_nan=False) if args.json else text)


def _dimension(text: str) -> tuple[str, int]:
    name, equals, length = text.rpartition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=N")
    return name, _count(length)


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) < 2**31:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)
