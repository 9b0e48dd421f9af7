# SPDX-License-Identifier: Apache-2.0
"""Packet captures as an independent witness: what was on a link, and when, by this machine's clock."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import Ether
from scapy.utils import RawPcapReader

from hw.errors import CapabilityError, MeasurementError
from hw.protocols import Job
from hw.session import Bench

SEEN_AT_LEAST = 10


def start_capture(bench: Bench, interface: str, folder: Path) -> Job:
    """Begin to capture data packets on an interface of the capture node; nobody says when it is ready.

    Raises:
        CapabilityError: The bench has no capture node.
    """
    spec = bench.spec.capture
    if spec is None:
        raise CapabilityError(
            f"bench {bench.spec.name}: no capture node; add benchwright.capture to its file"
        )
    argv = ["tcpdump", "-i", interface, "-s", "128", "-B", "65536", "--time-stamp-precision=nano", "-n"]
    argv += ["-w", str(capture_file(folder, interface)), "tcp or udp"]
    return bench.node(spec.node).start(argv, folder / f"capture-{interface}")


def capture_file(folder: Path, interface: str) -> Path:
    """Return the file of a capture."""
    return folder / f"{interface}.pcap"


@dataclass(frozen=True)
class Packet:
    """A captured TCP or UDP packet over IPv4; time_ns is that of the capturing machine."""

    time_ns: int
    key: tuple[object, ...]
    """Tells this packet from all others, on any link: addresses, ports, sequence number, length, IP id."""
    source: str
    destination_port: int
    payload_bytes: int
    payload: bytes
    """As much of it as the capture kept."""


def read_packets(path: Path) -> Iterator[Packet]:
    """Read a capture file with nanosecond stamps.

    Raises:
        MeasurementError: It is not a capture file.
    """
    try:
        with RawPcapReader(str(path)) as reader:
            for data, meta in reader:
                if len(data) < meta.caplen:
                    return  # the capture broke off within this packet
                time_ns = meta.sec * 1_000_000_000 + meta.usec * (1 if reader.nano else 1000)
                packet = _packet(data, time_ns)
                if packet is not None:
                    yield packet
    except Exception as error:
        raise MeasurementError(f"{path.name}: not a packet capture: {error}") from error


def _packet(data: bytes, time_ns: int) -> Packet | None:
    frame = Ether(data)
    if IP not in frame:
        return None
    ip = frame[IP]
    if TCP in ip:
        tcp = ip[TCP]
        length = ip.len - ip.ihl * 4 - tcp.dataofs * 4
        key = ("tcp", ip.src, ip.dst, tcp.sport, tcp.dport, tcp.seq, tcp.ack, length, int(tcp.flags))
        return Packet(time_ns, key, str(ip.src), int(tcp.dport), int(length), bytes(tcp.payload))
    if UDP in ip and ip.frag == 0:
        udp = ip[UDP]
        key = ("udp", ip.src, ip.dst, udp.sport, udp.dport, ip.id)
        return Packet(time_ns, key, str(ip.src), int(udp.dport), int(udp.len) - 8, bytes(udp.payload))
    return None


def median_transit_ns(before: Path, behind: Path) -> int:
    """Return the median time that data packets took from one link to the next.

    Packets are matched by their headers; one that stands twice in a capture (a retransmission) is left out.

    Raises:
        MeasurementError: Fewer than 10 packets are in both.
    """
    first, second = _unique_times(before), _unique_times(behind)
    transits = [
        second[key] - time_ns for key, time_ns in first.items() if key in second and second[key] >= time_ns
    ]
    if len(transits) < SEEN_AT_LEAST:
        raise MeasurementError(
            f"{before.name}, {behind.name}: only {len(transits)} packets are in both, not {SEEN_AT_LEAST}"
        )
    return round(median(transits))


def _unique_times(path: Path) -> dict[tuple[object, ...], int]:
    times: dict[tuple[object, ...], int] = {}
    twice: set[tuple[object, ...]] = set()
    for packet in read_packets(path):
        if packet.payload_bytes <= 0:
            continue
        if packet.key in times:
            twice.add(packet.key)
        times[packet.key] = packet.time_ns
    return {key: time_ns for key, time_ns in times.items() if key not in twice}
