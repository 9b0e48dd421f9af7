# SPDX-License-Identifier: Apache-2.0
"""The answer of `bw-clock compare` as typed data (docs/native-tools.md): one clock against another.

Offsets are device - reference in ns: positive, the device is ahead. Times are int64 ns of the reference, TAI.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from reports.clock_sync.series import ClockSeries
from reports.errors import RecordError
from reports.record.histogram import Summary
from reports.tools.answers import Reader, last_result

SERIES_COLUMNS = ["time_tai_ns", "n", "mean_ns", "min_ns", "max_ns"]


@dataclass(frozen=True, slots=True)
class SeriesPoint:
    """One interval of the decimated series: its samples' number, mean, least and largest offset."""

    time_tai_ns: int
    n: int
    mean_ns: float
    min_ns: int
    max_ns: int


@dataclass(frozen=True, slots=True)
class ReportedError:
    """What a clock told of its error, in one of its two forms, and how that held.

    Attributes:
        missed: Samples that were off by more.
        beyond: Of these those that were off by more even where half of their window is taken off.
        sizes: What was told: of an interval the larger of its two sides.
    """

    missed: int
    beyond: int
    sizes: Summary


@dataclass(frozen=True, slots=True)
class DeviceBound:
    """What a clock told of its own error, and how that held: only of a device that tells a bound.

    Attributes:
        checked: Samples, each of which was told with an interval and U.
        without: Attempts that got no time, because there was no bound for one: no samples.
        interval: The hard interval.
        u: U (k = 2); None: the answer is older than U.
    """

    checked: int
    without: int
    interval: ReportedError
    u: ReportedError | None


@dataclass(frozen=True, slots=True)
class ClockCompare:
    """How a clock stood against a reference.

    Attributes:
        device: The clock under test, as the tool names it.
        reference: What it was held against, likewise.
        read: `sequential` (device, then reference: the paper's program), `bracketed` or `filtered`.
        phc_read: How a PTP hardware clock was read: `precise`, `extended`, `basic`; None where none was.
        discarded: Samples whose bracket was too wide.
        window: Width of the brackets.
        reference_bound_ns: Largest bound of its own error that the reference stated; None: it states none.
        start_monotonic_ns: CLOCK_MONOTONIC of the target at `start_tai_ns`; None: the answer is of an earlier
            version, which did not say.
        device_bound: How the bound held that the device tells with each reading; None: it tells none.
    """

    complete: bool
    valid: bool
    invalid_reasons: tuple[str, ...]
    device: dict[str, Any]
    reference: dict[str, Any]
    read: str
    phc_read: str | None
    iterations: int
    discarded: int
    elapsed_ns: int
    start_tai_ns: int
    offset: Summary
    window: Summary
    series_interval_ns: int
    series: tuple[SeriesPoint, ...]
    steps: tuple[tuple[int, int], ...]
    gaps: tuple[tuple[int, int], ...]
    reference_bound_ns: int | None
    start_monotonic_ns: int | None = None
    device_bound: DeviceBound | None = None

    @property
    def tai_utc_s(self) -> int:
        """Return TAI - UTC in s, as the machine that compared its clocks used it.

        Raises:
            RecordError: The answer does not say.
        """
        found = self.device.get("tai_utc_s")
        if type(found) is not int:
            raise RecordError(f"compare.device.tai_utc_s: must be an integer, found {found!r}")
        return found

    @property
    def extreme_ns(self) -> int | None:
        """Return the offset that is farthest from 0; None without a sample."""
        if self.offset.min_ns is None or self.offset.max_ns is None:
            return None
        return max(self.offset.min_ns, self.offset.max_ns, key=abs)

    def invalid(self) -> list[str]:
        """Return why nothing may pass on this answer; empty: it may."""
        found = list(self.invalid_reasons)
        if not self.valid and not found:
            found.append("invalid result")
        if not self.complete:
            found.append("incomplete: the comparison ended early")
        own_s, other_s = self.device.get("tai_utc_s"), self.reference.get("tai_utc_s")
        if own_s is not None and other_s is not None and own_s != other_s:
            found.append(f"TAI - UTC is {own_s} s on the target and {other_s} s at its reference")
        return found


def clock_compare(data: object) -> ClockCompare:
    """Read the `result` object of `bw-clock compare`; raises RecordError, which names the key."""
    reader = Reader(data, "compare")
    series = reader.child("series")
    if series.get("columns", list) != SERIES_COLUMNS:
        raise RecordError(f"{series.where}.columns: expected {SERIES_COLUMNS}")
    spec: dict[str, tuple[type[Any], ...]] = {"complete": (bool,), "valid": (bool,), "read": (str,)}
    spec |= dict.fromkeys(("iterations", "discarded", "elapsed_ns", "start_tai_ns"), (int,))
    spec |= {"device": (dict,), "reference": (dict,), "phc_read": (str, type(None))}
    spec["reference_bound_ns"] = (int, type(None))
    if isinstance(data, dict) and "start_monotonic_ns" in data:
        spec["start_monotonic_ns"] = (int,)
    return ClockCompare(
        invalid_reasons=reader.texts("invalid_reasons"),
        offset=reader.summary("offset"),
        window=reader.summary("window"),
        device_bound=_device_bound(reader),
        series_interval_ns=series.get("interval_ns", int),
        series=tuple(_point(row, f"{series.where}.rows") for row in series.get("rows", list)),
        steps=tuple(
            (step.get("time_tai_ns", int), step.get("step_ns", int)) for step in reader.children("steps")
        ),
        gaps=tuple(
            (gap.get("from_tai_ns", int), gap.get("to_tai_ns", int)) for gap in reader.children("gaps")
        ),
        **reader.fields(spec),
    )


def _device_bound(reader: Reader) -> DeviceBound | None:
    """Return how the bound held that the device tells; None: it tells none, or the answer is older."""
    if not reader.has("device_bound") or reader.get("device_bound", dict, type(None)) is None:
        return None
    told = reader.child("device_bound")
    checked, without = told.get("bound_checked", int), told.get("without_bound", int)
    if without < 0:
        raise RecordError(f"{told.where}: need without_bound >= 0")
    u = _told_error(told, "u", checked) if told.has("u") else None
    return DeviceBound(checked, without, _told_error(told, "bound", checked), u)


def _told_error(told: Reader, name: str, checked: int) -> ReportedError:
    missed, beyond = told.get(f"{name}_missed", int), told.get(f"{name}_missed_beyond_window", int)
    if not 0 <= beyond <= missed <= checked:
        raise RecordError(
            f"{told.where}: need bound_checked >= {name}_missed >= {name}_missed_beyond_window >= 0"
        )
    return ReportedError(missed, beyond, told.summary(name))


def _point(row: object, where: str) -> SeriesPoint:
    values = cast("list[Any]", row) if isinstance(row, list) else []
    if len(values) != len(SERIES_COLUMNS) or not all(type(value) in (int, float) for value in values):
        raise RecordError(f"{where}: expected five numbers, found {row!r:.80}")
    return SeriesPoint(int(values[0]), int(values[1]), float(values[2]), int(values[3]), int(values[4]))


def read_clock_compare(path: Path) -> ClockCompare:
    """Read the answer of `bw-clock compare` from its file; raises RecordError."""
    return clock_compare(last_result(path))


def series_of(compare: ClockCompare) -> ClockSeries | None:
    """Return the decimated series as offsets over time: of each interval the mean; None without one."""
    if len(compare.series) < 2:
        return None
    return ClockSeries.from_samples(
        [point.time_tai_ns for point in compare.series],
        [point.mean_ns for point in compare.series],
        breaks_ns=[time_ns for time_ns, _step in compare.steps],
    )
