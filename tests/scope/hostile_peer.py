# SPDX-License-Identifier: Apache-2.0
"""Somebody at the other end of a socket who is no instrument, or a broken one."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

Talk = Callable[[socket.socket], None]
"""Talks to one client; the connection is closed when it returns. A closed socket ends it."""


@contextmanager
def peer(talk: Talk) -> Generator[str]:
    """Serve one client after the other on a loopback socket, and give its VISA name."""
    listener = socket.create_server(("127.0.0.1", 0))
    clients: list[socket.socket] = []

    def serve() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            clients.append(client)
            with client, suppress(OSError):
                talk(client)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"TCPIP::127.0.0.1::{listener.getsockname()[1]}::SOCKET"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for client in clients:
            with suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)
        thread.join(10)
