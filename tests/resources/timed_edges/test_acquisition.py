# SPDX-License-Identifier: Apache-2.0
"""Edges watched through both drivers on virtual oscilloscopes, and what is kept where an instrument fails."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from hw.errors import CapabilityError
from hw.oscilloscopes import OscilloscopeSpec, SignalSpec
from hw.virtual.oscilloscope.edges import Edge, ReplayedEdges
from hw.virtual.oscilloscope.faults import Fault
from hw.virtual.oscilloscope.keysight.instrument import InfiniiVision
from hw.virtual.oscilloscope.server import Server
from hw.virtual.oscilloscope.tektronix.instrument import FiveSeries
from reports.timed_edges.waveforms import load_waveforms
from resources.timed_edges.acquisition import Observation, oscilloscope_settings, watch_edges
from resources.timed_edges.evidence import budgets_of, correction_of, counts_of, delays_of, keep_waveforms
from resources.timed_edges.settings import EdgeView
from scope.budget import InstrumentLimits
from scope.calibration import Correction
from scope.drivers.link import Link
from scope.drivers.oscilloscope import ScpiOscilloscope
from scope.settings import ChannelSettings
from tests.hw.virtual_oscilloscope.controller import hardware, pulses
from tests.patience import HANG_S

Dialect = type[InfiniiVision] | type[FiveSeries]
pytestmark = pytest.mark.timed

BOTH = pytest.mark.parametrize("dialect", [InfiniiVision, FiveSeries])
VIEW = EdgeView(window_ns=4000, centre_ns=0, sample_rate_hz=250e6, bandwidth_limit_hz=20e6, segments=40)
PERIOD_NS = 1_000_000
DELAY_NS = 300.0
WANTED = 100
SPEC = OscilloscopeSpec(
    name="scope",
    resource="TCPIP::127.0.0.1::5025::SOCKET",
    dialect=None,
    library="@py",
    timeout_s=HANG_S,
    signals={
        "reference": SignalSpec(ChannelSettings(1, 0.5, 1.65), 1.65),
        "edge": SignalSpec(ChannelSettings(2, 0.5, 1.65), 1.65),
    },
    limits=InstrumentLimits(1e-6, skew_s=50e-12),
)


def _edges(every: int = 0, jitter_ps: float = 0.0) -> Iterator[Edge]:
    """Yield pulses on both inputs; every so many-th pulse of the second is missing, 0: none."""
    number = 0
    for edge in pulses(round(DELAY_NS * 1000), PERIOD_NS * 1000, jitter_ps):
        if edge.channel == 2:
            number += 1
            if every and (number - 1) // 2 % every == every - 1:
                continue
        yield edge


@contextmanager
def _scope(
    dialect: Dialect, edges: Iterator[Edge], faults: set[Fault] | None = None
) -> Generator[ScpiOscilloscope, None, None]:
    instrument = dialect(hardware(noise_v=0.01), ReplayedEdges(edges), faults or set())
    with Server(instrument) as server:
        patience_s = 2.0 if faults else HANG_S
        link = Link("scope", f"TCPIP::127.0.0.1::{server.port}::SOCKET", timeout_s=patience_s)
        with ScpiOscilloscope(link) as scope:
            yield scope


def _watch(
    dialect: Dialect, edges: Iterator[Edge], faults: set[Fault] | None = None, max_s: float = 20.0
) -> Observation:
    with _scope(dialect, edges, faults) as scope:
        return watch_edges(scope, SPEC, VIEW, WANTED, PERIOD_NS, max_s, lambda _line: None)


@BOTH
def test_delays_are_those_of_the_edges(dialect: Dialect, tmp_path: Path) -> None:
    watched = _watch(dialect, _edges(jitter_ps=10_000.0))
    assert not watched.failed
    assert watched.result is not None
    delays = delays_of(watched.result.delays)
    assert delays.count >= WANTED
    assert delays.mean_ns == pytest.approx(DELAY_NS, abs=5.0)
    assert delays.deviation_ns == pytest.approx(10.0, rel=0.3)
    delays.check("delays")
    assert counts_of(watched).missing == 0
    budgets = budgets_of(SPEC, watched.result, Correction())
    assert budgets.mean is not None
    assert {part.name for part in budgets.mean} >= {"noise", "jitter", "skew", "time_base"}
    assert next(part.value_ns for part in budgets.mean if part.name == "skew") == pytest.approx(0.05)
    assert keep_waveforms(SPEC, watched.frames, tmp_path) == "waveforms.json"
    segment = load_waveforms(tmp_path / "waveforms.json").segments[0]
    assert max(segment.reference.volts) == pytest.approx(3.3, abs=0.2)
    assert min(segment.edge.volts) == pytest.approx(0.0, abs=0.2)
    assert watched.settings["bandwidth limit"] == "20 MHz"


@BOTH
def test_missing_edges_are_counted_and_others_taken_in_their_place(dialect: Dialect) -> None:
    watched = _watch(dialect, _edges(every=5))
    assert watched.result is not None
    counts = counts_of(watched)
    assert counts.pairs >= WANTED
    assert counts.missing == pytest.approx(counts.segments / 5, abs=2)
    assert counts.at_border == 0


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (Fault.NO_TRIGGER, "no trigger within"),
        (Fault.FEWER_FRAMES, "20 segments were acquired, 40 asked for"),
        (Fault.STALLED_TRANSFER, " answer"),
        (Fault.GARBAGE_BLOCK, "scope"),
        (Fault.CLIP, "clipped"),
    ],
)
@BOTH
def test_a_fault_names_the_instrument_and_keeps_what_came(
    dialect: Dialect, fault: Fault, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resources.timed_edges.acquisition.SLACK_S", 1.0)
    watched = _watch(dialect, _edges(), {fault})
    assert watched.failed.startswith("oscilloscope scope")
    assert said in watched.failed
    assert watched.fault is not None
    if fault is Fault.FEWER_FRAMES:
        assert watched.counts.pairs == VIEW.segments // 2


def test_a_signal_without_edges_is_no_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resources.timed_edges.acquisition.SLACK_S", 1.0)
    watched = _watch(InfiniiVision, _edges(every=1))
    assert watched.result is None
    assert "no two levels" in watched.failed


def test_time_ends_a_trial_with_the_pairs_that_it_has() -> None:
    watched = _watch(InfiniiVision, _edges(), max_s=0.0)
    assert (watched.failed, watched.counts.pairs) == ("", 0)


def test_a_view_without_a_limit_leaves_that_of_the_bench_file() -> None:
    settings = oscilloscope_settings(SPEC, replace(VIEW, bandwidth_limit_hz=None))
    assert {channel.bandwidth_limit_hz for channel in settings.channels} == {None}
    assert settings.trigger.channel == 1


@BOTH
def test_a_record_may_show_more_of_what_comes_after(
    dialect: Dialect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.resources.timed_edges.test_acquisition.VIEW", replace(VIEW, centre_ns=1500))
    late = pulses(3_200 * 1000, PERIOD_NS * 1000)  # beyond the record, were its middle the trigger
    watched = _watch(dialect, late)
    assert watched.result is not None
    assert watched.result.delays.mean_s == pytest.approx(3.2e-6, abs=5e-9)
    assert watched.counts.at_border == 0


def test_an_oscilloscope_without_the_signal_is_a_missing_capability() -> None:
    spec = replace(SPEC, signals={"reference": SPEC.signals["reference"]})
    with pytest.raises(CapabilityError, match=r"oscilloscopes\.scope\.signals"):
        oscilloscope_settings(spec, VIEW)


def test_without_limits_there_is_no_budget_and_without_records_no_correction() -> None:
    watched = _watch(InfiniiVision, _edges())
    assert budgets_of(replace(SPEC, limits=None), watched.result, Correction()).mean is None
    assert correction_of(SPEC, date(2026, 1, 1), "X").delay_s == 0
