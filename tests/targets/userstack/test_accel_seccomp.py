# SPDX-License-Identifier: Apache-2.0
"""Programs that allow themselves few system calls (seccomp): which ones the stack makes, and what is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.patience import HANG_S
from tests.targets.userstack.accel_lab import NEAR, AccelLab, Started

PROGRAM = ".build/linux/tests/targets/userstack/userstack-sandboxed"
ASKS = f"""
peer = socket.create_connection(({NEAR[4]!r}, 5001), {HANG_S})
for _ in range(3):
    peer.sendall(b"question")
    answer = b""
    while len(answer) < 8 and (piece := peer.recv(100)):
        answer += piece
    print(answer)
peer.shutdown(socket.SHUT_WR)
print(peer.recv(1))
"""


@pytest.mark.parametrize("how", ["unused", "used", "waits"])
def test_a_child_needs_the_calls_that_it_makes_and_no_others(
    lab: AccelLab, repository: Path, how: str
) -> None:
    """As sshd's before a login: it reads, writes and waits, and any other call kills it."""
    said: list[str] = []
    for environment in (lab.near_environment(BW_ACCEL_ONLY="udp:9"), lab.near_environment()):
        argv = [str(repository / PROGRAM), NEAR[4], how]
        server = Started(lab.start(lab.near, *argv, environment=environment)).ready()
        said.append(lab.python(lab.far, ASKS).result() + server.result())
    assert said[0] == said[1]
    assert "exit code 0, signal 0" in said[0]


@pytest.mark.parametrize("how", ["itself", "listens"])
def test_what_the_stack_itself_needs_is_told(lab: AccelLab, repository: Path, how: str) -> None:
    """Of a program with a stack, or a listener, whose connections it has to ask its parent for."""
    server = lab.start(lab.near, str(repository / PROGRAM), NEAR[4], how)
    Started(server).ready()
    peer = lab.python(lab.far, f"socket.create_connection(({NEAR[4]!r}, 5001), {HANG_S}).close()")
    peer.result()
    _, err = server.communicate(timeout=HANG_S)
    assert err.count("seccomp") == 1, err
    assert "sendto" in err
