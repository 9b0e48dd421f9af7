# SPDX-License-Identifier: Apache-2.0
"""Whether a stack heard its server while it was measured: docs/clock-sync.md, `A silent server`.

A trial that names no log asks not: those of earlier versions do not, nor those that cut the stack off.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from reports.rejudge.answers import read_lines
from reports.rejudge.trial import Offset, by_timecard

INTERVALS = 8
LEAST_S = 10
NS_PER_S = 1_000_000_000
NS_PER_MS = 1_000_000
CHRONY = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) +\S+ +[-+N?\d].*")
LINUXPTP = re.compile(
    r"(?:.*\s)?(ptp4l|phc2sys)\[(\d{1,9})\.(\d{3})\]: .*\b(?:master|phc|sys) offset +-?\d+ s\d freq .*"
)
NDJSON: Mapping[str, tuple[str, str]] = {
    "bw-ntp-user": ("poll", "time_tai_ns"),
    "bw-timed": ("sync", "monotonic_ns"),
}
"""Type of the lines of answers, and where they have their time."""

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Span:
    """When a clock was measured, in ns; None: not known in that clock."""

    begin_tai_ns: int
    begin_monotonic_ns: int | None
    elapsed_ns: int
    tai_utc_s: int


def span_of(answer: Json) -> Span:
    """Return when a comparison with a timecard was."""
    begin_ns, utc_s = answer["start_tai_ns"], answer["device"]["tai_utc_s"]
    return Span(begin_ns, answer.get("start_monotonic_ns"), answer["elapsed_ns"], utc_s)


def by_timecard_and_replies(answer: Json, facts: Json, folder: Path) -> Offset:
    """Return what a comparison with a timecard says of an offset, in the light of what its stack heard."""
    return in_light_of_replies(by_timecard(answer, facts), facts, span_of(answer), folder)


def in_light_of_replies(found: Offset, facts: Json, span: Span, folder: Path) -> Offset:
    """Return what is known of an offset in the light of what its stack heard: it may be in doubt by that."""
    return replace(found, is_doubtful=found.is_doubtful or is_server_silent(facts, span, folder))


def is_server_silent(facts: Json, span: Span, folder: Path) -> bool:
    """Say whether the server of a trial's stack was silent for longer than its client can bear."""
    hearing = facts.get("hearing")
    if hearing is None:
        return False
    most_ns = max(LEAST_S, INTERVALS * (facts["interval_s"] or 0)) * NS_PER_S
    return _longest_silence_ns(folder / hearing["log"], hearing["format"], span) > most_ns


def _longest_silence_ns(log: Path, form: str, span: Span) -> int:
    text = log.read_text("utf-8", errors="replace") if log.exists() else ""
    times_ns = sorted(_answers(log, text, form, span.tai_utc_s))
    is_tai = form.startswith("chrony-") or NDJSON.get(form, ("", ""))[1] == "time_tai_ns"
    begin_ns = span.begin_tai_ns if is_tai else span.begin_monotonic_ns
    if not times_ns:
        return span.elapsed_ns
    if begin_ns is None:
        begin_ns = times_ns[-1] - span.elapsed_ns
    end_ns = begin_ns + span.elapsed_ns
    replies_ns = [begin_ns, *(each for each in times_ns if begin_ns < each < end_ns), end_ns]
    return max(after - before for before, after in pairwise(replies_ns))


def _answers(log: Path, text: str, form: str, tai_utc_s: int) -> Iterator[int]:
    """Yield the time of each answer, ns of the log's clock.

    Raises:
        ValueError: Nobody knows the format.
    """
    if form in NDJSON:
        kind, key = NDJSON[form]
        for line in read_lines(log, kind):
            if line.get("type") == kind and line.get("state") != "hold" and line.get("offset_ns") is not None:
                yield int(line[key])
    elif form in ("ptp4l", "phc2sys"):
        for line in text.splitlines():
            found = LINUXPTP.fullmatch(line)
            if found and found[1] == form:
                yield int(found[2]) * NS_PER_S + int(found[3]) * NS_PER_MS
    elif form in ("chrony-statistics", "chrony-measurements"):
        for line in text.splitlines():
            if found := CHRONY.fullmatch(line):
                utc = datetime.strptime(found[1], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
                yield (int(utc.timestamp()) + tai_utc_s) * NS_PER_S
    else:
        raise ValueError(f"{log.name}: a log of format {form}, whose answers nobody counts again")
