# SPDX-License-Identifier: Apache-2.0
"""Logs of linuxptp's programs, 1 to 4, as series. The rules are those of `logs.py`."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reports.clock_sync.alike_lines import Number, Pattern, Sign, is_short, number_in, whole
from reports.clock_sync.logs import (
    AlikeValues,
    ClockLog,
    DamagedLineError,
    ForeignLineError,
    LogEntry,
    LogSample,
    PortChange,
    RmsSummary,
    read_lines,
)
from reports.units import NS_PER_MS, NS_PER_S


def read_ptp4l(text: str) -> ClockLog:
    """Read the messages of ptp4l, from its standard output (-m) or from syslog.

    Positive offsets already mean: client ahead; a positive freq: client fast (it is slowed down by so much).
    """
    return _read_linuxptp(text, "ptp4l", _MASTER_OFFSET)


def read_phc2sys(text: str) -> ClockLog:
    """Read the messages of phc2sys, with or without the delay of the readings.

    Offsets are target - source; `CLOCK_REALTIME phc` as source means: the system's clock against a PHC.
    """
    return _read_linuxptp(text, "phc2sys", _PHC_OFFSET)


def read_ts2phc(text: str) -> ClockLog:
    """Read the messages of ts2phc: a card's clock against the pulse that it gets; positive: it is ahead."""
    return _read_linuxptp(text, "ts2phc", _TS2PHC_OFFSET)


def _read_linuxptp(text: str, program: str, offset_form: re.Pattern[str]) -> ClockLog:
    return read_lines(
        text,
        program,
        "monotonic",
        lambda line: _linuxptp_line(line, program, offset_form),
        _Alike(program),
    )


_LINUXPTP = r"(?:ptp4l|phc2sys|ts2phc)(?:\[|: \[)"
_LINUXPTP_MARK = re.compile(r"(?:^|[\s/])(?P<program>ptp4l|phc2sys|ts2phc)(?:\[|: \[)")
_LINUXPTP_PREFIX = re.compile(
    rf"(?:(?P<before>(?:(?!{_LINUXPTP}).)+\s)?(?P<program>ptp4l|phc2sys|ts2phc)"
    r"(?:\[(?P<s>\d{1,9})\.(?P<ms>\d{3})\]:|(?:\[(?P<process>\d+)\])?: \[(?P<s2>\d{1,9})\.(?P<ms2>\d{3})\])"
    r"|\[(?P<s3>\d{1,9})\.(?P<ms3>\d{3})\])"
    r" (?P<message>.*)"
)
"""Without a program's name as `journalctl -o cat` has it."""
_HOST = re.compile(r"(?:^|.*\s)(?P<host>(?!\d+(?:\.\d+)?\s)[^\s:|\[\]]+)\s+(?:\|\s+)?")
"""What stands before a program: in a system's log a host after a time, in compose's a container and a bar."""
_TAG = r"(?:(?P<tag>\[[^\]]*\]|\S+) )?"
"""linuxptp's message_tag: before its messages as it is; some put brackets around it (print.c)."""
_SERVO = r" offset +(?P<offset>-?\d{1,19}) (?P<state>s\d) freq +(?P<freq>[+-]\d{1,12})"
_MASTER_OFFSET = re.compile(
    rf"{_TAG}(?P<source>master){_SERVO} path delay(?P<last> +(?P<delay>-?\d{{1,18}}))"
)
_PHC_OFFSET = re.compile(
    rf"{_TAG}(?P<source>(?:\S+ )?(?:phc|sys|pps)){_SERVO}(?: delay(?P<last> +(?P<delay>-?\d{{1,18}})))?"
)
_TS2PHC_OFFSET = re.compile(rf"{_TAG}(?P<source>\S+(?: master)?){_SERVO}(?: holdover)?(?P<last>)(?P<delay>)")
_RMS = re.compile(
    rf"{_TAG}(?:\S+ )?rms +\d{{1,18}} max +(?P<max>\d{{1,18}})"
    r" freq +[+-]\d{1,12} \+/- +\d{1,12}(?: delay +-?\d{1,18} \+/- +\d{1,18})?"
)
_PORT = re.compile(
    rf"{_TAG}port (?P<port>\d{{1,5}})(?: \([^)]*\))?: (?P<before>[A-Z_]+) to (?P<after>[A-Z_]+)"
    r" on (?P<event>[A-Z_]+)"
)
_SERVO_MARK = re.compile(r"\boffset +-?\d+ s\d freq\b")
"""So speaks the servo of each of linuxptp's programs."""
_LOOKS_LIKE_OURS = re.compile(
    r"(?:\S+ ){0,2}rms\b|.*\b(?:offset|delay) +[-+\d]|(?:\S+ )?port \d+[^:]*: [A-Z_]+ to\b"
)


@dataclass(frozen=True)
class _Alike:
    """Lines of offsets together; `numbers` of a pattern are seconds, milliseconds, offset, freq and delay."""

    program: str

    def pattern_of(self, line: str) -> Pattern | None:
        prefix = _LINUXPTP_PREFIX.fullmatch(line)
        if prefix is None:
            return None
        begin = prefix.start("message")
        for form in (_MASTER_OFFSET, _PHC_OFFSET, _TS2PHC_OFFSET):
            if found := form.fullmatch(prefix["message"]):
                break
        else:
            return None
        numbers = [
            Number(*prefix.span(name)) for name in ("s", "s2", "s3", "ms", "ms2", "ms3") if prefix[name]
        ]
        digits = [column for number in numbers for column in range(number.begin, number.end)]
        if prefix["before"] and (host := _HOST.fullmatch(prefix["before"])):
            # The time of a system's log, which nobody reads.
            digits += [column for column in range(host.start("host")) if line[column].isdigit()]
        for name, (sign, width_max) in _FIELDS.items():
            if found[name]:
                first, last = (begin + place for place in found.span(name))
                numbers.append(number_in(line, first, last, sign, width_max))
        if not all(map(is_short, numbers)):
            return None
        return Pattern(tuple(numbers), tuple(digits))

    def is_anothers(self, line: str) -> bool:
        prefix = _LINUXPTP_PREFIX.fullmatch(line)
        return prefix is not None and prefix["program"] not in (self.program, None)

    def values(self, pattern: Pattern, data: NDArray[np.uint8]) -> tuple[AlikeValues, NDArray[np.bool_]]:
        seconds, ms, offset_ns, freq_ppb, *delay = (
            whole(data[number.begin : number.end]) for number in pattern.numbers
        )
        always = np.ones(len(seconds), bool)
        values = AlikeValues(
            seconds * NS_PER_S + ms * NS_PER_MS,
            offset_ns,
            freq_ppb.astype(np.float64),
            delay[0].astype(np.float64) if delay else np.full(len(seconds), math.nan),
            data[pattern.numbers[-1].begin] == ord(" ") if delay else ~always,
        )
        return values, always


_FIELDS: dict[str, tuple[Sign, int]] = {
    "offset": ("minus", 15),
    "freq": ("always", 13),
    "delay": ("minus", 15),
}
"""Of each number its sign, and in how many columns it is read together with others."""


def _linuxptp_line(line: str, program: str, offset_form: re.Pattern[str]) -> LogEntry:
    prefix = _LINUXPTP_PREFIX.fullmatch(line)
    if prefix is None:
        mark = _LINUXPTP_MARK.search(line)
        is_ours = mark is not None and mark["program"] == program
        raise DamagedLineError if is_ours or (mark is None and _SERVO_MARK.search(line)) else ForeignLineError
    if prefix["program"] not in (program, None):
        raise ForeignLineError
    seconds = prefix["s"] or prefix["s2"] or prefix["s3"]
    ms = prefix["ms"] or prefix["ms2"] or prefix["ms3"]
    time_ns = int(seconds) * NS_PER_S + int(ms) * NS_PER_MS
    message, host = prefix["message"], _host(prefix["before"])
    if prefix["program"] is None and not _is_of(message, offset_form):
        raise ForeignLineError
    if found := offset_form.fullmatch(message):
        delay = float(found["delay"] or math.nan)
        offset_ns, freq_ppb = int(found["offset"]), float(found["freq"])
        column = found["last"] or ""
        return LogSample(
            time_ns,
            _source(found),
            offset_ns,
            freq_ppb,
            delay,
            found["state"],
            column,
            host,
            prefix["process"] or "",
        )
    if found := _RMS.fullmatch(message):
        return RmsSummary(time_ns, int(found["max"]), host)
    if found := _PORT.fullmatch(message):
        return PortChange(time_ns, int(found["port"]), found["before"], found["after"], found["event"], host)
    if _LOOKS_LIKE_OURS.match(message):
        raise DamagedLineError
    return None


def _is_of(message: str, offset_form: re.Pattern[str]) -> bool:
    """Tell whether a message without its program's name is one of a program, by the form of its offsets."""
    if _SERVO_MARK.search(message):
        return offset_form.fullmatch(message) is not None
    return offset_form is _MASTER_OFFSET and _LOOKS_LIKE_OURS.match(message) is not None


def _host(before: str | None) -> str:
    """Return the host that is named before a program; empty: none is."""
    found = _HOST.fullmatch(before) if before else None
    return found["host"] if found else ""


def _source(found: re.Match[str]) -> str:
    """Return tag and source of a line, as far as it has them."""
    tag = (found["tag"] or "").removeprefix("[").removesuffix("]")
    return f"{tag} {found['source']}" if tag else found["source"]
