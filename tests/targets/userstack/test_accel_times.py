# SPDX-License-Identifier: Apache-2.0
"""Timeouts that are no times, or longer than any: as by the kernel."""

from __future__ import annotations

import pytest

from tests.targets.userstack.accel_lab import AccelLab
from tests.targets.userstack.test_accel import SERVER, assert_same, both_stacks

NEAR_END = """
import ctypes
import struct
libc = ctypes.CDLL(None, use_errno=True)
peer = socket.create_connection((FAR, 5001))

def ask():
    peer.sendall(b"?") # and the answer comes a while later

def call(name, *arguments):
    result = getattr(libc, name)(*arguments)
    return errno.errorcode[ctypes.get_errno()] if result < 0 else result

def wait_by(name, seconds, part):
    time = (ctypes.c_long * 2)(seconds, part)
    polled = ctypes.create_string_buffer(struct.pack("ihh", peer.fileno(), select.POLLIN, 0))
    chosen = (ctypes.c_ulong * 16)(1 << peer.fileno())
    if name == "ppoll":
        return call(name, polled, 1, time, None)
    if name == "epoll_pwait2":
        epoll = select.epoll()
        epoll.register(peer, select.EPOLLIN)
        return call(name, epoll.fileno(), ctypes.create_string_buffer(16), 1, time, None)
    if name == "pselect":
        return call(name, peer.fileno() + 1, chosen, None, None, time, None)
    return call(name, peer.fileno() + 1, chosen, None, None, time)
"""
ANSWERS = "peer, _ = server.accept()\nwhile peer.recv(1):\n    time.sleep(0.1)\n    peer.sendall(b'!')\n"
FAR_END = SERVER.replace("HERE", "FAR") + ANSWERS
LONG = "(1 << 63) - 1, 18446744073710, 1 << 44"  # the second is 2 to the power of 64 in µs


@pytest.mark.parametrize("name", ["ppoll", "pselect", "select", "epoll_pwait2"])
def test_a_wait_with_any_timeout(lab: AccelLab, name: str) -> None:
    near = f"{NEAR_END}for seconds in ({LONG}):\n    ask()\n"
    near += f"    print(wait_by({name!r}, seconds, 0), peer.recv(1))\n"
    near += f"print([wait_by({name!r}, *each) for each in ((-1, 0), (0, -1))])\n"
    if name != "select":  # which takes any number of microseconds
        near += f"print(wait_by({name!r}, 0, 10**9))\n"
    assert_same(both_stacks(lab, near, FAR_END, 4, near_serves=False, same_calls=False))


def test_a_timeout_of_a_socket_may_be_any(lab: AccelLab) -> None:
    near = f"""{NEAR_END}
for seconds in ({LONG}, -1, -(1 << 62)):
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", seconds, 0))
    ask()
    try:
        print(peer.recv(1))
    except BlockingIOError:
        print("at once", select.select([peer], [], []) and peer.recv(1))
"""
    assert_same(both_stacks(lab, near, FAR_END, 4, near_serves=False, same_calls=False))
