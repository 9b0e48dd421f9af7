# SPDX-License-Identifier: Apache-2.0
"""What a program is told of a connection that is over: as by the kernel."""

from __future__ import annotations

import pytest

from tests.targets.userstack.accel_lab import AccelLab
from tests.targets.userstack.test_accel import SERVER, assert_same, both_stacks

HEAD = """
import struct
def say(name, sock, *arguments):
    try:
        print(name, arguments, getattr(sock, name)(*arguments))
    except OSError as error:
        print(name, arguments, errno.errorcode[error.errno])
def reset(sock):
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()
def wait_for(sock, events):
    poll = select.poll()
    poll.register(sock, events)
    poll.poll()
OPTIONS = [
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1), (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 100), (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000),
]
"""


@pytest.mark.parametrize("first", ["recv", "send", "getsockopt"])
def test_a_reset_after_the_end_is_no_error_of_reading(lab: AccelLab, first: str) -> None:
    """As where a server answers and closes while a client still sends: the answer is whole."""
    arguments = {"recv": "10", "send": "b'x'", "getsockopt": "socket.SOL_SOCKET, socket.SO_ERROR"}
    near = f"""{HEAD}
peer = socket.create_connection((FAR, 5001))
wait_for(peer, select.POLLRDHUP)
peer.send(b"not read")
wait_for(peer, 0) # POLLERR comes unasked
say({first!r}, peer, {arguments[first]})
for _ in range(3):
    say("recv", peer, 10)
say("getsockopt", peer, {arguments["getsockopt"]})
say("send", peer, b"x")
say("recv", peer, 10)
"""
    far = f"""{HEAD}{SERVER.replace("HERE", "FAR")}
conn, _ = server.accept()
conn.send(b"answer")
conn.close()
"""
    assert_same(both_stacks(lab, near, far, 4, near_serves=False, same_calls=False))


@pytest.mark.parametrize("bind", ["NEAR", '""'])
def test_a_connection_that_is_over_before_it_is_accepted_has_names_and_options(
    lab: AccelLab, family: int, bind: str
) -> None:
    near = f"""{HEAD}
bell = socket.socket(FAMILY, socket.SOCK_DGRAM)
bell.bind((NEAR, 5003))
{SERVER.replace("HERE", bind)}
wait_for(bell, select.POLLIN) # it is over
conn, peer = server.accept()
print(peer[0] == FAR, peer[1] > 0)
for option in OPTIONS:
    say("setsockopt", conn, *option)
for name in ("getsockname", "getpeername"):
    say(name, conn)
for _ in range(3):
    say("recv", conn, 10)
"""
    far = f"""{HEAD}
peer = socket.create_connection((NEAR, 5001))
peer.send(b"data")
reset(peer)
socket.socket(FAMILY, socket.SOCK_DGRAM).sendto(b"now", (NEAR, 5003))
"""
    assert_same(both_stacks(lab, near, far, family, near_serves=True, same_calls=False))


def test_a_connection_that_was_reset_has_its_name_and_options(lab: AccelLab, family: int) -> None:
    near = f"""{HEAD}
peer = socket.create_connection((FAR, 5001))
name = peer.getsockname()
wait_for(peer, 0)
print(peer.getsockname() == name, name[0])
for option in OPTIONS:
    say("setsockopt", peer, *option)
for _ in range(2):
    say("recv", peer, 10)
for name in ("getpeername", "listen"):
    say(name, peer)
say("connect", peer, (FAR, 5001))
"""
    far = f"""{HEAD}{SERVER.replace("HERE", "FAR")}
reset(server.accept()[0])
"""
    assert_same(both_stacks(lab, near, far, family, near_serves=False, same_calls=False))
