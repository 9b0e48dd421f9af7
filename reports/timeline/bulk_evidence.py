# SPDX-License-Identifier: Apache-2.0
"""Bulk data from a producer's node to a target: the evidence.

The folder holds `bulk.json` (this file's dataclasses), of each end the answer of `bw-traffic bulk`, the
stream of its points, and what its kernel recorded meanwhile, by CLOCK_MONOTONIC.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path

from reports.errors import RecordError
from reports.record.codec import omit_none
from reports.record.document import read_document, write_document
from reports.tools.answers import Reader, last_result

SCHEMA = "benchwright.timeline_bulk/1"
BULK_FOLDER = "bulk"
"""Below the folder of the target's legs."""
BULK_FILE = "bulk.json"
SEGMENT_EVENT = "tcp/tcp_probe"
"""At the receiver: of each segment that comes, with its payload bytes."""
RETRANSMISSION_EVENT = "tcp/tcp_retransmit_skb"
"""At the sender."""


@dataclass(frozen=True)
class BulkEnd:
    """One of the two programs.

    Attributes:
        node: Where it ran.
        address: Its address of the connection.
        answer: File of `bw-traffic bulk`.
        events: File of its points.
        kernel: File of its kernel's events; None: there is none, see `refused`.
    """

    node: str
    address: str
    answer: str
    events: str
    kernel: str | None = omit_none()


@dataclass(frozen=True)
class BulkTransfer:
    """What `bulk.json` holds.

    Attributes:
        target: Its kind.
        sender: At a producer's node.
        receiver: At the target.
        port: The receiver's.
        bytes: Of payload that were asked for.
        block_bytes: Of a call of the sender, at most.
        rate_mbit: Of payload; 0: as fast as it goes.
        refused: Why a kernel's events were not recorded; empty: they were.
    """

    target: str
    sender: BulkEnd
    receiver: BulkEnd
    port: int
    bytes: int
    block_bytes: int
    rate_mbit: int
    refused: str = ""
    schema: str = SCHEMA

    @property
    def files(self) -> tuple[str, ...]:
        """Return the names of all files beside `bulk.json`."""
        ends = (self.sender, self.receiver)
        return tuple(name for each in ends for name in (each.answer, each.events, each.kernel) if name)


@dataclass(frozen=True, slots=True)
class BulkAnswer:
    """The answer of `bw-traffic bulk`; times in ns.

    Attributes:
        complete: It was not stopped before its end.
        bytes: That it has moved.
        calls: That moved any.
        checksum: Of all bytes in their order.
        throughput_mbit: Payload, Mbit/s.
        blocked_ns: Without room in the connection, or without bytes.
    """

    complete: bool
    role: str
    bytes: int
    calls: int
    checksum: str
    duration_ns: int
    throughput_mbit: float
    blocked_ns: int


def write_bulk(folder: Path, found: BulkTransfer) -> Path:
    """Write `bulk.json` and return its path."""
    return write_document(folder / BULK_FILE, found)


def load_bulk(folder: Path) -> BulkTransfer:
    """Read `bulk.json`; raises RecordError: names the key."""
    found = read_document(BulkTransfer, folder / BULK_FILE, SCHEMA)
    for name in found.files:
        if Path(name).name != name:
            raise RecordError(f"{BULK_FILE}: {name!r} is no file of this folder")
    if len({*found.files}) < len(found.files):
        raise RecordError(f"{BULK_FILE}: names a file twice")
    if found.sender.node == found.receiver.node:
        raise RecordError(f"{BULK_FILE}: both ends are on {found.sender.node}")
    if min(found.bytes, found.block_bytes) < 1 or found.rate_mbit < 0 or not 0 < found.port <= 0xFFFF:
        raise RecordError(f"{BULK_FILE}: need bytes, block_bytes >= 1, rate_mbit >= 0, port 1..65535")
    if not found.refused and not (found.sender.kernel and found.receiver.kernel):
        raise RecordError(f"{BULK_FILE}: a kernel's events are missing, and refused does not say why")
    for end in (found.sender, found.receiver):
        try:
            ipaddress.ip_address(end.address)
        except ValueError as error:
            raise RecordError(f"{BULK_FILE}: {end.node}: {error}") from error
    return found


def load_bulk_answer(folder: Path, end: BulkEnd, role: str) -> BulkAnswer:
    """Read the answer of an end; raises RecordError: names file and key."""
    reader = Reader(last_result(folder / end.answer), end.answer)
    spec: dict[str, tuple[type, ...]] = {"complete": (bool,), "throughput_mbit": (int, float)}
    spec |= dict.fromkeys(("role", "checksum"), (str,))
    spec |= dict.fromkeys(("bytes", "calls", "duration_ns", "blocked_ns"), (int,))
    found = BulkAnswer(**reader.fields(spec))
    if found.role != role:
        raise RecordError(f"{end.answer}: of the {found.role}, not of the {role}")
    return found
