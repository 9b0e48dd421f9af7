# SPDX-License-Identifier: Apache-2.0
"""The command line `python -m reports clock-log`: what the log of a clock's daemon comes to.

For a log that somebody brings, from a machine that no bench has ever seen.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from reports.clock_sync.log_formats import LOG_MARKS, LOG_READERS, Reader
from reports.clock_sync.logs import ClockLog, ServoSeries
from reports.clock_sync.series import ClockSeries
from reports.clock_sync.stability import Curve, mtie, tdev
from reports.clock_sync.tai_utc import TAI_UTC_S
from reports.clock_sync.time_error import time_error
from reports.clock_sync.transports import plain_text
from reports.clock_sync.unread_forms import unread_form
from reports.errors import ReportError
from reports.units import NS_PER_S, format_value

LARGE_LINES = 100_000
"""Of a log of more lines is told, on the error output, what it is read as: that takes seconds."""


def add_clock_log(commands: Any) -> None:
    """Add the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "clock-log",
        help="print time error, MTIE and TDEV of a daemon's log (exit 1: no offset in it)",
        description="Offsets are target - source, whatever the log has: positive, the target is ahead.",
    )
    parser.add_argument("log", type=Path, help=f"a log: {', '.join(LOG_READERS)}")
    parser.add_argument(
        "--format", choices=tuple(LOG_READERS), help="else that by which the most of its lines hold an offset"
    )
    parser.set_defaults(action=_say)


def _say(options: argparse.Namespace) -> int:
    path: Path = options.log
    try:
        text = plain_text(path.read_bytes())
    except OSError as error:
        raise ReportError(f"{path}: {error.strerror}") from error
    except ReportError as error:
        raise ReportError(f"{path}: {error}") from error
    chosen = {options.format: LOG_READERS[options.format]} if options.format else LOG_READERS
    tried = _tried(path, text, chosen)
    form = max(tried, key=lambda each: _held(tried[each]))
    log = tried[form]
    if not log.series and not log.summaries and (unread := unread_form(text)):
        print(f"{path}: {unread}")
        return 1
    if not log.series and not log.summaries:
        print(f"{path}: no offset in it")
        for name, found in tried.items():
            print(f"  {name}: {_lacking(found)}")
        return 1
    print(f"{path}: {form}")
    for line in said(log):
        print(f"  {line}")
    for name, found in tried.items():
        if name != form and found.series:
            count = sum(len(series.time_ns) for series in found.series)
            print(f"  also in it, --format {name}: {count} offsets")
    return 0 if log.series else 1


def _tried(path: Path, text: str, chosen: dict[str, Reader]) -> dict[str, ClockLog]:
    """Read a log in each of some formats; of one whose mark no line has all lines are of other programs."""
    lines = text.split("\n")
    is_large = len(lines) > LARGE_LINES
    foreign = ClockLog((), (), (), 0, (), 0, sum(bool(line.strip()) for line in lines))
    is_text = not any(each in text for each in "\x00\ufffd")
    tried: dict[str, ClockLog] = {}

    @cache
    def has_mark(mark: str) -> bool:
        return any(map(re.compile(mark).search, lines))

    for name, read in chosen.items():
        if is_text and not any(map(has_mark, LOG_MARKS[name])):
            tried[name] = foreign
            continue
        if is_large:
            print(f"{path}: reading {len(lines)} lines as {name} ...", file=sys.stderr, flush=True)
        # What is said of a log has no times.
        tried[name] = read(text, TAI_UTC_S)
    return tried


def _lacking(log: ClockLog) -> str:
    """Say why a format gives no offset of a log."""
    lines = log.damaged + log.foreign + log.other + len(log.port_changes)
    if not lines:
        return "the file is empty"
    if not log.damaged and not log.other and not log.port_changes:
        return f"none of {lines} lines bears its mark"
    rest = [f"{log.other} of its messages without an offset"] if log.other else []
    rest += [f"{len(log.port_changes)} changes of ports"] if log.port_changes else []
    rest += (
        [f"{log.damaged} damaged (line {', '.join(map(str, log.damaged_lines[:3]))})"] if log.damaged else []
    )
    rest += [f"{log.foreign} of other programs"] if log.foreign else []
    return ", ".join(rest)


def _held(log: ClockLog) -> tuple[int, int]:
    """Return how many lines were of use, and, negative, how many were damaged."""
    return sum(len(one.time_ns) for one in log.series) + len(log.summaries), -log.damaged


def said(log: ClockLog) -> Iterator[str]:
    """Yield what a log comes to, a line each."""
    for series in log.series:
        yield from _of_series(series)
    for change in log.port_changes:
        whose = f"{change.host}, " if change.host else ""
        yield (
            f"{whose}{change.time_ns / NS_PER_S:.3f} s: port {change.port}"
            f" from {change.before} to {change.after} on {change.event}"
        )
    if log.summaries:
        farthest = max(log.summaries, key=lambda each: each.max_abs_ns)
        yield f"summaries: {len(log.summaries)}, the largest |offset| {_ns(farthest.max_abs_ns)}"
    if left_out := log.left_out():
        yield left_out


def _of_series(series: ServoSeries) -> Iterator[str]:
    clock = series.clock_series()
    length_s = (series.time_ns[-1] - series.time_ns[0]) / NS_PER_S
    gaps = f", {gap_count} gaps" if (gap_count := len(clock.gaps)) else ""
    states = {state: series.state.count(state) for state in dict.fromkeys(series.state) if state}
    shown = ", ".join(f"{state} {count}" for state, count in states.items())
    told = f"; states: {shown}" if shown else ""
    yield f"{series.source}: {len(series.time_ns)} offsets in {length_s:.0f} s{gaps}{told}"
    before, locked = series.parts()
    if before is None:
        yield from _figures(clock)
        return
    if locked is None:
        yield f"  never locked: {_extent(before)}"
        return
    yield f"  locked, {len(locked.time_ns)} of them:"
    yield from (f"  {line}" for line in _figures(locked.clock_series()))
    yield f"  not locked, {len(before.time_ns)} of them: {_extent(before)}"


def _extent(series: ServoSeries) -> str:
    return f"offset {_ns(series.offset_ns.min())} to {_ns(series.offset_ns.max())}"


def _figures(clock: ClockSeries) -> Iterator[str]:
    found = time_error(clock)
    assert found is not None, "a series has at least one observation"
    sigma = "" if found.stddev_ns is None else f", standard deviation {_ns(found.stddev_ns)}"
    yield (
        f"  offset {_ns(found.min_ns)} to {_ns(found.max_ns)}, mean {_ns(found.cte_ns)}{sigma};"
        f" max|TE| {_ns(found.max_abs_ns)}"
    )
    for name, curve in (("MTIE", mtie(clock)), ("TDEV", tdev(clock))):
        if curve is not None:
            yield f"  {name}: {_points(curve)}"


def _points(curve: Curve) -> str:
    return ", ".join(
        f"{_ns(value)} at {tau / NS_PER_S:.3g} s"
        for tau, value in zip(curve.tau_ns.tolist(), curve.value.tolist(), strict=True)
    )


def _ns(value: float) -> str:
    return format_value(round(value, 1), "ns")
