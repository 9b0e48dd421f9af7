# SPDX-License-Identifier: Apache-2.0
"""What the user-mode stack leaves of programs that die, and what programs see of a service that does.

BENCHWRIGHT_STACK_KILLS: how many programs (20).
"""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.lab.compiler import compile_c
from tests.namespace import in_namespace
from tests.patience import HANG_S, wait_until
from tests.targets.bpf_objects import held_by, map_exists
from tests.targets.userstack.accel_lab import FAR, NEAR, AccelLab
from tests.targets.userstack.wire import descriptors, resident_kib

KILLS = int(os.environ.get("BENCHWRIGHT_STACK_KILLS", "20"))
START_MAX_S = 0.05
"""More than a program takes to listen: half of them are killed at any moment of that."""
GROWTH_MAX_KIB = 1024
"""Of the service, whatever the number of programs: what its libraries keep for the next one."""
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
    lab.python(lab.near, SERVER + WAITING, NEAR[4], kernel=first == "kernel").ready()
    said = lab.python(lab.near, BIND, NEAR[4], kernel=second == "kernel")
    assert said.result() == "EADDRINUSE\n"


def what_there_is(lab: AccelLab) -> dict[str, object]:
    """Return all that a program could leave behind."""
    assert lab.service
    pid, shown = lab.service.pid, lab.show()
    links = subprocess.run(["ip", "-n", lab.near, "-o", "link"], check=True, capture_output=True, text=True)
    kinds = {kind: held_by(pid, kind) for kind in ("prog", "map", "link")}
    sockets = in_namespace(lab.near, lambda: Path("/proc/thread-self/net/tcp6").read_text())
    return {
        **kinds,
        "descriptors": descriptors(pid),
        "programs": [each["pid"] for each in shown["programs"]],
        "ports": shown["ports"],
        "links": [line.split(": ")[1] for line in links.stdout.splitlines()],
        "sockets of the kernel": len(sockets.splitlines()),
    }


@pytest.mark.timeout(300 + KILLS)
def test_killed_programs_leave_nothing(lab: AccelLab) -> None:
    """Killed with data on its way and not read, or before they listen; another program is not disturbed."""
    chance = random.Random(1)
    program = compile_c(Path(__file__).with_name("echo_server.c"), lab.folder / "echo", "-D_GNU_SOURCE")
    survivor = lab.start(lab.near, str(program), "6001")
    assert survivor.stdout
    assert survivor.stdout.readline() == "ready\n"
    client = in_namespace(lab.far, lambda: socket.create_connection((NEAR[4], 6001), HANG_S))
    assert lab.service
    before, memory_kib = what_there_is(lab), resident_kib(lab.service.pid)
    begin_s, ready, maps = time.monotonic(), 0, set[int]()
    for number in range(KILLS):
        server = lab.start(lab.near, str(program), "5001")
        assert server.stdout
        if number % 2:
            time.sleep(chance.uniform(0, START_MAX_S))
        else:
            assert server.stdout.readline() == "ready\n"
            ready += 1
            address = NEAR[chance.choice((4, 6))], 5001
            peer = in_namespace(lab.far, lambda address=address: socket.create_connection(address, HANG_S))
            peer.send(bytes(chance.choice((0, 1, 100_000))))
            peer.close()
        maps |= held_by(server.pid, "map")
        server.kill()
        server.communicate()
        wait_until(lambda: what_there_is(lab) == before, "the service to take all back")
        client.send(b"undisturbed")
        assert client.recv(100) == b"undisturbed"
    grown_kib = resident_kib(lab.service.pid) - memory_kib
    print(f"{KILLS} kills in {time.monotonic() - begin_s:.1f} s, {ready} listened; {grown_kib=}; {before}")
    assert ready >= KILLS // 2
    assert grown_kib < GROWTH_MAX_KIB
    wait_until(lambda: not any(map(map_exists, maps)), "maps of programs to be gone")
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
    server = lab.python(lab.near, near, NEAR[4]).ready()
    far = "peer = socket.create_connection((ARGUMENTS[0], 5001))\npeer.send(b'x')\n" + WAITING
    lab.python(lab.far, far, NEAR[4], kernel=True)
    assert server.line() == "connected"
    assert lab.service is not None
    os.kill(lab.service.pid, signal.SIGKILL)
    out, err = server.process.communicate()
    assert out == "ENETDOWN\n" * 3
    assert "the service of the interface is gone" in err
    answer = SERVER + "connection, _ = server.accept()\nconnection.send(b'kernel')\n"
    lab.python(lab.near, answer, NEAR[4], kernel=True).ready()
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
        server = lab.python(lab.far, far, FAR[4], kernel=True).ready()
        near = f"peer = socket.create_connection((ARGUMENTS[0], 5001))\npeer.sendall(bytes(1 << 20))\n{end}\n"
        lab.python(lab.near, near, FAR[4]).result()
        assert server.result() == f"{1 << 20}\n"
