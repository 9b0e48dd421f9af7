# SPDX-License-Identifier: Apache-2.0
"""Logs that somebody brings, of programs that no stack of the bench runs: ntpd's statistics, linuxptp's pmc.

The rules are those of `logs.py`. Forms: ntpd's monitoring options (`filegen`, loopstats and peerstats) and
pmc.c of linuxptp 3 and 4; neither was checked against a clock whose error is known.
"""

from __future__ import annotations

import math
import re

from reports.clock_sync.logs import (
    INT64_MAX,
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

_MJD_OF_1970 = 40_587
_S_A_DAY = 86_400
_DATE = r"(?P<mjd>\d{5}) (?P<s>\d{1,5}\.\d{1,6})"
_DATE_MARK = re.compile(r"\d{5} \d{1,5}\.\d{1,6} ")
_REAL = r"-?\d{1,9}\.\d{1,12}"
_LOOP = re.compile(rf"{_DATE} (?P<offset>{_REAL}) (?P<freq>{_REAL}) {_REAL} {_REAL} \d{{1,2}}")
_PEER = re.compile(
    rf"{_DATE} (?P<source>[\d.:a-fA-F]*[.:][\d.:a-fA-F]*) [0-9a-f]{{1,4}} (?P<offset>{_REAL})"
    rf" (?P<delay>{_REAL}) {_REAL} {_REAL}"
)


def read_loopstats(text: str, tai_utc_s: int) -> ClockLog:
    """Read ntpd's loopstats: what its discipline is off by, and the correction of the frequency in force.

    Its offset is server - client, + = client behind, its frequency what the clock is sped up by: both are
    turned. Times are days of MJD and seconds of UTC.
    """

    def line_of(line: str) -> LogEntry:
        found = _statistics(line, _LOOP)
        freq_ppb = -float(found["freq"]) * PPB_PER_PPM
        return LogSample(_tai_ns(found, tai_utc_s), "discipline", _offset_ns(found), freq_ppb, math.nan, "")

    return read_lines(text, "ntpd-loopstats", "tai", line_of)


def read_peerstats(text: str, tai_utc_s: int) -> ClockLog:
    """Read ntpd's peerstats: a line for each update of a server, + = client behind, which is turned."""

    def line_of(line: str) -> LogEntry:
        found = _statistics(line, _PEER)
        delay_ns = nanoseconds(found["delay"]) / 2
        time_ns = _tai_ns(found, tai_utc_s)
        return LogSample(time_ns, found["source"], _offset_ns(found), math.nan, delay_ns, "")

    return read_lines(text, "ntpd-peerstats", "tai", line_of)


def _statistics(line: str, form: re.Pattern[str]) -> re.Match[str]:
    found = form.fullmatch(line)
    if found is None:
        raise DamagedLineError if _DATE_MARK.match(line) else ForeignLineError
    return found


def _tai_ns(found: re.Match[str], tai_utc_s: int) -> int:
    days = int(found["mjd"]) - _MJD_OF_1970
    return (days * _S_A_DAY + tai_utc_s) * NS_PER_S + nanoseconds(found["s"])


def _offset_ns(found: re.Match[str]) -> int:
    return -nanoseconds(found["offset"])


_RESPONSE = re.compile(r"\s*(?P<port>[0-9a-f.]+-\d+) seq \d+ RESPONSE MANAGEMENT (?P<name>[A-Z_]+)")
_FIELD = re.compile(r"\s+(?P<name>[A-Za-z_]+)\s+(?P<value>\S+)")
_WHOLE = re.compile(r"-?\d{1,19}")


def read_pmc(text: str) -> ClockLog:
    """Read answers of `pmc` to GET TIME_STATUS_NP: the offset of the last Sync, at its ingress time.

    Positive offsets mean: client ahead, as ptp4l logs them. Other data sets bear no time.
    """
    port, name = "", ""
    offset_ns: int | None = None

    def line_of(line: str) -> LogEntry:
        nonlocal port, name, offset_ns
        if response := _RESPONSE.fullmatch(line):
            port, name, offset_ns = response["port"], response["name"], None
            return None
        field = _FIELD.fullmatch(line)
        if not port or field is None:
            raise ForeignLineError
        if name != "TIME_STATUS_NP":
            return None
        if field["name"] == "master_offset":
            offset_ns = _whole(field["value"])
        if field["name"] != "ingress_time":
            return None
        time_ns = _whole(field["value"])
        if not time_ns:  # no Sync has come yet
            return None
        if offset_ns is None:
            raise DamagedLineError
        return LogSample(time_ns, port, offset_ns, math.nan, math.nan, "")

    return read_lines(text, "pmc", "tai", line_of)


def _whole(text: str) -> int:
    if not _WHOLE.fullmatch(text) or abs(int(text)) > INT64_MAX:
        raise DamagedLineError
    return int(text)
