# SPDX-License-Identifier: Apache-2.0
"""The figures of `make bench-regressions`: fewer series, looser bars; and that the bars can be missed."""

from __future__ import annotations

import dataclasses

import pytest

from bench.dashboards.bench_regressions import BARS, Score, score
from bench.dashboards.change_detectors import ADVISER, DETECTORS, Detector
from bench.dashboards.change_series import JUDGED, Values
from dashboards.regressions.changes import Settings, find_changes

SERIES = 100


def met(noise: str, reached: Score) -> bool:
    """Say whether the bars of the benchmark are met."""
    return all(BARS[f"{noise}_{name}"].met_by(value) for name, value in dataclasses.asdict(reached).items())


@pytest.mark.parametrize("noise", JUDGED)
def test_finds_steps_soon_and_seldom_cries_wolf(noise: str) -> None:
    reached = score(DETECTORS[ADVISER], noise, SERIES)
    assert reached.found_share >= 0.85
    assert reached.delay_runs <= 6
    assert reached.false_share <= 0.1


def with_settings(settings: Settings) -> Detector:
    def detector(values: Values) -> int | None:
        found = find_changes(values, settings)
        return found[0].seen if found else None

    return detector


def always_at(place: int | None) -> Detector:
    def detector(values: Values) -> int | None:
        return place

    return detector


@pytest.mark.parametrize(
    "detector",
    [
        always_at(None),
        always_at(20),
        always_at(50),
        with_settings(Settings(z_min=4)),
        with_settings(Settings(z_min=2.5)),
    ],
    ids=["never", "always", "late", "deaf", "nervous"],
)
def test_the_bars_can_be_missed(detector: Detector) -> None:
    assert not met("normal", score(detector, "normal", 40))
