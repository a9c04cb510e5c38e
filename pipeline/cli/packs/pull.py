"""`talkreel pack pull`."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING

from .arguments import add_json, add_registry, megabytes, registry_of, show
from .progress import PullProgress

if TYPE_CHECKING:
    from ...packs.pull import Pulled
    from ...packs.registry import Entry


class PullCommand:
    """Fetch a pack, check every file's hash, and keep it where --pack finds it by name. A pull that was broken off
    goes on where it stopped; a pack that is here is checked, and damaged files of it are fetched again.

    HF_ENDPOINT, HF_TOKEN, HF_HUB_OFFLINE and proxies (HTTPS_PROXY, NO_PROXY) are honoured."""

    help = "fetch a pack, resumable, every hash checked"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("pack", metavar="PACK", help="a known name, or the address or folder of a manifest.json")
        parser.add_argument(
            "--accept-licence", action="store_true", help="needed where a licence forbids commercial use"
        )
        parser.add_argument(
            "--from", dest="place", metavar="PLACE", help="fetch a known pack's files from this address or folder"
        )
        parser.add_argument("--connections", type=int, default=4, metavar="N", help="at a time (default 4)")
        parser.add_argument(
            "--tries", type=int, default=6, metavar="N",
            help="in a row without a byte more (default 6)",
        )  # fmt: skip
        parser.add_argument("--quiet", action="store_true", help="no progress")
        add_registry(parser)
        add_json(parser)

    def run(self, args: argparse.Namespace) -> int:
        from ...packs.addresses import find_entry
        from ...packs.fetching import Patience
        from ...packs.pull import PullOptions, pull
        from ...packs.registry import Origin

        entry = find_entry(args.pack, registry_of(args))
        if not args.quiet:
            print(_introduction(entry), file=sys.stderr)
        began = time.monotonic()
        with PullProgress(quiet=args.quiet) as progress:
            options = PullOptions(
                connections=max(1, args.connections),
                patience=Patience(tries=max(1, args.tries)),
                accept_licence=args.accept_licence,
                origin=Origin(None, None, args.place, entry.origin.parts) if args.place else None,
                on_progress=progress,
                on_wait=None if args.quiet else _waiting,
            )
            pulled = pull(entry, options)
        seconds = time.monotonic() - began
        data = {
            "name": entry.name,
            "revision": entry.revision,
            "folder": str(pulled.folder),
            "bytes": entry.bytes,
            "fetched_bytes": pulled.fetched,
            "seconds": round(seconds, 3),
        }
        show(args, data, _result(entry, pulled, seconds))
        return 0


def _introduction(entry: Entry) -> str:
    use = "commercial use allowed" if entry.manifest.commercial_use else "NO commercial use"
    return (
        f"{entry.name}, revision {entry.revision[:12]}, {megabytes(entry.bytes)}, from {entry.origin.text}\n"
        f"licence: {entry.manifest.licence}; {use}"
    )


def _waiting() -> None:
    print("another process pulls this pack; waiting for it", file=sys.stderr)


def _result(entry: Entry, pulled: Pulled, seconds: float) -> str:
    if not pulled.fetched:
        return f"{pulled.folder}: nothing to fetch, every hash is right"
    rate = pulled.fetched / max(seconds, 1e-3)
    return f"{pulled.folder}: every hash is right; {megabytes(pulled.fetched)} at {rate / 1e6:.1f} MB/s"
