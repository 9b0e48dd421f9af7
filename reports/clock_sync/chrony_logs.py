# SPDX-License-Identifier: Apache-2.0
"""Log files of chrony 4.3 (chrony.conf(5), `log`) as series. The rules are those of `logs.py`."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from reports.clock_sync.alike_lines import Decimals, Number, Pattern, decimals, is_short, number_in, whole
from reports.clock_sync.logs import (
    PPB_PER_ONE,
    PPB_PER_PPM,
    AlikeValues,
    ClockLog,
    DamagedLineError,
    ForeignLineError,
    LogEntry,
    LogSample,
    nanoseconds,
    read_lines,
)
from reports.units import NS_PER_S

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
_CHRONY_MARK = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d +\S+ +[-+N?\d]")
_CHRONY_BANNER = re.compile(r"=+| +Date \(UTC\) Time .*")
_UNSYNCHRONISED = "?"


def read_chrony_measurements(text: str, tai_utc_s: int) -> ClockLog:
    """Read chrony's measurements.log (or rawmeasurements): one offset for each answer of a server.

    chrony's sign there is + = client behind: it is turned. Times have whole seconds of UTC.
    """

    def line_of(line: str) -> LogEntry:
        found = _chrony_line(line, _MEASUREMENT)
        if found is None:
            return None
        return LogSample(
            _tai_ns(found["time"], tai_utc_s),
            found["source"],
            -nanoseconds(found["offset"]),
            math.nan,
            nanoseconds(found["delay"]) / 2,
            found["state"],
        )

    return read_lines(text, "chrony-measurements", "tai", line_of, _Alike(_MEASUREMENT_WORDS, tai_utc_s))


def read_chrony_statistics(text: str, tai_utc_s: int) -> ClockLog:
    """Read chrony's statistics.log: the regression over a server's last measurements; + = client ahead."""

    def line_of(line: str) -> LogEntry:
        found = _chrony_line(line, _STATISTIC)
        if found is None:
            return None
        return LogSample(
            _tai_ns(found["time"], tai_utc_s),
            found["source"],
            nanoseconds(found["offset"]),
            float(found["freq"]) * PPB_PER_ONE,
            math.nan,
            "",
        )

    return read_lines(text, "chrony-statistics", "tai", line_of, _Alike(_STATISTIC_WORDS, tai_utc_s))


def read_chrony_tracking(text: str, tai_utc_s: int) -> ClockLog:
    """Read chrony's tracking.log: how far the clock is off when chronyd has worked out a new offset.

    Offset + = client ahead, frequency + = client fast. chronyd reckons its offset from where the clock will
    be once all that was found before is slewed away; what remains of that (`Rem. corr.`, + = client behind)
    is subtracted, so that a clock which still moves shows how far it is off. Lines of a clock that is not
    synchronised (leap state ?) hold no offset and count as other lines.
    """

    def line_of(line: str) -> LogEntry:
        found = _chrony_line(line, _TRACKING)
        if found is None or found["state"] == _UNSYNCHRONISED:
            return None
        return LogSample(
            _tai_ns(found["time"], tai_utc_s),
            found["source"],
            nanoseconds(found["offset"]) - nanoseconds(found["remaining"]),
            float(found["freq"]) * PPB_PER_PPM,
            nanoseconds(found["delay"]) / 2,
            found["state"],
        )

    return read_lines(text, "chrony-tracking", "tai", line_of, _Alike(_TRACKING_WORDS, tai_utc_s))


@dataclass(frozen=True)
class _Words:
    """Places of the words of a format's lines: of all, and of those that are read; None: it has none.

    Attributes:
        count: So many words has a line.
        sign: By which the offset is multiplied.
        freq_ppb: By which the frequency is multiplied.
        counts: Whole numbers that vary, and are not read.
    """

    count: int
    offset: int
    sign: int = 1
    remaining: int | None = None
    freq: int | None = None
    freq_ppb: int = 1
    delay: int | None = None
    counts: tuple[int, ...] = ()


_MEASUREMENT_WORDS = _Words(20, offset=11, sign=-1, delay=12)
_STATISTIC_WORDS = _Words(13, offset=4, freq=6, freq_ppb=PPB_PER_ONE, counts=(9, 10, 11))
_TRACKING_WORDS = _Words(14, offset=6, remaining=10, freq=4, freq_ppb=PPB_PER_PPM, delay=11)
_DATE_COLUMNS, _SOURCE_WORD = 19, 2
_WORD = re.compile(r"\S+")
_DECIMAL = re.compile(
    r"(?P<sign>[-+]?)(?P<whole>\d{1,12})\.(?P<fraction>\d{1,9})(?:e(?P<exponent>[-+]\d\d))?"
)
_WIDTH_MAX = 6
"""Columns of a number before its point: more are read by themselves."""


@dataclass(frozen=True)
class _Alike:
    """Lines of a format together; `numbers` of a pattern are its words with a point, in their order."""

    words: _Words
    tai_utc_s: int

    def pattern_of(self, line: str) -> Pattern | None:
        words = list(_WORD.finditer(line))
        if len(words) <= _SOURCE_WORD or not _CHRONY_MARK.match(line):
            return None
        numbers: list[Number] = []
        for place, word in enumerate(words):
            if place in self.words.counts and word[0].isdecimal():
                numbers.append(number_in(line, *word.span(), "none", _WIDTH_MAX))
            if place <= _SOURCE_WORD or not (found := _DECIMAL.fullmatch(word[0])):
                continue
            begin = word.start()
            parts = [
                (begin + found.start(name), begin + found.end(name)) if found[name] else None
                for name in ("fraction", "exponent")
            ]
            end = begin + found.end("whole")
            if place == len(words) - 1:  # its form is narrower
                number = Number(begin + found.start("whole"), end)
            else:
                number = number_in(line, begin, end, "any", _WIDTH_MAX)
            numbers.append(Number(number.begin, number.end, number.sign, *parts))
        digits = [column for column in range(_DATE_COLUMNS) if line[column].isdigit()]
        return Pattern(tuple(numbers), tuple(digits)) if all(map(is_short, numbers)) else None

    def is_anothers(self, line: str) -> bool:
        return len(line.split()) != self.words.count

    def values(self, pattern: Pattern, data: NDArray[np.uint8]) -> tuple[AlikeValues, NDArray[np.bool_]]:
        by_word = self._by_word(pattern, data)
        wanted = {self.words.offset, self.words.remaining, self.words.freq, self.words.delay} - {None}
        if not wanted <= by_word.keys():  # one is written without a point
            none = np.zeros(data.shape[1])
            whole_none = none.astype(np.int64)
            return AlikeValues(whole_none, whole_none, none, none, none > 0), none > 0
        offset = by_word[self.words.offset]
        sound = offset.fits(_NS)
        offset_ns = self.words.sign * offset.rounded(_NS)
        if self.words.remaining is not None:
            remaining = by_word[self.words.remaining]
            sound &= remaining.fits(_NS)
            offset_ns -= remaining.rounded(_NS)
        freq_ppb = np.full(len(sound), math.nan)
        if self.words.freq is not None:
            freq = by_word[self.words.freq]
            sound &= freq.fits(0)
            freq_ppb = freq.floats() * self.words.freq_ppb
        path_delay_ns = np.full(len(sound), math.nan)
        if self.words.delay is not None:
            delay = by_word[self.words.delay]
            sound &= delay.fits(_NS)
            path_delay_ns = delay.rounded(_NS) / 2
        time_ns, is_time = _times(data[:_DATE_COLUMNS], self.tai_utc_s)
        sound &= is_time
        return AlikeValues(time_ns, offset_ns, freq_ppb, path_delay_ns, np.zeros(len(sound), bool)), sound

    def _by_word(self, pattern: Pattern, data: NDArray[np.uint8]) -> dict[int, Decimals]:
        """Return the numbers by the place of their word."""
        line = data[:, 0].tobytes().decode("ascii", errors="replace")
        begins = [word.start() for word in _WORD.finditer(line)]
        return {
            bisect_right(begins, number.end - 1) - 1: decimals(data, number) for number in pattern.numbers
        }


_NS = 9
"""Power of ten of ns in a second."""


def _times(dates: NDArray[np.uint8], tai_utc_s: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return TAI in ns of dates as chrony writes them, and which of them are dates that fit into 64 bits."""
    year, month, day, hour, minute, second = (
        whole(dates[begin:end]) for begin, end in ((0, 4), (5, 7), (8, 10), (11, 13), (14, 16), (17, 19))
    )
    of_month = (12 * (year - 1970) + month - 1).astype("datetime64[M]")
    days = of_month.astype("datetime64[D]") + (day - 1)
    is_date = (month >= 1) & (month <= 12) & (day >= 1) & (days.astype("datetime64[M]") == of_month)
    is_date &= (hour < 24) & (minute < 60) & (second < 60) & (year >= 1700) & (year < 2260)
    utc_s = 86_400 * days.astype(np.int64) + 3600 * hour + 60 * minute + second
    return (utc_s + tai_utc_s) * NS_PER_S, is_date


def _chrony_line(line: str, form: re.Pattern[str]) -> re.Match[str] | None:
    """Return the match of a line, None of a banner."""
    if _CHRONY_BANNER.fullmatch(line):
        return None
    found = form.fullmatch(line)
    if found is None:
        raise DamagedLineError if _CHRONY_MARK.match(line) else ForeignLineError
    return found


def _tai_ns(utc: str, tai_utc_s: int) -> int:
    try:
        moment = datetime.strptime(utc, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
    except ValueError as error:
        raise DamagedLineError from error
    return (int(moment.timestamp()) + tai_utc_s) * NS_PER_S
