# SPDX-License-Identifier: Apache-2.0
"""Packets of a program of the user-mode stack, and what its service drops of them."""

from __future__ import annotations

from typing import Any

from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from tests.targets.userstack.stack import Family
from tests.targets.userstack.stackd_lab import OWN, PEER, StackdLab

PORT, PEER_PORT = 7000, 7001
FAMILIES: tuple[Family, ...] = (4, 6)
LAYER: dict[Family, Any] = {4: IP, 6: IPv6}


def outgoing(lab: StackdLab, packet: Packet) -> bytes:
    """Return a frame from the program's end to the peer; the source is the service's matter."""
    return bytes(Ether(dst=lab.mac(lab.peer), src="02:00:00:00:00:99") / packet)


def datagram(family: Family, data: bytes, *, port: int = PORT, source: str = "") -> Packet:
    header = LAYER[family](src=source or OWN[family], dst=PEER[family])
    return header / UDP(sport=port, dport=PEER_PORT) / Raw(data)


def drops(lab: StackdLab) -> dict[str, int]:
    return {name: count for name, count in lab.show()["frames"]["drops"].items() if count}
