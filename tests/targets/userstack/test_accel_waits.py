# SPDX-License-Identifier: Apache-2.0
"""What poll and select say of a connection, and which signals they let through: as by the kernel."""

from __future__ import annotations

import pytest

from tests.targets.userstack.accel_lab import AccelLab
from tests.targets.userstack.test_accel import SERVER, assert_same, both_stacks

CONNECTS = "import ctypes\nimport signal\nimport struct\npeer = socket.create_connection((FAR, 5001))\n"
FAR_END = SERVER.replace("HERE", "FAR") + "peer, _ = server.accept()\n"


def test_select_for_exceptions_does_not_end_by_a_reset(lab: AccelLab) -> None:
    near = f"""{CONNECTS}
select.select([peer], [], [])
print(select.select([], [], [peer], 0), select.select([], [], [peer], 0.3))
print(select.select([peer], [], [peer], 0) == ([peer], [], []))
"""
    far = f"{FAR_END}linger = b'\\1\\0\\0\\0\\0\\0\\0\\0'\n"
    far += "peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)\npeer.close()\n"
    assert_same(both_stacks(lab, near, far, 4, near_serves=False, same_calls=False))


@pytest.mark.parametrize("name", ["ppoll", "pselect", "epoll_pwait"])
def test_a_look_lets_signals_through_as_a_wait_does(lab: AccelLab, name: str) -> None:
    """But for an epoll's, which hears of none unless it waits."""
    near = f"""{CONNECTS}
libc, name = ctypes.CDLL(None, use_errno=True), {name!r}
heard = []
signal.signal(signal.SIGUSR1, lambda *_: heard.append(name))
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
os.kill(os.getpid(), signal.SIGUSR1)
none, mask = (ctypes.c_long * 2)(0, 0), (ctypes.c_ulong * 16)()
if name == "ppoll":
    polled = struct.pack("ihh", peer.fileno(), select.POLLIN, 0)
    result = libc.ppoll(ctypes.create_string_buffer(polled), 1, none, mask)
elif name == "pselect":
    chosen = (ctypes.c_ulong * 16)(1 << peer.fileno())
    result = libc.pselect(peer.fileno() + 1, chosen, None, None, none, (ctypes.c_ulong * 16)())
else:
    epoll = select.epoll()
    epoll.register(peer, select.EPOLLIN)
    result = libc.epoll_pwait(epoll.fileno(), ctypes.create_string_buffer(16), 1, 0, mask)
print(result, errno.errorcode.get(ctypes.get_errno()), heard)
"""
    far = f"{FAR_END}peer.recv(1)\n"
    assert_same(both_stacks(lab, near, far, 4, near_serves=False, same_calls=False))
