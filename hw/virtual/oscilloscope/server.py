# SPDX-License-Identifier: Apache-2.0
"""The instrument's port: connections come, messages go to the dialect, replies go back."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import threading
from typing import Protocol

from hw.errors import ConfigError
from hw.virtual.oscilloscope.link import Link, ReplyFate

CONNECTIONS_MAX = 4
LEFT_OVER_BYTES_MAX = 1 << 20


class Instrument(Protocol):
    """What a dialect is to the server. Only one message is worked on at a time."""

    @property
    def keeps_replies(self) -> bool:
        """Tell whether a reply that a lost connection has left over goes to the next connection."""
        ...

    def handle(self, message: bytes, link: Link) -> bytes:
        """Do a message; return the reply with its end, or nothing."""
        ...

    def stall_after(self, reply: bytes) -> int | None:
        """Return after how many bytes the transfer of a reply stops for good, or None."""
        ...

    def interrupted(self) -> None:
        """Note that a message came before the reply to the one before was read."""
        ...

    def oversized(self) -> None:
        """Note that a message was too long."""
        ...

    def close(self) -> None:
        """End what runs."""
        ...


class Server:
    """A port of an instrument.

    Use as a context manager; it serves from the beginning.
    """

    def __init__(self, instrument: Instrument, address: str = "127.0.0.1", port: int = 0) -> None:
        """Open the port.

        Args:
            instrument: Dialect that answers.
            address: Loopback or a private address: an instrument is nothing for the open network.
            port: 0: any that is free.

        Raises:
            ConfigError: The address is not allowed, or not to be had.
        """
        check_address(address)
        self._instrument = instrument
        self._ending = threading.Event()
        self._working = threading.Lock()
        self._left_over = b""
        self._links: dict[threading.Thread, socket.socket] = {}
        try:
            self._listener = socket.create_server((address, port))
        except OSError as error:
            raise ConfigError(f"address {address} port {port}: {error.strerror}") from error
        self.port: int = self._listener.getsockname()[1]
        self._acceptor = threading.Thread(target=self._accept, name="oscilloscope", daemon=True)
        self._acceptor.start()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hang up on everybody and end."""
        self._ending.set()
        _wake(self._listener)
        self._acceptor.join()
        for thread, connection in self._links.items():
            _wake(connection)
            thread.join()
        self._listener.close()
        self._instrument.close()

    def _accept(self) -> None:
        while not self._ending.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:  # the port is being closed, or the caller has given up already
                self._ending.wait(0.01)
                continue
            self._links = {thread: link for thread, link in self._links.items() if thread.is_alive()}
            if len(self._links) >= CONNECTIONS_MAX:
                connection.close()
                continue
            thread = threading.Thread(target=self._serve, args=(connection,), name="controller", daemon=True)
            self._links[thread] = connection
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            link = Link(connection, self._ending.is_set)
            with self._working:  # the connection before may still be at work
                left_over, self._left_over = self._left_over, b""
                if left_over:
                    link.send(left_over)
            while (message := link.read_message()) is not None:
                with self._working:
                    if link.oversized:
                        self._instrument.oversized()
                        continue
                    reply = self._instrument.handle(message, link)
                    if reply:
                        self._send(reply, link)

    def _send(self, reply: bytes, link: Link) -> None:
        outcome, sent = link.send(reply, self._instrument.stall_after(reply))
        if outcome is ReplyFate.INTERRUPTED:
            self._instrument.interrupted()
        elif outcome is ReplyFate.LOST and self._instrument.keeps_replies:
            self._left_over = reply[sent : sent + LEFT_OVER_BYTES_MAX]


def _wake(waiting: socket.socket) -> None:
    """End whatever waits for a socket."""
    with contextlib.suppress(OSError):
        waiting.shutdown(socket.SHUT_RDWR)


def check_address(address: str) -> None:
    """Refuse an address that machines outside could reach.

    Raises:
        ConfigError: It is neither loopback nor private, or no address.
    """
    try:
        found = ipaddress.IPv4Address(address)
    except ValueError as error:
        raise ConfigError(f"address: {address!r} is not an IPv4 address") from error
    if found.is_unspecified or not (found.is_loopback or found.is_private):
        raise ConfigError(f"address: {address}; allowed: loopback, or the private address of a namespace")
