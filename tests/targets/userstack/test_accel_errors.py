# SPDX-License-Identifier: Apache-2.0
"""What errors, lengths and flags come to that few programs ask for: as by the kernel."""

from __future__ import annotations

import pytest

from tests.targets.userstack.accel_lab import AccelLab
from tests.targets.userstack.test_accel_corners import as_by_the_kernel

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
