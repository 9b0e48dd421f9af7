# SPDX-License-Identifier: Apache-2.0
"""The answers of the native tools as typed data: recv, send, witness and the list of misses.

Format: docs/native-tools.md, `Answers`. Only what verdicts and reports need is read; a key that is missing
or has another type is an error that names it. Keys that a later tool adds are ignored. Times are int64
nanoseconds of CLOCK_TAI of the machine that the name says.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

from reports.errors import RecordError
from reports.record.histogram import Summary
from reports.record.json_text import load_json
from reports.units import NS_PER_MS

T = TypeVar("T")
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class StreamResult:
    """One stream as the consumer saw it."""

    id: int
    producer: int
    message_type: int
    transport: str
    size_bytes: int
    period_ns: int
    budget_ns: int
    expected: int
    received: int
    lost: int
    duplicates: int
    reordered: int
    invalid_samples: int
    misses: int
    misses_sent: int
    received_minus_scheduled: Summary
    received_minus_sent: Summary
    sent_minus_scheduled: Summary


@dataclass(frozen=True, slots=True)
class ClockResult:
    """A producers' clock against the consumer's: offset = that clock - the consumer's."""

    name: str
    exchanges: int
    kept: int
    offset_ns: int | None
    rate_ppb: float | None
    bound_ns: int | None
    residual_ns: int | None
    rtt_min_ns: int | None
    rtt_p50_ns: int | None
    series: tuple[tuple[int, int, int], ...]

    def offset_at(self, local_tai_ns: int) -> int | None:
        """Return the offset in ns at a time of the consumer's clock, interpolated in the series."""
        earlier = [point for point in self.series if point[0] <= local_tai_ns]
        later = [point for point in self.series if point[0] > local_tai_ns]
        if earlier and later:
            (t0, o0, _), (t1, o1, _) = earlier[-1], later[0]
            return o0 + (o1 - o0) * (local_tai_ns - t0) // (t1 - t0)
        if earlier or later:
            return (earlier[-1] if earlier else later[0])[1]
        return self.offset_ns


@dataclass(frozen=True, slots=True)
class ClockStep:
    """A step that a tool saw a clock make while it measured."""

    clock: str
    time_tai_ns: int
    step_ns: int


@dataclass(frozen=True, slots=True)
class RecvResult:
    """The result of the consumer."""

    version: str
    complete: bool
    valid: bool
    invalid_reasons: tuple[str, ...]
    phase: str
    warmup_ms: int
    duration_ms: int
    correction: str
    start_tai_ns: int
    end_tai_ns: int
    tai_utc_s: int
    streams: tuple[StreamResult, ...]
    clocks: tuple[ClockResult, ...]
    clock_steps: tuple[ClockStep, ...]
    hostile: dict[str, int]
    recorder: dict[str, int]
    memory: dict[str, int]
    scheduling: dict[str, Any]
    own_line_ns: int | None = None
    """Where it stamps by the time service: what the line from the system's clock to that was off, at most."""
    tai_minus_monotonic_ns: tuple[int, int] | None = None
    """Of the system's two clocks, and by how much that may be off; None: the tool is older."""

    def stream(self, stream_id: int) -> StreamResult:
        """Return one stream; raises RecordError where the consumer did not report it."""
        for stream in self.streams:
            if stream.id == stream_id:
                return stream
        raise RecordError(f"recv: stream {stream_id} is not in the result")

    def clock(self, name: str) -> ClockResult | None:
        """Return a producers' clock by its name, None where the consumer did not report it."""
        return next((clock for clock in self.clocks if clock.name == name), None)


@dataclass(frozen=True, slots=True)
class SendStream:
    """One stream as its producer sent it."""

    id: int
    producer: int
    scheduled: int
    sent: int
    late_slots: int
    reconnects: int
    blocked_writes: int
    unsent: int
    sent_minus_scheduled: Summary


@dataclass(frozen=True, slots=True)
class SendResult:
    """The result of one sending process."""

    complete: bool
    streams: tuple[SendStream, ...]
    clock_steps: tuple[ClockStep, ...]
    scheduling: dict[str, Any]


@dataclass(frozen=True, slots=True)
class WitnessCpu:
    """What the witness saw on one CPU; times in ns."""

    cpu: int
    samples: int
    stalls: int
    stalled_ns: int
    max_ns: int
    steal_ns: int
    utilisation: float | None = None
    """Share of the time in which somebody wanted the CPU; None: it was not measured."""


@dataclass(frozen=True, slots=True)
class WitnessResult:
    """When the witness's machine stalled; windows are (start, end, cpu), CLOCK_TAI of that machine.

    Attributes:
        period_ns: Between two wake-ups: a window may have begun so much earlier. 0: an older tool, not said.
        target_ran_ns: What the target ran on the CPU of each window since the wake-up before; empty: it has
            CPUs of its own, or an older tool. None: it was to be counted and could not.
        unclaimed_ns: Of the same time, what neither a process nor a hypervisor is known to have taken: idle,
            interrupts. Empty and None likewise; a CPU that is not kept awake tells nothing of it.
        emulated: Whether it watched the threads of what emulates the target.
    """

    cpus: tuple[WitnessCpu, ...]
    stalled_fraction: float
    windows: tuple[tuple[int, int, int], ...]
    windows_dropped: int
    period_ns: int = 0
    target_ran_ns: tuple[int, ...] | None = ()
    unclaimed_ns: tuple[int, ...] | None = ()
    emulated: bool = False

    def pauses(self, *, overdue: bool = False, known: bool = False) -> list[tuple[int, int]]:
        """Return (start, end) of what may have been the machine's: no more than the target left of it.

        Where it is not known what the target ran, nothing is.

        Args:
            overdue: Only from when the wake-up was due; else a pause may have begun a period before.
            known: Only what is known to have been the machine's: without what nobody claims, unless the
                target is emulated: its interrupts are time of its emulator's threads.
        """
        earlier_ns = 0 if overdue else self.period_ns
        cut = known and not self.emulated
        if self.target_ran_ns is None or (cut and self.unclaimed_ns is None):
            return []
        nothing = (0,) * len(self.windows)
        ran_ns = self.target_ran_ns or nothing
        unclaimed_ns = (cut and self.unclaimed_ns) or nothing
        seen = [
            (max(start - earlier_ns, start - self.period_ns + ran + unclaimed), end)
            for (start, end, _cpu), ran, unclaimed in zip(self.windows, ran_ns, unclaimed_ns, strict=True)
        ]
        return [(start, end) for start, end in seen if start < end]

    @property
    def away_fraction(self) -> float:
        """Return the share of the time in which the machine is known to have been away: without the target.

        It is the part of `stalled_fraction` that is left of the windows.
        """
        whole_ns = _together_ns([(start, end) for start, end, _cpu in self.windows])
        if not whole_ns:
            return self.stalled_fraction
        return self.stalled_fraction * _together_ns(self.pauses(overdue=True, known=True)) / whole_ns

    @property
    def utilisation_permille(self) -> int | None:
        """Return how much of its busiest CPU the bench uses, rounded up; None: it was not measured."""
        measured = [cpu.utilisation for cpu in self.cpus if cpu.utilisation is not None]
        return math.ceil(1000 * max(measured)) if measured else None


def _together_ns(intervals: Sequence[tuple[int, int]]) -> int:
    """Return how long at least one of some intervals lasted, in ns."""
    total_ns = 0
    covered_to_ns: int | None = None
    for start_ns, end_ns in sorted(intervals):
        begin_ns = start_ns if covered_to_ns is None else max(start_ns, covered_to_ns)
        total_ns += max(0, end_ns - begin_ns)
        covered_to_ns = end_ns if covered_to_ns is None else max(end_ns, covered_to_ns)
    return total_ns


@dataclass(frozen=True, slots=True)
class Miss:
    """A message over its budget, or over three quarters of it: what the guard band holds is logged, too.

    When it was sent is not known where that was 18 minutes late.

    Attributes:
        kernel_stamp_local_tai_ns: When the target's kernel stamped it; None: it did not.
    """

    stream: int
    sequence: int
    received_minus_scheduled_ns: int
    received_minus_sent_ns: int | None
    received_local_tai_ns: int
    kernel_stamp_local_tai_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """What the consumer told while it received.

    Attributes:
        local_tai_ns: When, by its own clock; known to some ms.
        streams: The largest latency so far in ns, and how many messages are lost so far, by stream id.
    """

    local_tai_ns: int
    streams: dict[int, tuple[int, int]]


class Reader:
    """A JSON object of a tool with the place that it stands at, so that a RecordError names it."""

    def __init__(self, data: object, where: str) -> None:
        """Wrap an object; raises RecordError where it is none."""
        if not isinstance(data, dict):
            raise RecordError(f"{where}: expected an object, found {type(data).__name__}")
        self.data = cast(Json, data)
        self.where = where

    def has(self, key: str) -> bool:
        """Tell whether there is a key."""
        return key in self.data

    def get(self, key: str, *kinds: type[Any]) -> Any:
        """Return the value of a key that has to be there and of one of the types."""
        value = self.data.get(key, Reader)
        if value is Reader:
            raise RecordError(f"{self.where}.{key}: missing")
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            names = " or ".join(kind.__name__ for kind in kinds)
            raise RecordError(f"{self.where}.{key}: expected {names}, found {value!r:.40}")
        return value

    def optional_number(self, key: str) -> float | None:
        """Return a number that an older tool does not give; None where it is missing or null."""
        return None if self.data.get(key) is None else float(self.get(key, int, float))

    def optional_int(self, key: str) -> int | None:
        """Return a whole number that an older tool does not give; None where it is missing or null."""
        return None if self.data.get(key) is None else int(self.get(key, int))

    def fields(self, spec: dict[str, tuple[type[Any], ...]]) -> dict[str, Any]:
        """Return the values of several keys with their types."""
        return {key: self.get(key, *kinds) for key, kinds in spec.items()}

    def summary(self, key: str) -> Summary:
        """Return a distribution."""
        return Summary.from_json(self.get(key, dict), f"{self.where}.{key}")

    def blocks(self, key: str, n: int) -> tuple[int, tuple[float, ...]] | None:
        """Return the size and the means of blocks of n values; None: the tool is of an earlier version."""
        if key not in self.data:
            return None
        blocks = self.child(key)
        size, means = int(blocks.get("size", int)), cast("list[object]", blocks.get("means_ns", list))
        if size < 1 or len(means) != n // size:
            raise RecordError(f"{blocks.where}: {len(means)} of {size} values each, of {n}")
        numbers = [
            float(mean) for mean in means if isinstance(mean, int | float) and not isinstance(mean, bool)
        ]
        if len(numbers) != len(means):
            raise RecordError(f"{blocks.where}.means_ns: expected numbers")
        return size, tuple(numbers)

    def child(self, key: str) -> Reader:
        """Return an inner object."""
        return Reader(self.get(key, dict), f"{self.where}.{key}")

    def children(self, key: str) -> list[Reader]:
        """Return the objects of an array."""
        items = cast("list[object]", self.get(key, list))
        return [Reader(item, f"{self.where}.{key}[{index}]") for index, item in enumerate(items)]

    def texts(self, key: str) -> tuple[str, ...]:
        """Return an array of strings."""
        return tuple(map(str, cast("list[object]", self.get(key, list))))

    def steps(self) -> tuple[ClockStep, ...]:
        """Return the steps of clocks that the tool has seen."""
        spec: dict[str, tuple[type[Any], ...]] = {"clock": (str,), "time_tai_ns": (int,), "step_ns": (int,)}
        return tuple(ClockStep(**child.fields(spec)) for child in self.children("clock_steps"))


_NONE = type(None)
_COUNTS = (
    "expected",
    "received",
    "lost",
    "duplicates",
    "reordered",
    "invalid_samples",
    "misses",
    "misses_sent",
)
_SHAPE = ("id", "producer", "message_type", "size_bytes", "period_ns", "budget_ns")
_SEND_COUNTS = ("id", "producer", "scheduled", "sent", "late_slots", "reconnects", "blocked_writes", "unsent")
_MISS: dict[str, tuple[type[Any], ...]] = {
    "stream": (int,),
    "sequence": (int,),
    "received_minus_scheduled_ns": (int,),
    "received_minus_sent_ns": (int, _NONE),
    "received_local_tai_ns": (int,),
}


def _stream(reader: Reader) -> StreamResult:
    whole = {key: reader.get(key, int) for key in (*_SHAPE, *_COUNTS)}
    return StreamResult(
        transport=reader.get("transport", str),
        received_minus_scheduled=reader.summary("received_minus_scheduled"),
        received_minus_sent=reader.summary("received_minus_sent"),
        sent_minus_scheduled=reader.summary("sent_minus_scheduled"),
        **whole,
    )


def _clock(reader: Reader) -> ClockResult:
    spec: dict[str, tuple[type[Any], ...]] = {"name": (str,), "exchanges": (int,), "kept": (int,)}
    spec |= dict.fromkeys(("offset_ns", "bound_ns", "residual_ns", "rtt_min_ns", "rtt_p50_ns"), (int, _NONE))
    spec["rate_ppb"] = (int, float, _NONE)
    return ClockResult(series=triples(reader, "series"), **reader.fields(spec))


def triples(reader: Reader, key: str) -> tuple[tuple[int, int, int], ...]:
    """Return the rows of an array of three integers each."""
    rows: list[tuple[int, int, int]] = []
    for index, found in enumerate(cast("list[object]", reader.get(key, list))):
        row = cast("list[Any]", found) if isinstance(found, list) else []
        if [type(number) for number in row] != [int] * 3:
            raise RecordError(f"{reader.where}.{key}[{index}]: expected three integers, found {found!r:.60}")
        rows.append((row[0], row[1], row[2]))
    return tuple(rows)


def recv_result(data: object) -> RecvResult:
    """Read the `result` object of `bw-traffic recv`; raises RecordError, which names the key."""
    reader = Reader(data, "recv")
    spec: dict[str, tuple[type[Any], ...]] = {"complete": (bool,), "valid": (bool,)}
    spec |= dict.fromkeys(("version", "phase", "correction"), (str,))
    spec |= dict.fromkeys(("warmup_ms", "duration_ms", "start_tai_ns", "end_tai_ns", "tai_utc_s"), (int,))
    spec |= dict.fromkeys(("hostile", "recorder", "memory", "scheduling"), (dict,))
    return RecvResult(
        invalid_reasons=reader.texts("invalid_reasons"),
        streams=tuple(_stream(child) for child in reader.children("streams")),
        clocks=tuple(_clock(child) for child in reader.children("clocks")),
        clock_steps=reader.steps(),
        own_line_ns=_own_line_ns(reader),
        tai_minus_monotonic_ns=_tai_minus_monotonic_ns(reader),
        **reader.fields(spec),
    )


def _tai_minus_monotonic_ns(reader: Reader) -> tuple[int, int] | None:
    """Return it with its error; None of an older tool."""
    if not reader.has("tai_minus_monotonic_ns"):
        return None
    found = reader.get("tai_minus_monotonic_ns", int), reader.get("tai_minus_monotonic_error_ns", int)
    if found[1] < 0:
        raise RecordError(f"{reader.where}.tai_minus_monotonic_error_ns: must be 0 and more")
    return found


def _own_line_ns(reader: Reader) -> int | None:
    """Return it; None of the system's clock, and of an older tool."""
    return reader.child("own_clock").optional_int("line_error_max_ns") if "own_clock" in reader.data else None


def send_result(data: object) -> SendResult:
    """Read the `result` object of `bw-traffic send`; raises RecordError, which names the key."""
    reader = Reader(data, "send")
    streams: list[SendStream] = []
    for child in reader.children("streams"):
        counts = {key: child.get(key, int) for key in _SEND_COUNTS}
        streams.append(SendStream(sent_minus_scheduled=child.summary("sent_minus_scheduled"), **counts))
    complete = bool(reader.get("complete", bool))
    return SendResult(complete, tuple(streams), reader.steps(), reader.get("scheduling", dict))


def witness_result(data: object) -> WitnessResult:
    """Read the `result` object of `bw-traffic witness`; raises RecordError, which names the key."""
    reader = Reader(data, "witness")
    keys = ("cpu", "samples", "stalls", "stalled_ns", "max_ns", "steal_ns")
    cpus = tuple(
        WitnessCpu(
            **{key: child.get(key, int) for key in keys}, utilisation=child.optional_number("utilisation")
        )
        for child in reader.children("cpus")
    )
    return WitnessResult(
        cpus=cpus,
        stalled_fraction=float(reader.get("stalled_fraction", int, float)),
        windows=triples(reader, "windows"),
        windows_dropped=reader.get("windows_dropped", int),
        period_ns=int(reader.optional_number("period_ns") or 0),
        target_ran_ns=_of_windows(reader, "target_ran_ns"),
        unclaimed_ns=_of_windows(reader, "unclaimed_ns"),
        emulated=bool(reader.data.get("threads")),
    )


def _of_windows(reader: Reader, key: str) -> tuple[int, ...] | None:
    """Return a time of each window; (): there is none, None: unknown. RecordError where it is not of each."""
    if not reader.has(key):
        return ()
    if reader.data[key] is None:
        return None
    rows = cast("list[object]", reader.get(key, list))
    found = tuple(row for row in rows if type(row) is int and row >= 0)
    if not len(found) == len(rows) == len(reader.get("windows", list)):
        raise RecordError(f"{reader.where}.{key}: expected a whole number, 0 or more, of each window")
    return found


def read_misses(lines: Iterable[str]) -> list[Miss]:
    """Read `misses.ndjson`; a torn last line, left by a killed consumer, is left out.

    Raises:
        RecordError: A line before the last is not JSON, or a key is missing.
    """
    kept = [line for line in lines if line.strip()]
    misses: list[Miss] = []
    for number, line in enumerate(kept, start=1):
        try:
            data: object = load_json(line)
        except json.JSONDecodeError as error:
            if number == len(kept):
                break
            raise RecordError(f"misses.ndjson:{number}: {error}") from error
        reader = Reader(data, f"misses.ndjson:{number}")
        stamp_tai_ns = reader.optional_int("kernel_stamp_local_tai_ns")
        misses.append(Miss(**reader.fields(_MISS), kernel_stamp_local_tai_ns=stamp_tai_ns))
    return misses


def recv_progress(path: Path, streams: Collection[int]) -> tuple[Progress, ...]:
    """Read what `bw-traffic recv` told of some streams meanwhile; empty: it did not say when it began.

    Raises:
        RecordError: A whole line is not JSON, or a key is missing.
        OSError: The file cannot be read.
    """
    found: list[Progress] = []
    start_tai_ns: int | None = None
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith("\n") or '"result"' in line:
                continue
            where = f"{path.name}:{number}"
            try:
                reader = Reader(load_json(line), where)
            except json.JSONDecodeError as error:
                raise RecordError(f"{where}: {error}") from error
            kind = reader.get("type", str)
            if kind == "ready":
                start_tai_ns = reader.optional_int("local_tai_ns")
            elif kind == "progress" and start_tai_ns is not None:
                elapsed_ns = reader.get("elapsed_ms", int) * NS_PER_MS
                told = {stream: each for stream, each in _told(reader) if stream in streams}
                found.append(Progress(start_tai_ns + elapsed_ns, told))
    return tuple(found)


def _told(reader: Reader) -> Iterator[tuple[int, tuple[int, int]]]:
    for row in cast("list[list[int]]", reader.get("streams", list)):
        if len(row) != 5 or not all(type(number) is int for number in row):
            raise RecordError(f"{reader.where}.streams: expected five integers, found {row!r:.60}")
        stream, _received, lost, max_ns, _misses = row
        yield stream, (max_ns, lost)


def last_result(path: Path) -> object:
    """Return the `result` object that ends an NDJSON file of a tool.

    Raises:
        RecordError: The file cannot be read or has no `result` line: the tool was killed, or never started.
    """
    found: object = None
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError as error:
        raise RecordError(f"{path.name}: {error.strerror}") from error
    except ValueError as error:  # a name that no file can have
        raise RecordError(f"{path.name!r}: {error}") from error
    for line in lines:
        if '"result"' not in line:
            continue
        try:
            data: object = load_json(line)
        except json.JSONDecodeError:
            continue
        if isinstance(data, dict) and cast(Json, data).get("type") == "result":
            found = cast("object", data)
    if found is None:
        raise RecordError(f"{path.name}: no result line; the tool did not end by itself")
    return found
