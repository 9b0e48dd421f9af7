# SPDX-License-Identifier: Apache-2.0
"""Documents of evidence of timed edges, and their waveforms: written, read again, refused where damaged."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reports.errors import RecordError
from reports.timed_edges.trial import (
    TRIAL,
    WITNESSES,
    Counts,
    DelayBlocks,
    EdgeTrial,
    load_edge_trial,
    load_witnesses,
    write_edge_trial,
    write_witnesses,
)
from reports.timed_edges.waveforms import (
    SEGMENTS_MAX,
    WAVEFORMS,
    Segment,
    load_waveforms,
    trace_of,
    write_waveforms,
)
from tests.reports.sample_edges import drawn_trial, latch_delays, measured_trial, sample_witnesses

DELAYS_NS = latch_delays(np.random.default_rng(2), 400)


@pytest.fixture(scope="module")
def trial() -> EdgeTrial:
    return drawn_trial(DELAYS_NS, "tgpio-latch", lost=2)


def test_a_trial_is_written_and_read_again(tmp_path: Path, trial: EdgeTrial) -> None:
    write_edge_trial(tmp_path, trial)
    assert load_edge_trial(tmp_path) == trial
    assert trial.delays is not None
    assert trial.delays.peak_to_peak_of(100) == pytest.approx(np.ptp(DELAYS_NS[:100]))
    assert trial.delays.peak_to_peak_of(1000) is None
    assert trial.counts.lost == 2


def test_a_trial_of_an_earlier_version_has_neither_kurtosis_nor_blocks(
    tmp_path: Path, trial: EdgeTrial
) -> None:
    write_edge_trial(tmp_path, trial)
    document = json.loads((tmp_path / TRIAL).read_text())
    del document["delays"]["kurtosis"], document["delays"]["blocks"]
    (tmp_path / TRIAL).write_text(json.dumps(document))
    assert trial.delays is not None
    earlier = replace(trial.delays, kurtosis=None, blocks=None)
    assert load_edge_trial(tmp_path) == replace(trial, delays=earlier)


def test_what_an_oscilloscope_saw_goes_through_unchanged(tmp_path: Path) -> None:
    seen = measured_trial(np.linspace(-13, 13, 300))
    write_edge_trial(tmp_path, seen)
    found = load_edge_trial(tmp_path)
    assert found == seen
    assert found.delays is not None
    assert found.delays.mean_ns == pytest.approx(0, abs=0.05)
    assert found.delays.deviation_ns == pytest.approx(26 / 12**0.5, rel=0.02)
    assert found.counts.pairs == 300


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema": "benchwright.timed_edges/2"}, "schema: must be"),
        ({"method": "sundial"}, "method: 'sundial' is not one of"),
        ({"method": "clock-edge"}, "clock: clock-edge needs the clock"),
        ({"reference": "moon"}, "reference: 'moon' is not one of phc, timecard"),
        ({"software_file": "../answer"}, "software_file: '../answer' is no file"),
        ({"waveforms_file": "a/b"}, "waveforms_file: 'a/b' is no file"),
        ({"delays": None}, "delays: none, but counts.pairs = 400"),
        ({"counts": vars(Counts(pairs=3))}, "counts.pairs: 3, but delays.count = 400"),
        ({"budgets": {"mean": [{"name": "a", "kind": "guess", "value_ns": 1}]}}, "kind: 'guess' is not one"),
    ],
)
def test_a_damaged_trial_is_refused(
    tmp_path: Path, trial: EdgeTrial, change: dict[str, Any], said: str
) -> None:
    write_edge_trial(tmp_path, trial)
    document = json.loads((tmp_path / TRIAL).read_text())
    if "budgets" in change:
        change = {"budgets": document["budgets"] | change["budgets"]}
    (tmp_path / TRIAL).write_text(json.dumps(document | change))
    with pytest.raises(RecordError) as refused:
        load_edge_trial(tmp_path)
    assert said in str(refused.value)
    assert TRIAL in str(refused.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"count": 399}, "buckets: hold 400 of count = 399"),
        ({"buckets": ((0.0, 1.0),)}, "buckets: [0.0, 1.0] is not low, width > 0, count >= 0"),
        ({"buckets": ((0.0, 0.0, 400),)}, "is not low, width > 0"),
        ({"mean_ns": 99.0}, "minimum_ns <= mean_ns <= maximum_ns"),
        ({"deviation_ns": -1.0}, "deviation_ns: -1.0 is negative"),
        ({"kurtosis": 0.9}, "kurtosis: 0.9 is below 1"),
        ({"blocks": DelayBlocks(0, ())}, "blocks: 0 of 0 delays each, but count = 400"),
        ({"blocks": DelayBlocks(2, (0.0,) * 199)}, "blocks: 199 of 2 delays each, but count = 400"),
        ({"peak_to_peak_ns": {"all": 1.0}}, "peak_to_peak_ns: 'all' is no number up to 400"),
        ({"peak_to_peak_ns": {"1000": 1.0}}, "'1000' is no number up to 400"),
        ({"peak_to_peak_ns": {"9" * 5000: 1.0}}, "'99999999999999999999' is no number up to 400"),
    ],
)
def test_delays_that_contradict_themselves_are_not_even_written(
    tmp_path: Path, trial: EdgeTrial, change: dict[str, Any], said: str
) -> None:
    assert trial.delays is not None
    with pytest.raises(RecordError) as refused:
        write_edge_trial(tmp_path, replace(trial, delays=replace(trial.delays, **change)))
    assert said in str(refused.value)
    assert not (tmp_path / TRIAL).exists()


def test_witnesses_are_written_and_read_again(tmp_path: Path) -> None:
    write_witnesses(tmp_path, sample_witnesses())
    assert load_witnesses(tmp_path) == sample_witnesses()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": "gossip"}, "witnesses[0].name: 'gossip' is not one of"),
        ({"offset_ns": None}, "witnesses[0]: need either offset_ns or failed"),
        ({"failed": "no lock"}, "witnesses[0]: need either offset_ns or failed"),
        ({"parts": []}, "witnesses[0].parts: an offset without uncertainty"),
    ],
)
def test_damaged_witnesses_are_refused(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    write_witnesses(tmp_path, sample_witnesses())
    document = json.loads((tmp_path / WITNESSES).read_text())
    document["witnesses"][0] |= change
    (tmp_path / WITNESSES).write_text(json.dumps(document))
    with pytest.raises(RecordError) as refused:
        load_witnesses(tmp_path)
    assert said in str(refused.value)


def _pulse(samples: int) -> Segment:
    volts = np.where(np.arange(samples) < samples // 3, 0.0, 3.3)
    volts[samples - 5] = 3.5
    trace = trace_of(volts, -100.0, 0.5)
    return Segment(trace, trace)


def test_a_trace_keeps_edges_and_extremes_and_little_else() -> None:
    trace = _pulse(30_000).edge
    assert len(trace.volts) < 250
    assert trace.time_ns[0] == -100.0
    assert max(trace.volts) == 3.5
    rise = [
        (later - before, after - was)
        for before, later, was, after in zip(
            trace.time_ns, trace.time_ns[1:], trace.volts, trace.volts[1:], strict=False
        )
        if after - was > 3
    ]
    assert rise == [(0.5, 3.3)]


def test_noise_without_an_edge_stays_small() -> None:
    trace = trace_of(np.random.default_rng(1).normal(0, 0.02, 30_000), 0.0, 1.0)
    assert len(trace.volts) < 600


@pytest.mark.parametrize("volts", [[1.0], [[1.0, 2.0]], [1.0, float("nan")]])
def test_no_trace_of_what_is_no_waveform(volts: list[Any]) -> None:
    with pytest.raises(RecordError, match="need two or more samples in V"):
        trace_of(volts, 0.0, 1.0)


def test_only_some_segments_are_kept(tmp_path: Path) -> None:
    path = write_waveforms(tmp_path, [_pulse(300)] * 40)
    found = load_waveforms(path)
    assert len(found.segments) == SEGMENTS_MAX
    assert found.segments[0] == _pulse(300)


def test_waveforms_with_fewer_volts_than_times_are_refused(tmp_path: Path) -> None:
    write_waveforms(tmp_path, [_pulse(300)])
    document = json.loads((tmp_path / WAVEFORMS).read_text())
    document["segments"][0]["edge"]["volts"].pop()
    (tmp_path / WAVEFORMS).write_text(json.dumps(document))
    with pytest.raises(RecordError, match=r"segments\[0\].edge: need as many times as volts"):
        load_waveforms(tmp_path / WAVEFORMS)
