# SPDX-License-Identifier: Apache-2.0
"""What an asymmetric path does to a clock, worked out again from pairs of trials: docs/clock-sync.md."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from reports.rejudge.again import Record
from reports.rejudge.each import judge_each
from reports.rejudge.rule import limit_discrepancies, outcome_of, part_discrepancies, value_discrepancies
from reports.rejudge.server_replies import is_server_silent, span_of
from reports.rejudge.trial import (
    FILTERED,
    TRIAL,
    comparison_discrepancies,
    comparison_of,
    facts_of,
    subject_discrepancies,
)

QUANTITY = "path_shift"
COVERAGE = 0.95
PAIRS_MIN = 3
SAYS = "its pairs say"
PLACE = re.compile(r"pair-(\d{1,9})-(\d{1,9})-us")

Pair = tuple[Path, Path]


def path_shift_discrepancies(run: Path, records: Sequence[Record]) -> tuple[list[str], int]:
    """Work out the shift over all pairs, and where it may lie; see `judge_each`."""

    def judge(record: Record, _file: Path) -> list[str] | None:
        places = [run / each["path"] for each in record["evidence"]]
        folders = dict.fromkeys(path.parent for path in places if path.name == TRIAL)
        pairs, set_us = _pairs(folders)
        if pairs is None:
            return None
        told: list[str] = []
        for folder in folders:
            told += [f"{folder.name}: {each}" for each in comparison_discrepancies(comparison_of(folder))]
        told += subject_discrepancies(record, facts_of(pairs[0][1]))
        told += _unlike_discrepancies(pairs)
        return [*told, *_differences(record, pairs, set_us)]

    return judge_each(run, records, QUANTITY, FILTERED, judge)


def _unlike_discrepancies(pairs: Sequence[Pair]) -> Iterator[str]:
    """Say where trials differ by more than their path."""
    facts = [facts_of(folder) for pair in pairs for folder in pair]
    for name in ("clock", "kind", "interval_s", "load", "device", "timecard"):
        seen = [each.get(name) for each in facts]
        if any(each != seen[0] for each in seen):
            yield f"{name} of its trials is {seen}"


def _pairs(folders: Mapping[Path, None]) -> tuple[list[Pair] | None, int]:
    """Return pairs of trials without and with the delay, and that in us; None: their names do not say."""
    found: dict[int, dict[int, Path]] = {}
    for folder in folders:
        name = PLACE.fullmatch(folder.name)
        if name is None:
            return None, 0
        found.setdefault(int(name[1]), {})[int(name[2])] = folder
    delays_us = {delay_us for pair in found.values() for delay_us in pair} - {0}
    if len(delays_us) != 1 or any(len(pair) != 2 for pair in found.values()):
        return None, 0
    delay_us = delays_us.pop()
    return [(found[number][0], found[number][delay_us]) for number in sorted(found)], delay_us


def _differences(record: Record, pairs: Sequence[Pair], set_us: int) -> Iterator[str]:
    n = len(pairs)
    if n < PAIRS_MIN:
        yield f"{n} pairs of trials, at least {PAIRS_MIN} are needed"
        return
    shifts_ns = [_mean_ns(after) - _mean_ns(before) for before, after in pairs]
    half_ns = _half_ns(shifts_ns)
    expected_ns = [-each / 2 for each in _asymmetries_ns(pairs, set_us * 1000)]
    centre_ns = mean(expected_ns)
    away_ns = _half_ns([shift - each for shift, each in zip(shifts_ns, expected_ns, strict=True)])
    shift_ns = round(mean(shifts_ns))
    if record["value"] is not None and abs(record["value"] - shift_ns) <= 1:
        shift_ns = record["value"]  # rounded the other way
    yield from value_discrepancies(record, shift_ns, n, SAYS)
    yield from part_discrepancies(record, {}, SAYS)
    # The interval has to hold what is expected, and not 0.
    sign = 1 if centre_ns > 0 else -1
    near_ns, far_ns = max(abs(centre_ns) - away_ns, half_ns), abs(centre_ns) + away_ns
    sides = sorted((sign * near_ns, sign * far_ns))
    yield from limit_discrepancies(record, sides[1], sides[0], "the 95 % interval gives")
    is_answered = not any(_is_server_silent(folder) for pair in pairs for folder in pair)
    wanted = "pass" if outcome_of(record, shift_ns, n) == "pass" and is_answered else "inconclusive"
    if record["outcome"] != wanted:
        yield f"{record['outcome']}, its pairs come to {wanted}"


def _half_ns(values_ns: Sequence[float]) -> float:
    return student_t(len(values_ns) - 1) * stdev(values_ns) / math.sqrt(len(values_ns))


def _asymmetries_ns(pairs: Sequence[Pair], set_ns: float) -> list[float]:
    """Return by how much each pair's path differs between its ways: as captures of both ways saw it.

    Earlier versions saw one way and took the mean of all pairs. Where a pair was not seen: what was set.
    """
    both, one = (_seen_ns(pairs, name) for name in ("asymmetry_ns", "server_to_target_ns"))
    if both is not None:
        return both
    return [set_ns if one is None else mean(one)] * len(pairs)


def _seen_ns(pairs: Sequence[Pair], name: str) -> list[float] | None:
    seen: list[float] = []
    for pair in pairs:
        without_ns, with_ns = (facts_of(folder).get(name) for folder in pair)
        if without_ns is None or with_ns is None:
            return None
        seen.append(with_ns - without_ns)
    return seen


def _is_server_silent(folder: Path) -> bool:
    return is_server_silent(facts_of(folder), span_of(comparison_of(folder)), folder)


def _mean_ns(folder: Path) -> float:
    answer: Mapping[str, Any] = comparison_of(folder)
    return float(answer["offset"]["mean_ns"])


def student_t(freedom: int, coverage: float = COVERAGE) -> float:
    """Return Student's t that holds so much on both sides; Abramowitz and Stegun, 26.7.3 and 26.7.4."""
    low, high = 0.0, 1.0
    while _within(high, freedom) < coverage:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < coverage else (low, middle)
    return (low + high) / 2


def _within(t: float, freedom: int) -> float:
    """Return the probability that |T| is at most t."""
    angle = math.atan(t / math.sqrt(freedom))
    term = total = 0.0
    if freedom % 2:
        term = total = math.cos(angle) if freedom > 1 else 0.0
        for k in range(2, freedom - 2, 2):
            term *= k / (k + 1) * math.cos(angle) ** 2
            total += term
        return 2 / math.pi * (angle + math.sin(angle) * total)
    term = total = 1.0
    for k in range(1, freedom - 2, 2):
        term *= k / (k + 1) * math.cos(angle) ** 2
        total += term
    return math.sin(angle) * total
