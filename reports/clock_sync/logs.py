# SPDX-License-Identifier: Apache-2.0
"""Logs of clock daemons as series: ptp4l, phc2sys, chrony's log files; others in `client_logs.py`.

All become the same form with the same signs, whatever the program writes. A line that belongs to the format
but is damaged is counted and left out, never guessed; so is a last line without its end. Formats: linuxptp
3.1 and 4, chrony 4.3 (chrony.conf(5), `log`), docs/clock-analysis.md for the signs and how they were checked.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from reports.clock_sync.series import ClockSeries
from reports.units import NS_PER_MS, NS_PER_S

TimeBase: TypeAlias = Literal["tai", "monotonic"]

PPB_PER_PPM = 1000
PPB_PER_ONE = 1_000_000_000
INT64_MAX = 2**63 - 1
_NAMED_LINES_MAX = 20


@dataclass(frozen=True, eq=False, slots=True)
class ServoSeries:
    """What a program said of one clock against one source. All arrays have the same length, at least 1.

    Attributes:
        program: ptp4l, phc2sys, chrony-measurements, chrony-statistics, chrony-tracking, bw-ntp-user,
            bw-timed or w32tm.
        source: What the clock is compared with, as the program names it.
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
        """Return the offsets for statistics, cut at the gaps."""
        return ClockSeries.from_samples(self.time_ns, self.offset_ns)


@dataclass(frozen=True, slots=True)
class PortChange:
    """A change of state of a PTP port; time in ns of CLOCK_MONOTONIC."""

    time_ns: int
    port: int
    before: str
    after: str
    event: str


@dataclass(frozen=True, slots=True)
class RmsSummary:
    """A summary line of linuxptp. Its offsets have no sign: root mean square and largest size, in ns."""

    time_ns: int
    source: str
    rms_ns: int
    max_abs_ns: int
    freq_ppb: float
    freq_stddev_ppb: float
    path_delay_ns: float
    path_delay_stddev_ns: float


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
    line: int = 0


Found: TypeAlias = LogSample | PortChange | RmsSummary | None


class DamagedLineError(Exception):
    """Say that a line belongs to the format but cannot be read."""


class _ForeignLineError(Exception):
    """Say that another program wrote a line."""


@dataclass(slots=True)
class _Collector:
    """Gathers what the lines of a log hold."""

    samples: dict[str, list[LogSample]] = field(default_factory=dict[str, list[LogSample]])
    changes: list[PortChange] = field(default_factory=list[PortChange])
    summaries: list[RmsSummary] = field(default_factory=list[RmsSummary])
    damaged: list[int] = field(default_factory=list[int])
    other: int = 0
    foreign: int = 0

    def add(self, number: int, found: Found) -> None:
        if isinstance(found, LogSample):
            found.line = number
            self.samples.setdefault(found.source, []).append(found)
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
        if not columns:
            return
        [(width, _lines)] = columns.most_common(1)
        for source, found in list(self.samples.items()):
            whole = [each for each in found if not each.column or len(each.column) >= width]
            self.damaged += [each.line for each in found if each.column and len(each.column) < width]
            self.samples[source] = whole
            if not whole:
                del self.samples[source]
        self.damaged.sort()

    def log(self, program: str, clock: TimeBase) -> ClockLog:
        self.leave_out_cut()
        return ClockLog(
            tuple(_series(program, clock, samples) for samples in self.samples.values()),
            tuple(self.changes),
            tuple(self.summaries),
            len(self.damaged),
            tuple(self.damaged[:_NAMED_LINES_MAX]),
            self.other,
            self.foreign,
        )


def _series(program: str, clock: TimeBase, samples: list[LogSample]) -> ServoSeries:
    return ServoSeries(
        program,
        samples[0].source,
        clock,
        np.array([sample.time_ns for sample in samples], np.int64),
        np.array([sample.offset_ns for sample in samples], np.int64),
        np.array([sample.freq_ppb for sample in samples], np.float64),
        np.array([sample.path_delay_ns for sample in samples], np.float64),
        tuple(sample.state for sample in samples),
    )


def read_lines(text: str, program: str, clock: TimeBase, read_line: Callable[[str], Found]) -> ClockLog:
    """Read a log line by line.

    Args:
        text: The log.
        program: Who has written it.
        clock: Clock of its times.
        read_line: Returns what a line holds, None of a sound one without a measurement; raises
            DamagedLineError.
    """
    collector = _Collector()
    for number, line, whole in _lines(text):
        try:
            if not whole:
                raise DamagedLineError
            collector.add(number, read_line(line))
        except _ForeignLineError:
            collector.foreign += 1
        except DamagedLineError:
            collector.damaged.append(number)
    return collector.log(program, clock)


def _lines(text: str) -> Iterator[tuple[int, str, bool]]:
    """Yield number, text and whether it is whole of each line that is not empty."""
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield number, line.rstrip("\r "), number < len(lines)


def read_ptp4l(text: str) -> ClockLog:
    """Read the messages of ptp4l, from its standard output (-m) or from syslog.

    Positive offsets already mean: client ahead; a positive freq: client fast (it is slowed down by so much).
    """
    return read_lines(text, "ptp4l", "monotonic", lambda line: _linuxptp_line(line, "ptp4l", _MASTER_OFFSET))


def read_phc2sys(text: str) -> ClockLog:
    """Read the messages of phc2sys, with or without the delay of the readings.

    Offsets are target - source; `CLOCK_REALTIME phc` as source means: the system's clock against a PHC.
    """
    return read_lines(text, "phc2sys", "monotonic", lambda line: _linuxptp_line(line, "phc2sys", _PHC_OFFSET))


_LINUXPTP = r"(?:ptp4l|phc2sys)(?:\[|: \[)"
_LINUXPTP_PREFIX = re.compile(
    rf"(?:(?:(?!{_LINUXPTP}).)+\s)?(?P<program>ptp4l|phc2sys)"
    r"(?:\[(?P<s>\d{1,9})\.(?P<ms>\d{3})\]:|(?:\[\d+\])?: \[(?P<s2>\d{1,9})\.(?P<ms2>\d{3})\])"
    r" (?P<message>.*)"
)
_FOREIGN = re.compile(
    r"(?:[A-Z][a-z]{2} [ \d]\d [\d:]{8}|\d{4}-\d\d-\d\dT\S+) \S+ [^\s:\[]+(?:\[\d+\])?: .*"
    r"|[a-z]\w+\[\d{1,9}\.\d{3}\]: .*"
)
"""Another program in a system's log, or another of linuxptp's (ts2phc, timemaster)."""
_TAG = r"(?:(?P<tag>\[[^\]]*\]|\S+) )?"
"""linuxptp's message_tag: before its messages as it is; some put brackets around it (print.c)."""
_SERVO = r" offset +(?P<offset>-?\d{1,18}) (?P<state>s\d) freq +(?P<freq>[+-]\d{1,12})"
_MASTER_OFFSET = re.compile(
    rf"{_TAG}(?P<source>master){_SERVO} path delay(?P<last> +(?P<delay>-?\d{{1,18}}))"
)
_PHC_OFFSET = re.compile(
    rf"{_TAG}(?P<source>\S+ (?:phc|sys|pps)){_SERVO}(?: delay(?P<last> +(?P<delay>-?\d{{1,18}})))?"
)
_RMS = re.compile(
    rf"{_TAG}(?:(?P<source>\S+) )?rms +(?P<rms>\d{{1,18}}) max +(?P<max>\d{{1,18}})"
    r" freq +(?P<freq>[+-]\d{1,12}) \+/- +(?P<freq_sd>\d{1,12})"
    r"(?: delay +(?P<delay>-?\d{1,18}) \+/- +(?P<delay_sd>\d{1,18}))?"
)
_PORT = re.compile(
    rf"{_TAG}port (?P<port>\d{{1,5}})(?: \([^)]*\))?: (?P<before>[A-Z_]+) to (?P<after>[A-Z_]+)"
    r" on (?P<event>[A-Z_]+)"
)
_LOOKS_LIKE_OURS = re.compile(
    r"(?:\S+ ){0,2}rms\b|.*\b(?:offset|delay) +[-+\d]|(?:\S+ )?port \d+[^:]*: [A-Z_]+ to\b"
)


def _linuxptp_line(line: str, program: str, offset_form: re.Pattern[str]) -> Found:
    prefix = _LINUXPTP_PREFIX.fullmatch(line)
    if prefix is None:
        raise _ForeignLineError if _FOREIGN.fullmatch(line) else DamagedLineError
    if prefix["program"] != program:
        raise _ForeignLineError
    time_ns = int(prefix["s"] or prefix["s2"]) * NS_PER_S + int(prefix["ms"] or prefix["ms2"]) * NS_PER_MS
    message = prefix["message"]
    if found := offset_form.fullmatch(message):
        delay = float(found["delay"] or math.nan)
        offset_ns, freq_ppb = int(found["offset"]), float(found["freq"])
        column = found["last"] or ""
        return LogSample(time_ns, _source(found), offset_ns, freq_ppb, delay, found["state"], column)
    if found := _RMS.fullmatch(message):
        return RmsSummary(
            time_ns,
            _source(found),
            int(found["rms"]),
            int(found["max"]),
            float(found["freq"]),
            float(found["freq_sd"]),
            float(found["delay"] or math.nan),
            float(found["delay_sd"] or math.nan),
        )
    if found := _PORT.fullmatch(message):
        return PortChange(time_ns, int(found["port"]), found["before"], found["after"], found["event"])
    if _LOOKS_LIKE_OURS.match(message):
        raise DamagedLineError
    return None


def _source(found: re.Match[str]) -> str:
    """Return tag and source of a line, as far as it has them."""
    tag = (found["tag"] or "").removeprefix("[").removesuffix("]")
    return " ".join(part for part in (tag, found["source"]) if part)


_DATE = r"(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)"
_REAL = r"[-+]?\d{1,12}(?:\.\d{1,9})?(?:e[-+]\d\d)?"
_MEASUREMENT = re.compile(
    rf"{_DATE} +(?P<source>\S+) +[N+?-] +\d+ +[01]{{3}} +[01]{{3}} +[01]{{4}} +-?\d+ +-?\d+ +{_REAL}"
    rf" +(?P<offset>{_REAL}) +(?P<delay>{_REAL}) +{_REAL} +{_REAL} +{_REAL} +[0-9A-F]{{8}}"
    r" +(?P<state>\d[BI] [DKH] [DKH])"
)
_STATISTIC = re.compile(
    rf"{_DATE} +(?P<source>\S+) +{_REAL} +(?P<offset>{_REAL}) +{_REAL} +(?P<freq>{_REAL}) +{_REAL} +{_REAL}"
    rf" +\d+ +\d+ +\d+ +-?\d{{1,3}}\.\d\d"
)
_TRACKING = re.compile(
    rf"{_DATE} +(?P<source>\S+) +\d+ +(?P<freq>{_REAL}) +{_REAL} +(?P<offset>{_REAL}) +(?P<state>[N+?-])"
    rf" +\d+ +{_REAL} +(?P<remaining>{_REAL}) +(?P<delay>{_REAL}) +{_REAL} +\d\.\d{{3}}e[-+]\d\d"
)
_CHRONY_BANNER = re.compile(r"=+| +Date \(UTC\) Time .*")
_UNSYNCHRONISED = "?"


def read_chrony_measurements(text: str, tai_utc_s: int) -> ClockLog:
    """Read chrony's measurements.log (or rawmeasurements): one offset for each answer of a server.

    chrony's sign there is + = client behind: it is turned. Times have whole seconds of UTC.
    """

    def line_of(line: str) -> Found:
        found = _chrony_line(line, _MEASUREMENT)
        if found is None:
            return None
        return LogSample(
            _tai_ns(found["time"], tai_utc_s),
            found["source"],
            -_scaled(found["offset"], NS_PER_S),
            math.nan,
            _scaled(found["delay"], NS_PER_S) / 2,
            found["state"],
        )

    return read_lines(text, "chrony-measurements", "tai", line_of)


def read_chrony_statistics(text: str, tai_utc_s: int) -> ClockLog:
    """Read chrony's statistics.log: the regression over a server's last measurements; + = client ahead."""

    def line_of(line: str) -> Found:
        found = _chrony_line(line, _STATISTIC)
        if found is None:
            return None
        return LogSample(
            _tai_ns(found["time"], tai_utc_s),
            found["source"],
            _scaled(found["offset"], NS_PER_S),
            float(found["freq"]) * PPB_PER_ONE,
            math.nan,
            "",
        )

    return read_lines(text, "chrony-statistics", "tai", line_of)


def read_chrony_tracking(text: str, tai_utc_s: int) -> ClockLog:
    """Read chrony's tracking.log: how far the clock is off when chronyd has worked out a new offset.

    Offset + = client ahead, frequency + = client fast. chronyd reckons its offset from where the clock will
    be once all that was found before is slewed away; what remains of that (`Rem. corr.`, + = client behind)
    is subtracted, so that a clock which still moves shows how far it is off. Lines of a clock that is not
    synchronised (leap state ?) hold no offset and count as other lines.
    """

    def line_of(line: str) -> Found:
        found = _chrony_line(line, _TRACKING)
        if found is None or found["state"] == _UNSYNCHRONISED:
            return None
        return LogSample(
            _tai_ns(found["time"], tai_utc_s),
            found["source"],
            _scaled(found["offset"], NS_PER_S) - _scaled(found["remaining"], NS_PER_S),
            float(found["freq"]) * PPB_PER_PPM,
            _scaled(found["delay"], NS_PER_S) / 2,
            found["state"],
        )

    return read_lines(text, "chrony-tracking", "tai", line_of)


def _chrony_line(line: str, form: re.Pattern[str]) -> re.Match[str] | None:
    """Return the match of a line, None of a banner."""
    if _CHRONY_BANNER.fullmatch(line):
        return None
    found = form.fullmatch(line)
    if found is None:
        raise DamagedLineError
    return found


def _tai_ns(utc: str, tai_utc_s: int) -> int:
    try:
        moment = datetime.strptime(utc, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
    except ValueError as error:
        raise DamagedLineError from error
    return (int(moment.timestamp()) + tai_utc_s) * NS_PER_S


def _scaled(text: str, factor: int) -> int:
    """Return a decimal number times a factor, as a whole number."""
    try:
        value = int((Decimal(text) * factor).to_integral_value())
    except InvalidOperation as error:
        raise DamagedLineError from error
    if abs(value) > INT64_MAX:
        raise DamagedLineError
    return value
