# SPDX-License-Identifier: Apache-2.0
"""An NTP server (RFC 5905, section 7.3) that lies in one way: `python lying_server.py ADDRESS PORT LIE`."""

from __future__ import annotations

import socket
import struct
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

UNIX_TO_NTP_S = 2_208_988_800
HONEST = "honest"
LIES = (
    HONEST,
    "wrong-time",  # an hour ahead
    "origin",  # answers something that nobody has asked
    "kiss-deny",
    "kiss-rate",
    "kiss-init",  # ntpd's, which has just been started
    "kiss-step",
    "stratum-16",
    "leap",
    "mode",
    "version",
    "short",
    "root-distance",
    "no-stamps",
    "order",  # sent before the request came
    "negative-delay",  # held for a second, says it
    "silent",
)
HEADER = struct.Struct(">BBbbII4sQQQQ")
ONE_S = 1 << 32


def ntp_now(ahead_s: float = 0.0) -> int:
    """Return this machine's time as an NTP stamp."""
    now_ns = time.time_ns() + round(ahead_s * 1e9)
    return (((now_ns // 10**9) + UNIX_TO_NTP_S) << 32 | ((now_ns % 10**9) << 32) // 10**9) & (2**64 - 1)


def answer(request: bytes, lie: str) -> bytes | None:
    """Return the answer to a request, None for silence."""
    origin = int.from_bytes(request[40:48], "big")
    ahead_s = 3600.0 if lie == "wrong-time" else 0.0
    received = ntp_now(ahead_s)
    kiss = lie.startswith("kiss-")
    leap = 3 if lie == "leap" or kiss else 0
    version, mode = (1 if lie == "version" else 4), (5 if lie == "mode" else 4)
    stratum = 0 if kiss else 16 if lie == "stratum-16" else 1
    reference = lie[-4:].upper().encode() if kiss else b"LIE\0"
    sent = ntp_now(ahead_s)
    if lie == "silent":
        return None
    if lie == "origin":
        origin ^= 1
    if lie == "no-stamps":
        received = 0
    if lie == "order":
        sent = received - ONE_S
    if lie == "negative-delay":
        received, sent = received - ONE_S, sent + ONE_S
    distance = 2 << 16 if lie == "root-distance" else 0
    packet = HEADER.pack(
        leap << 6 | version << 3 | mode,
        stratum,
        0,
        -20,
        0,
        distance,
        reference,
        sent,
        origin,
        received,
        sent,
    )
    return packet[:-1] if lie == "short" else packet


def serve(link: socket.socket, lie: str) -> None:
    """Answer until the socket is closed."""
    while True:
        try:
            request, client = link.recvfrom(1024)
            packet = answer(request, lie)
            if packet is not None:
                link.sendto(packet, client)
        except OSError:
            return


@contextmanager
def lying_server(lie: str, address: str = "127.0.0.1") -> Generator[int]:
    """Serve in a thread; gives the port."""
    link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    link.bind((address, 0))
    thread = threading.Thread(target=serve, args=(link, lie), daemon=True)
    thread.start()
    try:
        yield int(link.getsockname()[1])
    finally:
        link.close()


if __name__ == "__main__":
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        own.bind((sys.argv[1], int(sys.argv[2])))
        print("ready", flush=True)
        serve(own, sys.argv[3])
