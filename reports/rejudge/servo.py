# SPDX-License-Identifier: Apache-2.0
"""What a servo said of itself while a trial was measured, counted again in its log: docs/clock-sync.md.

Only in a log of one source whose lines are in order and all of the known form; signs: docs/clock-analysis.md.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from itertools import pairwise
from math import isfinite
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

NS_PER_S, NS_PER_MS = 1_000_000_000, 1_000_000
APART_NS = 1.0
"""Rounding of a decimal to whole ns, of half a round trip, of a mean."""
KNOWN = (
    "ptp4l", "phc2sys", "ts2phc", "chrony-measurements", "chrony-statistics", "chrony-tracking",
    "ntpd-loopstats", "ntpd-peerstats", "pmc", "bw-ntp-user", "bw-timed", "w32tm",
)  # fmt: skip
"""Formats of logs: docs/clock-analysis.md."""
OURS = {"bw-ntp-user": ("poll", "time_tai_ns"), "bw-timed": ("sync", "monotonic_ns")}
WORDS = {"chrony-measurements": 20, "chrony-statistics": 13}
"""Of a line of chrony's."""
LINUXPTP = re.compile(
    r"(ptp4l|phc2sys)\[(\d{1,9})\.(\d{3})\]: (\S+ )?(?:master|phc|sys) offset +(-?\d{1,18}) s\d freq +[-+]\d+"
    r"(?: (?:path )?delay +(-?\d{1,18}))?"
)

Json = Mapping[str, Any]


class Observation(NamedTuple):
    """A line: source, ns of the log's clock, offset ns, delay ns; positive: the target is ahead."""

    source: str
    time_ns: int
    offset_ns: float
    delay_ns: float | None


def servo_discrepancies(facts: Json, answer: Json, folder: Path) -> Iterator[str]:
    """Say where the summary of a servo is not that of its log.

    Args:
        facts: Of the trial.
        answer: Of the comparison: when it was measured.
        folder: Of the trial.
    """
    said, form = facts["servo"], facts["servo_format"]
    if said is None:
        return
    log = folder / facts["servo_log"]
    if form not in KNOWN or not log.is_file():
        yield f"the servo's log is {facts['servo_log']!r} of format {form!r}"
        return
    seen = _observations(log, form, answer["device"]["tai_utc_s"])
    if seen is None:
        return
    begin_ns = answer["start_tai_ns" if _is_tai(form) else "start_monotonic_ns"]
    end_ns = begin_ns + answer["elapsed_ns"]
    first = bisect_left(seen, begin_ns, key=lambda each: each.time_ns)
    last = bisect_right(seen, end_ns, key=lambda each: each.time_ns)
    # A stamp of whole seconds, or of when a line was written, leaves open on which side of an end it lies.
    spans = {
        (max(0, first + one), min(len(seen), last + other)) for one in (0, -1, 1) for other in (0, -1, 1)
    }
    if not any(_agree(said, _summary(seen[begin:end])) for begin, end in spans):
        for name, value in _summary(seen[first:last]).items():
            if not _is_near(name, said[name], value):
                yield f"servo.{name} is {said[name]}, its log has {value}"


def _summary(kept: Sequence[Observation]) -> dict[str, float | None]:
    """Return what some lines of a log come to."""
    delays = [each.delay_ns for each in kept if each.delay_ns is not None]
    return {
        "observations": len(kept),
        "mean_ns": fmean(each.offset_ns for each in kept) if kept else None,
        "max_abs_ns": max((abs(each.offset_ns) for each in kept), default=None),
        "mean_path_delay_ns": fmean(delays) if delays else None,
    }


def _agree(said: Json, found: Mapping[str, float | None]) -> bool:
    return all(_is_near(name, said[name], value) for name, value in found.items())


def _is_near(name: str, own: float | None, value: float | None) -> bool:
    if own is None or value is None:
        return own is value
    return abs(own - value) <= (0 if name == "observations" else APART_NS)


def _is_tai(form: str) -> bool:
    return form.startswith("chrony-") or form == "bw-ntp-user"


def _observations(log: Path, form: str, tai_utc_s: int) -> list[Observation] | None:
    """Return what a log has; None: it is none that is counted again here."""
    read = READERS.get(form)
    if read is None:
        return None
    text = log.read_text("utf-8", errors="replace")
    lines = text.split("\n")[:-1]  # a last line without its end is none
    seen = [read(line, form, tai_utc_s) for line in lines]
    found = [each for each in seen if isinstance(each, Observation)]
    is_odd = any(each is False for each in seen) or len({each.source for each in found}) > 1
    is_odd = is_odd or any(b.time_ns < a.time_ns for a, b in pairwise(found))
    return None if is_odd else found


def _of_linuxptp(line: str, form: str, _tai_utc_s: int) -> Observation | bool:
    found = LINUXPTP.fullmatch(line)
    if found is None or found[1] != form:
        # Of another form with the same words: not counted again.
        return " offset " not in line or found is not None
    time_ns = int(found[2]) * NS_PER_S + int(found[3]) * NS_PER_MS
    return Observation(found[4] or "", time_ns, int(found[5]), None if found[6] is None else int(found[6]))


def _of_chrony(line: str, form: str, tai_utc_s: int) -> Observation | bool:
    words = line.split()
    if not re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ", line):
        return True
    try:
        utc = datetime.strptime(line[:19], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
        time_ns = (int(utc.timestamp()) + tai_utc_s) * NS_PER_S
        if len(words) != WORDS[form] or not all(isfinite(float(each)) for each in words[11:13]):
            return False
        if form == "chrony-statistics":
            return Observation(words[2], time_ns, float(Decimal(words[4]) * NS_PER_S), None)
        offset_ns, delay_ns = (float(Decimal(words[place]) * NS_PER_S) for place in (11, 12))
    except (ArithmeticError, IndexError, ValueError):
        return False
    return Observation(words[2], time_ns, -offset_ns, delay_ns / 2)


def _of_ours(line: str, form: str, _tai_utc_s: int) -> Observation | bool:
    kind, clock = OURS[form]
    try:
        said = json.loads(line)
        if said["type"] != kind or said.get("offset_ns", "") is None or said.get("state") == "hold":
            return True
        half_ns = None if said["delay_ns"] is None else said["delay_ns"] / 2
        return Observation(said.get("server", ""), said[clock], said["offset_ns"] + 0, half_ns)
    except (LookupError, RecursionError, TypeError, ValueError):
        return False


READERS: Mapping[str, Callable[[str, str, int], Observation | bool]] = {
    "ptp4l": _of_linuxptp,
    "phc2sys": _of_linuxptp,
    "chrony-measurements": _of_chrony,
    "chrony-statistics": _of_chrony,
    "bw-ntp-user": _of_ours,
    "bw-timed": _of_ours,
}
"""True: a line that has no measurement; False: one that is not counted again."""
