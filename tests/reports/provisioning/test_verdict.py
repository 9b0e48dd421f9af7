# SPDX-License-Identifier: Apache-2.0
"""The verdict on what provisioning leaves different: nothing passes but nothing, as often as was asked."""

from __future__ import annotations

import pytest

from reports.provisioning.verdict import difference_measurement
from reports.record.context import Context
from reports.record.measurement import Conditions, Limit, Measurement, Subject

LIMIT = Limit(0, None, "a test")
CONTEXT = Context("run", "test", Subject("virtual", "windows", method="restore"), Conditions("ci"), True, ())


def measured(*differences: tuple[str, ...], n_required: int = 2, limit: Limit = LIMIT) -> Measurement:
    return difference_measurement(differences, "PROV-RESTORE", limit, n_required, CONTEXT)


def test_nothing_different_each_time_is_a_pass() -> None:
    record = measured((), ())
    assert (record.outcome, record.value, record.margin, record.n, record.unit) == ("pass", 0, 0, 2, "facts")


def test_one_difference_in_one_repetition_fails_and_is_named() -> None:
    record = measured((), ("cpu.governor",), ())
    assert (record.outcome, record.value) == ("fail", 1)
    assert record.reason.endswith(": cpu.governor")


def test_of_many_differences_the_first_are_named() -> None:
    record = measured(tuple(f"fact.{number}" for number in range(8)), ())
    assert "8 facts is over 0 facts" in record.reason
    assert record.reason.endswith("fact.3, fact.4 and 3 more")


@pytest.mark.parametrize(("differences", "outcome"), [((), "unset"), (((),), "inconclusive")])
def test_fewer_repetitions_than_asked_for_are_no_pass(
    differences: tuple[tuple[str, ...], ...], outcome: str
) -> None:
    assert measured(*differences).outcome == outcome


def test_a_limit_above_nothing_allows_that_many() -> None:
    limit = Limit(2, None, "a test")
    assert measured(("a", "b"), (), limit=limit).outcome == "pass"
    assert measured(("a", "b", "c"), (), limit=limit).outcome == "fail"
