# SPDX-License-Identifier: Apache-2.0
"""A user who has all of the service that one user may have: programs are told on their own standard error."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.patience import HANG_S
from tests.targets.userstack.accel_lab import NEAR, AccelLab, Started

USER, GROUP = 1001, 1234
DESCRIPTORS = 3072  # of the service: 1024 for itself, the rest for ports
PORTS = (DESCRIPTORS - 1024) // 2
BECOME = f"os.setgroups([]); os.setgid({GROUP}); os.setuid({USER})\n"
CONNECT = """
import struct
def connect():
    made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    made.connect(ARGUMENTS[0])
    return made
"""
TAKE_CONNECTIONS = (
    BECOME
    + CONNECT
    + """
held = [connect() for _ in range(128)]
print("ready", flush=True)
input()
"""
)
TAKE_PORTS = (
    BECOME
    + CONNECT
    + f"""
service = connect()
def ask(verb, port=0, given=()):
    request = struct.pack("=IIIBBH16s", 2, verb, 1, socket.IPPROTO_UDP, 0, port, bytes(16))
    socket.send_fds(service, [request], given)
    data, descriptors, _, _ = socket.recv_fds(service, 1 << 16, 2)
    for each in descriptors:
        os.close(each)
    return struct.unpack_from("=i", data, 8)[0]
def bind(port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.bind(({NEAR[4]!r}, port))
        return ask(2, port, [made.fileno()])
assert ask(1) == 0
taken = 0
while (result := bind(2000 + taken)) == 0:
    taken += 1
print(taken, errno.errorcode[-result], ask(3, 2000), bind(2000), flush=True) # one back, one again
print("ready", flush=True)
input()
"""
)
BINDS = f"""
for port in (61001, 61002):
    own = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        own.bind(({NEAR[4]!r}, port))
        own.listen()
        print("has it")
    except OSError as error:
        print(errno.errorcode[error.errno])
"""
ALL = "this user has all that one user may have of it"


@pytest.fixture
def shared_lab(repository: Path, open_folder: Path) -> Iterator[AccelLab]:
    lab = AccelLab(repository / ".build/linux", open_folder, 1500, "--group", str(GROUP))
    service = open_folder / "limited-service"
    service.write_text(f'#!/bin/sh\nexec prlimit --nofile={DESCRIPTORS} {lab.service_program} "$@"\n')
    service.chmod(0o755)
    lab.service_program = service
    with lab:
        yield lab


def binds(lab: AccelLab, *, as_user: bool = True) -> tuple[str, str]:
    """Bind two ports by the stack; return what a program says, and its standard error."""
    program = lab.python(lab.near, (BECOME if as_user else "") + BINDS)
    out, err = program.process.communicate(timeout=HANG_S)
    return out, err


def take(lab: AccelLab, script: str) -> Started:
    return lab.python(lab.near, script, str(lab.socket), kernel=True)


def test_a_program_is_told_that_its_user_has_no_more_connections(
    shared_lab: AccelLab, repository: Path
) -> None:
    taker = take(shared_lab, TAKE_CONNECTIONS).ready()
    out, err = binds(shared_lab)
    assert out.split() == ["ENETDOWN"] * 2
    assert err.count(ALL) == 2
    for tool in (
        [str(repository / ".build/linux/targets/linux/userstack/service/bw-stackd"), "show"],
        [str(repository / ".build/linux/targets/linux/userstack/netstat/bw-netstat")],
    ):
        argv = ["setpriv", f"--reuid={USER}", f"--regid={GROUP}", "--clear-groups", *tool]
        done = subprocess.run([*argv, "--socket", str(shared_lab.socket)], capture_output=True, text=True)
        assert done.returncode == 3
        assert ALL in done.stderr
    taker.tell("")
    taker.result()


def test_a_user_has_so_many_ports_and_no_more(shared_lab: AccelLab) -> None:
    """Half of what all may have; a program is told, and another user's, here root's, has its port."""
    taker = take(shared_lab, TAKE_PORTS)
    assert taker.line() == f"{PORTS} EDQUOT 0 0"
    taker.ready()
    out, err = binds(shared_lab)
    assert out.split() == ["EADDRNOTAVAIL"] * 2
    assert err.count(ALL) == 1
    assert binds(shared_lab, as_user=False) == ("has it\n" * 2, "")
    taker.tell("")
    taker.result()
    assert binds(shared_lab) == ("has it\n" * 2, "")
