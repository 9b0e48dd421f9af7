# SPDX-License-Identifier: Apache-2.0
"""Bursts that come again and a first part that is late, in series whose causes were put in.

They are of resources/control_loops/reproductions, on the virtual bench: retransmission_timer.csv is every
second value of one in which all frames are lost for 0.1 s each 5 s, probe_rtt.csv every fourth of BBR on a
way of 100 ms, slow_start.csv all pictures of TCP's slow start on a way of 300 ms.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench.patterns.bench_patterns import hits
from bench.patterns.drawn_series import FORMS, NOISES, PAPER, draw
from reports.patterns.detect import detect
from reports.patterns.finding import Finding
from reports.patterns.series import Series, read_csv, series_of


def measured(name: str) -> Series:
    return series_of(*read_csv(Path(__file__).with_name(f"{name}.csv")))


def found_in(series: Series) -> dict[str, Finding]:
    return {each.kind: each for each in detect(series).findings}


def test_what_waits_for_a_retransmission_timer_is_a_burst_each_5_s() -> None:
    of = found_in(measured("retransmission_timer"))["periodic_outlier"].parameters
    assert of["period"].value == pytest.approx(5.0, rel=0.02)
    assert of["height"].value == pytest.approx(219, rel=0.05)  # the first late one is missing in some
    assert of["length"].value == pytest.approx(0.21, abs=0.02)


def test_slow_start_is_a_warm_up() -> None:
    series = measured("slow_start")
    found = found_in(series)
    assert found.keys() == {"warm_up"}
    of = found["warm_up"].parameters
    assert 1.5 < of["end"].value < 2.5
    first = series.values[series.times_s < 1.82].mean() - np.median(series.values)
    assert of["height"].value == pytest.approx(first, rel=0.02)


def test_three_probes_at_unequal_distances_are_no_period() -> None:
    """They are at 15.0, 25.4 and 51.8 s, each 0.3 s long: four at least make a period."""
    assert "periodic_outlier" not in found_in(measured("probe_rtt"))


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("form", FORMS)
def test_other_forms_of_a_kind_are_found(form: str, noise: str) -> None:
    made = draw((form,), noise, PAPER, 2)
    found = found_in(series_of(made.times_s, made.values_ms))
    kind = FORMS[form]
    assert found.keys() == {kind}
    assert all(hits(found[kind], made.truth[kind]))


@pytest.mark.parametrize("missing", [(), (3, 8), (5, 6, 7)])
def test_bursts_may_be_missing_or_off_the_beat(missing: tuple[int, ...]) -> None:
    rng = np.random.default_rng(4)
    times_s = np.arange(4000, dtype=np.float64) * 0.05
    values = 20 + rng.normal(0, 0.5, 4000)
    for number in set(range(12)) - set(missing):
        begin = 100 + 320 * number - (32 if number == 0 else 0)
        values[begin : begin + 20] += 40.0
    of = found_in(series_of(times_s, values))["periodic_outlier"].parameters
    assert of["period"].value == pytest.approx(16, rel=0.002)
    assert of["length"].value == pytest.approx(1.0, abs=0.03)


def test_a_level_that_gives_way_later_is_no_warm_up() -> None:
    rng = np.random.default_rng(4)
    values = 20 + rng.normal(0, 0.5, 2000) - 10 * np.clip((np.arange(2000) - 400) / 100, 0, 1)
    assert found_in(series_of(0.1 * np.arange(2000, dtype=np.float64), values)).keys() == {"level_change"}


def test_bursts_at_any_time_are_no_period_and_no_warm_up() -> None:
    rng = np.random.default_rng(4)
    values = 20 + rng.normal(0, 0.5, 4000)
    for begin in [0, *rng.integers(200, 3900, 11)]:
        values[begin : begin + 20] += 40.0
    assert not found_in(series_of(0.1 * np.arange(4000, dtype=np.float64), values))
