"""Write stand-ins of published packs: same files, tensors and numbers of parts, seeded weights. They render
nonsense; they are for tests and benchmarks of everything but the picture."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from ..registry import SHIPPED_REGISTRY
from .writing import write_hub, write_pack

TOLERANCE = 0.05
"""How far a full-size file may be from the published one's bytes."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Write what the command line asks for; 1 when a full-size file has not the published size."""
    parser = argparse.ArgumentParser(prog="python -m pipeline.packs.standins", description=__doc__)
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="where it is written")
    parser.add_argument("--small", action="store_true", help="narrow networks, for tests")
    parser.add_argument("--seed", type=int, default=0, help="of the weights (default: %(default)s)")
    parser.add_argument(
        "--name", action="append", metavar="PACK", dest="names", help="timeline-studio, liveportrait-onnx; both if none"
    )
    parser.add_argument("--opened", action="store_true", help="packs to render with, FOLDER/NAME, instead of a hub")
    parser.add_argument(
        "--registry", metavar="FILE", type=Path, help="the hub's registry (default: FOLDER/registry.json)"
    )
    parser.add_argument(
        "--of", metavar="FILE", type=Path, default=SHIPPED_REGISTRY, help="the registry to stand in for"
    )
    chosen = parser.parse_args(arguments)
    names = chosen.names or ["timeline-studio", "liveportrait-onnx"]
    wrong: list[str] = []

    def on_file(name: str, size: int, published: int) -> None:
        off = size / published - 1
        if not chosen.small and abs(off) > TOLERANCE:
            wrong.append(f"{name} is {off:+.1%} off the published size")
        print(f"{name}: {size} bytes, published {published} ({off:+.1%})", flush=True)

    how = {"small": chosen.small, "seed": chosen.seed, "registry": chosen.of, "on_file": on_file}
    if chosen.opened:
        for name in names:
            write_pack(chosen.folder / name, name, **how)
    else:
        data = write_hub(chosen.folder, names, **how)
        target = chosen.registry or chosen.folder / "registry.json"
        target.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", "utf-8")
    print(*wrong, sep="\n", end="\n" if wrong else "", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
