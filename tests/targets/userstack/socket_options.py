# SPDX-License-Identifier: Apache-2.0
"""Options of sockets: values, and lengths, each a case of test_socket_cases.py."""

from __future__ import annotations

import ctypes
import errno
import socket
from collections.abc import Callable
from typing import Any

from tests.targets.userstack.socket_end import libc, said

# Options: values that are set, and what is said then.

FLAG, SMALL = (0, 1, 2, -1), (0, 1, 10, 255, 256, -1, 40000)
SOL, TCP, IP, IP6 = socket.SOL_SOCKET, socket.IPPROTO_TCP, socket.IPPROTO_IP, socket.IPPROTO_IPV6
OPTIONS: dict[str, tuple[int, int, tuple[int, ...]]] = {
    "SO_REUSEADDR": (SOL, 2, FLAG),
    "SO_BROADCAST": (SOL, 6, FLAG),
    "SO_DONTROUTE": (SOL, 5, FLAG),
    "SO_KEEPALIVE": (SOL, 9, FLAG),
    "SO_OOBINLINE": (SOL, 10, FLAG),
    "SO_PRIORITY": (SOL, 12, (0, 3, 6)),
    "SO_REUSEPORT": (SOL, 15, FLAG),
    "SO_RCVLOWAT": (SOL, 18, (1, 5, 0)),
    "SO_TIMESTAMP": (SOL, 29, FLAG),
    "SO_MARK": (SOL, 36, (0, 7)),
    "SO_BUSY_POLL": (SOL, 46, (0, 5)),
    "SO_SNDBUF": (SOL, 7, (1 << 16, 1, 0)),
    "SO_RCVBUF": (SOL, 8, (1 << 16, 1, 0)),
    "SO_INCOMING_CPU": (SOL, 49, (0,)),
    "TCP_NODELAY": (TCP, 1, FLAG),
    "TCP_MAXSEG": (TCP, 2, (0, 87, 88, 536, 1460, 40000)),
    "TCP_CORK": (TCP, 3, FLAG),
    "TCP_KEEPIDLE": (TCP, 4, (0, 1, 100, 32767, 32768)),
    "TCP_KEEPINTVL": (TCP, 5, (0, 1, 100, 32767, 32768)),
    "TCP_KEEPCNT": (TCP, 6, (0, 1, 127, 128)),
    "TCP_SYNCNT": (TCP, 7, (0, 1, 127, 128)),
    "TCP_LINGER2": (TCP, 8, (-1, 0, 10)),
    "TCP_DEFER_ACCEPT": (TCP, 9, (0, 1)),
    "TCP_QUICKACK": (TCP, 12, (0, 1)),
    "TCP_USER_TIMEOUT": (TCP, 18, (0, 5000, -1)),
    "TCP_NOTSENT_LOWAT": (TCP, 25, (0, 4096)),
    "IP_TOS": (IP, 1, SMALL),
    "IP_TTL": (IP, 2, SMALL),
    "IP_MTU_DISCOVER": (IP, 10, (0, 1, 2, 3, 9)),
    "IP_RECVTOS": (IP, 13, FLAG),
    "IP_FREEBIND": (IP, 15, FLAG),
    "IPV6_UNICAST_HOPS": (IP6, 16, SMALL),
    "IPV6_MULTICAST_HOPS": (IP6, 18, SMALL),
    "IPV6_V6ONLY": (IP6, 26, FLAG),
    "IPV6_TCLASS": (IP6, 67, SMALL),
    "IPV6_DONTFRAG": (IP6, 62, FLAG),
}
LENGTHS: dict[str, tuple[int, int]] = {
    "SO_KEEPALIVE": (SOL, 9),
    "SO_LINGER": (SOL, 13),
    "SO_RCVTIMEO": (SOL, 20),
    "SO_ERROR": (SOL, 4),
    "SO_TYPE": (SOL, 3),
    "SO_SNDBUF": (SOL, 7),
    "TCP_NODELAY": (TCP, 1),
    "TCP_MAXSEG": (TCP, 2),
    "TCP_KEEPIDLE": (TCP, 4),
    "TCP_CONGESTION": (TCP, 13),
    "IP_TOS": (IP, 1),
    "IP_TTL": (IP, 2),
    "no such": (SOL, 9999),
    "no such level": (9999, 1),
}


def option_case(level: int, name: int, values: tuple[int, ...]) -> Callable[[socket.socket], object]:
    def ask(sock: socket.socket) -> object:
        found = said(sock.getsockopt, level, name)
        pairs = [
            [said(sock.setsockopt, level, name, each), said(sock.getsockopt, level, name)] for each in values
        ]
        return found, pairs

    return ask


def lengths_case(level: int, name: int) -> Callable[[socket.socket], object]:
    def ask(sock: socket.socket) -> object:
        found: list[Any] = []
        for length in (0, 1, 2, 3, 4, 5, 8, 16, 40, -1):
            room, size = (ctypes.c_char * 64)(), ctypes.c_int(length)
            ctypes.set_errno(0)
            got = libc.getsockopt(sock.fileno(), level, name, room, ctypes.byref(size))
            found.append([got and errno.errorcode[ctypes.get_errno()], size.value])
        value = (ctypes.c_char * 64)(1)
        for length in (0, 1, 2, 3, 4, 5, 8, 16, -1):
            ctypes.set_errno(0)
            got = libc.setsockopt(sock.fileno(), level, name, value, length)
            found.append(got and errno.errorcode[ctypes.get_errno()])
        return found

    return ask
