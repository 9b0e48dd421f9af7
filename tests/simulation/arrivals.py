# SPDX-License-Identifier: Apache-2.0
"""When each message was whole on a link, read from a packet capture alone: an independent witness.

It shares no code with the consumer: TCP streams are put together from sequence numbers, datagrams from their
fragments. A message has arrived when every byte of it has been seen. Times are the capturing machine's.
"""

from __future__ import annotations

import struct
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from resources.daq_replay.pattern import Pattern
from resources.daq_replay.plan_file import BASE_PORT
from resources.daq_replay.replay import ReplayAnswers

HELLO_BYTES = 24
"""What opens a TCP connection (docs/native-tools.md, On the wire)."""
_NANOSECOND_PCAP = 0xA1B23C4D
_TCP, _UDP = 6, 17
_SYN, _ACK = 0x02, 0x10


@dataclass(frozen=True)
class Arrivals:
    """What the capture says of one stream's counted messages, by their sequence numbers."""

    latency_ns: dict[int, int]
    """Whole on the link minus scheduled."""
    missing: int
    """Counted messages that were never whole on the link."""

    @property
    def max_ns(self) -> int:
        """The largest latency; raises ValueError where nothing arrived."""
        return max(self.latency_ns.values())


def arrivals(capture: Path, answers: ReplayAnswers, pattern: Pattern) -> dict[int, Arrivals]:
    """Return for each stream when its counted messages were whole on the link, against the plan's schedule.

    Args:
        capture: Capture of the link to the target by the machine that holds the bench's reference clock.
        answers: The replay.
        pattern: What was replayed, in the phase of the replay.
    """
    plan: dict[str, Any] = tomllib.loads((answers.folder / "plan.toml").read_text())
    run, address = plan["run"], str(plan["consumer"]["address"])
    producers = {int(item["number"]): item for item in plan["producer"]}
    seen = _whole_messages(capture, address, {stream.id: stream.size_bytes for stream in pattern.streams})
    begin_ns = run["warmup_ms"] * 1_000_000
    end_ns = begin_ns + run["duration_ms"] * 1_000_000
    found: dict[int, Arrivals] = {}
    for stream in pattern.streams:
        if stream.producer not in producers:
            continue
        producer = producers[stream.producer]
        line = answers.lines_before[producer["clock"]]
        latency_ns: dict[int, int] = {}
        missing = 0
        first = -((stream.phase_ns - begin_ns) // stream.period_ns)
        last = -((stream.phase_ns - end_ns) // stream.period_ns)
        for slot in range(max(first, 0), last):
            after_ns = stream.phase_ns + slot * stream.period_ns
            local_ns = producer["start_tai_ns"] + after_ns + round(after_ns * producer["rate_ppb"] / 1e9)
            arrived_utc_ns = seen[stream.id].get(slot)
            if arrived_utc_ns is None:
                missing += 1
                continue
            arrived_ns = arrived_utc_ns + run["tai_utc_s"] * 1_000_000_000
            latency_ns[slot] = arrived_ns - line.reference_ns(local_ns)
        found[stream.id] = Arrivals(latency_ns, missing)
    return found


def _whole_messages(capture: Path, address: str, sizes: dict[int, int]) -> dict[int, dict[int, int]]:
    """Return for each stream and sequence number when the message was first whole, ns of UTC."""
    consumer = bytes(int(part) for part in address.split("."))
    connections: dict[tuple[int, int], _Connection] = {}
    datagrams: dict[tuple[bytes, int], _Datagram] = {}
    seen: dict[int, dict[int, int]] = {stream: {} for stream in sizes}
    for time_ns, packet in _ip_packets(capture):
        if packet[16:20] != consumer:
            continue
        body = packet[(packet[0] & 0x0F) * 4 :]
        length = struct.unpack_from("!H", packet, 2)[0] - (packet[0] & 0x0F) * 4
        if packet[9] == _TCP:
            stream = struct.unpack_from("!H", body, 2)[0] - BASE_PORT
            if stream in sizes:
                source_port = struct.unpack_from("!H", body)[0]
                connection = connections.setdefault((stream, source_port), _Connection(sizes[stream]))
                connection.take(body, length, time_ns, seen[stream])
        elif packet[9] == _UDP:
            identity, offset = struct.unpack_from("!HH", packet, 4)
            datagram = datagrams.setdefault((packet[12:16], identity), _Datagram())
            datagram.take(body, length, (offset & 0x1FFF) * 8)
            if datagram.whole and datagram.stream in sizes:
                seen[datagram.stream].setdefault(datagram.sequence, time_ns)
                del datagrams[packet[12:16], identity]
    return seen


def _ip_packets(capture: Path) -> Iterator[tuple[int, bytes]]:
    """Read a capture of Ethernet frames with nanosecond stamps; only IPv4 packets are returned."""
    data = capture.read_bytes()
    magic = struct.unpack_from("<I", data)[0]
    if magic != _NANOSECOND_PCAP:
        raise ValueError(f"{capture.name}: not a capture with nanosecond stamps")
    position = 24
    while position + 16 <= len(data):
        seconds, nanoseconds, kept, _length = struct.unpack_from("<IIII", data, position)
        frame = data[position + 16 : position + 16 + kept]
        position += 16 + kept
        if frame[12:14] == b"\x08\x00":
            yield seconds * 1_000_000_000 + nanoseconds, frame[14:]


@dataclass
class _Connection:
    """One TCP connection, of which only the first bytes of each segment were kept."""

    size_bytes: int
    origin: int | None = None
    """Sequence number of the first byte of data."""
    contiguous: int = 0
    ahead: dict[int, int] = field(default_factory=dict[int, int])
    first_slot: int | None = None
    told: int = 0

    def take(self, segment: bytes, length: int, time_ns: int, seen: dict[int, int]) -> None:
        """Take one segment; enter the messages that it completes into `seen`."""
        sequence = struct.unpack_from("!I", segment, 4)[0]
        header, flags = (segment[12] >> 4) * 4, segment[13]
        if flags & _SYN and not flags & _ACK:
            self.origin = (sequence + 1) % 2**32
            return
        data_bytes = length - header
        if self.origin is None or data_bytes <= 0:
            return
        # Within half of the sequence space of what has been seen.
        begin = self.contiguous + ((sequence - self.origin - self.contiguous + 2**31) % 2**32 - 2**31)
        if begin <= HELLO_BYTES and self.first_slot is None:
            kept = segment[header:][HELLO_BYTES - begin : HELLO_BYTES - begin + 4]
            if len(kept) == 4:
                self.first_slot = struct.unpack("!I", kept)[0]
        self.ahead[begin] = max(self.ahead.get(begin, 0), begin + data_bytes)
        while reachable := [start for start in self.ahead if start <= self.contiguous]:
            for start in reachable:
                self.contiguous = max(self.contiguous, self.ahead.pop(start))
        complete = (self.contiguous - HELLO_BYTES) // self.size_bytes
        while self.told < complete:
            if self.first_slot is None:
                raise ValueError("the head of a connection's first message was not captured")
            seen.setdefault(self.first_slot + self.told, time_ns)
            self.told += 1


@dataclass
class _Datagram:
    """One UDP datagram in the making."""

    stream: int = -1
    sequence: int = -1
    size_bytes: int = -1
    parts: dict[int, int] = field(default_factory=dict[int, int])

    def take(self, body: bytes, length: int, offset: int) -> None:
        """Take one fragment, or the whole of it."""
        self.parts[offset] = length
        if offset == 0:
            port, self.size_bytes = struct.unpack_from("!HH", body, 2)
            self.stream = port - BASE_PORT
            self.sequence = struct.unpack_from("!I", body, 8)[0] if len(body) >= 12 else -1

    @property
    def whole(self) -> bool:
        """Tell whether all bytes have been seen."""
        return 0 in self.parts and sum(self.parts.values()) >= self.size_bytes
