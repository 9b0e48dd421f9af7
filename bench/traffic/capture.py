# SPDX-License-Identifier: Apache-2.0
"""Schedule errors of periodic UDP flows, from a capture at the receiver."""

from __future__ import annotations

import statistics
import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

NS_PER_S = 1_000_000_000
PCAP_MAGIC_NS = 0xA1B23C4D
ETHERNET_BYTES = 14
IP_MIN_BYTES = 20
UDP_BYTES = 8


@dataclass(frozen=True)
class Datagram:
    """A captured datagram: when, to which port, and the sequence number in its payload."""

    time_ns: int
    port: int
    sequence: int


def read_capture(path: Path, sequence_offset: int) -> Iterator[Datagram]:
    """Read the unfragmented IPv4 UDP datagrams of a pcap file with nanosecond stamps.

    Args:
        path: The file, as this machine's tcpdump writes it.
        sequence_offset: Where in the payload the sequence number stands, 32 bits, big endian.

    Raises:
        ValueError: The file is of another kind.
    """
    data = path.read_bytes()
    if len(data) < 24 or struct.unpack_from("=I", data)[0] != PCAP_MAGIC_NS:
        raise ValueError(f"{path.name}: not a pcap file with nanosecond stamps in this machine's byte order")
    position = 24
    while position + 16 <= len(data):
        seconds, nanoseconds, length, _ = struct.unpack_from("=IIII", data, position)
        frame = position + 16
        position = frame + length
        header_bytes = (data[frame + ETHERNET_BYTES] & 0x0F) * 4 if length > ETHERNET_BYTES else 0
        udp = frame + ETHERNET_BYTES + header_bytes
        if header_bytes < IP_MIN_BYTES or udp + UDP_BYTES + sequence_offset + 4 > min(position, len(data)):
            continue
        if data[frame + 12 : frame + 14] != b"\x08\x00" or data[frame + ETHERNET_BYTES + 9] != 17:
            continue
        (port,) = struct.unpack_from(">H", data, udp + 2)
        (sequence,) = struct.unpack_from(">I", data, udp + UDP_BYTES + sequence_offset)
        yield Datagram(seconds * NS_PER_S + nanoseconds, port, sequence)


def schedule_errors_ns(
    datagrams: Iterable[Datagram], period_ns: int, skip: int, count: int
) -> dict[int, list[int]]:
    """Return each datagram's distance from its flow's ideal grid, by port.

    The grid of a flow has exactly the nominal period; its origin is the median of what its datagrams say, so
    that a constant delay of the path, or of the generator, does not count. What comes late is positive.

    Args:
        datagrams: All flows.
        period_ns: Nominal period.
        skip: So many periods after the first datagram of a flow are left out.
        count: So many periods after these are judged.
    """
    offsets: dict[int, list[int]] = defaultdict(list)
    first: dict[int, int] = {}
    for datagram in datagrams:
        start = first.setdefault(datagram.port, datagram.sequence) + skip
        if start <= datagram.sequence < start + count:
            offsets[datagram.port].append(datagram.time_ns - datagram.sequence * period_ns)
    errors: dict[int, list[int]] = {}
    for port, values in offsets.items():
        origin = statistics.median_low(values)
        errors[port] = [value - origin for value in values]
    return errors


def absolute_percentiles_ns(errors: Mapping[int, Sequence[int]]) -> dict[str, float]:
    """Return percentiles of the absolute error over all flows (nearest rank)."""
    ordered = sorted(abs(value) for values in errors.values() for value in values)
    if not ordered:
        raise ValueError("nothing was captured")
    ranks = {"p50_ns": 0.5, "p99_ns": 0.99, "p999_ns": 0.999, "max_ns": 1.0}
    last = len(ordered) - 1
    return {
        "n": float(len(ordered)),
        **{name: float(ordered[min(last, round(share * last))]) for name, share in ranks.items()},
    }
