# SPDX-License-Identifier: Apache-2.0
"""The service of the user-mode stack and its packet path, against the kernel's own stack at the other end."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import (
    IPv6,
)
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from tests.targets.userstack.stack import Family
from tests.targets.userstack.stackd_lab import (
    OWN,
    PEER,
    StackdLab,
    bw_stackd,
)

PORT, PEER_PORT = 7000, 7001
ANY: dict[Family, str] = {4: "", 6: "::"}
LAYER: dict[Family, Any] = {4: IP, 6: IPv6}


@pytest.fixture(params=["driver", "generic"])
def lab(request: pytest.FixtureRequest, repository: Path, tmp_path: Path) -> Iterator[StackdLab]:
    options = ["--generic"] if request.param == "generic" else []
    with StackdLab(bw_stackd(repository), tmp_path, *options) as made:
        yield made


@pytest.fixture
def driver_lab(repository: Path, tmp_path: Path) -> Iterator[StackdLab]:
    with StackdLab(bw_stackd(repository), tmp_path) as made:
        yield made


def outgoing(lab: StackdLab, packet: Packet) -> bytes:
    """Return a frame from the program's end to the peer; the source is the service's matter."""
    return bytes(Ether(dst=lab.mac(lab.peer), src="02:00:00:00:00:99") / packet)


def datagram(family: Family, data: bytes, *, port: int = PORT, source: str = "") -> Packet:
    header = LAYER[family](src=source or OWN[family], dst=PEER[family])
    return header / UDP(sport=port, dport=PEER_PORT) / Raw(data)


def drops(lab: StackdLab) -> dict[str, int]:
    return {name: count for name, count in lab.show()["frames"]["drops"].items() if count}


def test_datagrams_go_both_ways(lab: StackdLab, family: Family) -> None:
    program = lab.connect()
    lab.own_port(program, socket.SOCK_DGRAM, PORT, ANY[family])
    peer = lab.socket(lab.peer, socket.SOCK_DGRAM, PEER[family], PEER_PORT)
    peer.sendto(b"question", (OWN[family], PORT))
    frame = program.take_frame()
    assert frame
    came = Ether(frame)
    assert (came.dst, bytes(came[UDP].payload)) == (lab.mac(lab.own), b"question")
    assert (program.addresses[0] + 14) % 16 == 0, "the header of IP is not aligned"
    checksum, came[UDP].chksum = came[UDP].chksum, None
    assert Ether(bytes(came))[UDP].chksum == checksum
    program.send_frame(outgoing(lab, datagram(family, b"answer")))
    assert peer.recvfrom(100)[0] == b"answer"
    header = {4: 20, 6: 40}[family]
    assert lab.show()["frames"] == {
        "in": 1,
        "out": 1,
        "bytes_in": header + 16,
        "bytes_out": header + 14,
        "drops": dict.fromkeys(lab.show()["frames"]["drops"], 0),
    }


def test_the_source_is_the_interfaces(driver_lab: StackdLab) -> None:
    program = driver_lab.connect()
    driver_lab.own_port(program, socket.SOCK_DGRAM, PORT)
    seen = driver_lab.raw(driver_lab.peer)
    program.send_frame(outgoing(driver_lab, datagram(4, b"answer")))
    while True:
        frame = Ether(seen.recv(2000))
        if UDP in frame and frame[UDP].sport == PORT:
            break
    assert frame.src == driver_lab.mac(driver_lab.own)
