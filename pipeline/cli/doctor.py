"""`talkreel doctor`: what this machine has, and what is missing."""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Callable
from typing import Any, TypeVar

import av

from ..errors import TalkreelError
from ..machine import cpu_name, memory_bytes
from ..packs.registry import Registry, read_registry
from ..report import versions
from ..runtime.options import RuntimeOptions
from .examine_models import RuntimeFindings, examine_runtime
from .examine_packs import pack_looks

T = TypeVar("T")

ENCODERS = ("libvpx-vp9", "libopus")
"""What a film needs; PyAV's wheels bring both."""

DECODERS = ("aac", "mp3", "opus", "vorbis", "flac", "pcm_s16le")


class DoctorCommand:
    """Look at the machine; exit code 1 when something needed is missing."""

    help = "say what this machine has and what is missing"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="as JSON")

    def run(self, args: argparse.Namespace) -> int:
        found, problems = examine()
        if args.json:
            print(json.dumps({**found, "problems": problems}, indent=2))
        else:
            for name, value in found.items():
                print(f"{name + ':':<12} {_text(value)}")
            for problem in problems:
                print(f"MISSING: {problem}")
            if not problems:
                print("Nothing is missing.")
        return 1 if problems else 0


def examine() -> tuple[dict[str, Any], list[str]]:
    """What is here, by topic, and one line for everything that is wrong, with its cure."""
    problems: list[str] = []

    def tried(look: Callable[[], T], instead: T) -> T:
        try:
            return look()
        except TalkreelError as error:
            problems.append(str(error))
            return instead

    runtime = tried(examine_runtime, RuntimeFindings())
    problems += runtime.problems
    packs = pack_looks(tried(read_registry, Registry({})))
    found = {
        "versions": versions(),
        "machine": {"system": platform.platform(), "cpu": cpu_name()},
        "threads": RuntimeOptions().thread_count,
        "memory": f"{memory_bytes() / 2**30:.1f} GiB",
        "onnxruntime": runtime.builds,
        "ladder": runtime.default,
        "providers": runtime.providers,
        "codecs": _codecs(problems),
        "packs": {name: tried(look, "not usable") for name, look in packs},
    }
    return found, problems


def _codecs(problems: list[str]) -> dict[str, str]:
    found = {}
    for names, mode in ((ENCODERS, "w"), (DECODERS, "r")):
        for name in names:
            try:
                av.Codec(name, mode)  # type: ignore[arg-type]
                found[name] = "yes"
            except av.codec.codec.UnknownCodecError:
                found[name] = "no"
                problems.append(f"PyAV has no {name}; reinstall av from its wheel: pip install --force-reinstall av")
    return found


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{key} {item}" for key, item in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
