# SPDX-License-Identifier: Apache-2.0
"""What reading each clock costs: the evidence (paper on intra-process clock synchronisation, Table I).

The folder holds `readings.json` (this file's dataclasses: every clock that was to be read, also those that
host or target do not offer) and, of each clock that was read, the answer of `bw-clock latency`. Times are ns.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from reports.errors import RecordError
from reports.record.document import read_document, write_document
from reports.record.histogram import Summary
from reports.record.measurement import Number
from reports.tools.answers import Reader, last_result

SCHEMA = "benchwright.read_latency/1"
FOLDER = "clock_read_latency"
READINGS = "readings.json"
HOST = "host"
TARGET = "target"


@dataclass(frozen=True)
class Reading:
    """One clock that was to be read.

    Attributes:
        place: `host` or `target`.
        clock: What the clock is: `realtime`, `phc-basic`, `timecard`, …
        device: As the tool names it, such as `phc:/dev/ptp0`; empty: the bench names none.
        reads: Readings that were asked for.
        file: The tool's answer; empty: none.
        not_offered: Why the machine does not offer the clock; empty: it does.
        failed: Why a clock that is offered could not be measured; empty: it was.
    """

    place: str
    clock: str
    device: str
    reads: int
    file: str = ""
    not_offered: str = ""
    failed: str = ""


@dataclass(frozen=True)
class Readings:
    """What `readings.json` holds."""

    target: str
    load: str
    readings: tuple[Reading, ...]
    schema: str = SCHEMA


@dataclass(frozen=True, slots=True)
class ReadCost:
    """What one clock's readings cost.

    Attributes:
        latency: All readings, with the two of the processor's counter around each.
        net: The same, less what two readings of the counter cost.
        kept: Readings that nothing interrupted; None where the machine cannot tell.
        interrupted: How many others there were; None likewise.
        interrupted_reason: Why the machine cannot tell; None: it can.
        block_means_ns: Means of short blocks of the readings that count, in their order. None: of an earlier
            version of the tool, whose readings count as independent.
        clocksource: What the kernel keeps its own time with; empty: it does not say.
        tsc_hz: Ticks of the processor's counter in a second.
        pair_cost_ns: What two readings of the counter cost: their median.
    """

    complete: bool
    valid: bool
    invalid_reasons: tuple[str, ...]
    latency: Summary
    net: Summary
    kept: Summary | None
    interrupted: int | None
    interrupted_reason: str | None
    clocksource: str
    tsc_hz: int
    pair_cost_ns: Number
    block_means_ns: tuple[float, ...] | None = None

    @property
    def undisturbed(self) -> Summary:
        """Return the readings that nothing interrupted, where they can be told apart, else all."""
        return self.latency if self.kept is None else self.kept

    def invalid(self) -> list[str]:
        """Return why nothing may pass on this answer; empty: it may."""
        found = list(self.invalid_reasons)
        if not self.valid and not found:
            found.append("invalid result")
        if not self.complete and not found:
            found.append("incomplete: the readings ended early")
        return found


def read_cost(data: object) -> ReadCost:
    """Read the `result` object of `bw-clock latency` of one clock; raises RecordError: names the key."""
    reader = Reader(data, "latency")
    clocks = reader.children("clocks")
    if len(clocks) != 1:
        raise RecordError(f"{reader.where}.clocks: expected one clock, found {len(clocks)}")
    clock = clocks[0]
    none = type(None)
    kept = clock.summary("kept") if clock.get("kept", dict, none) is not None else None
    latency = clock.summary("latency")
    blocks = clock.blocks("blocks", (kept or latency).n)
    cost = ReadCost(
        invalid_reasons=reader.texts("invalid_reasons"),
        latency=latency,
        net=clock.summary("net"),
        kept=kept,
        interrupted=clock.get("interrupted", int, none),
        block_means_ns=None if blocks is None else blocks[1],
        **reader.fields(
            {
                "complete": (bool,),
                "valid": (bool,),
                "interrupted_reason": (str, none),
                "clocksource": (str,),
                "tsc_hz": (int,),
                "pair_cost_ns": (int, float),
            }
        ),
    )
    if cost.tsc_hz < 1 or cost.pair_cost_ns < 0:
        raise RecordError(f"{reader.where}: need tsc_hz >= 1 and pair_cost_ns >= 0")
    if (cost.kept is None) != (cost.interrupted is None) or (
        cost.kept is None and not cost.interrupted_reason
    ):
        raise RecordError(f"{clock.where}: kept, interrupted and interrupted_reason contradict each other")
    return cost


def load_cost(folder: Path, reading: Reading) -> ReadCost | None:
    """Read the answer of one clock; None where there is none. Raises RecordError: file and key."""
    if not reading.file:
        return None
    try:
        return read_cost(last_result(folder / reading.file))
    except RecordError as error:
        raise RecordError(f"{reading.file}: {error}") from error


def write_readings(folder: Path, readings: Readings) -> Path:
    """Write `readings.json` and return its path."""
    return write_document(folder / READINGS, readings)


def load_readings(folder: Path) -> Readings:
    """Read `readings.json`; raises RecordError, which names the key."""
    readings = read_document(Readings, folder / READINGS, SCHEMA)
    for reading in readings.readings:
        if sum(bool(text) for text in (reading.file, reading.not_offered, reading.failed)) == 0:
            raise RecordError(
                f"{READINGS}: {reading.place} {reading.clock}: neither measured nor said why not"
            )
        if Path(reading.file).name != reading.file:
            raise RecordError(f"{READINGS}: {reading.file!r} is no file of this folder")
    return readings
