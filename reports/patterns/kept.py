# SPDX-License-Identifier: Apache-2.0
"""The patterns of a run, kept in its folder: searched for once, as it ends, and drawn from there ever after.

A search takes tenths of a second a series, a page is rendered often. The findings follow from the evidence
alone: `verify` searches again and compares. They change no verdict.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from reports.durable import replace_file
from reports.errors import RecordError, ReportError
from reports.latencies import Latencies, latencies_of_run
from reports.patterns.detect import detect
from reports.patterns.drawn import Drawn, drawn_of
from reports.patterns.drift import known_rates, tested_for_drift
from reports.patterns.finding import Finding
from reports.patterns.sentence import KINDS
from reports.patterns.series import LARGEST, PERIODS_MIN, VALUES_MIN, series_of
from reports.record.codec import from_json, omit_none, to_json
from reports.record.json_text import load_json
from reports.run.manifest import Manifest
from reports.units import NS_PER_MS, NS_PER_S

PATTERNS = "evidence/patterns/found.json"
SCHEMA = "benchwright.patterns/1"
SERIES_MAX = {"quick": 0, "ci": 16}
SERIES_MAX_ELSE = 96
"""How many series of a run are searched, by its profile, and in others: seconds of `ci`, half a minute."""
SAME = 0.01
"""Two searches on two machines may differ by their arithmetic: so much of a value."""
TINY = 1e-5
CHANCE = "false_alarms"
"""A tail of a distribution: not compared."""


@dataclass(frozen=True, slots=True)
class SearchedSeries:
    """A series that was searched.

    Attributes:
        place: Folder of the evidence, below `evidence`.
        name: Of what, `whole`.
        n: Values.
        length_s: From the first value to the last.
        findings: Its patterns, in ms and s.
        remarks: What of it was left out.
        drawn: What a plot shows of it; None: it has no pattern.
    """

    place: str
    name: str
    n: int
    length_s: float
    findings: tuple[Finding, ...]
    remarks: tuple[str, ...]
    drawn: Drawn | None = omit_none()  # noqa: RUF009 - it returns a field

    @property
    def longest_s(self) -> float:
        """Return the longest period that can be seen in it."""
        return self.length_s / PERIODS_MIN


@dataclass(frozen=True, slots=True)
class LeftOutSeries:
    """A series that was not searched, and why."""

    place: str
    name: str
    why: str


@dataclass(frozen=True, slots=True)
class RunPatterns:
    """The patterns of a run.

    Attributes:
        series_max: So many series were searched at most, by the profile.
        series: Those that were searched.
        left_out: Those that were not.
    """

    schema: str
    series_max: int
    series: tuple[SearchedSeries, ...]
    left_out: tuple[LeftOutSeries, ...]

    def to_bytes(self) -> bytes:
        """Return the file in the run folder."""
        return (json.dumps(to_json(self), ensure_ascii=False, allow_nan=False) + "\n").encode()


def search_run(run: Path, profile: str) -> RunPatterns | None:
    """Search the series of a run, as many as its profile takes; None: it has none, or the profile takes none.

    Of each measurement the first series is searched before the second of any.

    Args:
        run: The run folder.
        profile: Of the run.
    """
    most = SERIES_MAX.get(profile, SERIES_MAX_ELSE)
    every, problems = latencies_of_run(run) if most else ([], [])
    if not every:
        return None
    searched: list[SearchedSeries] = []
    left_out = [LeftOutSeries(text.partition(": ")[0], "", text.partition(": ")[2]) for text in problems]
    for each in _in_turn(every):
        if len(each.at_ns) < VALUES_MIN:
            why = f"fewer than {VALUES_MIN} values"
            left_out.append(LeftOutSeries(each.place, each.name, why))
        elif len(searched) >= most:
            left_out.append(LeftOutSeries(each.place, each.name, f"profile {profile} takes {most} series"))
        else:
            try:
                searched.append(_searched(each))
            except (ReportError, ArithmeticError, LookupError, ValueError) as error:
                left_out.append(LeftOutSeries(each.place, each.name, str(error)))
    return RunPatterns(SCHEMA, most, tuple(searched), tuple(left_out))


def _in_turn(every: Sequence[Latencies]) -> list[Latencies]:
    """Return the first series of each measurement, then the second of each, and so on."""
    count: dict[str, int] = {}
    rank: list[int] = []
    for each in every:
        rank.append(count.get(each.place, 0))
        count[each.place] = rank[-1] + 1
    return [every[place] for place in sorted(range(len(every)), key=lambda place: (rank[place], place))]


def _searched(each: Latencies) -> SearchedSeries:
    """Search one series; raises ReportError where it can tell nothing."""
    at_s = (each.at_ns - each.at_ns[:1]) / NS_PER_S
    series = series_of(at_s.astype(np.float64), each.value_ns / NS_PER_MS)
    found = detect(series)
    findings = found.findings
    if each.polled is not None:
        rates = known_rates(each.polled)
        findings = tuple(tested_for_drift(finding, rates) for finding in findings)
    drawn = drawn_of(series, findings) if findings else None
    searched = SearchedSeries(
        each.place, each.name, len(series.values), series.length_s, findings, found.remarks, drawn
    )
    to_json(searched)  # which refuses what is no number
    return searched


def keep_patterns(run: Path, profile: str) -> str:
    """Search a run that ends, and keep what is found in its folder.

    Returns:
        Why nothing is kept; empty: all went well. It raises nothing: no run fails by it.
    """
    try:
        found = search_run(run, profile)
        if found is not None:
            path = run / PATTERNS
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, found.to_bytes())
    except Exception as error:  # noqa: BLE001 - whatever damaged evidence comes to
        return f"{type(error).__name__}: {error}"
    return ""


def read_patterns(run: Path) -> RunPatterns | None:
    """Return what is kept of a run's patterns; None: it has not been searched.

    Raises:
        RecordError: The file is damaged.
    """
    try:
        data = (run / PATTERNS).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RecordError(f"{PATTERNS}: {error.strerror}") from error
    name = Path(PATTERNS).name
    try:
        decoded: object = load_json(data)
    except ValueError as error:
        raise RecordError(f"{name}: {error}") from error
    found = from_json(RunPatterns, decoded, name)
    if found.schema != SCHEMA:
        raise RecordError(f"{name}: schema {found.schema!r} is not {SCHEMA!r}")
    for series in found.series:
        for each in series.findings:
            if (needed := KINDS.get(each.kind)) is None or not needed <= each.parameters.keys():
                raise RecordError(
                    f"{name}: {series.place}: {each.kind!r} is no pattern, or lacks a parameter"
                )
            if not 0 <= each.false_alarms <= 1:
                raise RecordError(f"{name}: {series.place}: false alarms {each.false_alarms}: must be 0 to 1")
        _check_drawn(name, series)
    return found


def _check_drawn(name: str, series: SearchedSeries) -> None:
    """Refuse a plot whose times and values are not as many; raises RecordError."""
    drawn = series.drawn
    if drawn is None:
        if series.findings:
            raise RecordError(f"{name}: {series.place}: {series.name}: patterns without a plot")
        return
    pairs = [(drawn.times_s, drawn.values), (drawn.marked_s, drawn.marked)]
    pairs += [(each.times_s, each.values) for each in drawn.lines]
    if not drawn.times_s or any(len(one) != len(other) for one, other in pairs) or drawn.to_s <= drawn.from_s:
        raise RecordError(f"{name}: {series.place}: {series.name}: times and values of its plot do not match")
    if max(abs(each) for both in pairs for some in both for each in some) > LARGEST:
        raise RecordError(f"{name}: {series.place}: {series.name}: values of its plot above {LARGEST:g}")


def patterns_differ(run: Path, manifest: Manifest) -> list[str]:
    """Search a run again, and say in words what differs from what it keeps; nothing of one that keeps none.

    Raises:
        ReportError: What it keeps cannot be read.
    """
    kept = read_patterns(run)
    if kept is None:
        return []
    again = search_run(run, manifest.profile)
    if again is None:
        return [f"{PATTERNS}: nothing of the run can be searched"]
    return [f"{PATTERNS}: {place}: not what the data of the run gives" for place in _differ(kept, again)]


def _differ(kept: RunPatterns, again: RunPatterns) -> Iterator[str]:
    one, other = ({(s.place, s.name): s for s in each.series} for each in (kept, again))
    for key in dict.fromkeys([*one, *other]):
        if key not in one or key not in other or not _same(to_json(one[key]), to_json(other[key])):
            yield ": ".join(key)
    if len(one) != len(kept.series):
        yield "a series comes twice"
    if kept.series_max != again.series_max:
        yield "series_max"
    if not any(key not in other for key in one) and to_json(kept.left_out) != to_json(again.left_out):
        yield "left_out"


def _same(one: Any, other: Any) -> bool:
    """Tell whether JSON data says the same, but for arithmetic."""
    if isinstance(one, dict) and isinstance(other, dict):
        left, right = cast("Mapping[str, Any]", one), cast("Mapping[str, Any]", other)
        return left.keys() == right.keys() and all(
            name == CHANCE or _same(left[name], right[name]) for name in left
        )
    if isinstance(one, list) and isinstance(other, list):
        every, others = cast("list[Any]", one), cast("list[Any]", other)
        return len(every) == len(others) and all(map(_same, every, others))
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) <= max(TINY, SAME * max(abs(one), abs(other)))
    return one == other
