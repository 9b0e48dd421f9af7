# SPDX-License-Identifier: Apache-2.0
"""A sender and a receiver, joined by a veth pair."""

from __future__ import annotations

from bench.lab.namespaces import Namespaces
from bench.lab.report import REPOSITORY
from hw.virtual.network import PRODUCER_SYSCTLS, set_sysctls

PROGRAM = REPOSITORY / ".build" / "linux" / "traffic-gen" / "bw-traffic"
CONSUMER = "10.76.255.1"
PRIORITY = 50
RECEIVER_INTERFACE = "r0"

# As on the virtual bench, but for the congestion control: a namespace may choose this one on any host.
SYSCTLS = {**PRODUCER_SYSCTLS, "net.ipv4.tcp_congestion_control": "reno"}


def producer_address(number: int) -> str:
    """Return the source address of a producer, 1 to 60,000."""
    return f"10.76.{number // 250}.{number % 250 + 1}"


class Pair(Namespaces):
    """Namespaces of a sender and a receiver."""

    def __init__(self, producers: int = 1) -> None:
        """Take the number of producers' addresses that the sender gets."""
        super().__init__("sr")
        self.sender, self.receiver = self.names.values()
        self._producers = producers
        self.program = PROGRAM
        """What sends and receives: `bw-traffic`, or another build of it."""

    def _join(self) -> None:
        for namespace in self.names.values():
            set_sysctls(namespace, SYSCTLS)
        self.link("s", "s0", "r", RECEIVER_INTERFACE)
        addresses = [f"{producer_address(number)}/16" for number in range(1, self._producers + 1)]
        self.set_up("s", "s0", *addresses)
        self.set_up("r", RECEIVER_INTERFACE, f"{CONSUMER}/16")
