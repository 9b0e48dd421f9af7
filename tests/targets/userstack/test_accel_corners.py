# SPDX-License-Identifier: Apache-2.0
"""Corners of calls on sockets of both types: as by the kernel."""

from __future__ import annotations

import pytest

from tests.targets.userstack.accel_lab import AccelLab
from tests.targets.userstack.test_accel import SERVER, assert_same, both_stacks

HEAD = """
import ctypes
libc, buffer = ctypes.CDLL(None, use_errno=True), ctypes.create_string_buffer(64)
def call(name, sock, *arguments):
    result = getattr(libc, name)(sock.fileno(), *arguments)
    print(name, result, errno.errorcode[ctypes.get_errno()] if result < 0 else "")
def polled(sock):
    poll = select.poll()
    poll.register(sock, select.POLLIN | select.POLLOUT | select.POLLRDHUP)
    print([events for _, events in poll.poll(0)])
def connected():
    return socket.create_connection((FAR, 5001))
"""
END = """
for each in [value for value in globals().values() if isinstance(value, socket.socket)]:
    each.close()
time.sleep(0.4) # the far end's is this stack's, too
"""
FAR_END = (
    SERVER.replace("HERE", "FAR")
    + """
server.settimeout(1) # the near end has had all it wants
datagrams = socket.socket(FAMILY, socket.SOCK_DGRAM)
datagrams.bind((FAR, 5002))
datagrams.settimeout(1) # the same
def echo(sock):
    try:
        while data := sock.recv(100):
            sock.sendall(data)
        time.sleep(0.2) # its end comes after what is looked at
    except OSError: # a question may be left unread
        pass
def echo_datagrams():
    try:
        while True:
            datagrams.sendto(*datagrams.recvfrom(100))
    except TimeoutError:
        pass
threading.Thread(target=echo_datagrams).start()
try:
    while True:
        threading.Thread(target=echo, args=(server.accept()[0],)).start()
except TimeoutError:
    pass
"""
)


def as_by_the_kernel(lab: AccelLab, near: str) -> None:
    assert_same(both_stacks(lab, HEAD + near + END, FAR_END, 4, near_serves=False, same_calls=False))


@pytest.mark.parametrize("before", [False, True])
def test_what_comes_is_read_also_after_shut_rd(lab: AccelLab, before: bool) -> None:
    near = f"""
peer = connected()
sends = [lambda: peer.sendall(b"data"), lambda: time.sleep(0.3)]
ends = [lambda: peer.shutdown(socket.SHUT_RD)]
for step in sends + ends if {before} else ends + sends:
    step()
polled(peer)
print(peer.recv(100), peer.recv(100))
polled(peer)
"""
    as_by_the_kernel(lab, near)


@pytest.mark.parametrize("how", ["WR RD", "RD WR", "RDWR"])
def test_both_ends_shut_are_a_hang_up(lab: AccelLab, how: str) -> None:
    near = f"""
peer = connected()
for each in {how!r}.split():
    peer.shutdown(getattr(socket, "SHUT_" + each))
    polled(peer)
"""
    as_by_the_kernel(lab, near)


def test_nothing_is_received_once_there_is_something(lab: AccelLab) -> None:
    near = """
peer = connected()
peer.setblocking(False)
for flags in (0, socket.MSG_PEEK, socket.MSG_DONTWAIT, socket.MSG_WAITALL):
    call("recv", peer, buffer, 0, flags)
call("read", peer, buffer, 0)
call("readv", peer, (ctypes.c_void_p * 4)(), 2)
peer.send(b"data")
select.select([peer], [], [])
for flags in (0, socket.MSG_PEEK, socket.MSG_WAITALL):
    call("recv", peer, buffer, 0, flags)
print(peer.recv(10))
peer.setblocking(True)
threading.Timer(0.3, peer.sendall, [b"more"]).start()
began = time.monotonic()
call("recv", peer, buffer, 0, 0)
print(time.monotonic() - began > 0.2, peer.recv(10))
peer.shutdown(socket.SHUT_RD)
call("recv", peer, buffer, 0, 0)
"""
    as_by_the_kernel(lab, near)


def test_a_listener_refuses_what_is_not_for_it(lab: AccelLab) -> None:
    near = """
listener = socket.socket()
listener.bind((NEAR, 5077))
listener.listen()
for size in (1, 0):
    call("send", listener, buffer, size, socket.MSG_NOSIGNAL)
    call("recv", listener, buffer, size, 0)
call("ioctl", listener, 0x541B, buffer) # FIONREAD
call("ioctl", listener, 0x5411, buffer) # TIOCOUTQ
try:
    listener.connect((FAR, 5001))
except OSError as error:
    print(errno.errorcode[error.errno])
peer = connected()
call("send", peer, buffer, 0, 0)
peer.shutdown(socket.SHUT_WR)
call("send", peer, buffer, 0, socket.MSG_NOSIGNAL)
"""
    as_by_the_kernel(lab, near)


def test_no_address_has_a_negative_length(lab: AccelLab) -> None:
    near = """
for sock in connected(), socket.socket(type=socket.SOCK_DGRAM):
    if sock.type == socket.SOCK_DGRAM:
        sock.connect((FAR, 5002))
    sock.send(b"data")
    select.select([sock], [], [])
    for name in ("getsockname", "getpeername"):
        call(name, sock, buffer, ctypes.byref(ctypes.c_int(-1)))
    call("recvfrom", sock, buffer, 10, 0, buffer, ctypes.byref(ctypes.c_int(-1)))
    call("recv", sock, buffer, 10, socket.MSG_DONTWAIT)
"""
    as_by_the_kernel(lab, near)
