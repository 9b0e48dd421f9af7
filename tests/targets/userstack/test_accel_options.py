# SPDX-License-Identifier: Apache-2.0
"""Options that a program sets before the user-mode stack has its socket, and on listeners."""

from __future__ import annotations

import pytest

from tests.targets.userstack.accel_lab import AccelLab
from tests.targets.userstack.test_accel import SERVER, assert_same, both_stacks

SIZES = """
SENT_MAX_BYTES = 256 * 1024 # less than either stack takes by itself, more than by these sizes

def set_sizes(sock):
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 10000)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 600)

def say_sizes(sock):
    sock.setblocking(False)
    sent = 0
    try:
        while sent < SENT_MAX_BYTES:
            sent += sock.send(bytes(1 << 16))
    except BlockingIOError:
        print("the buffer is full")
    print(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG) in (588, 600)) # time stamps take 12
    print(sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF))

def end(sock):
    sock.setblocking(True)
    sock.shutdown(socket.SHUT_WR)
    print(sock.recv(1))
"""
SMALL = "setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)"
READ_ALL = "while peer.recv(1 << 16):\n    pass\n"


def test_calls_that_are_wrong_change_nothing(lab: AccelLab) -> None:
    near = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
peers = [socket.create_connection((FAR, 5001)) for _ in range(2)]
print(libc.dup3(peers[0].fileno(), peers[1].fileno(), os.O_APPEND), errno.errorcode[ctypes.get_errno()])
room, length = ctypes.create_string_buffer(512), ctypes.c_int(-1)
for level, name in ((socket.SOL_SOCKET, socket.SO_ERROR), (socket.IPPROTO_TCP, socket.TCP_INFO)):
    result = libc.getsockopt(peers[0].fileno(), level, name, room, ctypes.byref(length))
    print(result, errno.errorcode[ctypes.get_errno()], length.value, room.raw == bytes(512))
for peer in peers:
    peer.sendall(b"hi")
    print(peer.recv(2))
"""
    far = SERVER.replace("HERE", "FAR")
    far += "for peer in [server.accept()[0] for _ in range(2)]:\n    peer.sendall(peer.recv(2))\n"
    assert_same(both_stacks(lab, near, far, 4, near_serves=False, same_calls=False))


@pytest.mark.parametrize("bind", ["", "sock.bind((NEAR, 0))"], ids=["unbound", "bound"])
def test_sizes_set_before_a_socket_connects(lab: AccelLab, bind: str) -> None:
    near = f"""{SIZES}
sock = socket.socket()
set_sizes(sock)
{bind}
sock.connect((FAR, 5001))
say_sizes(sock)
sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 700) # of what connects later
print(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG) in (588, 600))
full = socket.create_connection((FAR, 5001))
end(sock)
"""
    far = SERVER.replace("HERE", "FAR").replace("server.bind", f"server.{SMALL}\nserver.bind")
    far += f"peer, _ = server.accept()\nserver.accept()\n{READ_ALL}"
    assert_same(both_stacks(lab, near, far, 4, near_serves=False, same_calls=False))


@pytest.mark.parametrize("before", ["server.bind", "print"])
def test_sizes_of_a_listener_are_those_of_its_connections(lab: AccelLab, before: str) -> None:
    near = SIZES + SERVER.replace("HERE", "NEAR").replace(before, f"set_sizes(server)\n{before}")
    near += "sock, _ = server.accept()\nother, _ = server.accept()\n"
    near += "say_sizes(sock)\nother.sendall(b'full')\nend(sock)\n"
    far = f"peer = socket.socket()\npeer.{SMALL}\npeer.connect((NEAR, 5001))\n"
    far += f"socket.create_connection((NEAR, 5001)).recv(4)\n{READ_ALL}"
    assert_same(both_stacks(lab, near, far, 4, near_serves=True, same_calls=False))


@pytest.mark.parametrize("before", ["server.bind", "print"])
def test_connections_have_the_options_of_their_listener(lab: AccelLab, before: str) -> None:
    """Small messages do not wait for each other: the reset drops none of them."""
    set_all = f"for each in OPTIONS:\n    server.setsockopt(*each)\n{before}"
    near = """
OPTIONS = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1), (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)]
OPTIONS += [(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 77), (socket.IPPROTO_IP, socket.IP_TOS, 16)]
"""
    near += SERVER.replace("HERE", "NEAR").replace(before, set_all)
    near += """
sock, _ = server.accept()
print([sock.getsockopt(*each[:2]) for each in OPTIONS])
sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\\1\\0\\0\\0\\0\\0\\0\\0")
sock.recv(1) # a connection that is reset before connect() returns is none
for _ in range(3):
    sock.send(b"x")
sock.close()
print(server.accept()[0].recv(10))
"""
    far = """
peer, got = socket.create_connection((NEAR, 5001)), b""
peer.sendall(b"g")
try:
    while data := peer.recv(10):
        got += data
except ConnectionResetError:
    pass
socket.create_connection((NEAR, 5001)).sendall(got)
"""
    said = both_stacks(lab, near, far, 4, near_serves=True, same_calls=False)
    assert_same(said)
    assert "b'xxx'" in said[0]


@pytest.mark.parametrize("before", ["server.bind", "print"])
def test_connections_have_times_and_linger_of_their_listener(lab: AccelLab, before: str) -> None:
    """What is sent that nobody reads, and what is waited for that nobody sends, end in time."""
    near = """
import select
import struct
import time
LINGER = struct.pack("ii", 1, 7)

def set_all(sock):
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 200000))
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, 300000))
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER)

def say_time_out(least_s, call, *arguments):
    begin_s = time.monotonic()
    try:
        while True:
            call(*arguments)
    except BlockingIOError:
        print(call.__name__, time.monotonic() - begin_s >= least_s)
"""
    near += SERVER.replace("HERE", "NEAR").replace(before, f"set_all(server)\n{before}")
    near += """
select.select([server], [], []) # accept(2) has its time, too
sock, _ = server.accept()
select.select([server], [], [])
last, _ = server.accept()
print(sock.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8) == LINGER)
for name in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
    print(struct.unpack("ll", sock.getsockopt(socket.SOL_SOCKET, name, 16)))
say_time_out(0.2, sock.recv, 1)
say_time_out(0.3, sock.send, bytes(1 << 20))
sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
sock.close()
last.close()
"""
    far = f"""
peer = socket.socket()
peer.{SMALL}
peer.connect((NEAR, 5001))
socket.create_connection((NEAR, 5001)).recv(1)
"""
    assert_same(both_stacks(lab, near, far, 4, near_serves=True, same_calls=False))


def test_the_buffer_of_datagrams_set_before_it_is_bound(lab: AccelLab) -> None:
    near = """
sock = socket.socket(FAMILY, socket.SOCK_DGRAM)
sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
sock.bind((NEAR, 5002))
told = socket.create_server((NEAR, 5001))
print("ready", flush=True)
told.accept()
sock.setblocking(False)
count = 0
try:
    while sock.recv(2000):
        count += 1
except BlockingIOError:
    print(0 < count < 50)
"""
    far = """
sock = socket.socket(FAMILY, socket.SOCK_DGRAM)
for _ in range(200):
    sock.sendto(bytes(1000), (NEAR, 5002))
socket.create_connection((NEAR, 5001))
"""
    assert_same(both_stacks(lab, near, far, 4, near_serves=True, same_calls=False))
