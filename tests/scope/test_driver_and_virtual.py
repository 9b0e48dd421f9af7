# SPDX-License-Identifier: Apache-2.0
"""Drivers against virtual oscilloscopes, which share no code: edges of known times, by VISA, to delays."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import pytest

from hw.virtual.oscilloscope.edges import ReplayedEdges
from hw.virtual.oscilloscope.keysight.instrument import InfiniiVision
from hw.virtual.oscilloscope.server import Server
from hw.virtual.oscilloscope.tektronix.instrument import FiveSeries
from scope.delay import DelayMeter
from scope.drivers.link import Link
from scope.drivers.oscilloscope import ScpiOscilloscope
from scope.settings import (
    ChannelSettings,
    OscilloscopeSettings,
    TimebaseSettings,
    TriggerSettings,
)
from tests.hw.virtual_oscilloscope.controller import DELAY_PS, hardware, pulses
from tests.patience import HANG_S

SEGMENTS = 50
SKEW_PS = 800.0
DELAY_S = (DELAY_PS + SKEW_PS) * 1e-12
SETTINGS = OscilloscopeSettings(
    channels=(ChannelSettings(1, 0.5, 1.65), ChannelSettings(2, 0.5, 1.65)),
    timebase=TimebaseSettings(400e-9),
    trigger=TriggerSettings(1, 1.65),
    segments=SEGMENTS,
)


@contextmanager
def _scope(dialect: type[InfiniiVision] | type[FiveSeries]) -> Generator[ScpiOscilloscope]:
    machine = hardware(noise_v=0.01, skew_ps=SKEW_PS)
    instrument = dialect(machine, ReplayedEdges(pulses()), set())
    with Server(instrument) as server:
        link = Link("scope", f"TCPIP::127.0.0.1::{server.port}::SOCKET", timeout_s=HANG_S)
        with ScpiOscilloscope(link) as scope:
            yield scope


@pytest.mark.parametrize("dialect", [InfiniiVision, FiveSeries])
def test_delays_are_those_of_the_edges(dialect: type[InfiniiVision] | type[FiveSeries]) -> None:
    with _scope(dialect) as scope:
        scope.configure(SETTINGS)
        acquisition = scope.acquire(HANG_S)
        assert len(acquisition.frames) == 2 * SEGMENTS
        meter = DelayMeter(1, 2)
        meter.add(acquisition)
        result = meter.result()
        assert result is not None
        assert result.counts.pairs == SEGMENTS
        assert result.delays.mean_s == pytest.approx(DELAY_S, abs=20e-12)


@pytest.mark.parametrize("dialect", [InfiniiVision, FiveSeries])
def test_deskew_takes_the_skew_out(dialect: type[InfiniiVision] | type[FiveSeries]) -> None:
    with _scope(dialect) as scope:
        scope.configure(SETTINGS)
        scope.set_deskew(2, SKEW_PS * 1e-12)
        meter = DelayMeter(1, 2)
        meter.add(scope.acquire(HANG_S))
        result = meter.result()
        assert result is not None
        assert result.delays.mean_s == pytest.approx(DELAY_PS * 1e-12, abs=60e-12)
