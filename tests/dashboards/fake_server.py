# SPDX-License-Identifier: Apache-2.0
"""Servers that misbehave as a real one cannot be made to: scripted answers over a real socket."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable

from dashboards.delivery import Endpoint
from tests.patience import HANG_S

Behaviour = Callable[[socket.socket, bytes], None]


class FakeServer:
    """Accepts connections, reads a request whole, and lets a behaviour deal with each."""

    def __init__(self, behave: Behaviour) -> None:
        """Listen on loopback."""
        self._behave = behave
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.requests: list[bytes] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def __enter__(self) -> FakeServer:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(HANG_S)

    def endpoint(self, authorization: str = "") -> Endpoint:
        """Return its write interface."""
        return Endpoint(1, False, "127.0.0.1", self.port, "/write?db=hil&precision=ns", authorization)

    def read(self, connection: socket.socket) -> bytes:
        """Return a request, whole."""
        return _read_request(connection)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(HANG_S)
                try:
                    self.requests.append(self.read(connection))
                    self._behave(connection, self.requests[-1])
                except OSError:
                    continue


def body_of(request: bytes) -> list[str]:
    """Return the lines of a request's body."""
    return request.partition(b"\r\n\r\n")[2].decode().splitlines()


def answer(status: int, text: str = "", *headers: str) -> Behaviour:
    """Return the behaviour of always answering the same."""

    def behave(connection: socket.socket, _request: bytes) -> None:
        send_answer(connection, status, text, *headers)

    return behave


def send_answer(connection: socket.socket, status: int, text: str = "", *headers: str) -> None:
    """Send one answer."""
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(text.encode())}", *headers, "", text]
    connection.sendall("\r\n".join(lines).encode())


def drip(connection: socket.socket, _request: bytes) -> None:
    """Answer a byte now and then, for ever."""
    connection.sendall(b"HTTP/1.1 204 No Content\r\nX-Slow: ")
    while True:
        connection.sendall(b"x")
        time.sleep(0.05)


def hang_up(connection: socket.socket, _request: bytes) -> None:
    """Close the connection in the middle of the answer."""
    connection.sendall(b"HTTP/1.1 20")


def _read_request(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        data += _receive(connection)
    head, _, body = data.partition(b"\r\n\r\n")
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
    length = int(fields.get(b"content-length", b"0"))
    while len(body) < length:
        body += _receive(connection)
    return head + b"\r\n\r\n" + body


def _receive(connection: socket.socket) -> bytes:
    data = connection.recv(65536)
    if not data:
        raise ConnectionResetError
    return data
