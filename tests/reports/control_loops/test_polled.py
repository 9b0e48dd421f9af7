# SPDX-License-Identifier: Apache-2.0
"""A node that polls by a clock of its own: ramps as high as its grid, as long as two clocks make them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from reports.control_loops.latencies import latencies_of
from reports.control_loops.ring_evidence import FOLDER, KnownPoll, write_ring
from reports.latencies import Latencies
from reports.patterns import drift
from reports.patterns.detect import detect
from reports.patterns.kept import search_run
from reports.patterns.sentence import parameter_words
from reports.patterns.series import series_of
from tests.reports.control_loops.ring_sample import (
    BEGIN_NS,
    INTERVAL_NS,
    TARGET,
    hop_ns,
    write_sample_ring,
)
from tests.reports.timeline.legs_sample import Machine

GRID_NS, COUNT, POLLS, PPM = 500_000, 3000, "producer-12", 200
CLOCKS = {
    TARGET: Machine(2_500_000_000, ahead_ns=4_000_000_000),
    POLLS: Machine(1_000_000_000, ahead_ns=-2_000_000_000, rate_ppm=-PPM),
}
"""The node that polls is slow, the source is not."""
PERIOD_S = GRID_NS / PPM / 1000


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("run")
    folder = run / "evidence" / FOLDER / TARGET

    wakes_late_ns = np.random.default_rng(1).integers(0, 40_000, COUNT).tolist()

    def hops(place: int, number: int) -> int:
        takes_ns = hop_ns(place, number)
        if place != 1:
            return takes_ns
        arrives_ns = BEGIN_NS + number * INTERVAL_NS + takes_ns
        return takes_ns + GRID_NS - CLOCKS[POLLS].clock_ns(arrives_ns) % GRID_NS + wakes_late_ns[number]

    facts = write_sample_ring(folder, count=COUNT, hops=hops, machines=CLOCKS)
    write_ring(folder, replace(facts, poll=KnownPoll(1, GRID_NS // 1000)))
    return run


@pytest.fixture(scope="module")
def series(run: Path) -> dict[str, Latencies]:
    found, problems = latencies_of(run)
    assert not problems
    return {each.name: each for each in found}


def test_only_what_waits_for_the_poll_has_its_grid(series: dict[str, Latencies]) -> None:
    assert [name for name, each in series.items() if each.polled] == ["whole", "hop 1"]


def test_rates_are_those_of_both_clocks(series: dict[str, Latencies]) -> None:
    polled = series["hop 1"].polled
    assert polled
    assert (polled.source, polled.poll, polled.grid_ns) == (TARGET, POLLS, GRID_NS)
    assert abs(polled.rate_ppm - PPM) <= polled.rate_u_ppm + 0.01


def test_its_ramps_are_named_with_both_clocks(series: dict[str, Latencies]) -> None:
    hop = series["hop 1"]
    assert hop.polled
    patterns = detect(series_of((hop.at_ns - hop.at_ns[0]) / 1e9, hop.value_ns / 1e6)).findings
    [found] = [drift.tested_for_drift(each, drift.known_rates(hop.polled)) for each in patterns]
    assert found.kind == "drifting_grid"
    assert found.parameters["period"].value == pytest.approx(PERIOD_S, rel=0.01)
    assert f"slope is the difference of rates, {PPM} ppm" in found.says
    assert f"{TARGET}'s clock is faster than {POLLS}'s by " in found.says


def test_what_a_run_keeps_names_both_clocks(run: Path) -> None:
    kept = search_run(run, "ci")
    assert kept
    [hop] = [each for each in kept.series if each.name == "hop 1"]
    [found] = hop.findings
    assert f"{TARGET}'s clock is faster than {POLLS}'s by " in parameter_words(found)
