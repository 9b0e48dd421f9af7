# SPDX-License-Identifier: Apache-2.0
"""What a program is told of a connection that is over: as by the kernel."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.targets.userstack.accel_lab import AccelLab
from tests.targets.userstack.test_accel import SERVER, assert_same, both_stacks

HEAD = """
def say(name, sock, *arguments):
    try:
        print(name, arguments, getattr(sock, name)(*arguments))
    except OSError as error:
        print(name, arguments, errno.errorcode[error.errno])
def wait_for(sock, events):
    poll = select.poll()
    poll.register(sock, events)
    poll.poll()
"""


@pytest.fixture(scope="module")
def lab(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AccelLab]:
    with AccelLab(repository / ".build/linux", tmp_path_factory.mktemp("ends")) as made:
        yield made


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
