# SPDX-License-Identifier: Apache-2.0
"""Numbered datagrams between two namespaces of a virtual bench: so many, at a pace, then none."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from hw.session import Bench
from hw.virtual.bench_network import namespace_of
from tests.namespace import in_namespace

PAYLOAD_BYTES = 32
PATIENCE_S = 10.0


@dataclass(frozen=True)
class Machine:
    """A namespace of the bench, its address, and the switch's interface towards it."""

    node: str
    address: str
    port: str


@contextmanager
def both_ends(bench: Bench, ends: tuple[Machine, Machine], port: int) -> Generator[tuple[socket.socket, ...]]:
    """Give a socket at each end, connected to each other: each datagram has an IP identification of its own.

    They receive, so that no machine answers that a port is closed.
    """
    sockets: list[socket.socket] = []
    try:
        for own in ends:
            made = in_namespace(
                namespace_of(bench.spec.name, own.node), lambda: socket.socket(type=socket.SOCK_DGRAM)
            )
            sockets.append(made)
            made.settimeout(PATIENCE_S)
            made.bind((own.address, port))
        for made, peer in zip(sockets, reversed(ends), strict=True):
            made.connect((peer.address, port))
        yield tuple(sockets)
    finally:
        for made in sockets:
            made.close()


def send(sockets: tuple[socket.socket, ...], count: int, interval_s: float) -> None:
    """Send so many datagrams from each socket, one every interval, late ones at once."""
    begin_s = time.monotonic()
    for number in range(count):
        wait_s = begin_s + number * interval_s - time.monotonic()
        if wait_s > 0:
            time.sleep(wait_s)
        for each in sockets:
            each.send(number.to_bytes(8, "big").ljust(PAYLOAD_BYTES, b"\0"))


def exchange(sockets: tuple[socket.socket, ...], count: int, interval_s: float) -> None:
    """Send so many datagrams from the first socket, each answered by the second before the next leaves."""
    near, far = sockets
    for number in range(count):
        for sender, receiver in ((near, far), (far, near)):
            sender.send(number.to_bytes(8, "big").ljust(PAYLOAD_BYTES, b"\0"))
            receiver.recv(PAYLOAD_BYTES)
        time.sleep(interval_s)


@contextmanager
def sending(sockets: tuple[socket.socket, ...], interval_s: float) -> Generator[None]:
    """Send meanwhile, one datagram every interval from each socket."""
    ended = threading.Event()

    def go_on() -> None:
        while not ended.wait(interval_s):
            send(sockets, 1, 0)

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
