# SPDX-License-Identifier: Apache-2.0
"""Trials of single messages through one network stack: the evidence.

The folder holds `messages.json` (this file's dataclasses: every trial, in the order in which they were made)
and of each trial the answers of `bw-rtdip latency` and `bw-rtdip source`. A round has one trial of each kind
and size, so that what changes meanwhile changes for all. One more trial, of no value, is traced.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from reports.errors import RecordError
from reports.realtime_ethernet.cpu_steps import Steps, ring_steps, text_steps
from reports.realtime_ethernet.thread_shares import ThreadShares, Trip, thread_shares
from reports.record.codec import omit_none
from reports.record.document import read_document, write_document
from reports.record.histogram import Summary
from reports.record.json_text import load_json
from reports.timeline.kernel_recording import load_recording
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
THREADS = {"rtdip-echo": "echo", "rtdip-sink": "bulk receiver"}
"""What threads of the tools are called, by their names on the target."""
RING = "-ring.gz"
"""How the name of a recording of kernel events ends."""
LINE_MAX_BYTES = 4096
TRACE_MAX_BYTES = 256 * 1024 * 1024
"""Of a trace's text: a file that holds more is refused."""

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
class TracedTrial:
    """A trial of probes beside a bulk receiver, traced; it counts for no value.

    Attributes:
        missing: Why there is none; empty: there is one.
        file: Answer of `bw-rtdip latency --each`.
        trace_file: What the echo's CPU did: a recording of kernel events, its name ending in RING; of a run
            before 0.2.2 what the kernel writes, packed by gzip.
        dropped_events: For which its buffer had no room.
    """

    missing: str
    file: str = ""
    trace_file: str = ""
    dropped_events: int = 0


@dataclass(frozen=True)
class Messages:
    """What `messages.json` holds.

    Attributes:
        over: By what the stack carries single messages: RTDIP or UDP.
        cpu: Of the target, on which echo and bulk receiver were.
        bulk_bytes: Size of the bulk receiver's messages.
        traced: None: the run is older, or was not to be traced.
    """

    target: str
    stack: str
    over: str
    cpu: int
    bulk_bytes: int
    trials: tuple[Trial, ...]
    schema: str = SCHEMA
    traced: TracedTrial | None = omit_none()  # noqa: RUF009 - a field

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


def load_thread_shares(folder: Path, traced: TracedTrial) -> ThreadShares:
    """Work out who had the CPU while messages were on their way; raises RecordError: names the file."""
    trips = load_trips(folder, traced.file)
    try:
        return thread_shares(_steps(folder / traced.trace_file), trips, THREADS)
    except (OSError, EOFError, zlib.error) as error:
        raise RecordError(f"{traced.trace_file}: {error}") from error


def _steps(path: Path) -> Steps:
    """Read what a CPU did; raises RecordError: it is damaged, or not of one CPU."""
    if not path.name.endswith(RING):
        return text_steps(_trace_lines(path))
    rings = list(load_recording(path).rings.values())
    if len(rings) != 1:
        raise RecordError(f"{path.name}: holds {len(rings)} CPUs, not one")
    rings[0].require_whole(path.name)
    try:
        return ring_steps(rings[0])
    except RecordError as error:
        raise RecordError(f"{path.name}: {error}") from error


def load_trips(folder: Path, name: str) -> list[Trip]:
    """Read the round trips that `bw-rtdip latency --each` tells of, of those whose echo had stamps.

    Raises:
        RecordError: Names file and key.
    """
    found: list[Trip] = []
    try:
        lines = (folder / name).read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines, start=1):
            reader = Reader(load_json(line), f"{name}: line {number}")
            if reader.data.get("type") != "trip":
                continue
            trip = Trip(**reader.fields({"heard_monotonic_ns": (int,), "receiving_ns": (int,)}))
            if trip.heard_monotonic_ns > 0 and trip.receiving_ns >= 0:
                found.append(trip)
    except (OSError, ValueError) as error:
        raise RecordError(f"{name}: {error}") from error
    return found


def _trace_lines(path: Path) -> Iterator[str]:
    """Give the lines of a trace; raises RecordError: it is too long."""
    read_bytes = 0
    with gzip.open(path, "rt", encoding="utf-8", errors="replace") as lines:
        while line := lines.readline(LINE_MAX_BYTES):
            read_bytes += len(line)
            if read_bytes > TRACE_MAX_BYTES:
                raise RecordError(f"{path.name}: holds more than {TRACE_MAX_BYTES} bytes")
            yield line


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
    if found.traced is not None:
        _check_traced(found.traced)
    return found


def _check_traced(traced: TracedTrial) -> None:
    where = f"{MESSAGES}: traced"
    for name in (traced.file, traced.trace_file):
        if Path(name).name != name:
            raise RecordError(f"{where}: {name!r} is no file of this folder")
        if bool(name) == bool(traced.missing):
            raise RecordError(f"{where}: needs file and trace_file if and only if nothing is missing")
    if traced.dropped_events < 0:
        raise RecordError(f"{where}: needs dropped_events >= 0")
