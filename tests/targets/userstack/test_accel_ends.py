# SPDX-License-Identifier: Apache-2.0
"""What a program is told of a connection that is over: as by the kernel."""

from __future__ import annotations

import pytest

from tests.targets.userstack.accel_lab import AccelLab
from tests.targets.userstack.test_accel import SERVER, assert_same, both_stacks, for_family

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


@pytest.mark.parametrize("again", ["here", "by another program"])
@pytest.mark.parametrize("bind", ["NEAR", '""'])
def test_a_listener_that_is_closed_leaves_its_port_at_once(lab: AccelLab, again: str, bind: str) -> None:
    """As by the kernel, also with connections that nobody has accepted; the port is the stack's again."""
    near = f"""
def listen():
    server = socket.socket()
    server.bind(({bind}, 5077))
    server.listen()
    return server
if "again" not in ARGUMENTS:
    for _ in range(3):
        listen().close()
    server = listen()
    print("ready", flush=True)
    select.select([server], [], [])
    server.close()
    if {again!r} != "here":
        sys.stdin.readline()
        sys.exit()
server = listen()
print("again", flush=True)
peer, _ = server.accept()
peer.sendall(peer.recv(100))
peer.recv(1)
"""
    far = """
try: # the reset may come before connect() has ended
    print(socket.create_connection((NEAR, 5077)).recv(1))
except ConnectionResetError:
    print("reset")
sys.stdin.readline()
second = socket.create_connection((NEAR, 5077))
second.sendall(b"heard")
print(second.recv(100))
"""
    near, far = for_family(near, 4), for_family(far, 4)
    said: list[list[str]] = []
    for kernel in (True, False):
        server = lab.python(lab.near, near, kernel=kernel).ready()
        client = lab.python(lab.far, far, kernel=True)
        said.append([client.line()])
        other = server if again == "here" else lab.python(lab.near, near, "again", kernel=kernel)
        said[-1].append(other.line())
        client.tell("now")
        said[-1].append(client.result())
        other.result()
        if other is not server:
            server.tell("end")
            server.result()
    assert said[0] == said[1] == ["reset", "again", "b'heard'\n"]
