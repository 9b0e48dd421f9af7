# SPDX-License-Identifier: Apache-2.0
"""Jitter beside the asked one: against scipy, iproute2's own tables, and made-up paths."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reports.errors import ReportError
from reports.paths.datagrams import Integers
from reports.paths.jitter import DISTRIBUTIONS, Floats, Jitter, JitterFound, judge_jitter, ks_distance

stats: Any = import_module("scipy.stats")  # has no types

N = 5000
TABLES = [
    folder
    for folder in map(Path, ("/usr/lib/x86_64-linux-gnu/tc", "/usr/lib/tc", "/usr/share/tc"))
    if (folder / "normal.dist").is_file()
]
OWN_NS = 120_000 + np.random.default_rng(1).gamma(2, 10_000, N).astype(np.int64)
"""Times inside without anything: the path has a jitter of its own."""


def path(asked: Jitter, seed: int = 7) -> Integers:
    """Return times inside of a path that does what is asked."""
    random = np.random.default_rng(seed)
    return (1000 * asked.drawn_us(N, random)).astype(np.int64) + random.choice(OWN_NS, N)


def judged(asked: Jitter, done: Jitter, seed: int = 7) -> JitterFound:
    """Judge a path that does something, by what was asked."""
    return judge_jitter(asked, path(done, seed), OWN_NS)


@pytest.mark.skipif(not TABLES, reason="iproute2 has no tables here")
@pytest.mark.parametrize("name", ["normal", "pareto", "paretonormal"])
def test_distributions_are_those_of_the_tables(name: str) -> None:
    lines = (TABLES[0] / f"{name}.dist").read_text().splitlines()
    table = np.sort([int(word) / 8192 for line in lines if not line.startswith("#") for word in line.split()])
    shares: Floats = np.arange(1, 100) / 100
    assert DISTRIBUTIONS[name](shares) == pytest.approx(np.quantile(table, shares), abs=0.02)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_what_is_as_asked_is_not_marked(name: str) -> None:
    """Of 40 paths few have a small p, or a percentile outside of its 95 % interval; none is called lower."""
    asked = Jitter(20_000, 5_000, name)
    each = [judged(asked, asked, seed) for seed in range(40)]
    assert sum(found.p_value < 0.05 for found in each) <= 8
    assert sum(condition.is_off for found in each for condition in found.percentiles) <= 3 * 8
    assert not any(found.is_lower for found in each)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_a_lower_jitter_is_said(name: str) -> None:
    found = judged(Jitter(20_000, 5_000, name), Jitter(20_000, 4_000, name))
    assert found.is_lower
    assert found.p_value < 1e-6
    assert "the jitter is lower than asked: p10 and p90 are " in str(found)
    assert any(condition.is_off for condition in found.percentiles)


def test_a_larger_jitter_is_marked_and_not_called_lower() -> None:
    found = judged(Jitter(20_000, 5_000, "normal"), Jitter(20_000, 7_000, "normal"))
    assert not found.is_lower
    assert [condition.is_off for condition in found.percentiles] == [True, False, True]
    assert "lower" not in str(found)


def test_another_distribution_of_the_same_width_is_seen() -> None:
    """p10 and p90 of a normal one of 5 ms and of a uniform one of 8.01 ms are as far apart."""
    found = judged(Jitter(20_000, 5_000, "normal"), Jitter(20_000, 8_010, "uniform"))
    assert found.p_value < 1e-6
    assert not found.is_lower


def test_what_would_come_before_now_comes_at_once() -> None:
    asked = Jitter(5_000, 5_000, "normal")
    drawn = asked.drawn_us(N, np.random.default_rng(3))
    assert drawn.min() == 0
    assert float((drawn == 0).mean()) == pytest.approx(0.159, abs=0.02)
    assert judged(asked, asked).p_value > 1e-3


def test_distance_is_that_of_scipy() -> None:
    random = np.random.default_rng(11)
    one, other = random.normal(0, 1, 300), np.round(random.normal(0.2, 1, 500), 1)
    expected = stats.ks_2samp(one, other, method="asymp")
    assert ks_distance(np.sort(one), np.sort(other)) == pytest.approx(expected.statistic)


@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_a_correlation_is_seen_or_missed(correlation: float) -> None:
    """Delays that go together as netem's should: its uniform numbers do, about each other's mean."""
    random = np.random.default_rng(5)
    normal = random.normal(size=N)
    for number in range(1, N):
        own = (1 - correlation**2) ** 0.5
        normal[number] = own * normal[number] + correlation * normal[number - 1]
    inside_ns = (1000 * (20_000 + 5_000 * normal)).astype(np.int64) + OWN_NS
    found = judge_jitter(Jitter(20_000, 5_000, "normal", 50), inside_ns, OWN_NS).correlation
    assert found is not None
    assert found.achieved == pytest.approx(100 * correlation, abs=4)
    assert found.is_off == (correlation == 0)
    assert judge_jitter(Jitter(20_000, 5_000, "normal"), inside_ns, OWN_NS).correlation is None


def test_few_datagrams_tell_nothing() -> None:
    with pytest.raises(ReportError, match="jitter: 99 datagrams tell no distribution: 100 at least"):
        judge_jitter(Jitter(20_000, 5_000, "normal"), OWN_NS[:99], OWN_NS)
