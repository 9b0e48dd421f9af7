# SPDX-License-Identifier: Apache-2.0
"""Drivers against virtual oscilloscopes, which share no code: edges of known times, by VISA, to delays."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import pytest

from hw.virtual.oscilloscope.edges import ReplayedEdges
from hw.virtual.oscilloscope.faults import Fault
from hw.virtual.oscilloscope.keysight.instrument import InfiniiVision
from hw.virtual.oscilloscope.server import Server
from hw.virtual.oscilloscope.tektronix.instrument import FiveSeries
from scope.delay import DelayMeter
from scope.drivers.link import Link
from scope.drivers.oscilloscope import ScpiOscilloscope
from scope.errors import InstrumentError
from scope.incomplete import IncompleteAcquisitionError
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
def _scope(
    dialect: type[InfiniiVision] | type[FiveSeries], faults: set[Fault] | None = None
) -> Generator[ScpiOscilloscope]:
    machine = hardware(noise_v=0.01, skew_ps=SKEW_PS)
    instrument = dialect(machine, ReplayedEdges(pulses()), faults or set())
    with Server(instrument) as server:
        patience_s = 2.0 if faults else HANG_S
        link = Link("scope", f"TCPIP::127.0.0.1::{server.port}::SOCKET", timeout_s=patience_s)
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


@pytest.mark.timed
@pytest.mark.parametrize("dialect", [InfiniiVision, FiveSeries])
@pytest.mark.parametrize(
    "fault", [Fault.NO_TRIGGER, Fault.FEWER_FRAMES, Fault.GARBAGE_BLOCK, Fault.STALLED_TRANSFER]
)
def test_faults_are_errors(dialect: type[InfiniiVision] | type[FiveSeries], fault: Fault) -> None:
    with _scope(dialect, {fault}) as scope:
        scope.configure(SETTINGS)
        with pytest.raises(IncompleteAcquisitionError, match="scope") as caught:
            scope.acquire(1.5)
        assert len(caught.value.acquired.frames) < 2 * SEGMENTS


@pytest.mark.parametrize("dialect", [InfiniiVision, FiveSeries])
def test_another_instrument_is_refused(dialect: type[InfiniiVision] | type[FiveSeries]) -> None:
    with pytest.raises(InstrumentError, match=r"\*IDN\?"), _scope(dialect, {Fault.WRONG_IDENTITY}):
        pass
