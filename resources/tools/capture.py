# SPDX-License-Identifier: Apache-2.0
"""Packet captures as an independent witness: what was on a link, and when, by this machine's clock."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import Ether
from scapy.utils import RawPcapReader

from hw.errors import BenchError, CapabilityError, MeasurementError
from hw.open_bench import Nodes
from hw.protocols import READY_S, Job
from resources.tools.jobs import end_job

SEEN_AT_LEAST = 10
SHORT_ONE_IN = 10
RTDIP_ETHERTYPE = 0x88B5
RTDIP_HEADER = struct.Struct(">HBBHHI")
"""Destination port, priority, version, length, source port, sequence (docs/rtdip.md)."""

_Times = dict[tuple[object, ...], int]
"""When each packet was seen, in ns, by what tells it from all others."""


def start_capture(bench: Nodes, interface: str, folder: Path, but_port: int = 0) -> Job:
    """Capture data packets on an interface of the capture node; returns when it has begun.

    The kernel fills 64 MB of buffers with zeros at the beginning, which holds a processor up for a tenth of a
    second: what measures is started after it.

    Args:
        bench: An open bench.
        interface: Of the capture node.
        folder: For the file.
        but_port: What comes from or goes to this port is left out; 0: nothing is.

    Raises:
        CapabilityError: The bench has no capture node.
        BenchError: It does not begin.
    """
    spec = bench.spec.capture
    if spec is None:
        raise CapabilityError(
            f"bench {bench.spec.name}: no capture node; add benchwright.capture to its file"
        )
    argv = ["tcpdump", "-i", interface, "-s", "128", "-B", "65536", "--time-stamp-precision=nano", "-n"]
    file = capture_file(folder, interface)
    file.unlink(missing_ok=True)
    kept = f"(tcp or udp or ether proto {RTDIP_ETHERTYPE:#x})"
    argv += ["-w", str(file), f"{kept} and not port {but_port}" if but_port else kept]
    job = bench.node(spec.node).start(argv, folder / f"capture-{interface}")
    deadline = time.monotonic() + READY_S
    while not file.exists():  # tcpdump makes it when the interface is open
        if time.monotonic() > deadline:
            end_job(job)
            raise BenchError(f"{job.name}: no capture on {interface} after {READY_S:g} s")
        time.sleep(0.01)
    return job


def capture_file(folder: Path, interface: str) -> Path:
    """Return the file of a capture."""
    return folder / f"{interface}.pcap"


@dataclass(frozen=True)
class Packet:
    """A captured TCP or UDP packet over IPv4, or frame of RTDiP; time_ns is that of the capturing machine."""

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
    if frame.type == RTDIP_ETHERTYPE:
        return _rtdip_frame(frame, time_ns)
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


def _rtdip_frame(frame: Any, time_ns: int) -> Packet | None:
    data = bytes(frame.payload)
    if len(data) < RTDIP_HEADER.size:
        return None
    to_port, _, _, length, from_port, sequence = RTDIP_HEADER.unpack_from(data)
    key = ("rtdip", frame.src, frame.dst, from_port, to_port, sequence)
    return Packet(time_ns, key, str(frame.src), to_port, length, data[RTDIP_HEADER.size :])


def median_transits_ns(
    before: Path, behind: Path, sections_ns: Sequence[tuple[int | None, int | None]]
) -> list[int]:
    """Return the median time that data packets took from one link to the next, in sections of time.

    Packets are matched by their headers; one that stands twice in a capture (a retransmission) is left out.

    Args:
        before: Capture of the first link.
        behind: Of the next.
        sections_ns: Begin and end by the capturing machine's clock; None: no bound.

    Raises:
        MeasurementError: Fewer than 10 packets of a section are in both.
    """
    transits = _transits(_unique_times(before), _unique_times(behind))
    medians: list[int] = []
    for begin_ns, end_ns in sections_ns:
        within = [
            transit_ns
            for time_ns, transit_ns in transits
            if (begin_ns is None or time_ns >= begin_ns) and (end_ns is None or time_ns < end_ns)
        ]
        medians.append(round(median(_enough(within, before, behind))))
    return medians


def both_ways_ns(one: Path, other: Path) -> tuple[int, int]:
    """Return how long data packets took from one link to the other, and how much longer than back.

    The first is the median. For the second counts of each way what a tenth of the packets did not exceed:
    those that took least set a clock.

    Raises:
        MeasurementError: Fewer than 10 packets of a way are in both.
    """
    first, second = _unique_times(one), _unique_times(other)
    there_ns, back_ns = (
        sorted(_enough([transit_ns for _, transit_ns in _transits(*way)], one, other))
        for way in ((first, second), (second, first))
    )
    longer_ns = there_ns[len(there_ns) // SHORT_ONE_IN] - back_ns[len(back_ns) // SHORT_ONE_IN]
    return round(median(there_ns)), longer_ns


def _transits(first: _Times, second: _Times) -> list[tuple[int, int]]:
    """Return when packets were seen first, and how much later there; those of the other way are left out."""
    return [
        (time_ns, second[key] - time_ns)
        for key, time_ns in first.items()
        if key in second and second[key] >= time_ns
    ]


def _enough(transits_ns: list[int], before: Path, behind: Path) -> list[int]:
    if len(transits_ns) < SEEN_AT_LEAST:
        raise MeasurementError(
            f"{before.name}, {behind.name}: only {len(transits_ns)} packets are in both, not {SEEN_AT_LEAST}"
        )
    return transits_ns


def _unique_times(path: Path) -> _Times:
    times: _Times = {}
    twice: set[tuple[object, ...]] = set()
    for packet in read_packets(path):
        if packet.payload_bytes <= 0:
            continue
        if packet.key in times:
            twice.add(packet.key)
        times[packet.key] = packet.time_ns
    return {key: time_ns for key, time_ns in times.items() if key not in twice}
