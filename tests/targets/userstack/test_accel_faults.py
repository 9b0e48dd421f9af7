# SPDX-License-Identifier: Apache-2.0
"""What the user-mode stack leaves of programs that die, and what programs see of a service that does."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.patience import wait_until
from tests.targets.userstack.accel_lab import FAR, NEAR, AccelLab

SERVER = """
server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
server.bind((ARGUMENTS[0], 5001))
server.listen()
print("ready", flush=True)
"""
WAITING = "while True: time.sleep(1)\n"
BIND = """
try:
    sock = socket.socket()
    sock.bind((ARGUMENTS[0], 5001))
    sock.listen()
    print("bound")
except OSError as error:
    print(errno.errorcode[error.errno])
"""


@pytest.fixture
def lab(repository: Path, tmp_path: Path) -> Iterator[AccelLab]:
    with AccelLab(repository / ".build/linux", tmp_path) as made:
        yield made


@pytest.mark.parametrize("first", ["kernel", "stack"])
@pytest.mark.parametrize("second", ["kernel", "stack"])
def test_a_port_is_one_program_s_in_both_stacks(lab: AccelLab, first: str, second: str) -> None:
    server = lab.python(lab.near, SERVER + WAITING, NEAR[4], kernel=first == "kernel")
    assert server.line() == "ready"
    said = lab.python(lab.near, BIND, NEAR[4], kernel=second == "kernel")
    assert said.result() == "EADDRINUSE\n"


def test_killed_programs_leave_nothing(lab: AccelLab) -> None:
    for _ in range(20):
        server = lab.python(lab.near, SERVER + WAITING, NEAR[4])
        assert server.line() == "ready"
        assert [each["port"] for each in lab.show()["ports"]] == [5001]
        server.process.kill()
        server.process.wait()
        wait_until(
            lambda: not lab.show()["ports"] and not lab.show()["programs"], "the service to take all back"
        )
    links = subprocess.run(["ip", "-n", lab.near, "-o", "link"], check=True, capture_output=True, text=True)
    assert "bwu" not in links.stdout
    assert lab.python(lab.near, BIND, NEAR[4], kernel=True).result() == "bound\n"


def test_a_service_that_dies_ends_what_it_carried(lab: AccelLab) -> None:
    """Errors, no hangs; and the kernel's stack serves the port again."""
    near = (
        SERVER
        + """
connection, _ = server.accept()
connection.recv(1)
print("connected", flush=True)
for call in (lambda: connection.recv(100), lambda: connection.send(b"x"), server.accept):
    try:
        print(call())
    except OSError as error:
        print(errno.errorcode[error.errno])
"""
    )
    server = lab.python(lab.near, near, NEAR[4])
    assert server.line() == "ready"
    far = "peer = socket.create_connection((ARGUMENTS[0], 5001))\npeer.send(b'x')\n" + WAITING
    lab.python(lab.far, far, NEAR[4], kernel=True)
    assert server.line() == "connected"
    assert lab.service is not None
    os.kill(lab.service.pid, signal.SIGKILL)
    out, err = server.process.communicate()
    assert out == "ENETDOWN\n" * 3
    assert "the service of the interface is gone" in err
    answer = SERVER + "connection, _ = server.accept()\nconnection.send(b'kernel')\n"
    kernel = lab.python(lab.near, answer, NEAR[4], kernel=True)
    assert kernel.line() == "ready"
    ask = "print(socket.create_connection((ARGUMENTS[0], 5001)).recv(100))"
    assert lab.python(lab.far, ask, NEAR[4], kernel=True).result() == "b'kernel'\n"


def test_without_a_service_nothing_is_carried_in_silence(lab: AccelLab) -> None:
    assert lab.service is not None
    os.kill(lab.service.pid, signal.SIGKILL)
    lab.service.wait()
    process = lab.python(lab.near, BIND, NEAR[4]).process
    out, err = process.communicate()
    assert out == "ENETDOWN\n"
    assert "no service answers" in err


def test_what_a_program_has_sent_arrives_though_it_ends(lab: AccelLab) -> None:
    far = (
        SERVER
        + """
connection, _ = server.accept()
time.sleep(0.05)
data = b""
while piece := connection.recv(1 << 16):
    data += piece
print(len(data))
"""
    )
    for end in ("", "os._exit(0)", "peer.close()"):
        server = lab.python(lab.far, far, FAR[4], kernel=True)
        assert server.line() == "ready"
        near = f"peer = socket.create_connection((ARGUMENTS[0], 5001))\npeer.sendall(bytes(1 << 20))\n{end}\n"
        lab.python(lab.near, near, FAR[4]).result()
        assert server.result() == f"{1 << 20}\n"
