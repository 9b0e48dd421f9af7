# SPDX-License-Identifier: Apache-2.0
"""Whatever ends of the user-mode stack, program, service or interface: nothing of it is left."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from tests.patience import HANG_S, STALL_S, wait_until
from tests.targets.bpf_objects import held_by, map_exists, program_exists
from tests.targets.userstack.stackd_lab import HELLO, INTERFACE, OWN, PEER, StackdLab, ip
from tests.targets.userstack.stackd_packets import PEER_PORT, PORT


def kernel_things(lab: StackdLab) -> tuple[set[int], set[int]]:
    pid = lab.service.process.pid
    return held_by(pid, "prog"), held_by(pid, "map")


def start_program(lab: StackdLab, port: int) -> subprocess.Popen[str]:
    """Start a program in a process of its own, which has a port and waits."""
    script = (
        "import sys, socket, time; from pathlib import Path\n"
        "from tests.targets.userstack.stackd_lab import Program\n"
        "program = Program(Path(sys.argv[1])); sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "sock.bind(('', int(sys.argv[2]))); assert program.bind(int(sys.argv[2]), sock) == 0\n"
        "print('ready', flush=True); program.connection.settimeout(None)\n"
        "print(repr(program.connection.recv(1)), flush=True); time.sleep(1000)\n"
    )
    argv = ["ip", "netns", "exec", lab.own, sys.executable, "-c", script, str(lab.socket_path), str(port)]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    lab.processes.append(process)
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    return process


def test_a_killed_program_leaves_nothing(driver_lab: StackdLab) -> None:
    lab = driver_lab
    before = kernel_things(lab)
    survivor = lab.connect()
    lab.own_port(survivor, socket.SOCK_DGRAM, PORT + 1)
    with_survivor, veths = kernel_things(lab), lab.veths()
    killed = start_program(lab, PORT)
    assert [each["pid"] for each in lab.show()["programs"]] == [os.getpid(), killed.pid]
    assert len(lab.veths()) == 2
    peer = lab.socket(lab.peer, socket.SOCK_DGRAM, PEER[4], PEER_PORT)
    peer.sendto(b"x", (OWN[4], PORT))
    wait_until(lambda: lab.show()["frames"]["in"] == 1, "a frame to be counted")
    killed.kill()
    killed.wait()
    wait_until(lambda: len(lab.show()["programs"]) == 1, "the program to be gone")
    wait_until(lambda: lab.veths() == veths, "its veth to be gone")
    wait_until(lambda: kernel_things(lab) == with_survivor, "its programs and maps to be gone")
    assert [each["port"] for each in lab.show()["ports"]] == [PORT + 1]
    assert lab.show()["frames"]["in"] == 1, "the totals outlive programs"
    kernels = lab.socket(lab.own, socket.SOCK_DGRAM, OWN[4], PORT)
    peer.sendto(b"for the kernel again", (OWN[4], PORT))
    assert kernels.recvfrom(100)[0] == b"for the kernel again"
    peer.sendto(b"y", (OWN[4], PORT + 1))
    assert survivor.take_frame()
    survivor.close()
    wait_until(lambda: lab.veths() == [], "the veth to be gone")
    wait_until(lambda: kernel_things(lab) == before, "programs and maps to be gone")


def test_a_killed_service_leaves_nothing(driver_lab: StackdLab) -> None:
    """Although a program goes on and holds its socket, and by that the namespace; and the next one begins."""
    lab = driver_lab
    program = lab.connect()
    lab.own_port(program, socket.SOCK_DGRAM, PORT)
    waiting = start_program(lab, PORT + 1)
    programs, maps = kernel_things(lab)
    assert len(programs) == 4
    assert len(lab.veths()) == 2
    lab.service.process.send_signal(signal.SIGKILL)
    lab.service.process.wait()
    assert program.connection.recv(1) == b""
    assert waiting.stdout
    assert waiting.stdout.readline() == "b''\n"
    wait_until(lambda: lab.veths() == [], "the veths to be gone")
    wait_until(lambda: not any(map(program_exists, programs)), "the programs to be gone")
    program.close()  # a socket of AF_XDP holds the map that it is in
    waiting.kill()
    wait_until(lambda: not any(map(map_exists, maps)), "the maps to be gone")
    assert lab.socket_path.exists()
    lab.serve()
    again = lab.connect()
    assert again.bind(PORT, lab.socket(lab.own, socket.SOCK_DGRAM, OWN[6], PORT)) == 0


def test_what_is_left_by_a_service_without_its_guard_is_removed(driver_lab: StackdLab) -> None:
    lab = driver_lab
    lab.connect()
    pid = lab.service.process.pid
    (guard,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    os.kill(int(guard), signal.SIGKILL)
    lab.service.process.kill()
    lab.service.process.wait()
    assert len(lab.veths()) == 1
    lab.serve()
    assert lab.veths() == []
    lab.connect()


def test_a_service_ends_in_order(driver_lab: StackdLab) -> None:
    lab = driver_lab
    program = lab.connect()
    lab.service.stop()
    assert lab.service.process.wait() == 0
    assert program.connection.recv(1) == b""
    assert not lab.socket_path.exists()
    assert lab.veths() == []
    assert "xdp" not in lab.links(lab.own)[INTERFACE]


def test_a_service_that_cannot_begin_says_why(driver_lab: StackdLab) -> None:
    lab = driver_lab
    for options, code, text in (
        (["--interface", INTERFACE, "--socket", "other"], 3, "another XDP program is there"),
        (["--interface", "nothing"], 3, "no such interface"),
        ([], 2, "--interface: missing"),
    ):
        tool = lab.start("serve", *options)
        assert tool.process.wait() == code
        assert text in tool.errors()
    ip("-n", lab.own, "link", "delete", INTERFACE)
    assert lab.service.process.wait() == 5
    assert "the interface has gone" in lab.service.errors()


def test_a_file_in_the_place_of_the_socket_stays(driver_lab: StackdLab) -> None:
    """A path that was mistyped costs nobody a file."""
    lab = driver_lab
    lab.service.stop()
    assert lab.service.process.wait() == 0
    for place in ("results.json", "folder", "link"):
        file = lab.folder / place
        if place == "folder":
            file.mkdir()
        elif place == "link":
            file.symlink_to(lab.folder / "results.json")
        else:
            file.write_text("results")
        tool = lab.start("serve", "--interface", INTERFACE, "--socket", str(file))
        assert tool.process.wait(HANG_S) == 3
        assert "in use" in tool.errors()
        assert file.exists()
    assert (lab.folder / "results.json").read_text() == "results"


def test_a_service_without_descriptors_waits_for_some(driver_lab: StackdLab) -> None:
    """It does not spin meanwhile, and who has waited is served."""
    lab = driver_lab
    pid = lab.service.process.pid

    def ticks() -> int:
        return sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]))

    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (len(list(Path(f"/proc/{pid}/fd").iterdir())), limits[1]))
    waiting = lab.connect(hello=False)
    before = ticks()
    time.sleep(STALL_S)
    assert ticks() - before <= 5, "hundredths of a second of processor time"
    resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
    assert waiting.ask(HELLO).result == 0
    assert lab.service.errors().count("no program can be let in for now: Too many open files") == 1
