# SPDX-License-Identifier: Apache-2.0
"""The service of the user-mode stack is shared: what one program does costs the others nothing."""

from __future__ import annotations

import errno
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import wait_until
from tests.targets.userstack.stackd_lab import BIND, HELLO, RESOLVE, SHOW, VERSION, StackdLab, bw_stackd
from tests.targets.userstack.stackd_packets import PORT

VERBS = (HELLO, BIND, RESOLVE, SHOW, 99)


def descriptors(lab: StackdLab) -> int:
    """Return how many the service has."""
    return len(list(Path("/proc", str(lab.service.process.pid), "fd").iterdir()))


@pytest.mark.parametrize("given", range(1, 6))
def test_a_first_message_leaves_no_descriptors(driver_lab: StackdLab, given: int) -> None:
    """However many come with it, whatever it asks for, once its program has ended."""
    before = descriptors(driver_lab)
    nothing = os.open("/dev/null", os.O_RDONLY)
    try:
        for verb in VERBS:
            program = driver_lab.connect(hello=False)
            program.ask(verb, given=[nothing] * given)
            program.close()
    finally:
        os.close(nothing)
    wait_until(lambda: descriptors(driver_lab) <= before, "what has come to be closed")


def waits(lab: StackdLab) -> int:
    """Return how often the service has waited for something."""
    status = Path(f"/proc/{lab.service.process.pid}/status").read_text()
    return int(status.partition("\nvoluntary_ctxt_switches:")[2].split()[0])


def test_ports_of_all_that_have_ended_are_free_first(driver_lab: StackdLab) -> None:
    """Before their veths are removed, which takes the kernel tens of milliseconds each."""
    lab, udp = driver_lab, socket.IPPROTO_UDP
    survivor = lab.connect()
    ended = [lab.connect() for _ in range(16)]
    last = lab.own_port(ended[-1], socket.SOCK_DGRAM, PORT)
    before = waits(lab)
    lab.service.process.send_signal(signal.SIGSTOP)
    for each in ended:
        each.close()
    survivor.tell(BIND, VERSION, [last.fileno()], udp, 0, PORT, b"")
    lab.service.process.send_signal(signal.SIGCONT)
    assert survivor.answer(BIND).result == 0
    waited = waits(lab) - before
    wait_until(lambda: len(lab.veths()) == 1, "the veths to be gone")
    assert waited < (waits(lab) - before) / 2


TAKE_ALL = """
import os, socket, struct, sys
os.setgroups([]); os.setgid(1234); os.setuid(int(sys.argv[2]))
def connect():
    made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); made.connect(sys.argv[1]); return made
def result(made, verb):
    try:
        made.send(struct.pack("=IIIBBH16s", 2, verb, 1, 0, 0, 0, bytes(16)))
    except BrokenPipeError: # it has been refused
        pass
    try:
        data, descriptors, _, _ = socket.recv_fds(made, 2**19, 2)
    except ConnectionResetError: # once, ahead of what was said
        data, descriptors, _, _ = socket.recv_fds(made, 2**19, 2)
    for each in descriptors: os.close(each)
    return struct.unpack_from("=i", data, 8)[0] if data else None
programs = [connect() for _ in range(int(sys.argv[3]))]
print(*(result(each, 1) for each in programs))
shown = result(connect(), 5)
idle = [connect() for _ in range(int(sys.argv[4]))]
print(shown, result(idle[-1], 5), flush=True)
sys.stdin.read()
"""


def take_all(lab: StackdLab, user: int, programs: int, idle: int) -> tuple[list[str], list[str]]:
    """Let a user say hello and connect so often; return the answers, and those to `show` before and after."""
    numbers = map(str, (user, programs, idle))
    argv = [sys.executable, "-c", TAKE_ALL, str(lab.socket_path), *numbers]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    lab.processes.append(process)
    assert process.stdout
    return process.stdout.readline().split(), process.stdout.readline().split()


def test_a_user_has_so_much_of_a_service_and_no_more(repository: Path, open_folder: Path) -> None:
    """Whose programs are all that one has is shown them; whoever holds what, another and root are served."""
    refused = str(-errno.EDQUOT)
    with StackdLab(bw_stackd(repository), open_folder, "--group", "1234") as lab:
        answers, shows = take_all(lab, 1001, 34, 100)
        assert answers == ["0"] * 32 + [refused] * 2
        assert shows == ["0", refused]
        assert take_all(lab, 1002, 26, 100) == (["0"] * 24 + [str(-errno.ENOSPC)] * 2, ["0", "0"])
        assert {each["uid"] for each in lab.show()["programs"]} == {1001, 1002}
        lab.connect()
        said = lab.service.errors()
        for what in (
            "1001 has no more programs: 32",
            "1001 has no more connections: 128",
            "1002 has no more programs: 56",
        ):
            assert said.count(f"user {what} in use") == 1
