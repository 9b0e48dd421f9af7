# SPDX-License-Identifier: Apache-2.0
"""States of a socket, and ways to ask: each way of each state is a case of test_socket_cases.py."""

from __future__ import annotations

import select
import socket
import termios
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from tests.targets.userstack.socket_end import (
    CLOSED_PORT,
    DATAGRAM_PORT,
    PORT,
    End,
    number,
    polled,
    said,
    wait_for,
)

SIOCATMARK = 0x8905

# States of a socket, for what each way of asking says of them.


def _far_has_shut(end: End) -> socket.socket:
    sock = end.connected("shut")
    wait_for(sock, select.POLLIN)
    return sock


def _reset(end: End) -> socket.socket:
    sock = end.connected("reset")
    wait_for(sock, 0)
    return sock


def _refused(end: End) -> socket.socket:
    sock = end.tcp()
    sock.setblocking(False)
    said(sock.connect, (end.far, CLOSED_PORT))
    wait_for(sock, 0)
    return sock


def _with_data(end: End) -> socket.socket:
    sock = end.connected("send 10")
    wait_for(sock, select.POLLRDHUP)
    return sock


def _shut(*hows: int) -> Callable[[End], socket.socket]:
    def state(end: End) -> socket.socket:
        sock = end.connected("hold" if len(hows) == 1 else "keep")
        for how in hows:
            sock.shutdown(how)
        if len(hows) > 1:  # the far end closes in turn, and not between two calls
            end.connected(f"close {sock.getsockname()[1]}")
        if hows in ((socket.SHUT_WR, socket.SHUT_RD), (socket.SHUT_RDWR,)):
            while said(sock.getpeername) != "ENOTCONN":  # no poll tells
                time.sleep(0.001)
        elif socket.SHUT_WR in hows:
            wait_for(sock, select.POLLIN)
        return sock

    return state


def _listening(end: End) -> socket.socket:
    return end.listener()


def _called(end: End) -> socket.socket:
    sock = end.listener()
    end.called(sock)
    wait_for(sock, select.POLLIN)
    return sock


def _bound(end: End) -> socket.socket:
    sock = end.tcp()
    sock.bind((end.near, 0))
    return sock


def _datagram(end: End, size: int = 3) -> socket.socket:
    sock = end.datagrams()
    sock.send(b"x" * size)
    wait_for(sock, select.POLLIN)
    return sock


def _unreachable(end: End) -> socket.socket:
    sock = end.datagrams(CLOSED_PORT)
    sock.send(b"x")
    wait_for(sock, 0)
    return sock


def _bound_datagrams(end: End) -> socket.socket:
    sock = end.udp()
    sock.bind((end.near, 0))
    return sock


def _datagrams_shut(how: int) -> Callable[[End], socket.socket]:
    def state(end: End) -> socket.socket:
        sock = end.datagrams()
        sock.shutdown(how)
        return sock

    return state


STATES: dict[str, Callable[[End], socket.socket]] = {
    "new": End.tcp,
    "bound": _bound,
    "listening": _listening,
    "called": _called,
    "refused": _refused,
    "connected": End.connected,
    "with data": _with_data,
    "far has shut": _far_has_shut,
    "shut to read": _shut(socket.SHUT_RD),
    "shut to write": _shut(socket.SHUT_WR),
    "shut both ways": _shut(socket.SHUT_RDWR),
    "shut to write, then read": _shut(socket.SHUT_WR, socket.SHUT_RD),
    "reset": _reset,
    "datagrams new": End.udp,
    "datagrams bound": _bound_datagrams,
    "datagrams connected": End.datagrams,
    "datagram waits": _datagram,
    "empty datagram waits": partial(_datagram, size=0),
    "datagrams unreachable": _unreachable,
    "datagrams shut to read": _datagrams_shut(socket.SHUT_RD),
    "datagrams shut to write": _datagrams_shut(socket.SHUT_WR),
}


def by_poll(sock: socket.socket, _: End) -> object:
    return [polled(sock), polled(sock, 0), polled(sock, select.POLLIN), polled(sock, select.POLLOUT)]


def by_epoll(sock: socket.socket, _: End) -> object:
    found: list[Any] = []
    for events in (0x7FFF, 0, select.EPOLLIN | select.EPOLLET, select.EPOLLOUT | select.EPOLLONESHOT):
        with select.epoll() as epoll:
            epoll.register(sock, events)
            found.append([[hex(each) for _, each in epoll.poll(0)] for _ in range(2)])
    return found


def by_select(sock: socket.socket, _: End) -> object:
    return [len(each) for each in select.select([sock], [sock], [sock], 0)]


def names(sock: socket.socket, _: End) -> object:
    def about(call: Callable[[], Any]) -> object:
        found: Any = said(call)
        return found if type(found) is str else [found[0], found[1] and "port", *found[2:]]

    return [about(sock.getsockname), about(sock.getpeername)]


def errors(sock: socket.socket, _: End) -> object:
    kinds = (socket.SO_ERROR, socket.SO_ACCEPTCONN, socket.SO_TYPE, socket.SO_ERROR)
    return [said(sock.getsockopt, socket.SOL_SOCKET, kind) for kind in kinds]


def reads(sock: socket.socket, _: End) -> object:
    def length(*how: int) -> int:
        return len(sock.recv(*how))

    sock.setblocking(False)
    return [said(length, *how) for how in ((0,), (1, socket.MSG_PEEK), (4,), (100,), (1,))]


def writes(sock: socket.socket, _: End) -> object:
    sock.setblocking(False)
    return [said(sock.send, data, socket.MSG_NOSIGNAL) for data in (b"", b"ab")]


def sends_to(sock: socket.socket, end: End) -> object:
    sock.setblocking(False)
    return said(sock.sendto, b"ab", socket.MSG_NOSIGNAL, (end.far, DATAGRAM_PORT))


def shuts(sock: socket.socket, _: End) -> object:
    hows = (
        3,
        -1,
        socket.SHUT_RD,
        socket.SHUT_RDWR,
    )  # shut to write, the far end may close at any time
    return [said(sock.shutdown, how) for how in hows]


def waiting(sock: socket.socket, _: End) -> object:
    return [number(sock, request) for request in (termios.FIONREAD, SIOCATMARK)]


def accepts(sock: socket.socket, end: End) -> object:
    sock.setblocking(False)
    found = said(sock.accept)
    if type(found) is str:
        return found
    end.keep(found[0])
    return found[1][0]


def listens(sock: socket.socket, _: End) -> object:
    return [
        said(sock.listen, 1),
        said(sock.listen, 0),
        sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN),
    ]


def binds(sock: socket.socket, end: End) -> object:
    return [said(sock.bind, (end.near, 0)), said(sock.bind, (end.any, 0))]


def connects(sock: socket.socket, end: End) -> object:
    port = PORT if sock.type == socket.SOCK_STREAM else DATAGRAM_PORT
    return [said(sock.connect, (end.far, port)), said(sock.getpeername) != "ENOTCONN"]


ASKS: dict[str, Callable[[socket.socket, End], object]] = {
    each.__name__: each
    for each in (
        *(by_poll, by_epoll, by_select, names, errors, reads, writes, sends_to, shuts),
        *(waiting, accepts, listens, binds, connects),
    )
}
