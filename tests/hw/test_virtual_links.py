# SPDX-License-Identifier: Apache-2.0
"""Links of the virtual bench: their rate, and what leaves first."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Generator

import pytest

from hw.bench import VirtualSpec
from hw.virtual import network
from tests.patience import HANG_S

pytestmark = [pytest.mark.simulated, pytest.mark.timed]

RATE_MBPS = 20
MTU_BYTES = 9000
SPEC = VirtualSpec("10.77.0.0/24", "10.78.0.0/24", RATE_MBPS, 4_000_000, MTU_BYTES)
PACKETS, PACKET_BYTES = 600, 1400
BURST_BYTES = 128 << 10

RECEIVER = f"""
import socket
link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
link.setsockopt(socket.SOL_SOCKET, 33, 1 << 24)  # SO_RCVBUFFORCE
link.bind(("10.77.0.1", 5999))
link.settimeout({HANG_S})
print("ready", flush=True)
print("".join(link.recv(2000)[:1].decode() for _ in range({PACKETS} + 1)))
"""

SENDER = f"""
import socket
plain, marked = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
for link in (plain, marked):
    link.setsockopt(socket.SOL_SOCKET, 32, 1 << 24)  # SO_SNDBUFFORCE
    link.connect(("10.77.0.1", 5999))
marked.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 46 << 2)
for _ in range({PACKETS}):
    plain.send(b"p" * {PACKET_BYTES})
marked.send(b"m")
"""


RTDIP_RECEIVER = f"""
import socket
link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x88B5))
link.setsockopt(socket.SOL_SOCKET, 33, 1 << 24)  # SO_RCVBUFFORCE
link.bind(("test0", 0x88B5))
link.settimeout({HANG_S})
print("ready", flush=True)
print("".join("pm"[link.recv(2000)[16] == 0] for _ in range({PACKETS} + 1)))
"""

RTDIP_SENDER = f"""
import socket
link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
link.setsockopt(socket.SOL_SOCKET, 32, 1 << 24)  # SO_SNDBUFFORCE
link.bind(("test0", 0))
front = bytes([255] * 6 + [2, 0, 0, 0, 0, 1, 0x88, 0xB5, 0x1B, 0x58])
for priority in [2] * {PACKETS} + [0]:
    link.send(front + bytes([priority, 1]) + bytes({PACKET_BYTES}))
"""


@pytest.fixture
def producers() -> Generator[tuple[str, str]]:
    """Two namespaces on a switch, by links of RATE_MBPS."""
    switch, *ends = names = [f"bwx-{os.getpid()}-{name}" for name in ("switch", "p1", "p2")]
    try:
        for name in names:
            network.create_namespace(name)
        network.create_switch(switch, SPEC)
        for number, end in enumerate(ends, start=1):
            network.create_producer_link(switch, end, f"p{number}", f"10.77.0.{number}", SPEC)
        yield (ends[0], ends[1])
    finally:
        for name in names:
            network.delete_namespace({"name": name})


def test_links_have_the_mtu_of_the_bench(producers: tuple[str, str]) -> None:
    for end in producers:
        assert f" mtu {MTU_BYTES} " in network.run("ip", "-n", end, "link", "show", "test0")


@pytest.mark.parametrize(
    ("receiving", "sending"), [(RECEIVER, SENDER), (RTDIP_RECEIVER, RTDIP_SENDER)], ids=["ip", "rtdip"]
)
def test_a_link_keeps_its_rate_and_expedited_packets_overtake(
    producers: tuple[str, str], receiving: str, sending: str
) -> None:
    """A burst takes as long as the rate says; a marked packet sent behind it comes before most of it."""
    inside = ("ip", "netns", "exec")
    with subprocess.Popen(
        [*inside, producers[0], "python3", "-c", receiving], stdout=subprocess.PIPE, text=True
    ) as receiver:
        assert receiver.stdout is not None
        assert receiver.stdout.readline() == "ready\n"
        begin_s = time.monotonic()
        subprocess.run([*inside, producers[1], "python3", "-c", sending], check=True, timeout=HANG_S)
        order = receiver.stdout.readline().strip()
        took_s = time.monotonic() - begin_s
        assert receiver.wait(HANG_S) == 0
    assert sorted(order) == ["m", *"p" * PACKETS]
    assert order.index("m") < PACKETS // 2
    assert took_s >= (PACKETS * PACKET_BYTES - 2 * BURST_BYTES) * 8 / (RATE_MBPS * 1e6)
