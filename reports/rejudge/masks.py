# SPDX-License-Identifier: Apache-2.0
"""Verdicts on a clock by a mask, worked out again from the series of its trial.

docs/clock-analysis.md, *Verdict by a mask*; docs/clock-sync.md, *Masks*. That the series is the one of the
offsets is looked at with the trial's other record, of its offset. Trials against two-way transfer have no
answer of `bw-clock compare` and are none of these.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from reports.rejudge.again import Record
from reports.rejudge.each import judge_each
from reports.rejudge.kept import is_before, kept_requirements
from reports.rejudge.latency import read_result
from reports.rejudge.mask_rows import Row, read_mask
from reports.rejudge.rounding import alike, slack_of
from reports.rejudge.server_replies import by_timecard_and_replies
from reports.rejudge.trial import FILTERED, Offset, comparison_of, facts_of, outcomes_of
from reports.rejudge.trial import WITNESS as WITNESS_FILE
from reports.rejudge.two_way import TARGET_FILE
from reports.rejudge.wander import (
    NS_PER_S,
    WINDOW_NS,
    WINDOWS_MIN,
    Point,
    Series,
    constant_error,
    low_passed,
    mtie,
    series_of,
    tdev,
)

FILE = "mask.csv"
MASKS = Path(__file__).resolve().parent.parent / "clock_sync" / "masks"
QUANTITIES = {
    "te": ("max_abs_te", "max_abs"),
    "te_l": ("max_abs_tel", "max_abs"),
    "cte": ("cte", "mean"),
    "mtie": ("mtie", "max"),
    "tdev": ("tdev", "deviation"),
    "dte_l_mtie": ("dte_l_mtie", "max"),
    "dte_l_tdev": ("dte_l_tdev", "deviation"),
}
"""Quantity of the mask, and statistic, by the quantity of a record."""
SINGLE = ("te", "te_l", "cte")
TDEV_PERIODS = 12
"""TDEV at tau needs a stretch of so many tau."""
TAU_TOLERANCE = 1.01
LEAST_NS = 1e-3
"""By so much two ways to work out a figure may differ: sums of offsets that are not whole are rounded."""

Json = Mapping[str, Any]
Range = tuple[float | None, float | None]
"""From which tau to which a requirement asks for its mask, s; None: where the mask begins or ends."""


@dataclass(frozen=True)
class Trial:
    """A trial of a clock: the answer of `bw-clock compare`, and what is known beside it."""

    answer: Json
    facts: Json
    witness: Json | None
    folder: Path

    @cached_property
    def offset(self) -> Offset:
        """What is known of a single offset."""
        return by_timecard_and_replies(self.answer, self.facts, self.folder)


@dataclass(frozen=True)
class Finding:
    """What a trial gives for a record, and whether it is as much as the mask asks for; None: unknown."""

    value: float | None
    limit_ns: float
    n: int
    n_required: int | None
    is_whole: bool | None = True


def mask_discrepancies(run: Path, records: Sequence[Record]) -> tuple[list[str], int]:
    """Work out value, limit, windows, each part of U and the verdict; see `judge_each`."""
    kept = kept_requirements(run)

    def judge(record: Record, file: Path) -> list[str] | None:
        trial = _trial_of(file)
        if trial is None:
            return None
        asked = [each for each in kept.get(record["requirement"], []) if each.get("mask")]
        wanted = [_taus(each) for each in asked]
        told = [*_differences(record, file, trial, wanted, is_before=is_before(run))]
        told += _mask_discrepancies(record, file, [str(each["mask"]) for each in asked])
        return [f"{record['quantity']}: {each}" for each in told]

    problems: list[str] = []
    count = 0
    for quantity in QUANTITIES:
        found, judged = judge_each(run, records, quantity, FILE, judge)
        problems += found
        count += judged
    return problems, count


def _mask_discrepancies(record: Record, file: Path, asked: Sequence[str]) -> Iterator[str]:
    """Hold the copy of a mask against those that come with the project, where its requirement names one."""
    quantity = QUANTITIES[record["quantity"]][0]
    known = [MASKS / f"{name}.csv" for name in asked if not name.endswith(".csv")]
    if (
        known
        and len(known) == len(asked)
        and read_mask(file, quantity) not in [read_mask(each, quantity) for each in known]
    ):
        yield f"its mask has other limits than {' or '.join(asked)}, which its requirement asks for"


def _taus(requirement: Json) -> Range:
    return requirement.get("mask_from_tau_s"), requirement.get("mask_to_tau_s")


def _trial_of(mask: Path) -> Trial | None:
    """Return the trial that a mask lies with; None: it was held against two-way transfer."""
    folder = mask.parent
    if (folder / TARGET_FILE).exists() and not (folder / FILTERED).exists():
        return None
    return Trial(comparison_of(folder), facts_of(folder), read_result(folder / WITNESS_FILE), folder)


def _differences(
    record: Record, mask: Path, trial: Trial, wanted: Sequence[Range], *, is_before: bool
) -> Iterator[str]:
    of_mask, statistic = QUANTITIES[record["quantity"]]
    name, rows = read_mask(mask, of_mask)
    clock = record["subject"].get("clock")
    if record["statistic"] != statistic:
        yield f"its statistic is {record['statistic']}"
    if clock != trial.facts["clock"]:
        yield f"is of clock {clock}, its trial of {trial.facts['clock']}"
    if not str(record["limit"]["source"]).startswith(f"mask {name}, {of_mask}"):
        yield f"the source of its limit is {record['limit']['source']!r}, its mask {name}"
    yield from _part_discrepancies(record, trial)
    candidates = [found for each in wanted or [None] for found in _found(record, trial.answer, rows, each)]
    told = [list(_value_discrepancies(record, found)) for found in candidates]
    if all(told):
        yield from told[0]
        return
    allowed: set[str] = set()
    for found, discrepancies in zip(candidates, told, strict=True):
        allowed |= set() if discrepancies else _outcomes(record, found, trial)
    if is_before and "fail" in allowed:
        allowed |= {"inconclusive"}
    if record["outcome"] not in allowed:
        yield f"{record['outcome']}, its series comes to {' or '.join(sorted(allowed))}"


def _part_discrepancies(record: Record, trial: Trial) -> Iterator[str]:
    """Hold U against that of one offset, as often as the quantity is moved by it."""
    quantity = record["quantity"]
    gain = 4 / math.sqrt(6) if quantity.endswith("tdev") else 2 if quantity.endswith("mtie") else 1
    parts = {name: value * gain for name, value in trial.offset.parts.items()}
    said = {part["name"]: part["value"] for part in record["uncertainty"]["parts"]}
    kinds = {part["kind"] for part in record["uncertainty"]["parts"]}
    if kinds != {"bound"} or said.keys() != parts.keys() or not all(alike(said[n], parts[n]) for n in parts):
        yield f"parts of U are {said}, the comparison says {parts}"


def _found(record: Record, answer: Json, rows: Sequence[Row], asked: Range | None) -> list[Finding]:
    """Return what the trial gives; of a curve several, where as little is left at several taus."""
    quantity, n = record["quantity"], answer["offset"]["n"]
    series = series_of(answer)
    if quantity == "te":
        ends = [end for end in (answer["offset"]["min_ns"], answer["offset"]["max_ns"]) if end is not None]
        farthest = max((abs(end) for end in ends), default=None)
        farthest_ends = [end for end in ends if abs(end) == farthest] or [None]
        return [Finding(end, rows[0].limit_ns, n, None) for end in farthest_ends]
    if quantity in SINGLE and series is None:
        return [Finding(None, rows[0].limit_ns, n, None)]
    if quantity == "te_l" and series is not None:
        filtered = low_passed(series)
        farthest = max((abs(offset) for _, offset in filtered.samples), default=None) if filtered else None
        return [Finding(farthest, rows[0].limit_ns, n, None)]
    if quantity == "cte" and series is not None:
        return [_constant(series, rows, asked)]
    return _of_curve(quantity, series, rows, asked)


def _constant(series: Series, rows: Sequence[Row], asked: Range | None) -> Finding:
    value, is_window, outside = constant_error(series)
    is_whole: bool | None = outside == 0
    if not is_window:
        to_s = None if asked is None else asked[1]
        wanted_s = WINDOW_NS / NS_PER_S if to_s is None else to_s
        is_whole = None if asked is None else series.length_s >= wanted_s
    return Finding(value, rows[0].limit_ns, len(series.samples), None, is_whole)


def _of_curve(
    quantity: str, series: Series | None, rows: Sequence[Row], asked: Range | None
) -> list[Finding]:
    first = rows[0]
    nothing = Finding(None, first.limit_at(first.end_s), 0, WINDOWS_MIN)
    if series is not None and quantity.startswith("dte_l_"):
        series = low_passed(series)
    points = _points(quantity, series, rows) if series is not None and series.samples else []
    if not points:
        return [nothing]
    is_whole: bool | None = None
    if asked is not None:
        low_s = first.above_s if asked[0] is None else asked[0]
        high_s = rows[-1].end_s if asked[1] is None else asked[1]
        begins = low_s <= 0 or points[0][0].tau_s / 2 <= low_s * TAU_TOLERANCE
        is_whole = begins and points[-1][0].tau_s * 2 > high_s
    least = min(limit - point.value_ns for point, limit in points)
    return [
        Finding(point.value_ns, limit, point.windows, WINDOWS_MIN, is_whole)
        for point, limit in points
        if limit - point.value_ns <= least + slack_of(limit, LEAST_NS)
    ]


def _points(quantity: str, series: Series, rows: Sequence[Row]) -> list[tuple[Point, float]]:
    """Return the taus that curve and mask share, each with its limit."""
    is_tdev = quantity.endswith("tdev")
    longest_ns = max(len(stretch) for stretch in series.stretches) * series.tau0_ns
    return [
        (point, row.limit_at(point.tau_s))
        for point in (tdev(series) if is_tdev else mtie(series))
        for row in rows
        if row.above_s < point.tau_s <= row.to_s
        and (not is_tdev or TDEV_PERIODS * point.tau_ns <= longest_ns)
    ]


def _value_discrepancies(record: Record, found: Finding) -> Iterator[str]:
    lower = -found.limit_ns if record["quantity"] in SINGLE else None
    for name, said, worked_out in (
        ("value", record["value"], found.value),
        ("limit", record["limit"]["upper"], found.limit_ns),
        ("lower limit", record["limit"]["lower"], lower),
        ("n", record["n"], found.n),
        ("n_required", record["n_required"], found.n_required or record["n_required"]),
    ):
        if not alike(said, worked_out, LEAST_NS):
            yield f"{name} is {said}, the series says {worked_out}"


def _outcomes(record: Record, found: Finding, trial: Trial) -> set[str]:
    """Return what a value may come to: on the edge of a limit on either side of it."""
    if found.value is None:
        return {"inconclusive" if trial.answer["offset"]["n"] else "unset"}
    slack = slack_of(found.value, LEAST_NS)
    outcomes: set[str] = set()
    for value in (found.value - slack, found.value, found.value + slack):
        offset = replace(trial.offset, value=value, n=found.n)
        outcomes |= outcomes_of(record, offset, trial.witness)
    if "pass" in outcomes and not found.is_whole:
        outcomes |= {"inconclusive"}
        outcomes -= {"pass"} if found.is_whole is False else set()
    return outcomes
