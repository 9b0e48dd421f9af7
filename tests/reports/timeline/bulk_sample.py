# SPDX-License-Identifier: Apache-2.0
"""Evidence of bulk data in its documented form, made up of segments and calls that a test states.

Both machines are one: its counter and its CLOCK_MONOTONIC are lines of the true time. Streams are written by
traffic-gen/events/stream_file.h, rings by the kernel's own format of 6.18, not by the recorders.
"""

from __future__ import annotations

import ipaddress
import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from reports.timeline.bulk_evidence import BulkEnd, BulkTransfer, write_bulk
from reports.timeline.kernel_recording import write_recording
from tests.reports.timeline.ring_pages import COMMON, Page
from tests.reports.timeline.ring_pages import Machine as Kernel

TARGET = "linux-rt"
SENDER, RECEIVER, PORT, CLIENT_PORT = "10.77.0.1", "10.77.0.100", 9641, 40_000
HZ = 2_500_000_000
BEGIN_NS = 7_000_000_000_000
"""Of CLOCK_MONOTONIC."""
SEGMENT_BYTES = 1448
READ_AFTER_NS = 30_000
PROBE, RETRANSMITTED = 2273, 2281
FORMATS = {
    "tcp/tcp_probe": (
        PROBE,
        (
            ("__u8 saddr[28]", 8, 28), ("__u8 daddr[28]", 36, 28), ("__u16 sport", 64, 2),
            ("__u16 dport", 66, 2), ("__u16 family", 68, 2), ("__u32 mark", 72, 4), ("__u16 data_len", 76, 2),
            ("__u32 snd_nxt", 80, 4), ("const void * skbaddr", 88, 8),
        ),
    ),
    "tcp/tcp_retransmit_skb": (
        RETRANSMITTED,
        (
            ("const void * skbaddr", 8, 8), ("int state", 24, 4), ("__u16 sport", 28, 2),
            ("__u16 dport", 30, 2), ("__u16 family", 32, 2), ("__u8 saddr[4]", 34, 4),
            ("__u8 daddr[4]", 38, 4), ("__u8 saddr_v6[16]", 42, 16), ("__u8 daddr_v6[16]", 58, 16),
        ),
    ),
}  # fmt: skip
NEVER = -1


@dataclass(frozen=True)
class Segment:
    """A segment as the receiver's kernel sees it.

    Attributes:
        at_ns: When it came, since the beginning.
        payload_bytes: 0: an acknowledgement alone.
        source: Whose it is.
        port: To which of the receiver's.
    """

    at_ns: int
    payload_bytes: int
    source: str = SENDER
    port: int = PORT


@dataclass(frozen=True)
class Call:
    """A call that has moved bytes: when it returned, since the beginning, and how many."""

    at_ns: int
    size_bytes: int


def segments_of(count: int, size_bytes: int = SEGMENT_BYTES) -> list[Segment]:
    """Return segments, one each 10 µs."""
    return [Segment(number * 10_000, size_bytes) for number in range(count)]


def calls_of(segments: Sequence[Segment], each: int = 1) -> list[Call]:
    """Return the calls that read them, so many segments each, 30 µs after the last of them came."""
    groups = [segments[at : at + each] for at in range(0, len(segments), each)]
    return [
        Call(group[-1].at_ns + READ_AFTER_NS, sum(one.payload_bytes for one in group)) for group in groups
    ]


def _stream(point: str, calls: Sequence[Call], lost: int) -> bytes:
    def block(kind: int, body: bytes, position: int = 0) -> bytes:
        return struct.pack("<IHHQQ", 0x01020304, kind, 0, position, len(body)) + body

    def ticks(at_ns: int) -> int:
        return (at_ns + 5_000_000_000) * HZ // 1_000_000_000

    group, _, name = point.partition(".")
    names = struct.pack("<64s32sQQIIII", b"bw-traffic", b"all", 1, HZ, 1, 1, 1, 1 << 16)
    names += struct.pack("<24s40s24s144sIIqq", group.encode(), name.encode(), b"<I", b"", 2, 0, 0, 0)
    found = [b"BWSTREAM", block(1, names)]
    end_ns = max((call.at_ns for call in calls), default=0)
    for at_ns in range(-500_000_000, end_ns + 500_000_001, 500_000_000):
        half = HZ // 20_000_000
        body = struct.pack("<IiQQq", 3, 0, ticks(at_ns) - half, ticks(at_ns) + half, BEGIN_NS + at_ns)
        found.append(block(3, body))
    slots, offset = b"", 0
    for call in calls:
        place = len(slots) // 32
        commit = ((place + 1) & 0x7FFFFFFF) | 0x80000000, (place + 2) & 0x7FFFFFFF
        slots += struct.pack("<QqIIHHI", ticks(call.at_ns), offset, 1, 0, 0, 4, commit[0])
        slots += struct.pack("<I24xI", call.size_bytes, commit[1])
        offset += call.size_bytes
    return b"".join([*found, block(2, slots), block(5, struct.pack("<QQQ", len(slots) // 32, lost, 0))])


def _socket_address(address: str, port: int) -> bytes:
    parsed = ipaddress.ip_address(address)
    if parsed.version == 4:
        return struct.pack("<H", 2) + struct.pack(">H", port) + parsed.packed.ljust(24, b"\0")
    return struct.pack("<H", 10) + struct.pack(">H4x", port) + parsed.packed.ljust(20, b"\0")


def _probe(kernel: Kernel, segment: Segment, receiver: str) -> bytes:
    own, peer = _socket_address(receiver, segment.port), _socket_address(segment.source, CLIENT_PORT)
    rest = struct.pack("<HHH2xIH2xI4xQ", segment.port, CLIENT_PORT, 2, 0, segment.payload_bytes, 1, 99)
    return kernel.common(PROBE, 0) + own + peer + rest


def _retransmitted(kernel: Kernel, sender: str, receiver: str) -> bytes:
    one, other = (ipaddress.ip_address(each) for each in (sender, receiver))
    four = (one.packed + other.packed) if one.version == 4 else bytes(8)
    six = (one.packed + other.packed) if one.version == 6 else bytes(32)
    rest = struct.pack("<Q8xiHHH", 99, 1, CLIENT_PORT, PORT, 2) + four + six
    return kernel.common(RETRANSMITTED, 0) + rest.ljust(68, b"\0")


def _recording(path: Path, events: Sequence[tuple[int, bytes]], dropped: int, lost: int) -> None:
    """Write a ring of CPU 3: times since the beginning, and events."""
    kernel = Kernel()
    text = kernel.description(dropped)
    for name, (number, fields) in FORMATS.items():
        lines = "".join(
            f"\tfield:{declared};\toffset:{offset};\tsize:{size};\tsigned:0;\n"
            for declared, offset, size in fields
        )
        text += (
            f"file: events/{name}/format\nname: {name.rpartition('/')[2]}\nID: {number}\n{COMMON}\n{lines}\n"
        )
    pages, page, last_ns = b"", Page(kernel, BEGIN_NS), 0
    for at_ns, payload in sorted(events, key=lambda event: event[0]):
        if len(page.data) + len(payload) > 3900:
            pages += page.packed()
            page, last_ns = Page(kernel, BEGIN_NS + at_ns), at_ns
        page.long_event(at_ns - last_ns, payload)
        last_ns = at_ns
    pages += page.packed(lost)
    with TemporaryDirectory() as place:
        file = Path(place) / "cpu3"
        file.write_bytes(pages)
        write_recording(path, text, {3: file})


def write_sample_bulk(
    folder: Path,
    *,
    segments: Sequence[Segment] | None = None,
    calls: Sequence[Call] | None = None,
    seen: Sequence[Segment] | None = None,
    retransmissions: int = 0,
    dropped: int = 0,
    lost_in_ring: int = 0,
    lost_events: int = 0,
    refused: str = "",
    addresses: tuple[str, str] = (SENDER, RECEIVER),
    answers: Mapping[str, Mapping[str, Any]] | None = None,
) -> BulkTransfer:
    """Write evidence, and return what `bulk.json` says.

    Args:
        folder: It is made.
        segments: What truly came; as a rule 400.
        calls: What the receiver's calls have read of it.
        seen: What its kernel has recorded; as a rule all of it.
        retransmissions: That the sender's kernel has recorded.
        dropped: Events for which the receiver's ring had no room.
        lost_in_ring: Likewise, as its last page says.
        lost_events: Events of the receiving program that had no room.
        refused: Why there are no kernel's events.
        addresses: Of the sender and the receiver.
        answers: Changes of the answers of `sender` and `receiver`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    came = segments_of(400) if segments is None else segments
    read = calls_of(came, 3) if calls is None else calls
    total = sum(each.size_bytes for each in read)
    written = [Call(each.at_ns - 2 * READ_AFTER_NS, each.size_bytes) for each in read]
    for name, point, every in (("sender", "bulk.written", written), ("receiver", "bulk.read", read)):
        (folder / f"{name}.bwevents").write_bytes(
            _stream(point, every, lost_events if name == "receiver" else 0)
        )
        answer: dict[str, Any] = {
            "type": "result", "tool": "bw-traffic bulk", "role": name, "bytes": total, "calls": len(every),
            "block_bytes": 65536, "checksum": "0123456789abcdef", "complete": True, "valid": True,
            "invalid_reasons": [], "duration_ns": 4_000_000, "throughput_mbit": total * 8000 / 4_000_000,
            "blocked_ns": 1_000_000,
        }  # fmt: skip
        answer |= (answers or {}).get(name, {})
        (folder / f"{name}.ndjson").write_text(json.dumps(answer) + "\n")
    ends = [
        BulkEnd(node, address, f"{name}.ndjson", f"{name}.bwevents", None if refused else f"{name}-kernel.gz")
        for node, name, address in (("p01", "sender", addresses[0]), (TARGET, "receiver", addresses[1]))
    ]
    if not refused:
        kernel = Kernel()
        recorded = came if seen is None else seen
        moved = [
            replace(each, source=addresses[0] if each.source == SENDER else each.source) for each in recorded
        ]
        probes = [(each.at_ns, _probe(kernel, each, addresses[1])) for each in moved]
        again = [(number * 1000, _retransmitted(kernel, *addresses)) for number in range(retransmissions)]
        _recording(folder / "receiver-kernel.gz", probes, dropped, lost_in_ring)
        _recording(folder / "sender-kernel.gz", again, 0, 0)
    found = BulkTransfer(TARGET, ends[0], ends[1], PORT, max(total, 1), 65536, 0, refused)
    write_bulk(folder, found)
    return found
