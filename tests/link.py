# SPDX-License-Identifier: Apache-2.0
"""Two network namespaces that a veth pair joins; commands, captures and counters in one of them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hw.virtual.network import delete_namespace, run
from tests.patience import HANG_S, wait_until


@dataclass(frozen=True)
class End:
    """An end of a link: namespace, interface, and the interface's addresses with their prefix lengths."""

    namespace: str
    interface: str
    addresses: tuple[str, ...]


def dual_end(namespace: str, interface: str, addresses: Mapping[int, str]) -> End:
    """Return an end with an address of each family: of 4 and of 6."""
    return End(namespace, interface, (f"{addresses[4]}/24", f"{addresses[6]}/64"))


class Link:
    """Two namespaces with a veth pair between them."""

    def __init__(self, one: End, other: End, mtu_bytes: int = 1500) -> None:
        """Take its ends; nothing is made yet."""
        self.ends = (one, other)
        self.mtu_bytes = mtu_bytes

    def make(self) -> None:
        """Make the namespaces and the pair; what a killed test left under these names goes first."""
        self.remove()
        try:
            self._make()
        except BaseException:
            self.remove()
            raise

    def _make(self) -> None:
        for end in self.ends:
            run("ip", "netns", "add", end.namespace)
        one, other = (f"{end.interface} mtu {self.mtu_bytes} netns {end.namespace}" for end in self.ends)
        run("ip", "link", "add", *f"{one} type veth peer {other}".split())
        for end in self.ends:
            if any(":" in address for address in end.addresses):
                # The link-local address, from which neighbours are asked, would be there a second later.
                run_in(end.namespace, "sysctl", "-q", f"net.ipv6.conf.{end.interface}.accept_dad=0")
            lines = [f"address add {address} dev {end.interface}" for address in end.addresses]
            lines += [f"link set {end.interface} up", "link set lo up"]
            run("ip", "-n", end.namespace, "-batch", "-", stdin="\n".join(lines))

    def remove(self) -> None:
        """Remove the namespaces, with what still runs in them; harmless where they are gone."""
        for end in self.ends:
            delete_namespace({"name": end.namespace})


def run_in(namespace: str, *argv: str) -> str:
    """Run a command in a namespace and return its stdout; raise BenchError where it fails."""
    return run("ip", "netns", "exec", namespace, *argv)


def kernel_counts(namespace: str) -> dict[str, int]:
    """Return the kernel's counters of IP, TCP and UDP of a namespace, by names as /proc has them."""
    counts: dict[str, int] = {}
    rows = run_in(namespace, "cat", "/proc/net/snmp").splitlines()
    for head, row in zip(rows[::2], rows[1::2], strict=True):
        table, *names = head.split()
        counts |= zip((table + name for name in names), map(int, row.split()[1:]), strict=True)
    for line in run_in(namespace, "cat", "/proc/net/snmp6").splitlines():
        name, value = line.split()
        counts[name] = int(value)
    return counts


@contextmanager
def capture(namespace: str, interface: str, file: Path, expression: str) -> Generator[Path]:
    """Capture what an expression of tcpdump takes; the file is whole at the end of the block."""
    file.unlink(missing_ok=True)
    tcpdump = ["tcpdump", "-i", interface, "--immediate-mode", "-B", "16384", "-U", "-w", str(file)]
    argv = ["ip", "netns", "exec", namespace, *tcpdump, *expression.split()]
    process = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)
    try:
        wait_until(lambda: file.exists() or process.poll() is not None, "tcpdump to begin")
        yield file
    finally:
        process.terminate()
        _, said = process.communicate(timeout=HANG_S)
    captured, came, dropped = re.findall(r"^(\d+) packets?", said, re.MULTILINE)
    assert (captured, dropped) == (came, "0"), said
