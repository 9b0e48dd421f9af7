# SPDX-License-Identifier: Apache-2.0
"""What an epoll over sockets of both stacks says, and how often: as by the kernel."""

from __future__ import annotations

import pytest

from tests.targets.userstack.accel_lab import AccelLab
from tests.targets.userstack.test_accel import SERVER, assert_same, both_stacks, for_family


def test_an_edge_is_news(lab: AccelLab) -> None:
    """Neither what the program does itself, nor an acknowledgement is, where nothing has changed by it."""
    far = (
        SERVER.replace("HERE", "FAR")
        + """
connection, _ = server.accept()
connection.sendall(b"unread")
while data := connection.recv(100):
    if data != b"silent":
        connection.sendall(data)
connection.shutdown(socket.SHUT_WR)
time.sleep(0.5)
"""
    )
    near = """
peer = socket.create_connection((FAR, 5001))
select.select([peer], [], [])
epoll = select.epoll()
def said(timeout):
    return [events for _, events in epoll.poll(timeout)]
epoll.register(peer, select.EPOLLIN | select.EPOLLOUT | select.EPOLLET)
print(said(0), said(0))
peer.sendall(b"silent")
print(said(0.3))
print(peer.recv(3), said(0))
print(peer.recv(100), said(0))
peer.sendall(b"answer")
print(said(5), said(0.3))
peer.sendall(b"again")
print(said(5), said(0.3))
peer.shutdown(socket.SHUT_WR)
time.sleep(0.3)
print(said(5), said(0.2))
"""
    assert_same(both_stacks(lab, near, far, 4, near_serves=False, same_calls=False))


def test_an_edge_of_a_listener_is_a_connection(lab: AccelLab) -> None:
    near = (
        SERVER.replace("HERE", "NEAR").replace('print("ready", flush=True)', "")
        + """
epoll = select.epoll()
epoll.register(server, select.EPOLLIN | select.EPOLLET)
print("ready", flush=True)
time.sleep(0.5)
kept = []
for _ in range(2):
    print(len(epoll.poll(1)), len(epoll.poll(0)))
    kept.append(server.accept())
print(len(epoll.poll(0.2)))
"""
    )
    far = """
peers = [socket.create_connection((NEAR, 5001)) for _ in range(2)]
peers[0].recv(1)
"""
    assert_same(both_stacks(lab, near, far, 4, near_serves=True, same_calls=False))


@pytest.mark.parametrize("first", ["far", "local"])
def test_one_shot_is_one_event_of_both_stacks(lab: AccelLab, first: str) -> None:
    near = (
        SERVER.replace("HERE", "''").replace('print("ready", flush=True)', "")
        + f"""
local_first = {first == "local"}
epoll, kept = select.epoll(), []
epoll.register(server, select.EPOLLIN | select.EPOLLONESHOT)
def local():
    kept.append(socket.create_connection(("127.0.0.1", 5001)))
if local_first:
    local()
    early = epoll.poll(5)
print("ready", flush=True)
time.sleep(0.7)
if not local_first:
    early = epoll.poll(5)
    local()
print(len(early), len(epoll.poll(0.3)))
epoll.modify(server, select.EPOLLIN | select.EPOLLONESHOT)
print(len(epoll.poll(5)), len(epoll.poll(0)))
for _ in range(2):
    kept.append(server.accept())
epoll.modify(server, select.EPOLLIN)
local()
print(len(epoll.poll(5)), len(epoll.poll(5)))
"""
    )
    far = """
peer = socket.create_connection((NEAR, 5001))
peer.recv(1)
"""
    said: list[str] = []
    for kernel in (True, False):
        server = lab.python(lab.near, for_family(near, 4), kernel=kernel).ready()
        lab.python(lab.far, for_family(far, 4))
        said.append(server.result())
    assert_same(said)


def test_equal_data_does_not_make_two_watches_one(lab: AccelLab) -> None:
    far = SERVER.replace("HERE", "FAR") + "peer, _ = server.accept()\npeer.sendall(b'data')\npeer.recv(1)\n"
    near = """
import ctypes, struct
libc = ctypes.CDLL(None, use_errno=True)
peer = socket.create_connection((FAR, 5001))
reader, writer = os.pipe()
os.write(writer, b"x")
select.select([peer], [], [])
epoll = select.epoll()
for fd in (peer.fileno(), reader):
    event = ctypes.create_string_buffer(struct.pack("=IQ", select.EPOLLIN, 7))
    print(libc.epoll_ctl(epoll.fileno(), 1, fd, event))
events = ctypes.create_string_buffer(12 * 8)
count = libc.epoll_wait(epoll.fileno(), events, 8, 1000)
print(count, [struct.unpack_from("=IQ", events, 12 * i) for i in range(count)])
peer.recv(100)
"""
    assert_same(both_stacks(lab, near, far, 4, near_serves=False, same_calls=False))
