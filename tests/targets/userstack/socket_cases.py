# SPDX-License-Identifier: Apache-2.0
"""A table of what sockets say, as a program: `near ADDRESS…`, against `far`; for test_socket_cases.py.

It says one JSON object: what each case has said, by its name. A case is about one socket or a few, and
says what a program can see: values, errno, readiness. Nothing in it goes by time.
"""

from __future__ import annotations

import json
import signal
import socket
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial

from tests.targets.userstack.socket_calls import CASES
from tests.targets.userstack.socket_end import DATAGRAM_PORT, PORT, WAYS, End, drain
from tests.targets.userstack.socket_options import LENGTHS, OPTIONS, lengths_case, option_case
from tests.targets.userstack.socket_states import ASKS, STATES

CASE_HANG_S = 60  # only ends a hang, which is a finding
Make = Callable[[End], socket.socket]


class HangError(Exception):
    """A case has not ended."""


def all_cases(end: End) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield name and function of each; those of states, options and lengths are made."""
    for state, make in STATES.items():
        for name, ask in ASKS.items():
            yield f"{state}: {name}", partial(_of_state, make, ask, end)
    sockets = {"connected": End.connected, "listening": End.listener, "datagrams": End.datagrams}
    for kind, make in sockets.items():
        for name, option in OPTIONS.items():
            yield f"{kind}: {name}", partial(_of_option, make, option_case(*option), end)
        for name, option in LENGTHS.items():
            yield f"{kind}: length of {name}", partial(_of_option, make, lengths_case(*option), end)
    for name, function in CASES.items():
        yield name, partial(function, end)


def _of_state(make: Make, ask: Callable[[socket.socket, End], object], end: End) -> object:
    return ask(make(end), end)


def _of_option(make: Make, ask: Callable[[socket.socket], object], end: End) -> object:
    return ask(make(end))


def give_up(*_: object) -> None:
    raise HangError("it hangs")


def near(near4: str, far4: str, near6: str, far6: str) -> None:
    """Run all cases by every way."""
    found: dict[str, str] = {}
    signal.signal(signal.SIGALRM, give_up)
    for way in WAYS:
        end = End(way, *((near6, far6) if way == "v6" else (near4, far4)))
        for name, ask in all_cases(end):
            signal.alarm(CASE_HANG_S)
            try:
                found[f"{way}: {name}"] = repr(ask())
            except (
                HangError,
                OSError,
                ValueError,
                TypeError,
                OverflowError,
            ) as error:  # a case that fails says so
                found[f"{way}: {name}"] = f"{type(error).__name__} {error}"
            signal.alarm(0)
            end.close()
    print(json.dumps(found))


# The far end.

told_to_close: dict[int, threading.Event] = {}  # by the near end's port


def serve(sock: socket.socket) -> None:
    line = b""
    while not line.endswith(b"\n"):
        piece = sock.recv(1)
        if not piece:  # closed without a command
            sock.close()
            return
        line += piece
    words = line.decode().split()
    if words[0] == "keep":
        port = sock.getpeername()[1]
        told_to_close.setdefault(port, threading.Event()).wait()
        del told_to_close[port]
        sock.close()
        return
    if words[0] == "close":
        told_to_close.setdefault(int(words[1]), threading.Event()).set()
    if words[0] == "reset":
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()
        return
    if words[0] == "dial":
        peer = socket.create_connection((words[1], int(words[2])))
        if words[3] == "echo":
            threading.Thread(target=guarded, args=(echo, peer)).start()
        else:
            peer.sendall(bytes(int(words[4])))
            peer.close()
        sock.sendall(b"!")
    if words[0] == "send":
        sock.sendall(bytes(int(words[1])))
    if words[0] == "urgent":
        sock.send(b"ab")
        sock.send(b"!", socket.MSG_OOB)
        sock.send(b"cd")
    if words[0] in ("send", "urgent", "shut"):
        sock.shutdown(socket.SHUT_WR)
    if words[0] == "echo":
        echo(sock)
    else:
        drain(sock)
        sock.close()


def echo(sock: socket.socket) -> None:
    while data := sock.recv(1 << 16):
        sock.sendall(data)
    sock.close()


def guarded(function: Callable[[socket.socket], None], sock: socket.socket) -> None:
    try:
        function(sock)
    except OSError:  # the near end goes as it likes
        sock.close()


def far() -> None:
    server = socket.create_server(("::", PORT), family=socket.AF_INET6, dualstack_ipv6=True, backlog=64)
    datagrams = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    datagrams.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    datagrams.bind(("::", DATAGRAM_PORT))

    def answer() -> None:
        while True:
            data, address = datagrams.recvfrom(1 << 17)
            datagrams.sendto(data, address)

    threading.Thread(target=answer, daemon=True).start()
    print("ready", flush=True)
    while True:
        threading.Thread(target=guarded, args=(serve, server.accept()[0]), daemon=True).start()


def main() -> None:
    """Be the end that the arguments say."""
    if sys.argv[1] == "near":
        near(*sys.argv[2:])
    else:
        far()
