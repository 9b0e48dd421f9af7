# SPDX-License-Identifier: Apache-2.0
"""Verdicts on timed edges, worked out again from their trials: docs/timed-edges.md, docs/reports.md.

Single edges are not kept: what a trial holds of them is its histogram with extremes and moments, and some
waveforms. These, the budgets and the software's answer are held against each other (`edge_trial`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from reports.rejudge.again import Record
from reports.rejudge.arithmetic import expanded
from reports.rejudge.each import judge_each
from reports.rejudge.edge_trial import TRIAL, EdgeTrial, Part
from reports.rejudge.edge_witnesses import WITNESSES, witness_discrepancies
from reports.rejudge.kept import is_before, kept_requirements
from reports.rejudge.requirements import LOST_PERCENT
from reports.rejudge.rounding import alike, slack_of
from reports.rejudge.rule import outcome_of

DELAY, OFFSET = "edge_delay", "sync_offset"
ORDER, SHIFT, AGREEMENT = "edge_deviation_difference", "edge_error_shift", "edge_witness_en"

Judge = Callable[[Record, Path], list[str] | None]


class _Trials:
    """Trials of a run, each read once; what is wrong with one is said once."""

    def __init__(self, run: Path) -> None:
        self._run = run
        self._told: set[Path] = set()

    def of(self, record: Record) -> list[EdgeTrial]:
        """Return the trials that a record names, in its order."""
        paths = [self._run / each["path"] for each in record["evidence"]]
        return [EdgeTrial(path.parent) for path in paths if path.name == TRIAL]

    def discrepancies(self, trials: Sequence[EdgeTrial]) -> Iterator[str]:
        """Say what is wrong with trials of which nothing was said yet."""
        for trial in trials:
            if trial.folder not in self._told:
                self._told.add(trial.folder)
                yield from (f"{trial.data['name']}: {each}" for each in trial.discrepancies())


def edge_discrepancies(run: Path, records: Sequence[Record]) -> tuple[list[str], int]:
    """Work out value, edges, loss, each part of U and the verdict; see `judge_each`."""
    trials = _Trials(run)
    kept = kept_requirements(run)

    def statistic(record: Record, _file: Path) -> list[str]:
        (trial,) = own = trials.of(record)
        wanted = kept.get(record["requirement"], [])
        return [*trials.discrepancies(own), *_statistic_discrepancies(record, trial, wanted, is_before(run))]

    def of_two(judge: Callable[[Record, EdgeTrial, EdgeTrial], Iterator[str]]) -> Judge:
        def judged(record: Record, _file: Path) -> list[str] | None:
            own = trials.of(record)
            if len(own) != 2:
                return None
            return [*trials.discrepancies(own), *judge(record, own[0], own[1])]

        return judged

    def agreement(record: Record, file: Path) -> list[str]:
        return [*trials.discrepancies(trials.of(record)), *witness_discrepancies(record, file)]

    problems: list[str] = []
    count = 0
    for quantity, name, judge in (
        (DELAY, TRIAL, statistic),
        (OFFSET, TRIAL, statistic),
        (ORDER, TRIAL, of_two(_order_discrepancies)),
        (SHIFT, TRIAL, of_two(_shift_discrepancies)),
        (AGREEMENT, WITNESSES, agreement),
    ):
        found, judged = judge_each(run, records, quantity, name, judge)
        problems += found
        count += judged
    return problems, count


def _statistic_discrepancies(
    record: Record, trial: EdgeTrial, wanted: Sequence[Mapping[str, Any]], is_before: bool
) -> Iterator[str]:
    """Hold the record of a method's delays, or of a clock's offset, against its trial."""
    statistic, n_required = record["statistic"], record["n_required"]
    value, n = trial.value(statistic, n_required) if record["quantity"] == DELAY else (None, trial.n)
    if record["quantity"] == OFFSET:
        value = trial.offset(statistic)
    parts = trial.parts(statistic)
    value = value if parts is not None else None
    subject = "method" if record["quantity"] == DELAY else "clock"
    lower = -record["limit"]["upper"] if statistic == "mean" else None
    is_open = is_before and value is None
    yield from _differences(
        {
            subject: (record["subject"].get(subject), trial.data[subject]),
            "value": (record["value"], value),
            "n": (record["n"], n),
            "lost": (record["lost"], record["lost"] if is_open else trial.lost),
            "lower limit": (record["limit"]["lower"], lower),
        }
    )
    yield from _part_discrepancies(record, parts)
    segments = trial.counts["segments"]
    shares = [each[name] for each in wanted for name in LOST_PERCENT if name in each]
    allowed = {int(segments * share / 100) for share in shares}
    if shares and record["allowed_lost"] not in allowed:
        yield f"{record['allowed_lost']} may be lost, its requirement allows {allowed} of {segments}"
    outcomes = _statistic_outcomes(record, trial, value, n)
    if is_before and "fail" in outcomes:
        outcomes |= {"inconclusive", "unset"}
    yield from _outcome_discrepancies(record, outcomes)


def _statistic_outcomes(record: Record, trial: EdgeTrial, value: float | None, n: int) -> set[str]:
    """Return what a value may come to: on the edge of a limit on either side of it."""
    lost, allowed = trial.lost, record["allowed_lost"]
    if value is None:
        return {"fail" if lost > allowed and not trial.is_doubtful else "unset"}
    if trial.is_doubtful:
        return {"inconclusive"}
    outcomes = {outcome_of(record, each, n) for each in _about(value)}
    is_undecided = lost <= allowed < lost + trial.at_border
    if not is_undecided:
        return outcomes
    open_ones = {"pass", "fail"} if record["statistic"] == "mean" else {"pass"}
    return {"inconclusive" if each in open_ones else each for each in outcomes}


def _order_discrepancies(record: Record, better: EdgeTrial, worse: EdgeTrial) -> Iterator[str]:
    """Hold the record of two methods' order against both trials."""
    budgets = [trial.parts("standard_deviation") for trial in (better, worse)]
    parts = None if None in budgets else [part for budget in budgets for part in budget or ()]
    value = None
    if better.delays is not None and worse.delays is not None and parts is not None:
        value = worse.delays["deviation_ns"] - better.delays["deviation_ns"]
    n = min(better.n, worse.n)
    yield from _differences(
        {
            "method": (record["subject"].get("method"), f"{better.data['method']}/{worse.data['method']}"),
            "value": (record["value"], value),
            "n": (record["n"], n),
            "upper limit": (record["limit"]["upper"], None),
            "lower limit": (record["limit"]["lower"], 0),
        }
    )
    yield from _part_discrepancies(record, parts)
    outcomes = {"unset"}
    if value is not None:
        outcomes = {outcome_of(record, each, n) for each in _about(value)}
        if better.is_doubtful or worse.is_doubtful:
            outcomes = {"inconclusive"}
    yield from _outcome_discrepancies(record, outcomes)


def _shift_discrepancies(record: Record, plain: EdgeTrial, wrong: EdgeTrial) -> Iterator[str]:
    """Hold the record of a mistake that has to show against the trials without and with it."""
    budgets = [trial.parts("mean") for trial in (plain, wrong)]
    if plain.delays is None or wrong.delays is None or None in budgets:
        yield from _differences({"value": (record["value"], None), "n": (record["n"], 0)})
        yield from _outcome_discrepancies(record, {"unset"})
        return
    means = [trial.value("mean", 1)[0] or 0.0 for trial in (plain, wrong)]
    put_in = wrong.data["correlation_error_ns"] - plain.data["correlation_error_ns"]
    value = means[1] - means[0] - put_in
    u = _expanded([part for budget in budgets for part in budget or ()])
    n = min(plain.n, wrong.n)
    methods = {plain.data["method"], wrong.data["method"]}
    if methods != {record["subject"].get("method")}:
        yield f"is of {record['subject'].get('method')}, its trials of {' and '.join(sorted(methods))}"
    yield from _differences(
        {
            "value": (record["value"], value),
            "n": (record["n"], n),
            "limit": (record["limit"]["upper"], u),
            "lower limit": (record["limit"]["lower"], -u),
        }
    )
    yield from _part_discrepancies(record, [])
    outcomes = {outcome_of(record, each, n) for each in _about(value)}
    is_doubtful = plain.is_doubtful or wrong.is_doubtful or u >= abs(put_in)
    yield from _outcome_discrepancies(record, _of_check(outcomes, is_doubtful=is_doubtful))


def _of_check(outcomes: set[str], *, is_doubtful: bool) -> set[str]:
    """A check of the bench by itself fails no target: what it does not pass is open."""
    found = {"inconclusive" if each == "fail" else each for each in outcomes}
    return {"inconclusive" if each == "pass" and is_doubtful else each for each in found}


def _about(value: float) -> tuple[float, float, float]:
    slack = slack_of(value)
    return value - slack, value, value + slack


def _expanded(parts: Sequence[Part]) -> float:
    return expanded([{"kind": kind, "value": value} for _, kind, value in parts])


def _differences(compared: Mapping[str, tuple[Any, Any]]) -> Iterator[str]:
    for name, (said, found) in compared.items():
        is_same = said == found if isinstance(found, str) else alike(said, found)
        if not is_same:
            yield f"{name} is {said}, the edges say {found}"


def _part_discrepancies(record: Record, parts: Sequence[Part] | None) -> Iterator[str]:
    """Hold the parts of U against those worked out; one name may stand for two trials."""
    said = sorted((part["name"], part["kind"], part["value"]) for part in record["uncertainty"]["parts"])
    found = sorted(parts or ())
    same = len(said) == len(found) and all(
        one[:2] == other[:2] and alike(float(one[2]), other[2])
        for one, other in zip(said, found, strict=True)
    )
    if not same:
        yield f"parts of U are {said}, the edges say {found}"


def _outcome_discrepancies(record: Record, allowed: set[str]) -> Iterator[str]:
    if record["outcome"] not in allowed:
        yield f"{record['outcome']}, the edges come to {' or '.join(sorted(allowed))}"
