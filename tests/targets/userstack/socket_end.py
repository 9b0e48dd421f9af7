# SPDX-License-Identifier: Apache-2.0
"""The near end of the cases of sockets, and what they have in common: test_socket_cases.py."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import select
import socket
import sys
from collections.abc import Callable
from typing import Any

PORT, DATAGRAM_PORT, CLOSED_PORT = 5001, 5002, 5998
WAYS = ("v4", "v6", "mapped")  # mapped: IPv4 by a socket of IPv6
libc: Any = ctypes.CDLL(None, use_errno=True)


def said(call: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a call returns, or its error's name."""
    try:
        return call(*arguments)
    except OSError as error:
        return errno.errorcode[error.errno or 0]


class End:
    """The near end, by one of the ways."""

    def __init__(self, way: str, near: str, far: str) -> None:
        """Take the way, and both ends' addresses."""
        self.way, self.is_v4 = way, way == "v4"
        self.family = socket.AF_INET if self.is_v4 else socket.AF_INET6
        prefix = "::ffff:" if way == "mapped" else ""
        self.near, self.far = prefix + near, prefix + far
        self.any = "0.0.0.0" if self.is_v4 else "::"  # noqa: S104
        self._made: list[socket.socket] = []

    def tcp(self) -> socket.socket:
        """Return a socket of TCP."""
        return self.keep(socket.socket(self.family, socket.SOCK_STREAM))

    def udp(self) -> socket.socket:
        """Return a socket of UDP."""
        return self.keep(socket.socket(self.family, socket.SOCK_DGRAM))

    def keep(self, sock: socket.socket) -> socket.socket:
        """Close it with the others."""
        self._made.append(sock)
        return sock

    def connected(self, command: str = "echo") -> socket.socket:
        """Return a connection to the far end, which does what it is told."""
        sock = self.tcp()
        sock.connect((self.far, PORT))
        sock.sendall(command.encode() + b"\n")
        return sock

    def datagrams(self, port: int = DATAGRAM_PORT) -> socket.socket:
        """Return a socket of UDP with the far end as its peer."""
        sock = self.udp()
        sock.connect((self.far, port))
        return sock

    def listener(self) -> socket.socket:
        """Return one that listens at a port of its own."""
        sock = self.tcp()
        sock.bind((self.near, 0))
        sock.listen(8)
        return sock

    def called(self, listener: socket.socket, then: str = "echo") -> None:
        """Let the far end connect to a listener, and wait until it has."""
        asked = self.connected(f"dial {self.near} {listener.getsockname()[1]} {then}")
        assert asked.recv(1)

    def close(self) -> None:
        """Close all of them."""
        for sock in self._made:
            sock.close()
        self._made.clear()


def polled(sock: socket.socket, events: int = 0x7FFF) -> list[str]:
    """Return what poll says now."""
    poll = select.poll()
    poll.register(sock, events)
    return [hex(found) for _, found in poll.poll(0)]


def wait_for(sock: socket.socket, events: int) -> None:
    poll = select.poll()
    poll.register(sock, events)
    poll.poll()


def drain(sock: socket.socket) -> bytes:
    data = b""
    while piece := sock.recv(1 << 16):
        data += piece
    return data


def number(sock: socket.socket, request: int) -> Any:
    """Return what a request of ioctl(2) says."""
    found = said(fcntl.ioctl, sock, request, bytes(4))
    return found if isinstance(found, str) else int.from_bytes(found, sys.byteorder)
