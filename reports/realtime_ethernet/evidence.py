# SPDX-License-Identifier: Apache-2.0
"""Trials of single messages through one network stack: the evidence.

The folder holds `messages.json` (this file's dataclasses: every trial, in the order in which they were made)
and of each trial the answers of `bw-rtdip latency` and `bw-rtdip source`. A round has one trial of each kind
and size, so that what changes meanwhile changes for all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from reports.errors import RecordError
from reports.record.document import read_document, write_document
from reports.record.histogram import Summary
from reports.tools.answers import Reader, last_result
from reports.units import NS_PER_S

SCHEMA = "benchwright.realtime_ethernet/1"
FOLDER = "realtime_ethernet"
MESSAGES = "messages.json"
LATENCY, ALONE, BESIDE, THROUGHPUT = "latency", "alone", "beside", "throughput"
KINDS = (LATENCY, ALONE, BESIDE, THROUGHPUT)
"""Of trials: round trips by size; probes without, and with, a bulk receiver beside; windows of messages."""
RTDIP, UDP = "rtdip", "udp"
STOLEN_SHARE_MAX = 0.05
"""Of the time of all processors: a trial of which the machine's host took more does not count."""


T = TypeVar("T")


@dataclass(frozen=True)
class Trial:
    """One trial.

    Attributes:
        round: Counted from 0.
        kind: One of KINDS.
        size_bytes: Of its messages.
        file: Answer of `bw-rtdip latency`, or of `bw-rtdip source` where it is of throughput.
        bulk_file: Answer of the source of the bulk receiver beside; empty: there was none.
        stolen_ticks: Time that the machine's host took meanwhile, of all processors (/proc/stat, steal).
        ticks: All time of all processors.
    """

    round: int
    kind: str
    size_bytes: int
    file: str
    bulk_file: str
    stolen_ticks: int
    ticks: int

    @property
    def is_disturbed(self) -> bool:
        """Say whether the machine's host took so much of the time that the trial does not count."""
        return self.stolen_ticks > STOLEN_SHARE_MAX * self.ticks


@dataclass(frozen=True)
class Messages:
    """What `messages.json` holds.

    Attributes:
        over: By what the stack carries single messages: RTDIP or UDP.
        cpu: Of the target, on which echo and bulk receiver were.
        bulk_bytes: Size of the bulk receiver's messages.
    """

    target: str
    stack: str
    over: str
    cpu: int
    bulk_bytes: int
    trials: tuple[Trial, ...]
    schema: str = SCHEMA

    def of(self, kind: str, size_bytes: int | None = None) -> list[Trial]:
        """Return the trials of a kind, and of a size if that is given."""
        return [t for t in self.trials if t.kind == kind and size_bytes in (None, t.size_bytes)]

    def sizes_bytes(self, kind: str) -> list[int]:
        """Return the sizes of the trials of a kind, ascending."""
        return sorted({each.size_bytes for each in self.of(kind)})


@dataclass(frozen=True, slots=True)
class RoundTrips:
    """The answer of `bw-rtdip latency`; times in ns."""

    over: str
    size_bytes: int
    sent: int
    lost: int
    round_trip: Summary
    receiving: Summary | None
    """In the target, from the driver's hands to the echo's; None: the tool is older."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """The answer of `bw-rtdip source`: windows of messages, each acknowledged as a whole."""

    over: str
    size_bytes: int
    window: int
    windows: int
    windows_lost: int
    duration_ns: int

    @property
    def transferred_bytes(self) -> int:
        """Return the data of the windows that were acknowledged."""
        return self.windows * self.window * self.size_bytes


def bytes_per_s(transfers: Sequence[Transfer]) -> float:
    """Return the data of several transfers over the time of all of them; 0: no time."""
    duration_ns = sum(each.duration_ns for each in transfers)
    whole_bytes = sum(each.transferred_bytes for each in transfers)
    return whole_bytes * NS_PER_S / duration_ns if duration_ns else 0.0


def read_round_trips(data: object) -> RoundTrips:
    """Read the `result` of `bw-rtdip latency`; raises RecordError: names the key."""
    reader = Reader(data, "latency")
    found = RoundTrips(
        round_trip=reader.summary("round_trip"),
        receiving=reader.summary("receiving") if "receiving" in reader.data else None,
        **reader.fields({"over": (str,), "size_bytes": (int,), "sent": (int,), "lost": (int,)}),
    )
    if found.round_trip.n + found.lost > found.sent or min(found.sent, found.lost) < 0:
        n = found.round_trip.n
        raise RecordError(f"{reader.where}: {n} round trips and {found.lost} lost of {found.sent} sent")
    return found


def read_transfer(data: object) -> Transfer:
    """Read the `result` of `bw-rtdip source`; raises RecordError: names the key."""
    reader = Reader(data, "source")
    counts = ("size_bytes", "window", "windows", "windows_lost", "duration_ns")
    found = Transfer(over=reader.get("over", str), **reader.fields(dict.fromkeys(counts, (int,))))
    if min(getattr(found, name) for name in counts) < 0:
        raise RecordError(f"{reader.where}: need {', '.join(counts)} >= 0")
    return found


def load_round_trips(folder: Path, trials: Sequence[Trial]) -> list[RoundTrips]:
    """Read the answers of trials of round trips; raises RecordError: names file and key."""
    return [
        _checked(trial.file, trial.size_bytes, _read(folder, trial.file, read_round_trips))
        for trial in trials
    ]


def load_transfers(folder: Path, trials: Sequence[Trial]) -> list[Transfer]:
    """Read the answers of trials of throughput; raises RecordError: names file and key."""
    return [_read(folder, trial.file, read_transfer) for trial in trials]


def load_bulk(folder: Path, trials: Sequence[Trial]) -> list[Transfer]:
    """Read what the bulk receiver took beside trials; raises RecordError: names file and key."""
    return [_read(folder, trial.bulk_file, read_transfer) for trial in trials]


def _read(folder: Path, name: str, read: Callable[[object], T]) -> T:
    try:
        return read(last_result(folder / name))
    except RecordError as error:
        raise RecordError(f"{name}: {error}") from error


def _checked(name: str, size_bytes: int, found: RoundTrips) -> RoundTrips:
    if found.size_bytes != size_bytes:
        raise RecordError(f"{name}: of {found.size_bytes} bytes, {MESSAGES} says {size_bytes}")
    return found


def write_messages(folder: Path, messages: Messages) -> Path:
    """Write `messages.json` and return its path."""
    return write_document(folder / MESSAGES, messages)


def load_messages(folder: Path) -> Messages:
    """Read `messages.json`; raises RecordError, which names the key."""
    found = read_document(Messages, folder / MESSAGES, SCHEMA)
    for number, each in enumerate(found.trials):
        where = f"{MESSAGES}: trials[{number}]"
        if each.kind not in KINDS:
            raise RecordError(f"{where}.kind: must be one of {', '.join(KINDS)}, found {each.kind!r}")
        for name in (each.file, each.bulk_file):
            if Path(name).name != name:
                raise RecordError(f"{where}: {name!r} is no file of this folder")
        if not each.file or bool(each.bulk_file) != (each.kind == BESIDE):
            raise RecordError(f"{where}: needs file, and bulk_file if and only if it is {BESIDE}")
        if each.ticks < 0 or each.stolen_ticks < 0:
            raise RecordError(f"{where}: need ticks, stolen_ticks >= 0")
    return found
