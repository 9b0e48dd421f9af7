# SPDX-License-Identifier: Apache-2.0
"""Logs of clock daemons as series, read line by line; the forms are in the modules `*_logs.py`.

All become the same form with the same signs, whatever the program writes. A line that bears the mark of a
format but breaks its form is damaged: it is counted and left out, never guessed; so is a last line of it
without its end. A line without that mark is of another program, and counted as such. Signs, and how
they were checked: docs/clock-analysis.md.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from itertools import compress
from typing import Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from reports.clock_sync.alike_lines import LINES_MIN, Lines, Pattern, take_alike
from reports.clock_sync.series import ClockSeries
from reports.units import NS_PER_S

TimeBase: TypeAlias = Literal["tai", "monotonic"]

PPB_PER_PPM = 1000
PPB_PER_ONE = 1_000_000_000
INT64_MAX = 2**63 - 1
DISORDER_NS = NS_PER_S
"""So far the lines of a host's programs may be out of order; an uptime that is further back began anew."""
_NAMED_LINES_MAX = 20
UNLOCKED = ("s0", "s1")
"""States of linuxptp's servo before it is locked; after an offset in s1 it steps the clock (servo.h)."""
_STEPS = "s1"


@dataclass(frozen=True, eq=False, slots=True)
class ServoSeries:
    """What a program said of one clock against one source. All arrays have the same length, at least 1.

    Attributes:
        program: ptp4l, phc2sys, ts2phc, chrony-measurements, chrony-statistics, chrony-tracking,
            ntpd-loopstats, ntpd-peerstats, bw-ntp-user, bw-timed or w32tm.
        source: What the clock is compared with, as the program names it; with host, boot and process where
            a log has several.
        clock: Clock of `time_ns`: tai, or monotonic (CLOCK_MONOTONIC of the target: linuxptp stamps with it).
        time_ns: When, ns of `clock`.
        offset_ns: Positive: the target is ahead. chrony-tracking: with what chronyd is still slewing away.
        freq_ppb: Frequency error that the servo takes out; positive: the target's oscillator is fast. NaN
            where the program does not say. chrony-statistics: what is left of it after the correction.
        path_delay_ns: One way; round trips of NTP are halved. phc2sys: time that reading the clock took.
            NaN where the program does not say.
        state: linuxptp's s0, s1, s2; chrony's leap state, or mode and sources of time stamps.
    """

    program: str
    source: str
    clock: TimeBase
    time_ns: NDArray[np.int64]
    offset_ns: NDArray[np.int64]
    freq_ppb: NDArray[np.float64]
    path_delay_ns: NDArray[np.float64]
    state: tuple[str, ...]

    def clock_series(self) -> ClockSeries:
        """Return the offsets for statistics, cut at the gaps and where the servo says that it stepped."""
        steps = [int(t) + 1 for t, state in zip(self.time_ns, self.state, strict=True) if state == _STEPS]
        return ClockSeries.from_samples(self.time_ns, self.offset_ns, breaks_ns=steps)

    def parts(self) -> tuple[ServoSeries | None, ServoSeries | None]:
        """Return what was seen before the servo was locked, or while it was not, and while it was."""
        is_unlocked = np.array([state in UNLOCKED for state in self.state], bool)
        return self._chosen(is_unlocked), self._chosen(~is_unlocked)

    def _chosen(self, chosen: NDArray[np.bool_]) -> ServoSeries | None:
        if not chosen.any():
            return None
        return replace(
            self,
            time_ns=self.time_ns[chosen],
            offset_ns=self.offset_ns[chosen],
            freq_ppb=self.freq_ppb[chosen],
            path_delay_ns=self.path_delay_ns[chosen],
            state=tuple(state for state, wanted in zip(self.state, chosen, strict=True) if wanted),
        )


@dataclass(frozen=True, slots=True)
class PortChange:
    """A change of state of a PTP port; time in ns of CLOCK_MONOTONIC of `host`, as far as one is named."""

    time_ns: int
    port: int
    before: str
    after: str
    event: str
    host: str = ""


@dataclass(frozen=True, slots=True)
class RmsSummary:
    """A summary line of linuxptp; the largest of its offsets has no sign."""

    time_ns: int
    max_abs_ns: int
    host: str = ""


@dataclass(frozen=True, slots=True)
class ClockLog:
    """What a log holds.

    Attributes:
        series: One for each source, in the order in which they appear.
        port_changes: Changes of state of PTP ports.
        summaries: Summary lines of linuxptp.
        damaged: Lines that could not be read.
        damaged_lines: Numbers of the first 20 of them, from 1.
        other: Sound lines that hold no measurement: banners, messages.
        foreign: Lines of other programs, as a system's log has them.
    """

    series: tuple[ServoSeries, ...]
    port_changes: tuple[PortChange, ...]
    summaries: tuple[RmsSummary, ...]
    damaged: int
    damaged_lines: tuple[int, ...]
    other: int
    foreign: int = 0

    def left_out(self) -> str:
        """Return, in words, what of the log is in no series; empty: nothing but banners and messages."""
        said: list[str] = []
        if self.damaged:
            more = ", ..." if self.damaged > len(self.damaged_lines) else ""
            numbers = ", ".join(str(number) for number in self.damaged_lines)
            said.append(f"{self.damaged} damaged (line {numbers}{more})")
        if self.foreign:
            said.append(f"{self.foreign} of other programs")
        if self.summaries:
            said.append(f"{len(self.summaries)} summary lines, which have no sign")
        return f"lines left out: {'; '.join(said)}" if said else ""


@dataclass(slots=True)
class LogSample:
    """One observation of a log; fields are those of `ServoSeries`."""

    time_ns: int
    source: str
    offset_ns: int
    freq_ppb: float
    path_delay_ns: float
    state: str
    column: str = ""
    """The last number of its line with the spaces before it, where it tells whether the line was cut."""
    host: str = ""
    process: str = ""
    """Who wrote it where, as a system's log names them."""
    line: int = 0
    boot: int = 0


LogEntry: TypeAlias = LogSample | PortChange | RmsSummary | None


@dataclass(frozen=True, eq=False, slots=True)
class AlikeSamples:
    """Samples of lines that are alike but for their numbers.

    Attributes:
        first: One of them; source, state, host and process are those of all.
        places: Of their lines, from 0.
        values: Of each, as `LogSample` has them.
    """

    first: LogSample
    places: NDArray[np.int64]
    values: AlikeValues


@dataclass(frozen=True, eq=False, slots=True)
class AlikeValues:
    """What lines say that are alike. All arrays have the same length.

    `is_roomy`: the last number has two spaces before it, where that tells whether a line was cut.
    """

    time_ns: NDArray[np.int64]
    offset_ns: NDArray[np.int64]
    freq_ppb: NDArray[np.float64]
    path_delay_ns: NDArray[np.float64]
    is_roomy: NDArray[np.bool_]

    def chosen(self, wanted: NDArray[np.bool_]) -> AlikeValues:
        """Return what some of the lines say."""
        return AlikeValues(
            self.time_ns[wanted],
            self.offset_ns[wanted],
            self.freq_ppb[wanted],
            self.path_delay_ns[wanted],
            self.is_roomy[wanted],
        )


class AlikeForm(Protocol):
    """How lines of a format are read together: see `alike_lines.py`."""

    def pattern_of(self, line: str) -> Pattern | None:
        """Return what lines like this one share; None: it is read by itself."""
        ...

    def is_anothers(self, line: str) -> bool:
        """Say whether a line that was refused is refused whatever its numbers are."""
        ...

    def values(self, pattern: Pattern, data: NDArray[np.uint8]) -> tuple[AlikeValues, NDArray[np.bool_]]:
        """Return what lines say that are alike, and which can be read so, of their bytes: a row a column."""
        ...


class DamagedLineError(Exception):
    """Say that a line belongs to the format but cannot be read."""


class ForeignLineError(Exception):
    """Say that a line bears no mark of the format: another program wrote it."""


_Key: TypeAlias = tuple[str, str, int, str]
"""Source, host, boot and process of a series."""


def _words(key: _Key) -> tuple[str, str, str, str]:
    source, host, boot, process = key
    named = f", {host}" if host else "", f", boot {boot + 1}", f", process {process}" if process else ""
    return source, *named


@dataclass(slots=True)
class _Collector:
    """Gathers what the lines of a log hold."""

    samples: dict[_Key, list[LogSample]] = field(default_factory=dict[_Key, list[LogSample]])
    changes: list[PortChange] = field(default_factory=list[PortChange])
    summaries: list[RmsSummary] = field(default_factory=list[RmsSummary])
    damaged: list[int] = field(default_factory=list[int])
    other: int = 0
    foreign: int = 0
    boots: Counter[str] = field(default_factory=Counter[str])
    """How often each host has begun anew."""
    last_ns: dict[str, int] = field(default_factory=dict[str, int])
    """The latest time of each host since it booted, of a clock that starts with the machine."""
    alike: list[AlikeSamples] = field(default_factory=list[AlikeSamples])
    """Of a log of one boot alone."""

    def reboot(self, *hosts: str) -> None:
        """Begin another boot of hosts, unless nothing has been read of this one."""
        for host in hosts:
            self.boots[host] += self.last_ns.pop(host, None) is not None

    def keep_time(self, host: str, time_ns: int) -> None:
        """Take a host's uptime that begins anew for another boot of it."""
        last_ns = self.last_ns.get(host, time_ns)
        if time_ns < last_ns - DISORDER_NS:
            self.reboot(host)
            last_ns = time_ns
        self.last_ns[host] = max(last_ns, time_ns)

    def add(self, number: int, found: LogEntry) -> None:
        if isinstance(found, LogSample):
            found.line, found.boot = number, self.boots[found.host]
            key = found.source, found.host, found.boot, found.process
            if key not in self.samples:
                self.samples[key] = []
            self.samples[key].append(found)
        elif isinstance(found, PortChange):
            self.changes.append(found)
        elif isinstance(found, RmsSummary):
            self.summaries.append(found)
        else:
            self.other += 1

    def leave_out_cut(self) -> None:
        """Count lines as damaged that end within their last number: it is narrower than its column."""
        columns = Counter(
            len(each.column) for one in self.samples.values() for each in one if each.column.startswith("  ")
        )
        for many in self.alike:
            columns[len(many.first.column)] += int(many.values.is_roomy.sum())
        columns = +columns
        if not columns:
            return
        [(width, _lines)] = columns.most_common(1)
        cut = [each for each in self.alike if each.first.column and len(each.first.column) < width]
        self.damaged += [place + 1 for each in cut for place in each.places.tolist()]
        self.alike = [each for each in self.alike if each not in cut]
        for key, found in list(self.samples.items()):
            whole = [each for each in found if not each.column or len(each.column) >= width]
            self.damaged += [each.line for each in found if each.column and len(each.column) < width]
            self.samples[key] = whole
            if not whole:
                del self.samples[key]

    def log(self, program: str, clock: TimeBase) -> ClockLog:
        self.leave_out_cut()
        self.damaged.sort()
        alike: dict[_Key, list[AlikeSamples]] = {}
        for each in self.alike:
            alike.setdefault((each.first.source, each.first.host, 0, each.first.process), []).append(each)
        begins = {key: samples[0].line for key, samples in self.samples.items()}
        for key, many in alike.items():
            begins[key] = min(begins.get(key, INT64_MAX), *(int(each.places[0]) + 1 for each in many))
        keys = sorted(begins, key=lambda key: begins[key])
        differs = [len(set(words)) > 1 for words in zip(*keys, strict=True)]
        differs[:1] = [True]  # a source is always named
        return ClockLog(
            tuple(
                _series(
                    program,
                    clock,
                    "".join(compress(_words(key), differs)),
                    self.samples.get(key, []),
                    alike.get(key, []),
                )
                for key in keys
            ),
            tuple(self.changes),
            tuple(self.summaries),
            len(self.damaged),
            tuple(self.damaged[:_NAMED_LINES_MAX]),
            self.other,
            self.foreign,
        )


def _series(
    program: str, clock: TimeBase, source: str, samples: list[LogSample], alike: list[AlikeSamples]
) -> ServoSeries:
    """Return a series of samples that were read one by one and together, in the order of their lines."""
    line = np.array([each.line for each in samples], np.int64)
    order = np.argsort(np.concatenate([line, *(each.places + 1 for each in alike)]), kind="stable")
    states: list[str] = [each.state for each in samples]
    for many in alike:
        states += [many.first.state] * len(many.places)

    def whole(name: str) -> NDArray[np.int64]:
        own = np.array([getattr(each, name) for each in samples], np.int64)
        parts: list[NDArray[np.int64]] = [getattr(each.values, name) for each in alike]
        return np.concatenate([own, *parts])[order]

    def real(name: str) -> NDArray[np.float64]:
        own = np.array([getattr(each, name) for each in samples], np.float64)
        parts: list[NDArray[np.float64]] = [getattr(each.values, name) for each in alike]
        return np.concatenate([own, *parts])[order]

    return ServoSeries(
        program,
        source,
        clock,
        whole("time_ns"),
        whole("offset_ns"),
        real("freq_ppb"),
        real("path_delay_ns"),
        tuple(map(states.__getitem__, order)),
    )


def read_lines(
    text: str,
    program: str,
    clock: TimeBase,
    read_line: Callable[[str], LogEntry],
    form: AlikeForm | None = None,
) -> ClockLog:
    """Read a log line by line, and together what is alike.

    Args:
        text: The log.
        program: Who has written it.
        clock: Clock of its times.
        read_line: Returns what a line holds, None of a sound one without a measurement; raises
            DamagedLineError, ForeignLineError.
        form: How lines are read together; None: they are not.
    """
    collector = _Collector()
    is_no_text = any(each in text for each in "\x00\ufffd")
    lines = text.split("\n")
    left: Iterable[int] = range(len(lines))
    times: dict[str, list[tuple[int, int]]] = {}
    if form is not None and not is_no_text and len(lines) > LINES_MIN:
        left = _take_alike(collector, text, lines, read_line, form)
    for place in left:
        line, whole = lines[place].rstrip("\r "), place + 1 < len(lines)
        if not line.strip():
            continue
        try:
            if is_no_text and _NO_TEXT.search(line):
                raise DamagedLineError
            if line.startswith("-- ") and (journal := _JOURNALCTL.match(line)):
                if journal["boot"]:
                    if collector.alike:
                        return read_lines(text, program, clock, read_line)
                    collector.reboot(*collector.last_ns)
                raise ForeignLineError
            found = read_line(line)
            if not whole:
                raise DamagedLineError
            if isinstance(found, LogSample) and not (
                -INT64_MAX <= found.time_ns <= INT64_MAX and -INT64_MAX <= found.offset_ns <= INT64_MAX
            ):
                raise DamagedLineError
            if found is not None and clock == "monotonic":
                collector.keep_time(found.host, found.time_ns)
                times.setdefault(found.host, []).append((place, found.time_ns))
            collector.add(place + 1, found)
        except ForeignLineError:
            collector.foreign += 1
        except DamagedLineError:
            collector.damaged.append(place + 1)
    if collector.alike and clock == "monotonic" and not _is_of_one_boot(collector.alike, times):
        return read_lines(text, program, clock, read_line)
    return collector.log(program, clock)


def _take_alike(
    collector: _Collector,
    text: str,
    texts: list[str],
    read_line: Callable[[str], LogEntry],
    form: AlikeForm,
) -> list[int]:
    """Give a collector what lines hold that are alike, and return the places of all others."""
    lines = Lines(text)

    def read(
        line: str, pattern: Pattern, places: NDArray[np.int64], data: NDArray[np.uint8]
    ) -> NDArray[np.bool_] | None:
        try:
            first = read_line(line.rstrip("\r "))
        except (ForeignLineError, DamagedLineError) as error:
            if not form.is_anothers(line):
                return None
            if isinstance(error, ForeignLineError):
                collector.foreign += len(places)
            else:
                collector.damaged += (places + 1).tolist()
            return np.ones(len(places), bool)
        if not isinstance(first, LogSample):
            return None
        values, sound = form.values(pattern, data)
        if sound.any():
            collector.alike.append(AlikeSamples(first, places[sound], values.chosen(sound)))
        return sound

    take_alike(lines, texts, form.pattern_of, read)
    return lines.left()


def _is_of_one_boot(alike: Sequence[AlikeSamples], single: Mapping[str, Sequence[tuple[int, int]]]) -> bool:
    """Say whether a log has one boot of each host, for which its lines need no order.

    Args:
        alike: What was read together.
        single: Place and time of what was read line by line, by host.
    """
    times: dict[str, list[NDArray[np.int64]]] = {
        host: [np.array(found, np.int64)] for host, found in single.items()
    }
    for each in alike:
        times.setdefault(each.first.host, []).append(np.column_stack([each.places, each.values.time_ns]))
    for parts in times.values():
        found = np.concatenate(parts)
        time_ns = found[np.argsort(found[:, 0], kind="stable"), 1]
        if (time_ns < np.maximum.accumulate(time_ns) - DISORDER_NS).any():
            return False
    return True


_NO_TEXT = re.compile("[\x00\ufffd]")
"""What a loss of power, or bytes of another kind, leaves in a log."""
_JOURNALCTL = re.compile(r"-- (?:(?P<boot>Reboot|Boot [0-9a-f]+)|Logs begin|Journal begins|No entries)\b")
"""Lines that journalctl adds of itself."""


def nanoseconds(text: str) -> int:
    """Return a decimal number of seconds in whole ns; raises DamagedLineError beyond 64 bits."""
    try:
        value_ns = int((Decimal(text) * NS_PER_S).to_integral_value())
    except InvalidOperation as error:
        raise DamagedLineError from error
    if abs(value_ns) > INT64_MAX:
        raise DamagedLineError
    return value_ns
