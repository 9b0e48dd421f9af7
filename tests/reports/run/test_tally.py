# SPDX-License-Identifier: Apache-2.0
"""Which attempt counts, and what a run as a whole comes out as."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from reports.record.measurement import Measurement, margin_of
from reports.run.tally import effective, overall, worst
from tests.reports.sample_run import Disturbance, make_run

SLOW = Disturbance(path_delay_ns={33: 15_000_000})
NOISY = Disturbance(path_delay_ns={33: 15_000_000}, stalled=True)


def outcomes(results: Path, *attempts: Disturbance) -> tuple[str, int]:
    records = make_run(results, *attempts).records().measurements
    counting = effective(records)
    return overall(counting), len(counting)


def test_an_inconclusive_attempt_may_be_repeated_and_the_last_counts(tmp_path: Path):
    assert outcomes(tmp_path, NOISY, Disturbance()) == ("pass", 48)
    assert outcomes(tmp_path, Disturbance(), NOISY) == ("inconclusive", 48)


def test_a_fail_stands_whatever_comes_after_it(tmp_path: Path):
    assert outcomes(tmp_path, SLOW, Disturbance()) == ("fail", 48)


def test_nothing_measured_is_unset():
    assert overall([]) == "unset"
    assert worst([]) is None


@pytest.fixture
def record(tmp_path: Path) -> Measurement:
    return make_run(tmp_path).records().measurements[0]


def test_the_worst_margin_is_that_closest_to_its_own_limit(record: Measurement):
    def at(upper: int, value: int) -> Measurement:
        limit = dataclasses.replace(record.limit, upper=upper)
        margin = margin_of(value, limit, record.uncertainty)
        return dataclasses.replace(record, limit=limit, value=value, margin=margin)

    roomy, tight = at(1_000_000_000, 500_000_000), at(10_000_000, 9_000_000)
    assert worst([roomy, tight]) == tight
