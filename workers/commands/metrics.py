"""`talkreel metrics`: the fleet's figures for Prometheus."""

from __future__ import annotations

import argparse

from pipeline.errors import SettingsError

from ..connections import Connections

PORT = 9540


class MetricsCommand:
    """Serve figures of the whole fleet at /metrics until told to stop."""

    help = "serve the fleet's figures for Prometheus"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--port", type=int, default=PORT, help=f"default {PORT}; 0 = a free one")
        parser.add_argument("--address", default="127.0.0.1", help="to listen on (default 127.0.0.1)")
        parser.add_argument("--url", help="the broker's address (default: TALKREEL_BROKER_URL, else this machine)")

    def run(self, args: argparse.Namespace) -> int:
        if not 0 <= args.port <= 65535:
            raise SettingsError(f"port {args.port} is out of range; give one from 0 to 65535")
        try:
            from ..metrics import serve
        except ModuleNotFoundError as error:
            if error.name != "prometheus_client":
                raise
            raise SettingsError("prometheus-client is not installed; pip install 'talkreel[metrics]'") from None
        serve(Connections.read(args.url), args.address, args.port)
        return 0
