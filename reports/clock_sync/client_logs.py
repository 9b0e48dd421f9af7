# SPDX-License-Identifier: Apache-2.0
"""Logs of clients as series: our own bw-ntp-user and bw-timed, and Windows' w32tm.

The rules are those of `logs.py`.
"""

from __future__ import annotations

import math
import re
from typing import Any, cast

from reports.clock_sync.logs import (
    INT64_MAX,
    ClockLog,
    DamagedLineError,
    ForeignLineError,
    LogEntry,
    LogSample,
    read_lines,
)
from reports.record.json_text import load_json
from reports.units import NS_PER_S


def read_ntp_user(text: str) -> ClockLog:
    """Read the log of bw-ntp-user: one JSON object a line, of which those of type `poll` are measurements.

    Its offset is + = client ahead, its delay the round trip of NTP (RFC 5905). Its freq_ppb is the correction
    in force (adjtimex: + = the clock is made faster than its oscillator), so its sign is turned here.
    """
    return read_lines(text, "bw-ntp-user", "tai", _ntp_user_line)


def _ntp_user_line(line: str) -> LogEntry:
    answer = _json_object(line)
    if answer["type"] != "poll":
        return None
    return _sample(answer, "time_tai_ns", -1)


def read_time_service(text: str) -> ClockLog:
    """Read the log of bw-timed: one JSON object a line, of which those of type `sync` are measurements.

    Its offset is what it had published less what the batch says, + = this clock ahead; its delay the round
    trip. Its freq_ppb is the rate of the counter against its nominal one, + = fast. No measurement is a batch
    before which nothing was published, and one in holdover, in which nobody was heard. Times are those of
    CLOCK_MONOTONIC: nobody keeps the system's clock there.
    """
    return read_lines(text, "bw-timed", "monotonic", _time_service_line)


def _time_service_line(line: str) -> LogEntry:
    answer = _json_object(line)
    if answer["type"] != "sync" or answer.get("offset_ns", "") is None or answer.get("state") == "hold":
        return None
    return _sample(answer, "monotonic_ns", 1)


def _sample(answer: dict[str, Any], time_key: str, freq_sign: int) -> LogSample:
    """Return what a line of one of our clients measured.

    Args:
        answer: The line.
        time_key: Where it has its time, in ns.
        freq_sign: Of its `freq_ppb`: -1 where that is a correction, and no error of a rate.

    Raises:
        DamagedLineError: A field is missing, or no such value can be.
    """
    state, source = answer.get("state"), answer.get("server", "server")
    if not isinstance(state, str) or not isinstance(source, str):
        raise DamagedLineError
    return LogSample(
        _whole(answer, time_key),
        source,
        _whole(answer, "offset_ns"),
        freq_sign * _real_or_nan(answer, "freq_ppb"),
        _real_or_nan(answer, "delay_ns") / 2,
        state,
    )


def _json_object(line: str) -> dict[str, Any]:
    """Return a line's JSON object; it has a type."""
    if not line.startswith("{"):
        raise ForeignLineError
    try:
        found: object = load_json(line)
    except (ValueError, RecursionError) as error:
        raise DamagedLineError from error
    answer = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    if not isinstance(answer.get("type"), str):
        raise DamagedLineError
    return answer


def _whole(answer: dict[str, Any], key: str) -> int:
    value = answer.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > INT64_MAX:
        raise DamagedLineError
    return value


def _real_or_nan(answer: dict[str, Any], key: str) -> float:
    """Return a finite number; NaN where the client wrote null. A key that is not there is damage."""
    value = answer.get(key, "")
    if value is None:
        return math.nan
    if not isinstance(value, int | float) or isinstance(value, bool) or abs(value) > INT64_MAX:
        raise DamagedLineError
    if not math.isfinite(value):
        raise DamagedLineError
    return float(value)


_STRIPCHART = re.compile(
    r"(?P<hours>\d{1,2}):(?P<minutes>\d{2}):(?P<seconds>\d{2})"
    r"(?:,|,? d:[+-]\d+[.,]\d+s o:)\s?"
    r"(?:(?P<sign>[+-])(?P<s>\d{1,9})[.,](?P<fraction>\d{1,9})s(?: +\[.*)?"
    r"|(?P<error>[^+\-\d].*0x[0-9A-Fa-f]+.*))"
)
"""With or without /dataonly; what stands before the number of an error is in the language of the system."""
_STRIPCHART_MARK = re.compile(r"\d{1,2}:\d{2}:\d{2}(?:,| d:)")
_S_A_DAY = 86_400


def read_stripchart(text: str) -> ClockLog:
    """Read the output of `w32tm /stripchart /dataonly` on Windows: its clock against an NTP server's.

    w32tm prints server - target, as NTP has it; here the sign is turned. It names the time of day alone:
    times are those since the first observation, of the target's own clock.
    """
    elapsed_s, last_s = 0, -1

    def read_line(line: str) -> LogEntry:
        nonlocal elapsed_s, last_s
        found = _STRIPCHART.fullmatch(line)
        if found is None:
            raise DamagedLineError if _STRIPCHART_MARK.match(line) else ForeignLineError
        if found["error"]:
            raise DamagedLineError
        seconds = 3600 * int(found["hours"]) + 60 * int(found["minutes"]) + int(found["seconds"])
        elapsed_s += (seconds - last_s) % _S_A_DAY if last_s >= 0 else 0
        last_s = seconds
        size_ns = int(found["s"]) * NS_PER_S + int(found["fraction"].ljust(9, "0"))
        offset_ns = -size_ns if found["sign"] == "+" else size_ns
        return LogSample(elapsed_s * NS_PER_S, "server", offset_ns, math.nan, math.nan, "measured")

    return read_lines(text, "w32tm", "monotonic", read_line)
