"""`talkreel render`: a film in this process."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from ..errors import OutputError, SettingsError
from ..packs.store import DEFAULT_PACK
from ..render import check_output, render
from ..report import Report
from ..runtime.options import MOST_THREADS, RuntimeOptions
from ..runtime.providers import KINDS, read_rungs
from ..settings import FRAMES, Settings, parse_background
from ..stages.film_format import exact_fps
from ..whole_file import write_whole
from .progress import StageProgress


def add_settings(parser: argparse.ArgumentParser) -> None:
    """The arguments that become `Settings`; every command that makes films has them."""
    defaults = Settings()
    parser.add_argument("--preset", default=defaults.preset, help="preview (256 px) or quality (512 px, default)")
    parser.add_argument("--fps", default=str(defaults.fps), help="film's frame rate, 1 to 60 (default 25)")
    parser.add_argument(
        "--keyframe-fps", type=float, metavar="FPS", help="rate of rendered frames (default: the pack's)"
    )
    parser.add_argument("--seed", type=int, default=defaults.seed, help="another seed, other head motion (default 0)")
    parser.add_argument("--strength", type=float, default=defaults.strength, help="of the motion, 0 to 2 (default 1)")
    parser.add_argument("--guidance", type=float, help="how strongly the sound leads (default: the pack's)")
    parser.add_argument("--smoothing", type=float, help="of the head's motion, 0 (none) to 0.999 (default: the pack's)")
    parser.add_argument(
        "--frame", choices=FRAMES, default=defaults.frame, help="the whole picture (default) or the face's square"
    )
    parser.add_argument(
        "--max-side", type=int, default=defaults.max_side, metavar="PX",
        help="long side of a portrait film at most (default 1280)",
    )  # fmt: skip
    parser.add_argument("--face", type=int, metavar="N", help="which face, from 1, left to right")
    parser.add_argument("--background", default="#808080", help="colour behind transparent pictures (default grey)")
    parser.add_argument(
        "--no-synthetic-note", dest="synthetic_note", action="store_false",
        help="leave the note 'this video is synthetic' out of the film's metadata",
    )  # fmt: skip


def add_providers(parser: argparse.ArgumentParser) -> None:
    """The ladder of execution providers."""
    parser.add_argument(
        "--providers", metavar="LIST",
        help=f"what models run on, best first, for instance cuda,cpu or cuda:1 (of {', '.join(KINDS)}; "
        "default: what the installed onnxruntime is for, then cpu)",
    )  # fmt: skip
    parser.add_argument(
        "--strict-providers", action="store_true",
        help="a model that does not run wholly on the first provider is an error",
    )  # fmt: skip


def add_deadline(parser: argparse.ArgumentParser) -> None:
    """--deadline, for every command that makes one film."""
    parser.add_argument(
        "--deadline", type=float, metavar="SECONDS",
        help="when the film must be done; what is too slow for that is lowered first (key frames, then preset)",
    )  # fmt: skip


def read_settings(args: argparse.Namespace) -> Settings:
    """Raises SettingsError: a value is out of its range."""
    return Settings(
        preset=args.preset,
        fps=exact_fps(args.fps),
        keyframe_fps=args.keyframe_fps,
        seed=args.seed,
        strength=args.strength,
        guidance=args.guidance,
        smoothing=args.smoothing,
        frame=args.frame,
        max_side=args.max_side,
        face=args.face,
        background=parse_background(args.background),
        synthetic_note=args.synthetic_note,
    )


class RenderCommand:
    """Make a film of a portrait and a voice recording."""

    help = "turn a portrait and a voice recording into a WebM"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("portrait", metavar="PORTRAIT", type=Path, help="picture with a face")
        parser.add_argument("audio", metavar="AUDIO", type=Path, help="voice recording, or a video with one")
        parser.add_argument("-o", "--output", type=Path, required=True, metavar="OUT.webm", help="the film")
        add_settings(parser)
        parser.add_argument("--pack", default=DEFAULT_PACK, help="models: a pack's name or folder")
        add_providers(parser)
        parser.add_argument("--threads", type=int, help="threads a model (default: every core)")
        add_deadline(parser)
        parser.add_argument("--report", type=Path, metavar="FILE.json", help="write what happened")
        parser.add_argument("--quiet", action="store_true", help="no progress, no summary")

    def run(self, args: argparse.Namespace) -> int:
        settings = read_settings(args)
        if args.threads is not None and not 1 <= args.threads <= MOST_THREADS:
            raise SettingsError(f"threads {args.threads} is out of range; give a number from 1 to {MOST_THREADS}")
        providers = read_rungs(args.providers) if args.providers is not None else None
        options = RuntimeOptions(args.threads, providers, strict=args.strict_providers)
        if args.report:
            _check_report(args)
        with StageProgress(quiet=args.quiet) as progress:
            report = render(
                args.portrait,
                args.audio,
                args.output,
                settings,
                pack=args.pack,
                options=options,
                deadline=args.deadline,
                on_progress=progress,
                on_note=progress.note,
            )
        if args.report:
            _write_report(args, report)
        if not args.quiet:
            print(summary(args.output, report), file=sys.stderr)
        return 0


def _check_report(args: argparse.Namespace) -> None:
    """Raises OutputError: the report could not be written after the film, or would replace a file of it."""
    check_output(args.report)
    place = args.report.resolve()
    if place in (path.resolve() for path in (args.output, args.portrait, args.audio)):
        raise OutputError(f"the report would replace {args.report}; give it another name")


def _write_report(args: argparse.Namespace, report: Report) -> None:
    """Raises OutputError: it cannot be written any more; the film stays."""
    try:
        write_whole(args.report, (json.dumps(report.to_json(), indent=2) + "\n").encode())
    except OutputError as error:
        raise OutputError(f"{args.output} is made, but not its report: {error}") from error


def summary(output: Path, report: Report) -> str:
    """A few lines on the film: size, length, speed, and whatever deserves saying."""
    film, frames = report.film, report.frames
    lines = [
        f"{output}: {film['width']}x{film['height']}, {film['picture_duration']:.2f} s, "
        f"{frames.total} frames ({frames.key_frames} rendered), made in {report.seconds:.1f} s",
        f"models ran on {', '.join(report.rungs())}",
        *map(str, report.falls()),
        *report.notes,
        *map(str, report.recoveries()),
    ]
    for kind in ("rendered again", "carried on"):
        numbers = [str(repair.index) for repair in report.repairs if repair.kind == kind]
        if numbers:
            lines.append(f"{len(numbers)} bad frames {kind}: {', '.join(numbers)}")
    return "\n".join(lines)
