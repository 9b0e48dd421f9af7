# SPDX-License-Identifier: Apache-2.0
"""Machines that only SSH can reach: a bench host, a target and a producer, each in a network namespace.

Each machine has an sshd with keys made for the test and a `/run` as Debian mounts it: empty at boot, and
nothing in it may be executed. Power is a command that starts and kills a machine's sshd, with all that it
runs.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from hw.virtual.network import delete_namespace
from tests.namespace import in_namespace

R = TypeVar("R")

HOST = "10.79.0.254"
TARGET = "10.79.0.100"
PRODUCER = "10.79.0.1"
TEST_TARGET = "10.76.0.100"
TEST_PRODUCERS = ("10.76.0.1", "10.76.0.2")
PORT = 2222

_BOOT = """
set -e
mount -t tmpfs -o nosuid,nodev,noexec,mode=755 tmpfs /run
mount -t tmpfs -o nosuid,nodev,mode=755 tmpfs /var/lib/benchwright
mkdir /run/sshd
exec /usr/sbin/sshd -e -f {config} </dev/null >{log} 2>&1
"""


@dataclass(frozen=True)
class SshLab:
    """The machines, and the files that a bench file names."""

    folder: Path
    prefix: str

    def namespace(self, machine: str) -> str:
        """Return the network namespace of `host`, `target` or `producer`."""
        return f"{self.prefix}-{machine}"

    def power(self, machine: str) -> Path:
        """Return the script that powers a machine: its argument is `on` or `off`."""
        return self.folder / f"power-{machine}"

    def inside(self, machine: str, function: Callable[[], R]) -> R:
        """Return what a function returns that runs, with all its children, in the network of a machine."""
        return in_namespace(self.namespace(machine), function)


@contextmanager
def open_lab(folder: Path) -> Generator[SshLab]:
    """Build the machines, all powered off; remove them at the end."""
    lab = SshLab(folder, f"bwx-{os.getpid()}")
    machines = ("host", "target", "producer")
    Path("/var/lib/benchwright").mkdir(parents=True, exist_ok=True)
    _make_key(folder / "host_key")
    _make_key(folder / "login_key")
    try:
        for machine in machines:
            _run("ip", "netns", "add", lab.namespace(machine))
        _connect(lab)
        for machine, address in (("target", TARGET), ("producer", PRODUCER)):
            _write_machine(lab, machine, address)
        yield lab
    finally:
        for machine in machines:
            delete_namespace({"name": lab.namespace(machine)})


def _connect(lab: SshLab) -> None:
    """Lay two networks: control between all three, test between producer and target alone."""
    host, target, producer = (lab.namespace(machine) for machine in ("host", "target", "producer"))
    _batch(host, "link add control type bridge", f"address add {HOST}/24 dev control", "link set control up")
    for machine, namespace, address in (("target", target, TARGET), ("producer", producer, PRODUCER)):
        _batch(host, f"link add {machine} type veth peer name control0 netns {namespace}")
        _batch(host, f"link set {machine} master control up")
        _batch(namespace, f"address add {address}/24 dev control0", "link set control0 up", "link set lo up")
    _batch(target, f"link add test0 type veth peer name test0 netns {producer}")
    _batch(target, f"address add {TEST_TARGET}/24 dev test0", "link set test0 up")
    _batch(
        producer, *(f"address add {address}/24 dev test0" for address in TEST_PRODUCERS), "link set test0 up"
    )


def _write_machine(lab: SshLab, machine: str, address: str) -> None:
    namespace, folder = lab.namespace(machine), lab.folder
    settings = {
        "ListenAddress": f"{address}:{PORT}",
        "HostKey": folder / "host_key",
        "AuthorizedKeysFile": folder / "login_key.pub",
        "PermitRootLogin": "prohibit-password",
        "PasswordAuthentication": "no",
        "UsePAM": "no",
        "StrictModes": "no",
        "PidFile": "none",
        "SetEnv": "SHLVL=1",  # bash then does not read this machine's start-up files
        "Subsystem": "sftp internal-sftp",
    }
    config = folder / f"sshd-{machine}.conf"
    config.write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
    boot = _BOOT.format(config=config, log=folder / f"sshd-{machine}.log")
    script = lab.power(machine)
    script.write_text(
        "#!/bin/sh\ncase $1 in\n"
        # `ip netns exec` gives the machine mounts of its own; a real one answers some time after power-on.
        f'on) [ -n "$(ip netns pids {namespace})" ] || '
        f"(sleep 1; ip netns exec {namespace} sh -c {shlex.quote(boot)}) "
        "</dev/null >/dev/null 2>&1 & ;;\n"
        # Until none is left: one that is still ending would look to the next `on` like a machine that runs.
        f'off) for _ in $(seq 200); do pids=$(ip netns pids {namespace}); [ -n "$pids" ] || break\n'
        "kill -9 $pids 2>/dev/null; sleep 0.05; done ;;\nesac\n"
    )
    script.chmod(0o755)


def _make_key(path: Path) -> None:
    _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "bench", "-f", str(path))


def _batch(namespace: str, *lines: str) -> None:
    subprocess.run(
        ["ip", "-n", namespace, "-batch", "-"],
        input="\n".join(lines) + "\n",
        text=True,
        check=True,
        capture_output=True,
    )


def _run(*argv: str) -> None:
    subprocess.run(argv, check=True, capture_output=True, stdin=subprocess.DEVNULL)
