# SPDX-License-Identifier: Apache-2.0
"""Series drawn from a seed: each kind is found with what it truly is, and noise alone has nothing."""

from __future__ import annotations

import numpy as np
import pytest

from bench.patterns.bench_patterns import hits
from bench.patterns.drawn_series import KINDS, NOISES, PAPER, draw
from reports.patterns.detect import detect
from reports.patterns.finding import Finding
from reports.patterns.series import series_of


def found_in(
    kinds: tuple[str, ...], noise: str, seed: int
) -> tuple[dict[str, Finding], dict[str, dict[str, float]]]:
    made = draw(kinds, noise, PAPER, seed)
    findings = detect(series_of(made.times_s, made.values_ms)).findings
    return {each.kind: each for each in findings}, made.truth


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_found(kind: str) -> None:
    found, truth = found_in((kind,), "white", 12)
    assert found.keys() == truth.keys()
    for name, finding in found.items():
        for key, value in truth[name].items():
            parameter = finding.parameters[key.split("_")[0]]
            turn = truth[name]["width_ms"] if key.startswith("offset") else abs(value)
            assert abs(parameter.value - value) < 0.08 * turn, key
        assert finding.false_alarms < 0.001


@pytest.mark.parametrize("kinds", [("ramp", "level_change"), ("ramp", "grid"), ("gap", "drifting_grid")])
def test_two_kinds_are_told_apart(kinds: tuple[str, ...]) -> None:
    found, truth = found_in(kinds, "ar1", 4)
    assert found.keys() == truth.keys()


@pytest.mark.parametrize("noise", NOISES)
def test_noise_alone_has_nothing(noise: str) -> None:
    assert not found_in((), noise, 3)[0]


def test_a_true_value_lies_in_the_interval_of_what_is_certain() -> None:
    found, truth = found_in(("drifting_grid",), "white", 12)
    assert all(hits(found["drifting_grid"], truth["drifting_grid"]))


@pytest.mark.parametrize("sign", [1, -1])
def test_the_slope_has_the_sign_of_the_sources_rate(sign: int) -> None:
    """The poll of every 5 ms is simulated, and the source's period is longer or shorter by 170 ppm."""
    rng = np.random.default_rng(8)
    sent_ms = np.arange(3000, dtype=np.float64) * 100 * (1 - sign * 170e-6)
    latency_ms = (
        np.ceil(sent_ms / 5) * 5 - sent_ms + 5 * rng.choice(2, 3000, p=(0.8, 0.2)) + rng.normal(0, 0.3, 3000)
    )
    [finding] = detect(series_of(sent_ms * 1e-3, latency_ms)).findings
    assert finding.kind == "drifting_grid"
    assert finding.parameters["slope"].value == pytest.approx(sign * 0.17, rel=0.01)
    assert finding.parameters["period"].value == pytest.approx(5 / 0.17, rel=0.01)


def test_without_a_drift_the_same_poll_makes_steps() -> None:
    rng = np.random.default_rng(8)
    ready_ms = np.arange(3000) * 100 + np.abs(rng.normal(0, 8, 3000))
    latency_ms = np.ceil(ready_ms / 5) * 5 - np.arange(3000) * 100 + rng.normal(0, 0.3, 3000)
    [finding] = detect(series_of(np.linspace(0, 299.9, 3000), latency_ms)).findings
    assert finding.kind == "grid"
    assert finding.parameters["width"].value == pytest.approx(5, abs=0.05)


def _kinds(values: np.ndarray) -> list[str]:
    times_s = np.linspace(0, 0.1 * (len(values) - 1), len(values))
    return [each.kind for each in detect(series_of(times_s, values.astype(np.float64))).findings]


def test_values_that_a_pattern_explains_to_the_last_leave_no_noise() -> None:
    """Whole milliseconds are all grid; an outlier or a step beside values that are equal is all there is."""
    draws = np.random.default_rng(5).normal(10, 1, 1000)
    count = np.arange(1000)
    assert _kinds(np.round(draws)) == ["grid"]
    assert _kinds(np.where(draws > 10, 1.0, 0.0)) == ["grid"]
    assert _kinds(np.where(count % 50, 1.0, 2.0)) == ["periodic_outlier"]
    assert _kinds(np.where(count > 500, 1.0, 0.0)) == ["level_change"]


def test_lines_that_go_over_from_value_to_value_do_not_drift() -> None:
    """0 and 1 by turns lie on lines 2 / 21 apart that rise by half their distance a value, too."""
    assert "drifting_grid" not in _kinds(np.arange(1000) % 2 * 1.0)


@pytest.mark.parametrize("seed", [2, 7, 18])
def test_a_random_walk_has_no_change_of_level(seed: int) -> None:
    """With one taken out it seems to come back to its level, in whose noise the change would be certain."""
    walk = np.cumsum(np.random.default_rng([67, seed, 4]).normal(0, 1, 2000))
    assert not detect(series_of(np.arange(0.0, 100.0, 0.05), walk)).findings
