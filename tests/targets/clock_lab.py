# SPDX-License-Identifier: Apache-2.0
"""Two scratch guests on one test network, a target and a time server, as a bench that clock stacks run on."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from hw.bench import BenchSpec, TargetSpec, load_bench
from hw.drivers.local import require_success
from hw.errors import BenchError, CapabilityError
from hw.protocols import CommandResult
from hw.tools import local_tool
from hw.virtual.guest_config import GuestClock, GuestInterface
from resources.clock_sync.config import REMOTE_RUN
from resources.clock_sync.settings import ClockSettings, Wander
from resources.clock_sync.stack import ClockStack
from tests.targets.scratch_guest import ScratchGuest, boot, plain_config

BENCH_FILE = Path(__file__).resolve().parents[2] / "hw" / "benches" / "virtual.yaml"
TOOLS = "/var/lib/benchwright/bin"
GUEST_PRIORITY = 10
"""Below all that a virtual bench runs."""
TARGET_ERROR = GuestClock(step_ns=-1_700_000_000, frequency_ppb=25_000)
"""Of the target's clock at boot: as on the virtual bench."""


LOCK_S = 90.0
"""By when a stack locks on a busy machine."""
WANDER = Wander(seed=3)


class ScratchNode:
    """A scratch guest as a node of a bench."""

    clock = "none"
    priority = 0
    powered = True
    work_folder = "/run"

    def __init__(self, name: str, guest: ScratchGuest) -> None:
        """Wrap a guest that has booted."""
        self.name = name
        self.guest = guest

    def run(self, argv: Sequence[str], timeout_s: float = 30.0, check: bool = True) -> CommandResult:
        """Run a command to its end."""
        del timeout_s  # the guest has its own
        done = self.guest.run(shlex.join(argv))
        completed = CommandResult(tuple(argv), done.returncode, done.stdout.decode(), done.stderr.decode())
        if check:
            require_success(self.name, completed)
        return completed

    def start(self, argv: Sequence[str], stem: Path) -> NoReturn:
        """Clock stacks start their daemons by their own scripts."""
        raise BenchError(f"{self.name}: not started: {argv}, {stem}")

    def is_reached(self) -> bool:
        """Tell that it answers."""
        return True

    def converse(self, argv: Sequence[str], stem: Path) -> NoReturn:
        """No experiment runs there."""
        raise BenchError(f"{self.name}: not started: {argv}, {stem}")

    def bring(self, file: Path) -> NoReturn:
        """Clock stacks bring their files by `put`."""
        raise BenchError(f"{self.name}: not brought: {file}")

    def fresh_folder(self, name: str) -> NoReturn:
        """Clock stacks have a folder of their own."""
        raise BenchError(f"{self.name}: not made: {name}")

    def files(self, folder: str) -> NoReturn:
        """Clock stacks know their files."""
        raise BenchError(f"{self.name}: not listed: {folder}")

    def put(self, local: Path, remote: str) -> None:
        """Copy a file to the node, keeping its mode."""
        mode = f"{local.stat().st_mode & 0o777:o}"
        script = f"mkdir -p {Path(remote).parent} && cat >{remote}.new && chmod {mode} {remote}.new"
        done = self.guest.run(f"{script} && mv {remote}.new {remote}", stdin=local.read_bytes())
        assert done.returncode == 0, done.stderr

    def get(self, remote: str, local: Path) -> None:
        """Copy a file from the node."""
        done = self.guest.run(f"cat {remote}")
        assert done.returncode == 0, done.stderr
        local.write_bytes(done.stdout)


@dataclass(frozen=True)
class ClockLab:
    """What a clock stack needs of a bench."""

    spec: BenchSpec
    nodes: dict[str, ScratchNode]

    def node(self, name: str) -> ScratchNode:
        """Return a node."""
        return self.nodes[name]

    def tool(self, node_name: str, tool: str = "bw-traffic", *, dynamic: bool = False) -> str:
        """Bring a native tool to a node; raise CapabilityError of a dynamic one: guests have no libraries."""
        if dynamic:
            raise CapabilityError(f"{node_name}: has no libraries")
        remote = f"{TOOLS}/{tool}"
        node = self.nodes[node_name]
        if node.run(["test", "-x", remote], check=False).exit_code:
            node.put(local_tool(tool, "x86_64"), remote)
        return remote

    def library(self, node_name: str, library: str | Path) -> str:
        """Raise CapabilityError."""
        raise CapabilityError(f"{node_name}: loads no libraries, {library} neither")


@contextmanager
def clock_lab(folder: Path) -> Generator[ClockLab]:
    """Boot target and time server with the addresses of the virtual bench, connected by their test cards."""
    spec = load_bench(BENCH_FILE)
    target, server = spec.targets["linux-rt"], spec.time_server
    assert server is not None
    machines = {
        target.node: ("target", "52:54:00:00:00:0a", target.test_address, TARGET_ERROR),
        server.node: ("producer", "52:54:00:00:00:0b", server.address, GuestClock()),
    }
    with ExitStack() as stack:
        guests: dict[str, ScratchGuest] = {}
        for name, (role, mac, address, clock) in machines.items():
            (folder / name).mkdir()
            config = replace(plain_config(GuestInterface(mac, "test0", f"{address}/24")), clock=clock)
            cards = ("igb",) if name == target.node else ()  # its PHC: /dev/ptp0
            guests[name] = stack.enter_context(boot(folder / name, role, config, devices=cards))
        connect(guests[target.node].namespace, guests[server.node].namespace)
        for guest in guests.values():
            guest.wait_console("benchwright: ready")
            prioritise(guest)
        yield ClockLab(spec, {name: ScratchNode(name, guest) for name, guest in guests.items()})


def kernel(lab: ClockLab, node: str) -> dict[str, Any]:
    """Return what the kernel of a node holds."""
    return json.loads(lab.node(node).run(["bw-setclock"]).stdout)


def daemons(lab: ClockLab, node: str) -> str:
    """Return the names of all programs that steer a clock there."""
    names = ("chronyd", "ptp4l", "phc2sys", "bw-ntp-user", "bw-timed", "bw-wander")
    return lab.node(node).run(["pgrep", "-l", "|".join(names)], check=False).stdout


def stack_of(lab: ClockLab, target: TargetSpec, name: str, folder: Path) -> ClockStack:
    """Return a stack whose time server wanders, always in the same way."""
    settings = ClockSettings(server_wander=WANDER)
    return ClockStack(lab, target, name, settings, folder, print)


def is_heard(lab: ClockLab, target: TargetSpec, stack: ClockStack, within_s: float) -> bool:
    """Tell whether the servo that hears the server logs another answer of it in time."""
    log = stack.spec.logs[0]

    def answers() -> int:
        text = lab.node(target.node).run(["cat", f"{REMOTE_RUN}/{log.file}"]).stdout
        return sum(len(series.time_ns) for series in log.read(text).series)

    before, end_s = answers(), time.monotonic() + within_s
    while time.monotonic() < end_s:
        if answers() > before:
            return True
        time.sleep(1.0)
    return False


def prioritise(guest: ScratchGuest) -> None:
    """Let a guest run before ordinary work, as on the virtual bench: late stamps are errors of clocks."""
    main_loop = guest.process.pid
    for task in Path(f"/proc/{main_loop}/task").iterdir():
        # By turns, and the main loop first: CPUs of a guest may wait for each other, and for it.
        priority = GUEST_PRIORITY + (int(task.name) == main_loop)
        with suppress(ProcessLookupError):
            os.sched_setscheduler(int(task.name), os.SCHED_RR, os.sched_param(priority))


def connect(left: str, right: str) -> None:
    """Join the test taps of two guests: a bridge in each namespace, and a veth between them."""
    script = f"ip -n {left} link add v0 type veth peer name v0 netns {right}\n"
    for namespace in (left, right):
        script += f"""
            ip -n {namespace} link add br0 type bridge forward_delay 0 mcast_snooping 0
            ip -n {namespace} link set v0 master br0 up
            ip -n {namespace} link set tap1 master br0
            ip -n {namespace} link set br0 up
        """
    for command in script.strip().splitlines():
        if command.strip():
            subprocess.run(command.split(), check=True, timeout=10)
