# SPDX-License-Identifier: Apache-2.0
"""What errors, lengths and flags come to that few programs ask for: as by the kernel."""

from __future__ import annotations

import pytest

from tests.patience import HANG_S
from tests.targets.userstack.accel_lab import AccelLab
from tests.targets.userstack.test_accel import for_family
from tests.targets.userstack.test_accel_corners import FAR_END, as_by_the_kernel

SAID = """
def said(call, *arguments):
    try:
        return call(*arguments)
    except TimeoutError:
        return "nothing"
    except OSError as error:
        return errno.errorcode[error.errno]
def datagrams():
    sock = socket.socket(type=socket.SOCK_DGRAM)
    sock.connect((FAR, 5002))
    return sock
"""


@pytest.mark.parametrize("blocks", [True, False])
@pytest.mark.parametrize("told", ["by nothing", "by connect", "by its option"])
def test_a_refused_connection_is_as_new_once_connect_has_told(lab: AccelLab, blocks: bool, told: str) -> None:
    near = f"""{SAID}
sock = socket.socket()
sock.setblocking({blocks})
poll = select.poll()
poll.register(sock, select.POLLIN)
print(said(sock.connect, (FAR, 5999)))
poll.poll() # the refusal has come
if {told!r} == "by connect":
    print(said(sock.connect, (FAR, 5999)))
if {told!r} == "by its option":
    print(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
polled(sock)
print(said(sock.recv, 1), said(sock.recv, 1), said(sock.send, b"x", socket.MSG_NOSIGNAL), said(sock.recv, 1))
polled(sock)
sock.setblocking(True)
peer = connected()
print(said(sock.getpeername), said(sock.shutdown, socket.SHUT_RDWR))
"""
    as_by_the_kernel(lab, near)


def test_an_error_of_datagrams_is_nothing_to_read(lab: AccelLab) -> None:
    near = f"""{SAID}
sock = datagrams()
sock.send(b"keeps the far end's port open")
print(sock.recv(100))
sock.connect((FAR, 5998))
sock.send(b"nobody")
poll = select.poll()
poll.register(sock, 0)
print([events for _, events in poll.poll()])
polled(sock)
epoll = select.epoll()
epoll.register(sock, select.EPOLLIN | select.EPOLLOUT)
print([events for _, events in epoll.poll(0)])
print([len(each) for each in select.select([sock], [sock], [sock], 0)])
sock.setblocking(False)
print(said(sock.recv, 1), said(sock.recv, 1))
polled(sock)
"""
    as_by_the_kernel(lab, near)


def test_an_exclusive_watch_is_not_changed(lab: AccelLab) -> None:
    near = f"""{SAID}
class Event(ctypes.Structure):
    _pack_ = 1 if os.uname().machine == "x86_64" else 0
    _fields_ = [("events", ctypes.c_uint32), ("data", ctypes.c_uint64)]
ADD, DELETE, MODIFY = 1, 2, 3
EXCLUSIVE, WAKEUP, ONCE, EDGE, MESSAGE = 1 << 28, 1 << 29, 1 << 30, 1 << 31, 0x400
def control(operation, sock, events):
    ctypes.set_errno(0)
    call("epoll_ctl", epoll, operation, sock.fileno(), ctypes.byref(Event(events, 7)))
for sock in connected(), datagrams():
    epoll = select.epoll()
    for events in (1, EXCLUSIVE | 1, EDGE | 1, ONCE | 1):
        control(ADD, sock, EXCLUSIVE | 1)
        control(MODIFY, sock, events)
        control(DELETE, sock, 0)
        control(ADD, sock, events)
        control(MODIFY, sock, EXCLUSIVE | 1)
        control(DELETE, sock, 0)
    for events in (EDGE, WAKEUP, ONCE, MESSAGE, 0x2000, 2, 4, 8 | 16):
        control(ADD, sock, EXCLUSIVE | events)
        control(DELETE, sock, 0)
    outer = select.epoll()
    for operation, events in ((ADD, EXCLUSIVE | 1), (ADD, 1), (MODIFY, EXCLUSIVE | 1)):
        call("epoll_ctl", outer, operation, epoll.fileno(), ctypes.byref(Event(events, 7)))
"""
    as_by_the_kernel(lab, near)


def test_flags_that_say_nothing_to_a_socket_are_ignored(lab: AccelLab) -> None:
    """All but the last, the kernel's own, and what is refused: urgent data, MSG_MORE of UDP, MSG_FASTOPEN."""
    near = f"""{SAID}
REFUSED = socket.MSG_OOB | socket.MSG_MORE | 0x20000000
def comes():
    sock.send(b"|")
    pieces = []
    while not pieces or not pieces[-1].endswith(b"|"):
        pieces.append(sock.recv(100))
    return pieces if sock.type == socket.SOCK_DGRAM else b"".join(pieces)
def receive(call, *arguments):
    sock.send(b"some")
    select.select([sock], [], [])
    received = said(call, 4, *arguments)
    return (len(received[0]), received[2]) if type(received) is tuple else len(received)
for sock in connected(), datagrams():
    for bit in range(31):
        flag = 1 << bit
        if not flag & REFUSED:
            print(bit, said(sock.send, b"ab", flag), said(sock.sendmsg, [b"c"], [], flag), comes())
        if flag != socket.MSG_ERRQUEUE:
            print(bit, receive(sock.recv, flag), receive(sock.recvmsg, 0, flag), comes())
"""
    as_by_the_kernel(lab, near)


def test_tcp_info_is_as_long_as_the_kernels(lab: AccelLab) -> None:
    near = """
peer = connected()
peer.sendall(b"data")
print(peer.recv(10))
def info(length):
    return peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, length)
print([len(info(length)) for length in (1, 7, 8, 103, 104, 105, 192, 232, 248, 256, 1000, 1024)])
whole, (state, sent, window) = info(1024), (0, 136, 228)
number = lambda at: int.from_bytes(whole[at : at + 4], sys.byteorder)
print(whole[state], 2 <= number(sent) < 10, number(window) > 10000, info(8) == whole[:8])
"""
    as_by_the_kernel(lab, near)


ASYNC = {
    "fcntl": "fcntl.fcntl(sock, fcntl.F_SETFL, fcntl.fcntl(sock, fcntl.F_GETFL) | fcntl.FASYNC)",
    "ioctl": "fcntl.ioctl(sock, 0x5452, (1).to_bytes(4, sys.byteorder))",
    "option": "sock.setsockopt(socket.SOL_SOCKET, 60, 1)",
}


@pytest.mark.parametrize(
    ("asked", "named"), [("fcntl", "O_ASYNC"), ("ioctl", "O_ASYNC"), ("option", "option 60")]
)
def test_what_would_be_without_effect_is_refused_by_name(lab: AccelLab, asked: str, named: str) -> None:
    """Before the stack has the socket it is the kernel's with that."""
    near = f"""
import fcntl
def connected(before):
    sock = socket.socket()
    if before:
        {ASYNC[asked]}
    sock.connect((FAR, 5001))
    try:
        {ASYNC[asked]}
        return "done"
    except OSError as error:
        return errno.errorcode[error.errno]
print(connected(False), connected(True))
"""
    far = lab.python(lab.far, for_family(FAR_END, 4)).ready()
    out, err = lab.python(lab.near, for_family(near, 4)).process.communicate(timeout=HANG_S)
    far.result()
    assert out == ("ENOPROTOOPT" if asked == "option" else "EINVAL") + " done\n", err
    assert [named in line for line in err.splitlines()] == [True, True], err
    assert err.splitlines()[1].endswith(": the kernel's stack has the socket"), err
