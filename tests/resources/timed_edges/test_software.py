# SPDX-License-Identifier: Apache-2.0
"""How the software under test is told what to do, and what is read of its answers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hw.bench import TargetSpec, load_bench
from hw.edges import EdgesSpec
from hw.errors import CapabilityError, MeasurementError
from resources.timed_edges.software import (
    EdgeCommand,
    doubts_of,
    latch_options,
    latched_delays,
    run_options,
    sampled_budgets,
    software_result,
)
from tests.reports.sample_run import summary

ROOT = Path(__file__).resolve().parents[3]
PERIOD_NS = 2_000_000
LATCHED = {
    "n": 4,
    "min_ns": -300,
    "max_ns": 500,
    "mean_ns": 100.0,
    "stddev_ns": 350.0,
    "overflow": 0,
    "buckets": [[-300, 1, 1], [0, 1, 1], [200, 1, 1], [500, 1, 1]],
}


def _target() -> TargetSpec:
    return load_bench(ROOT / "hw" / "benches" / "virtual.yaml").targets["linux-rt"]


def _value(options: list[str], name: str) -> str:
    return options[options.index(name) + 1]


@pytest.mark.parametrize(
    ("method", "pin"),
    [
        ("gettime-software", "bench:gpio"),
        ("rdtsc-software", "bench:gpio"),
        ("tgpio-filtered-read", "bench:tgpio-out"),
        ("tgpio-latch", "bench:tgpio-out"),
        ("clock-edge", "bench:tgpio-out"),
    ],
)
def test_each_method_has_its_output(method: str, pin: str) -> None:
    options = run_options(_target(), EdgeCommand(method, PERIOD_NS, 77))
    assert _value(options, "--output") == pin
    assert _value(options, "--period-ns") == str(PERIOD_NS)
    assert _value(options, "--count") == "0"  # until it is ended: how long is the oscilloscope's business
    assert ("--latch" in options) is (method == "tgpio-latch")
    assert "--correlation-error-ns" not in options


def test_edges_of_a_clock_are_at_its_own_full_periods() -> None:
    options = run_options(_target(), EdgeCommand("clock-edge", PERIOD_NS, 77))
    assert "--start-phc-ns" not in options
    assert _value(options, "--clock") == "realtime"
    command = EdgeCommand("clock-edge", PERIOD_NS, 77, clock="timeservice")
    assert _value(run_options(_target(), command), "--clock") == "timeservice"
    assert "--clock" not in run_options(_target(), replace(command, method="tgpio-latch"))


def test_a_mistake_is_handed_on() -> None:
    options = run_options(_target(), EdgeCommand("tgpio-latch", PERIOD_NS, 77, correlation_error_ns=200))
    assert _value(options, "--correlation-error-ns") == "200"


def test_a_pin_that_is_missing_is_named() -> None:
    target = replace(_target(), edges=EdgesSpec(reference="bench:sdp-out", timed="bench:tgpio-out"))
    with pytest.raises(CapabilityError, match=r"targets\.linux-rt\.edges\.latch"):
        run_options(target, EdgeCommand("tgpio-latch", PERIOD_NS, 77))
    with pytest.raises(CapabilityError, match=r"edges\.software"):
        latch_options(target, "gettime-software", 10)


def test_listing_1_needs_a_line_and_its_latch() -> None:
    options = latch_options(_target(), "rdtsc-software", 1000)
    assert _value(options, "--clock") == "rdtsc"
    assert _value(options, "--capture") == "bench:sdp-in"


def test_an_answer_without_a_result_is_no_measurement(tmp_path: Path) -> None:
    path = tmp_path / "software.ndjson"
    path.write_text('{"type": "ready"}\n')
    with pytest.raises(MeasurementError, match="no result line"):
        software_result(path)
    with pytest.raises(MeasurementError, match=r"missing\.ndjson"):
        software_result(tmp_path / "missing.ndjson")
    path.write_text(json.dumps({"type": "result", "valid": True}) + "\n")
    assert software_result(path)["valid"] is True


def test_what_software_says_against_itself_is_a_doubt() -> None:
    assert doubts_of({"valid": True}) == []
    assert doubts_of({"valid": False, "invalid_reasons": ["all edges were late"]}) == [
        "the software: all edges were late"
    ]
    assert doubts_of({}) == ["the software: invalid result"]


def test_latched_delays_may_be_negative_and_have_their_extremes() -> None:
    delays = latched_delays({"delay": LATCHED, "peak_to_peak_ns": {"100": 700}})
    assert delays is not None
    assert (delays.minimum_ns, delays.maximum_ns, delays.deviation_ns) == (-300, 500, 350.0)
    assert delays.peak_to_peak_of(4) == 800


@pytest.mark.parametrize(
    "change", [{"n": 5}, {"overflow": 1}, {"buckets": []}, {"buckets": [[10**400, 1, 4]]}]
)
def test_a_histogram_that_contradicts_itself_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(MeasurementError):
        latched_delays({"delay": {**LATCHED, **change}})


@pytest.mark.parametrize(
    "blocks",
    [
        {"size": 2, "means_ns": [1.0]},
        {"size": 0, "means_ns": []},
        {"size": 4},
        {"size": 4, "means_ns": [None]},
    ],
)
def test_blocks_that_cannot_be_are_refused(blocks: dict[str, Any]) -> None:
    with pytest.raises(MeasurementError, match=r"latch\.blocks"):
        latched_delays({"delay": LATCHED, "blocks": blocks})


def test_delays_that_follow_the_clock_make_u_of_the_mean_larger() -> None:
    """A clock wanders more slowly than edges come; of delays in no order ÷ √n is what counts."""
    steps = np.random.default_rng(3).normal(0, 40, 2000)
    wandering = np.convolve(steps, np.exp(-np.arange(200) / 50), "same")
    shuffled = np.random.default_rng(4).permutation(wandering)
    means: list[float] = []
    for values in (wandering, shuffled):
        whole = np.rint(values).astype(int).tolist()
        pairs = np.reshape(whole, (-1, 2)).mean(axis=1).tolist()
        delays = latched_delays({"delay": summary(whole), "blocks": {"size": 2, "means_ns": pairs}})
        assert delays is not None
        found, before = (sampled_budgets(each, 8.0).mean for each in (delays, replace(delays, blocks=None)))
        assert found is not None
        assert before is not None
        means.append(found[0].value_ns / before[0].value_ns)
        assert before[0].value_ns == pytest.approx(delays.deviation_ns / 2000**0.5, rel=1e-3)
    assert means[0] > 5
    assert means[1] == pytest.approx(1, abs=0.15)


def test_nothing_latched_is_nothing() -> None:
    empty = {"n": 0, "min_ns": None, "max_ns": None, "mean_ns": None, "stddev_ns": None}
    assert latched_delays({"delay": {**empty, "overflow": 0, "buckets": []}}) is None


def test_too_few_delays_have_no_budget() -> None:
    delays = latched_delays({"delay": LATCHED})
    assert sampled_budgets(None, 8.0).mean is None
    assert delays is not None
    assert sampled_budgets(replace(delays, count=3), 8.0).mean is None
    budgets = sampled_budgets(delays, 8.0)
    assert budgets.mean is not None
    assert {part.name: part.kind for part in budgets.mean} == {"jitter": "standard", "resolution": "bound"}
