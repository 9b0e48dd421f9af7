# SPDX-License-Identifier: Apache-2.0
"""Shortest UDP round trip: `udp_echo.py serve ADDRESS` there, `udp_echo.py measure ADDRESS` here."""

from __future__ import annotations

import socket
import sys
import time

PORT = 7007
ROUNDS = 10
TIMEOUT_S = 10.0


def serve(address: str) -> None:
    """Say `ready`, then send every datagram back, until killed."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind((address, PORT))
        print("ready", flush=True)
        while True:
            data, peer = server.recvfrom(64)
            server.sendto(data, peer)


def measure(address: str) -> int:
    """Return the shortest of some round trips in nanoseconds."""
    shortest_ns = sys.maxsize
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(TIMEOUT_S)
        client.connect((address, PORT))
        for _ in range(ROUNDS):
            sent_ns = time.monotonic_ns()
            client.send(b"?")
            client.recv(64)
            shortest_ns = min(shortest_ns, time.monotonic_ns() - sent_ns)
    return shortest_ns


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    print(measure(sys.argv[2]))
