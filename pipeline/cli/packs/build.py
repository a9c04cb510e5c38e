"""`talkreel pack build`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ...runtime.options import cores_allowed
from ..group import require_graphs
from .arguments import add_json, add_registry, megabytes, registry_of, show

if TYPE_CHECKING:
    from ...packs.built import Build

PRESETS = ("cpu", "cuda", "int8")


class BuildCommand:
    """Make a pack's models fit for this machine: its generators, and any other model that is measured to gain. The
    build lies beside the pack with its proofs, and is opened as PACK+PRESET."""

    help = "a pack's models in the forms that this machine runs best, with proofs"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("pack", metavar="PACK", help="name, NAME@REVISION or folder")
        parser.add_argument(
            "--preset", required=True, choices=PRESETS,
            help="cpu: float32 in the CPU's fastest forms; cuda: half precision where it stays right; int8: 8-bit "
            "convolutions as far as the picture allows, else as cpu",
        )  # fmt: skip
        parser.add_argument(
            "--generator", metavar="PACK", help="a pack whose generator takes the place of PACK's (liveportrait-onnx)"
        )
        parser.add_argument(
            "--psnr", type=float, default=35.0, metavar="DB", help="int8: the least PSNR of pictures (default 35)"
        )
        parser.add_argument(
            "--portrait", type=Path, action="append", default=[], metavar="FILE",
            help="cuda, int8: a portrait to calibrate on; may be given again (default: one that ships)",
        )  # fmt: skip
        parser.add_argument(
            "--threads",
            type=int,
            default=cores_allowed(),
            help="threads of a model in the proofs (default %(default)s)",
        )
        parser.add_argument(
            "--runs",
            type=int,
            default=1,
            metavar="N",
            help="pairs of timed runs of a generator, 0 for none (default 1)",
        )
        add_registry(parser)
        add_json(parser)

    def run(self, args: argparse.Namespace) -> int:
        require_graphs("talkreel pack build")
        from ...packs.building import BuildOptions, build
        from ...packs.built import builds
        from ...packs.store import open_pack

        registry = registry_of(args)
        options = BuildOptions(args.preset, args.psnr, tuple(args.portrait), args.threads, args.runs)
        pack = open_pack(args.pack, registry)
        other = open_pack(args.generator, registry) if args.generator else None
        made = build(pack, options, generator=other, say=lambda line: print(line, file=sys.stderr))
        found = next(each for each in builds(pack) if each.folder == made.folder)
        data = {"name": made.name, "folder": str(made.folder), "bytes": found.bytes, **made.section("build").data}
        show(args, data, _text(args.pack, found))
        return 0


def _text(pack: str, found: Build) -> str:
    parts = (pack, found.name.generator, found.name.preset)
    name = "+".join(part for part in parts if part)
    return f"{found.folder}: {megabytes(found.bytes)} besides what it shares with {pack}; use it with --pack {name}"
