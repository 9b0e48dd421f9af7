# SPDX-License-Identifier: Apache-2.0
"""`bw-netstat`: states, queues and counters of programs that run by the user-mode stack."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.patience import HANG_S, wait_until
from tests.targets.userstack.accel_lab import FAR, NEAR, AccelLab, Started

PORT = 5001
NETSTAT = "targets/linux/userstack/netstat/bw-netstat"
Json = dict[str, Any]


@pytest.fixture(scope="module")
def netstat(repository: Path) -> Path:
    return repository / ".build/linux" / NETSTAT


@pytest.fixture(scope="module")
def lab(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AccelLab]:
    with AccelLab(repository / ".build/linux", tmp_path_factory.mktemp("netstat")) as made:
        yield made


def run(netstat: Path, lab: AccelLab, *options: str) -> subprocess.CompletedProcess[str]:
    argv = [str(netstat), "--socket", str(lab.socket), *options]
    return subprocess.run(argv, check=True, capture_output=True, text=True, timeout=HANG_S)


def everything(netstat: Path, lab: AccelLab) -> Json:
    found: Json = json.loads(run(netstat, lab, "--json").stdout)
    assert found["version"] == 1
    return found


def program_of(netstat: Path, lab: AccelLab, pid: int) -> Json:
    return next(each for each in everything(netstat, lab)["programs"] if each["pid"] == pid)


def sockets_of(netstat: Path, lab: AccelLab, pid: int) -> list[Json]:
    program = program_of(netstat, lab, pid)
    assert program["report"] == "fresh"
    sockets: list[Json] = program["sockets"]
    return sockets


def pid_of(script: Started) -> int:
    return int(script.line())


SERVER = """
print(os.getpid(), flush=True)
server = socket.create_server((NEAR, PORT), backlog=7)
print("ready", flush=True)
"""
COMMANDS = """
for line in sys.stdin:
    exec(line)
    print("done", flush=True)
"""
CLIENT = """
print(os.getpid(), flush=True)
peer = socket.create_connection((NEAR, PORT))
print("connected", flush=True)
"""


def filled_in(script: str) -> str:
    for name, value in (("NEAR", repr(NEAR[4])), ("FAR", repr(FAR[4])), ("PORT", str(PORT))):
        script = script.replace(name, value)
    return script


def do(script: Started, line: str) -> None:
    """Let a script that takes commands do one."""
    script.tell(filled_in(line))
    assert script.line() == "done"


def test_a_table_of_connections_and_listeners(lab: AccelLab, netstat: Path) -> None:
    server = lab.python(lab.near, filled_in(SERVER) + COMMANDS)
    pid = pid_of(server)
    assert server.line() == "ready"
    client = lab.python(lab.far, filled_in(CLIENT) + COMMANDS)
    client.line()
    assert client.line() == "connected"
    listener = run(netstat, lab, "--listening").stdout.splitlines()
    # One connection waits to be accepted, of seven that may.
    *words, program = listener[1].split()
    assert words == ["tcp", "LISTEN", "1", "7", f"{NEAR[4]}:{PORT}", "0.0.0.0:*"]
    assert re.fullmatch(rf"python[.\d]*/{pid}", program)
    do(server, "connection, _ = server.accept()")
    do(client, "peer.sendall(b'x' * 1000)")
    wait_until(lambda: rows(netstat, lab)[0][2] == "1000", "bytes that nobody read")
    row = rows(netstat, lab)[0]
    assert row[:4] == ["tcp", "ESTAB", "1000", "0"]
    assert row[4] == f"{NEAR[4]}:{PORT}"
    assert row[5].startswith(f"{FAR[4]}:")
    assert f"pid={pid},fd=" in run(netstat, lab, "--program").stdout
    assert rows(netstat, lab, "--udp") == []
    assert "Recv-Q" in run(netstat, lab).stdout.splitlines()[0]
    server.end()
    client.end()


def rows(netstat: Path, lab: AccelLab, *options: str) -> list[list[str]]:
    """Return the table's rows, as words."""
    return [line.split() for line in run(netstat, lab, *options).stdout.splitlines()[1:]]
