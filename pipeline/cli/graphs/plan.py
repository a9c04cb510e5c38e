"""`talkreel graph plan`."""

from __future__ import annotations

import argparse

from .arguments import add_graph, show


class PlanCommand:
    """Plan the memory of a graph's values; with --sessions, predict what ONNX Runtime takes for it on this machine's
    CPU, and how many worker processes fit. With named dimensions it holds for every length up to the given ones."""

    help = "memory of a graph, and how many sessions fit"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        add_graph(parser)
        parser.add_argument("--sessions", action="store_true", help="predict ONNX Runtime's memory, too")
        parser.add_argument("--threads", type=int, default=1, help="threads a session (default 1)")
        parser.add_argument("--no-arena", action="store_true", help="the session gives memory back after each run")
        parser.add_argument("--memory", type=float, metavar="GIB", help="of the machine (default: this one's)")
        parser.add_argument("--share", type=float, default=0.8, help="part of it that sessions may take (default 0.8)")

    def run(self, args: argparse.Namespace) -> int:
        from ...graphs.memory import MemoryOptions, peak_memory
        from ...graphs.model import load
        from ...graphs.plan import plan
        from ...graphs.prediction import sessions_that_fit
        from ...machine import memory_bytes

        maximum = dict(args.dims)
        found = plan(load(args.model), maximum)
        data, text = found.to_json(), found.text()
        if args.sessions:
            options = MemoryOptions(threads=args.threads, arena=not args.no_arena)
            predicted = peak_memory(args.model, options, maximum)
            memory = round(args.memory * 2**30) if args.memory else memory_bytes()
            fit = sessions_that_fit([predicted], memory, share=args.share)
            data |= {"session": predicted.to_json(), "memory": memory, "sessions_that_fit": fit}
            terms = "\n".join(f"{name:26}{size / 2**20:10.2f} MiB" for name, size in predicted.to_json().items())
            text += f"\n\nA session of ONNX Runtime:\n{terms}\n\n{fit} processes fit in {memory / 2**30:.1f} GiB"
        show(args, data, text)
        return 0
