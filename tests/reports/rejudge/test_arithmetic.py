# SPDX-License-Identifier: Apache-2.0
"""A margin is held against the size of its terms: it may be a small difference of large ones."""

from __future__ import annotations

from typing import Any

import pytest

from reports.record.measurement import Limit, Uncertainty, UncertaintyPart
from reports.record.verdict import judge
from reports.rejudge.arithmetic import discrepancies


def record_of(value: float, upper: float, u: float) -> dict[str, Any]:
    """Return a record as the first judge makes it, as far as its numbers go."""
    parts = [UncertaintyPart("clock_offset", "bound", u)]
    verdict = judge(value, Limit(upper, None, "a test"), Uncertainty.from_parts(parts), n=9, n_required=9)
    return {
        "schema": "benchwright.measurement/1", "rule": "guard-band-U", "quantity": "sync_offset",
        "unit": "ns", "statistic": "mean", "value": value, "n": 9, "n_required": 9, "lost": 0,
        "allowed_lost": 0, "limit": {"upper": upper, "lower": None}, "outcome": verdict.outcome,
        "uncertainty": {"expanded": u, "parts": [{"kind": "bound", "value": u}]}, "margin": verdict.margin,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("value", "upper", "u"),
    [
        pytest.param(0.7, 0.8, 0.1, id="nothing is left"),
        pytest.param(99_999.7, 100_000.0, 0.3, id="of large terms"),
        pytest.param(0.1, 0.3, 0.2, id="less than nothing is left"),
        pytest.param(3, 10, 7, id="whole numbers"),
    ],
)
def test_a_margin_of_almost_nothing_is_worked_out_again(value: float, upper: float, u: float) -> None:
    """The two judges subtract in different order, and so may the signs of what is left differ."""
    assert list(discrepancies(record_of(value, upper, u))) == []


@pytest.mark.parametrize(
    ("value", "upper", "u", "margin"),
    [(0.7, 0.8, 0.1, 1e-6), (99_999.7, 100_000.0, 0.3, 0.01), (3 * 10**9, 9 * 10**9, 7, 6 * 10**9 - 6)],
)
def test_a_margin_of_another_size_is_named(value: float, upper: float, u: float, margin: float) -> None:
    record = record_of(value, upper, u) | {"margin": margin}
    assert [each.partition(" is ")[0] for each in discrepancies(record)] == ["margin"]
