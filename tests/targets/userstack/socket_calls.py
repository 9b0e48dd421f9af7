# SPDX-License-Identifier: Apache-2.0
"""Single cases of sockets, for test_socket_cases.py."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import select
import socket
import struct
import termios
from collections.abc import Callable
from typing import Any

from tests.targets.userstack.socket_end import (
    CLOSED_PORT,
    DATAGRAM_PORT,
    PORT,
    End,
    drain,
    libc,
    number,
    polled,
    said,
    wait_for,
)
from tests.targets.userstack.socket_states import STATES

# Single cases, each by every way.

CASES: dict[str, Callable[[End], object]] = {}


def case(function: Callable[[End], object]) -> Callable[[End], object]:
    CASES[function.__name__.replace("_", " ")] = function
    return function


@case
def peek_leaves_what_it_reads(end: End) -> object:
    sock = STATES["with data"](end)
    flags = socket.MSG_PEEK, socket.MSG_PEEK | socket.MSG_TRUNC, socket.MSG_WAITALL
    return [len(sock.recv(4, flag)) for flag in flags], len(drain(sock))


@case
def bytes_are_discarded(end: End) -> object:
    sock = STATES["with data"](end)
    room = (ctypes.c_char * 16)()
    return libc.recv(sock.fileno(), room, 4, socket.MSG_TRUNC), room.raw[:4], len(drain(sock))


@case
def waitall_ends_with_the_stream(end: End) -> object:
    return len(end.connected("send 10").recv(100, socket.MSG_WAITALL))


@case
def flags_of_a_message_of_a_stream(end: End) -> object:
    sock = STATES["with data"](end)
    found = sock.recvmsg(4, 100)
    return (
        len(found[0]),
        found[1:3],
        sock.recvmsg(0)[2],
        sock.recvmsg_into([bytearray(2), bytearray(), bytearray(3)])[0],
    )


@case
def vectors_of_nothing(end: End) -> object:
    sock = end.connected()
    fd = sock.fileno()
    found = [said(os.writev, fd, [b"", b""]), said(os.writev, fd, [b"", b"ab", b""]), said(os.write, fd, b"")]
    return found, sock.recv(10), said(os.readv, fd, [bytearray()]), said(os.read, fd, 0)


@case
def the_end_is_read_again_and_again(end: End) -> object:
    sock = STATES["far has shut"](end)
    return [sock.recv(1) for _ in range(3)], said(sock.send, b"x"), said(sock.recv, 1)


@case
def a_reset_is_told_once(end: End) -> object:
    sock = STATES["reset"](end)
    return [said(sock.recv, 1), said(sock.recv, 1), said(sock.send, b"x", socket.MSG_NOSIGNAL), polled(sock)]


@case
def a_reset_is_told_to_who_sends(end: End) -> object:
    sock = STATES["reset"](end)
    found = [said(sock.send, b"x", socket.MSG_NOSIGNAL) for _ in range(3)]
    return found, said(sock.recv, 1), sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)


@case
def a_reset_is_told_by_its_option(end: End) -> object:
    sock = STATES["reset"](end)
    return (
        [sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) for _ in range(2)],
        said(sock.recv, 1),
        said(sock.getpeername),
    )


@case
def an_answer_after_shut_wr(end: End) -> object:
    sock = end.connected()
    sock.sendall(b"question")
    sock.shutdown(socket.SHUT_WR)
    return drain(sock), said(sock.send, b"x", socket.MSG_NOSIGNAL), said(sock.shutdown, socket.SHUT_WR)


@case
def connect_twice(end: End) -> object:
    sock = end.connected()
    return [said(sock.connect, (end.far, port)) for port in (PORT, CLOSED_PORT)]


@case
def connect_without_waiting(end: End) -> object:
    sock = end.tcp()
    sock.setblocking(False)
    first = said(sock.connect, (end.far, PORT))
    wait_for(sock, select.POLLOUT)
    return (
        first,
        sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR),
        said(sock.connect, (end.far, PORT)),
        polled(sock),
    )


@case
def connect_to_nobody(end: End) -> object:
    sock = end.tcp()
    return [said(sock.connect, (end.far, CLOSED_PORT)) for _ in range(2)], said(sock.connect, (end.far, PORT))


@case
def connect_with_short_addresses(end: End) -> object:
    sock = end.tcp()
    address = struct.pack("=HH", end.family, socket.htons(PORT)) + bytes(24)
    found: list[Any] = []
    for length in (0, 1, 2, 8, 15, 23, 24, 27, -1):
        ctypes.set_errno(0)
        result = libc.bind(sock.fileno(), address, length) if length not in (24, 27) else 0
        found.append(result and errno.errorcode[ctypes.get_errno()])
        if length < 16:
            ctypes.set_errno(0)
            found.append(libc.connect(sock.fileno(), address, length) and errno.errorcode[ctypes.get_errno()])
    return found


@case
def connect_by_the_wrong_family(end: End) -> object:
    other = struct.pack("=HH", socket.AF_UNIX, socket.htons(PORT)) + bytes(24)
    found: list[Any] = []
    for sock in (end.tcp(), end.udp(), end.connected(), end.datagrams()):
        for call in (libc.connect, libc.bind):
            ctypes.set_errno(0)
            result = call(sock.fileno(), other, 28)
            found.append(result and errno.errorcode[ctypes.get_errno()])
    return found


@case
def connect_to_port_0(end: End) -> object:
    return said(end.tcp().connect, (end.far, 0)), said(end.udp().connect, (end.far, 0))


@case
def bind_elsewhere(end: End) -> object:
    return [said(each.bind, (end.far, 0)) for each in (end.tcp(), end.udp())]


@case
def bind_what_is_taken(end: End) -> object:
    found: list[Any] = []
    for kind in (End.tcp, End.udp):
        first = kind(end)
        first.bind((end.near, 0))
        port = first.getsockname()[1]
        for reuse in (0, 1):
            second = kind(end)
            second.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, reuse)
            found.append([said(second.bind, (address, port)) for address in (end.near, end.any)])
    return found


@case
def bind_what_listens(end: End) -> object:
    port = end.listener().getsockname()[1]
    found: list[Any] = []
    for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
        second = end.tcp()
        second.setsockopt(socket.SOL_SOCKET, option, 1)
        found.append(said(second.bind, (end.near, port)))
    return found


@case
def a_connection_says_where_it_is_from(end: End) -> object:
    sock = end.tcp()
    sock.bind((end.any, 0))
    port = sock.getsockname()[1]
    sock.connect((end.far, PORT))
    return sock.getsockname()[0], sock.getsockname()[1] == port, sock.getpeername()


@case
def datagrams_say_where_they_are_from(end: End) -> object:
    sock = end.udp()
    before = sock.getsockname()
    sock.sendto(b"x", (end.far, DATAGRAM_PORT))
    after = sock.getsockname()
    found = sock.recvfrom(10)
    sock.connect((end.far, DATAGRAM_PORT))
    return before, after[0], after[1] != 0, found, sock.getsockname()[0], sock.getsockname()[1] == after[1]


@case
def a_peer_is_taken_back(end: End) -> object:
    found: list[Any] = []
    nobody = struct.pack("=H", socket.AF_UNSPEC) + bytes(26)
    for sock in (end.datagrams(), end.udp()):
        ctypes.set_errno(0)
        result = libc.connect(sock.fileno(), nobody, len(nobody))
        found.append(
            [result and errno.errorcode[ctypes.get_errno()], said(sock.getpeername), said(sock.send, b"x")]
        )
    return found


@case
def sizes_of_datagrams(end: End) -> object:
    sock = end.datagrams()
    found: list[Any] = []
    for size in (0, 1, 100, 1432, 1433, 1452, 1453, 1472, 1473, 8192, 16383):
        sock.send(bytes(size))
        found.append(len(sock.recv(1 << 16)) == size)
    return found


@case
def datagrams_too_large(end: End) -> object:
    sizes = (65508, 65528, 65535, 65536, 100000)
    connected = [said(end.datagrams().send, bytes(size)) for size in sizes]
    return connected, [said(end.udp().sendto, bytes(size), (end.far, DATAGRAM_PORT)) for size in sizes]


@case
def datagrams_are_cut(end: End) -> object:
    sock = end.datagrams()
    found: list[Any] = []
    for room, flags in (
        (0, 0),
        (2, 0),
        (2, socket.MSG_TRUNC),
        (2, socket.MSG_PEEK),
        (2, socket.MSG_PEEK | socket.MSG_TRUNC),
        (9, 0),
    ):
        sock.send(b"12345")
        wait_for(sock, select.POLLIN)
        data = (ctypes.c_char * 16)()
        found.append([libc.recv(sock.fileno(), data, room, flags), data.raw[:room]])
        sock.recvmsg(9) if flags & socket.MSG_PEEK else None
        sock.send(b"12345")
        message = sock.recvmsg(room, 0, flags)
        found.append([message[0], hex(message[2])])
        sock.recv(9) if flags & socket.MSG_PEEK else None
    return found


@case
def empty_datagrams_are_counted(end: End) -> object:
    sock = STATES["empty datagram waits"](end)
    bytes_first = number(sock, termios.FIONREAD)
    return bytes_first, sock.recvfrom(10)[0], said(sock.recv, 1, socket.MSG_DONTWAIT)


@case
def the_first_datagram_is_measured(end: End) -> object:
    sock = STATES["datagram waits"](end)
    sock.send(b"123")
    return number(sock, termios.FIONREAD)


@case
def datagrams_to_nowhere(end: End) -> object:
    sock = end.udp()
    return [said(sock.send, b"x"), said(sock.sendto, b"x", (end.far, 0)), said(sock.sendmsg, [b"x"])]


@case
def datagrams_past_the_peer(end: End) -> object:
    sock = end.datagrams(CLOSED_PORT)
    sock.sendto(b"x", (end.far, DATAGRAM_PORT))
    sock.connect((end.far, DATAGRAM_PORT))
    sock.send(b"y")
    return sock.recv(9) in (b"x", b"y")  # the first answer may come behind connect()


@case
def a_refusal_of_datagrams_is_told_once(end: End) -> object:
    sock = STATES["datagrams unreachable"](end)
    sock.setblocking(False)
    return [said(sock.recv, 1) for _ in range(2)], polled(sock)


@case
def a_refusal_of_datagrams_is_told_to_who_sends(end: End) -> object:
    sock = STATES["datagrams unreachable"](end)
    return said(sock.send, b"x"), said(
        STATES["datagrams unreachable"](end).getsockopt, socket.SOL_SOCKET, socket.SO_ERROR
    )


@case
def a_stream_with_an_address(end: End) -> object:
    sock = end.connected()
    found = [said(sock.sendto, b"x", (end.far, port)) for port in (PORT, 1)]
    return found, said(end.tcp().sendto, b"x", socket.MSG_NOSIGNAL, (end.far, PORT))


@case
def urgent_data_come(end: End) -> object:
    sock = end.connected("urgent")
    wait_for(sock, select.POLLRDHUP)
    return (
        polled(sock),
        said(sock.recv, 1, socket.MSG_OOB),
        number(sock, termios.FIONREAD),
        drain(sock),
        said(sock.recv, 1, socket.MSG_OOB),
    )


@case
def urgent_data_come_in_line(end: End) -> object:
    sock = end.tcp()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
    sock.connect((end.far, PORT))
    sock.sendall(b"urgent\n")
    wait_for(sock, select.POLLRDHUP)
    return said(sock.recv, 1, socket.MSG_OOB), drain(sock)


@case
def urgent_data_are_sent(end: End) -> object:
    sock = end.connected()
    return said(sock.send, b"x", socket.MSG_OOB), said(end.datagrams().send, b"x", socket.MSG_OOB)


@case
def no_urgent_data(end: End) -> object:
    return [
        said(sock.recv, 1, socket.MSG_OOB | socket.MSG_DONTWAIT)
        for sock in (end.connected(), end.datagrams(), end.tcp())
    ]


@case
def a_listener_gets_what_calls(end: End) -> object:
    server = end.listener()
    end.called(server)
    peer, address = server.accept()
    end.keep(peer)
    peer.sendall(b"question")
    return address[0], peer.getsockname()[0], peer.recv(100), peer.getsockname()[1] == server.getsockname()[1]


@case
def a_caller_that_has_closed_is_accepted(end: End) -> object:
    server = end.listener()
    end.called(server, "send 5")
    peer = end.keep(server.accept()[0])
    return len(drain(peer))


@case
def flags_of_accept(end: End) -> object:
    server = end.listener()
    found: list[Any] = []
    for flags in (
        0,
        socket.SOCK_NONBLOCK,
        socket.SOCK_CLOEXEC,
        socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC,
        1,
    ):
        if flags != 1:
            end.called(server)
        ctypes.set_errno(0)
        fd = libc.accept4(server.fileno(), None, None, flags)
        if fd < 0:
            found.append(errno.errorcode[ctypes.get_errno()])
            continue
        found.append([fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_NONBLOCK, fcntl.fcntl(fd, fcntl.F_GETFD)])
        os.close(fd)
    return found


@case
def a_listener_that_is_shut(end: End) -> object:
    server = end.listener()
    first = said(server.shutdown, socket.SHUT_RD)
    server.setblocking(False)
    return first, said(server.accept), polled(server), said(server.listen, 1), said(server.accept)


@case
def two_descriptors_of_one_socket(end: End) -> object:
    sock = end.connected()
    other = end.keep(sock.dup())
    sock.close()
    other.sendall(b"x")
    return other.recv(1), polled(other)


@case
def a_descriptor_that_is_closed(end: End) -> object:
    sock = end.connected()
    fd = sock.fileno()
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    os.close(fd)
    found = [[hex(events) for _, events in poll.poll(0)], said(os.write, fd, b"x"), said(os.close, fd)]
    sock.detach()
    return found


@case
def seeking(end: End) -> object:
    sock = end.connected()
    return (
        said(os.lseek, sock.fileno(), 0, 0),
        said(os.pread, sock.fileno(), 1, 0),
        said(os.pwrite, sock.fileno(), b"x", 0),
    )


@case
def what_it_is(end: End) -> object:
    found = [os.fstat(each.fileno()).st_mode >> 12 for each in (end.connected(), end.datagrams())]
    return found, said(os.ftruncate, end.connected().fileno(), 0), os.isatty(end.connected().fileno())


@case
def a_time_limit_of_receiving(end: End) -> object:
    sock = end.connected()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 20000))
    return (
        said(sock.recv, 1),
        said(sock.recv, 1, socket.MSG_WAITALL),
        len(sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, 64)),
    )


@case
def time_limits_that_are_none(end: End) -> object:
    sock = end.connected()
    limits = ((0, 1000000), (0, -1), (-1, 0), (1 << 40, 0))
    found = [
        said(sock.setsockopt, socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", *limit))
        for limit in limits
    ]
    return found, sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, 16)


@case
def lingering(end: End) -> object:
    sock = end.connected()

    def linger(*value: int) -> bytes:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", *value))
        return sock.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8)

    return [said(linger, *value) for value in ((1, 0), (0, 5), (1, 100000), (-1, -1), (0, 0))]
