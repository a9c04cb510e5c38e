"""`talkreel pack build`."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

from ...errors import RuntimeMissingError
from ...packs.built import PRESETS, Build, builds
from ...packs.store import open_pack
from .arguments import add_json, add_registry, megabytes, registry_of, show


class BuildCommand:
    """Make a pack's models fit for this machine: its generators, and any other model that is measured to gain. The
    build lies beside the pack with its proofs, and is opened as PACK+PRESET."""

    help = "a pack's models in the forms that this machine runs best, with proofs"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("pack", metavar="PACK", help="name, NAME@REVISION or folder")
        kinds = "; ".join(f"{name}: {what}" for name, what in PRESETS.items())
        parser.add_argument("--preset", required=True, choices=list(PRESETS), help=kinds)
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
        parser.add_argument("--threads", type=int, default=2, help="threads of a model in the proofs (default 2)")
        parser.add_argument(
            "--runs",
            type=int,
            default=3,
            metavar="N",
            help="pairs of timed runs of a generator, 0 for none (default 3)",
        )
        add_registry(parser)
        add_json(parser)

    def run(self, args: argparse.Namespace) -> int:
        for module in ("onnx", "onnx_ir"):
            try:
                importlib.import_module(module)
            except ImportError as error:
                raise RuntimeMissingError(
                    f'talkreel pack build needs {module} ({error}); install it: pip install "talkreel[graphs]"'
                ) from error
        from ...packs.building import BuildOptions, build

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
