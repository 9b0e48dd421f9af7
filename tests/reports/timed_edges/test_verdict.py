# SPDX-License-Identifier: Apache-2.0
"""Verdicts on timed edges: statistics, clocks, order, a mistake that has to show, witnesses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from reports.quantities import INSTRUMENT_CHECKS
from reports.record.context import Context
from reports.record.measurement import Conditions, Limit, Measurement, Subject
from reports.run.tally import overall
from reports.timed_edges.capability import DEVIATION, MAX_ABS, MEAN, OFFSET_QUANTITY, PEAK_TO_PEAK, QUANTITY
from reports.timed_edges.trial import BudgetPart, Budgets, Counts, EdgeTrial, Witness, Witnesses
from reports.timed_edges.verdict import (
    edge_limit,
    edge_measurement,
    order_measurement,
    shift_measurement,
    uncertainty_of,
    unmeasured_edges,
    witness_en,
    witness_measurements,
)
from tests.reports.sample_edges import drawn_trial, latch_delays, measured_trial, sample_witnesses

CONTEXT = Context("run", "Test", Subject("virtual", "linux-rt"), Conditions("ci"), True, ())
PARTS = (BudgetPart("noise", "standard", 0.3), BudgetPart("skew", "bound", 0.4))
U_NS = 1.0


def _trial(mean_ns: float = 5.0, n: int = 2000, **changes: Any) -> EdgeTrial:
    """Return a trial of delays from -10 to 10 ns about a mean, with U = 1 ns of each statistic."""
    delays_ns = np.tile(np.linspace(-10, 10, 101), n // 101 + 1)[:n]
    trial = drawn_trial(delays_ns - delays_ns.mean() + mean_ns, "tgpio-latch")
    return replace(trial, **{"budgets": Budgets(PARTS, PARTS, PARTS), **changes})


def _judge(trial: EdgeTrial, statistic: str, limit_ns: float, **others: Any) -> Measurement:
    limit = edge_limit(statistic, limit_ns, "a source")
    return edge_measurement(
        trial, QUANTITY, statistic, "EDGE", limit, others.pop("n_required", 1000), CONTEXT, **others
    )


@pytest.mark.parametrize(
    ("statistic", "value_ns", "n"),
    [(MEAN, 5.0, 2000), (DEVIATION, 5.83, 2000), (PEAK_TO_PEAK, 20.0, 1000)],
)
def test_each_statistic_passes_fails_and_is_undecided_by_its_u(
    statistic: str, value_ns: float, n: int
) -> None:
    record = _judge(_trial(), statistic, value_ns + 2)
    assert record.quantity == QUANTITY
    assert record.value == pytest.approx(value_ns, rel=0.01)
    assert record.n == n
    assert record.uncertainty.expanded == pytest.approx(U_NS)
    assert [_judge(_trial(), statistic, value_ns + more).outcome for more in (2, 0.5, -2)] == [
        "pass",
        "inconclusive",
        "fail",
    ]


def test_a_mean_is_limited_to_both_sides_and_corrected() -> None:
    assert _judge(_trial(-5.0), MEAN, 3).outcome == "fail"
    corrected = _judge(_trial(-5.0, correction_ns=-4.5), MEAN, 3)
    assert (corrected.value, corrected.outcome) == (pytest.approx(-0.5), "pass")


def test_a_peak_to_peak_of_all_stands_where_that_of_fewer_was_not_kept() -> None:
    record = _judge(_trial(), PEAK_TO_PEAK, 100, n_required=1500)
    assert (record.n, record.outcome) == (2000, "pass")


def test_too_few_edges_do_not_pass_but_an_extreme_over_its_limit_fails() -> None:
    assert _judge(_trial(n=500), DEVIATION, 2).outcome == "inconclusive"
    assert _judge(_trial(n=500), PEAK_TO_PEAK, 100).outcome == "inconclusive"
    assert _judge(_trial(n=500), PEAK_TO_PEAK, 10).outcome == "fail"


@pytest.mark.parametrize("statistic", [MEAN, DEVIATION, PEAK_TO_PEAK])
def test_what_leaves_a_doubt_neither_passes_nor_fails(statistic: str) -> None:
    for trial, said in (
        (_trial(doubts=("ch2 expired",)), "ch2 expired"),
        (_trial(failed="no trigger"), "no trigger"),
    ):
        for limit_ns in (1, 100):
            record = _judge(trial, statistic, limit_ns)
            assert (record.outcome, said in record.reason) == ("inconclusive", True)


def test_without_delays_or_budget_a_value_is_unset() -> None:
    none = _trial(delays=None, counts=Counts(wanted=9, segments=9), budgets=Budgets())
    assert (
        _judge(none, MEAN, 5).outcome,
        "no pair of edges in 9 segments" in _judge(none, MEAN, 5).reason,
    ) == (
        "unset",
        True,
    )
    few = _judge(_trial(n=3, budgets=Budgets()), MEAN, 5)
    assert (few.outcome, few.value, "3 pairs: too few" in few.reason) == ("unset", None, True)
    failed = _judge(
        _trial(delays=None, failed="*IDN?: no answer", counts=Counts(), budgets=Budgets()), MEAN, 5
    )
    assert (failed.outcome, "*IDN?: no answer" in failed.reason) == ("unset", True)


def test_missing_edges_and_runts_fail_beyond_what_is_allowed() -> None:
    counts = Counts(pairs=2000, missing=2, runt=1)
    record = _judge(_trial(counts=counts), DEVIATION, 100)
    assert (record.outcome, record.lost, record.reason) == ("fail", 3, "3 lost, 0 allowed")
    assert _judge(_trial(counts=counts), DEVIATION, 100, allowed_lost=3).outcome == "pass"


def test_a_method_of_which_every_edge_is_missing_fails() -> None:
    counts = Counts(wanted=1000, segments=1000, missing=1000)
    trial = _trial(delays=None, counts=counts, budgets=Budgets())
    record = _judge(trial, MEAN, 5, allowed_lost=10)
    assert (record.outcome, record.lost, record.reason) == ("fail", 1000, "1000 lost, 10 allowed")
    assert _judge(trial, MEAN, 5, allowed_lost=1000).outcome == "unset"
    ended = _judge(replace(trial, failed="*IDN?: no answer"), MEAN, 5, allowed_lost=10)
    assert (ended.outcome, ended.lost) == ("unset", 1000)


def test_edges_that_may_lie_outside_the_record_leave_it_undecided() -> None:
    trial = _trial(counts=Counts(pairs=2000, at_border=5, missing=1))
    found = _judge(trial, PEAK_TO_PEAK, 100, allowed_lost=5)
    assert (found.outcome, "5 edges may lie outside" in found.reason) == ("inconclusive", True)
    assert _judge(trial, PEAK_TO_PEAK, 100, allowed_lost=6).outcome == "pass"
    assert _judge(trial, PEAK_TO_PEAK, 10, allowed_lost=5).outcome == "fail"
    assert _judge(trial, MEAN, 2, allowed_lost=5).outcome == "inconclusive"


def test_the_offset_of_a_clock_has_the_other_sign_than_its_delay() -> None:
    limit = edge_limit(MEAN, 100, "a source")
    record = edge_measurement(
        _trial(30.0, correction_ns=1.0), OFFSET_QUANTITY, MEAN, "E", limit, 1000, CONTEXT
    )
    assert (record.quantity, record.value, record.outcome) == ("sync_offset", pytest.approx(-29.0), "pass")


def test_the_offset_farthest_from_0_counts_what_one_edge_is_uncertain_by() -> None:
    limit = edge_limit(MAX_ABS, 100, "a source")
    trial = _trial(30.0)
    record = edge_measurement(trial, OFFSET_QUANTITY, MAX_ABS, "E", limit, 1000, CONTEXT)
    assert record.value == pytest.approx(40.0, abs=0.1)
    # Half of the peak to peak's own parts, and what all edges share of the mean's: its skew.
    assert record.uncertainty.expanded == pytest.approx(2 * 0.15 + 0.2 + 0.4)
    assert record.outcome == "pass"
    assert (
        edge_measurement(trial, OFFSET_QUANTITY, MAX_ABS, "E", Limit(30, None, "s"), 9999, CONTEXT).outcome
        == "fail"
    )


def test_edges_that_could_not_be_made_are_unset() -> None:
    limit = edge_limit(MEAN, 5, "a source")
    record = unmeasured_edges("no lock", QUANTITY, MEAN, "EDGE", limit, 1000, CONTEXT)
    assert (record.outcome, record.value, record.reason) == ("unset", None, "no lock")


def _scattered(deviation_ns: float, **changes: Any) -> EdgeTrial:
    trial = _trial(**changes)
    assert trial.delays is not None
    return replace(trial, delays=replace(trial.delays, deviation_ns=deviation_ns))


@pytest.mark.parametrize(
    ("worse_ns", "outcome"), [(12.5, "pass"), (11.0, "inconclusive"), (9.0, "inconclusive"), (7.5, "fail")]
)
def test_the_order_of_two_methods_holds_beyond_u_of_both(worse_ns: float, outcome: str) -> None:
    record = order_measurement(_scattered(10.0), _scattered(worse_ns), "ORDER", "paper", 1000, CONTEXT)
    both = 0.8 + 2 * np.hypot(0.3, 0.3)
    assert record.uncertainty.expanded == pytest.approx(both)
    assert (record.value, record.outcome) == (pytest.approx(worse_ns - 10.0), outcome)


def test_an_order_in_doubt_is_undecided_and_without_delays_unset() -> None:
    doubtful = _scattered(30.0, doubts=("expired",))
    assert order_measurement(_scattered(1.0), doubtful, "O", "p", 9, CONTEXT).outcome == "inconclusive"
    assert (
        order_measurement(_scattered(1.0), _scattered(30.0), "O", "p", 9999, CONTEXT).outcome
        == "inconclusive"
    )
    none = _trial(delays=None, counts=Counts(), budgets=Budgets())
    record = order_measurement(_scattered(1.0), none, "O", "p", 9, CONTEXT)
    assert (record.outcome, "no pair of edges" in record.reason) == ("unset", True)
    unknown = replace(_scattered(30.0), budgets=Budgets())
    record = order_measurement(_scattered(1.0), unknown, "O", "p", 9, CONTEXT)
    assert (record.outcome, record.value) == ("unset", None), "nothing is known of how sure it is"


@pytest.mark.parametrize(
    ("shift_ns", "expected_ns", "outcome"),
    [(200.5, 200, "pass"), (-200.5, -200, "pass"), (203.0, 200, "inconclusive"), (0.0, 200, "inconclusive")],
)
def test_a_mistake_has_to_show_within_u_of_both_means(
    shift_ns: float, expected_ns: int, outcome: str
) -> None:
    record = shift_measurement(_trial(), _trial(5.0 + shift_ns), "SHIFT", expected_ns, CONTEXT)
    assert (record.value, record.outcome) == (pytest.approx(shift_ns - expected_ns), outcome)
    assert record.limit.upper == pytest.approx(0.8 + 2 * np.hypot(0.3, 0.3))
    assert record.quantity in INSTRUMENT_CHECKS
    if outcome != "pass":
        assert "the mistake does not show as it should" in record.reason


def test_a_mistake_that_is_not_told_from_none_shows_nothing() -> None:
    record = shift_measurement(_trial(), _trial(5.0 + 0.7), "SHIFT", 1, CONTEXT)
    assert record.limit.upper == pytest.approx(0.8 + 2 * np.hypot(0.3, 0.3))
    assert record.outcome == "inconclusive"
    assert record.reason == "1 ns put in cannot be told from none: U = 1.649 ns"


def test_a_mistake_of_which_nothing_is_known_is_unset() -> None:
    none = _trial(delays=None, counts=Counts(), budgets=Budgets())
    assert shift_measurement(_trial(), none, "SHIFT", 200, CONTEXT).outcome == "unset"
    doubtful = _trial(205.0, doubts=("expired",))
    assert shift_measurement(_trial(), doubtful, "SHIFT", 200, CONTEXT).outcome == "inconclusive"


def test_a_mistake_of_200_ns_shows_in_what_the_oscilloscope_digitised() -> None:
    rng = np.random.default_rng(7)
    right = measured_trial(latch_delays(rng, 800) - 40.0)
    wrong = measured_trial(latch_delays(rng, 800) - 40.0 + 60.0, correlation_error_ns=60)
    assert shift_measurement(right, wrong, "SHIFT", 60, CONTEXT).outcome == "pass"
    assert shift_measurement(right, wrong, "SHIFT", 56, CONTEXT).outcome == "inconclusive"


def test_witnesses_agree_within_their_uncertainties() -> None:
    records = witness_measurements(sample_witnesses(), "WITNESS", 100, CONTEXT)
    assert [record.subject.method for record in records] == [
        "cross-timestamps/captured-edge", "cross-timestamps/oscilloscope", "captured-edge/oscilloscope",
    ]  # fmt: skip
    assert [record.outcome for record in records] == ["pass", "pass", "inconclusive"]
    assert records[2].value == pytest.approx(70 / np.hypot(30, 15))
    assert "contradict each other" in records[2].reason
    assert overall([*records, _judge(_trial(), MEAN, 100)]) == "inconclusive"


def test_a_witness_that_saw_nothing_leaves_its_pairs_unset() -> None:
    views = sample_witnesses().witnesses
    blind = Witness("captured-edge", None, (), 0, (), "no edge was captured")
    records = witness_measurements(Witnesses("phc2sys", (views[0], blind, views[2])), "W", 100, CONTEXT)
    assert [record.outcome for record in records] == ["unset", "pass", "unset"]
    assert "no edge was captured" in records[0].reason
    doubtful = replace(views[0], doubts=("expired",))
    found = witness_measurements(Witnesses("phc2sys", (doubtful, views[1])), "W", 100, CONTEXT)
    assert [record.outcome for record in found] == ["inconclusive"]


def test_two_witnesses_without_uncertainty_have_no_en_but_where_they_are_equal() -> None:
    def exact(offset_ns: float) -> Witness:
        return Witness("oscilloscope", offset_ns, (BudgetPart("none", "bound", 0),), 9)

    assert witness_en(exact(1), exact(1)) == 0
    assert witness_en(exact(1), exact(2)) == float("inf")
    assert uncertainty_of(None).expanded == 0
