# SPDX-License-Identifier: Apache-2.0
"""The peers of programs with one fault each, on loopback, by the kernel's stack."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Self

from tests.patience import HANG_S

REQUEST_BYTES, ANSWER_BYTES = 32, 8192
MESSAGES, ROUNDS, CONNECTIONS = 60, 40, 4
BULK_BYTES = 2 << 20


def receive(end: socket.socket, size: int) -> bytes:
    """Return as many bytes, or what came until the end."""
    data = b""
    while len(data) < size and (piece := end.recv(size - len(data))):
        data += piece
    return data


def answer(size: int) -> Callable[[socket.socket], None]:
    """Answer each request with as many bytes, at once."""

    def run(end: socket.socket) -> None:
        while receive(end, REQUEST_BYTES):
            end.sendall(bytes(size))

    return run


def ask(count: int) -> Callable[[socket.socket], None]:
    """Ask as often, each time as soon as there is an answer."""

    def run(end: socket.socket) -> None:
        for _ in range(count):
            end.sendall(bytes(REQUEST_BYTES))
            receive(end, REQUEST_BYTES)

    return run


def pour(end: socket.socket) -> None:
    """Send as fast as it goes."""
    end.sendall(bytes(BULK_BYTES))


PEERS: dict[str, tuple[Callable[[socket.socket], None], int]] = {
    "writes": (answer(REQUEST_BYTES), 1),
    "buffer": (answer(ANSWER_BYTES), 1),
    "sleep": (ask(MESSAGES), 1),
    "thread": (ask(ROUNDS), CONNECTIONS),
    "name": (answer(REQUEST_BYTES), 1),
    "late": (pour, 1),
}
"""By program: what each connection's peer does, and how many connections there are."""


class Peer:
    """Serves one program while it is open, at `port` of 127.0.0.1."""

    def __init__(self, program: str) -> None:
        """Listen; the peer begins when all connections are there."""
        self._run, self._count = PEERS[program]
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(HANG_S)
        self.port = int(self._listener.getsockname()[1])
        self._pool = ThreadPoolExecutor(self._count + 1)
        self._all: Future[None] | None = None
        self._ends: Sequence[socket.socket] = []

    def _serve(self) -> None:
        self._ends = [self._listener.accept()[0] for _ in range(self._count)]
        for end in self._ends:
            end.settimeout(HANG_S)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for done in [self._pool.submit(self._one, end) for end in self._ends]:
            done.result(HANG_S)

    def _one(self, end: socket.socket) -> None:
        with end, suppress(ConnectionError):
            self._run(end)

    def __enter__(self) -> Self:
        """Begin."""
        self._all = self._pool.submit(self._serve)
        return self

    def __exit__(self, *_: object) -> None:
        """End; what a peer found wrong is raised."""
        try:
            if self._all:
                self._all.result(HANG_S)
        finally:
            self._listener.close()
            self._pool.shutdown(cancel_futures=True)
