# SPDX-License-Identifier: Apache-2.0
"""Log files of chrony 4.3 (chrony.conf(5), `log`) as series. The rules are those of `logs.py`."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime

from reports.clock_sync.logs import (
    PPB_PER_ONE,
    PPB_PER_PPM,
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

    return read_lines(text, "chrony-measurements", "tai", line_of)


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

    return read_lines(text, "chrony-statistics", "tai", line_of)


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

    return read_lines(text, "chrony-tracking", "tai", line_of)


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
