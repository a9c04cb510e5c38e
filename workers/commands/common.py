"""What the fleet's commands share: the fleet's address, jobs by id, output as text or JSON."""

from __future__ import annotations

import argparse
import json
from typing import Any

from ..client import Client


def add_fleet(parser: argparse.ArgumentParser) -> None:
    """Arguments of every command that talks to the fleet."""
    parser.add_argument("--url", help="the broker's address (default: TALKREEL_BROKER_URL, else this machine)")
    parser.add_argument("--json", action="store_true", help="as JSON")


def connected(args: argparse.Namespace) -> Client:
    """The fleet at `--url`. Raises SettingsError: that is no address."""
    return Client(args.url)


def show(args: argparse.Namespace, data: Any, text: str) -> None:
    """Print the JSON or the text, as asked for."""
    print(json.dumps(data) if args.json else text)


def standstill(item: dict[str, Any]) -> str:
    """One of `stalled` in a job's status, in words: what stands still, where, and for how long."""
    if item["status"] == "running":
        where = f"on worker {item['worker']}"
    else:
        before = f", given up by worker {item['worker']}" if item["worker"] else ""
        where = f"waits for a worker of queue {item['queue']}{before}"
    note = f" ({item['note']})" if item["note"] else ""
    return f"stalled for {item['seconds']:.0f} s: {item['step']} {where}{note}"
