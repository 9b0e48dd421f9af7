# SPDX-License-Identifier: Apache-2.0
"""Drivers against virtual oscilloscopes, which share no code: edges of known times, by VISA, to delays."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import numpy as np
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
from tests.hw.virtual_oscilloscope.controller import DELAY_PS, Controller, hardware, pulses
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
def _panel(dialect: type[InfiniiVision] | type[FiveSeries]) -> Generator[Controller]:
    """Run an instrument; what is written here is what somebody sets at its front panel."""
    machine = hardware(noise_v=0.01, skew_ps=SKEW_PS)
    with Server(dialect(machine, ReplayedEdges(pulses()), set())) as server, Controller(server.port) as panel:
        yield panel


@contextmanager
def _driver(panel: Controller) -> Generator[ScpiOscilloscope]:
    """Connect to the same instrument."""
    assert panel.query("*OPC?").endswith("1")
    link = Link("scope", f"TCPIP::127.0.0.1::{panel.socket.getpeername()[1]}::SOCKET", timeout_s=HANG_S)
    with ScpiOscilloscope(link) as scope:
        yield scope


@contextmanager
def _scope(dialect: type[InfiniiVision] | type[FiveSeries]) -> Generator[ScpiOscilloscope]:
    with _panel(dialect) as panel, _driver(panel) as scope:
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


@pytest.mark.parametrize(
    ("dialect", "inverts"), [(InfiniiVision, ":CHANnel{}:INVert ON"), (FiveSeries, "CH{}:INVert ON")]
)
def test_a_channel_that_was_left_inverted_is_measured_as_it_is(
    dialect: type[InfiniiVision] | type[FiveSeries], inverts: str
) -> None:
    with _panel(dialect) as panel:
        panel.write(inverts.format(1), inverts.format(2))
        with _driver(panel) as scope:
            scope.configure(SETTINGS)
            meter = DelayMeter(1, 2)
            meter.add(scope.acquire(HANG_S))
        assert panel.query(inverts.replace(" ON", "?").format(1)).endswith("0")
    result = meter.result()
    assert result is not None
    assert result.counts.pairs == SEGMENTS
    assert result.delays.mean_s == pytest.approx(DELAY_S, abs=20e-12)


@pytest.mark.parametrize(("dialect", "channel"), [(InfiniiVision, ":CHANnel2"), (FiveSeries, "CH2")])
def test_an_inverted_channel_shows_its_voltages_with_the_other_sign(
    dialect: type[InfiniiVision] | type[FiveSeries], channel: str
) -> None:
    with _panel(dialect) as panel, _driver(panel) as scope:
        scope.configure(SETTINGS)
        panel.write(f"{channel}:OFFSet -1.65", f"{channel}:INVert ON")
        assert panel.query("*OPC?").endswith("1")
        frames = scope.acquire(HANG_S).frames
    for number, sign in ((1, 1), (2, -1)):
        frame = next(each for each in frames if each.channel == number)
        scaling = frame.scaling
        codes = np.array([frame.codes.min(), frame.codes.max()], dtype=float)
        volts = (codes - scaling.code_reference) * scaling.volts_per_code + scaling.offset_v
        assert sorted(sign * volts) == pytest.approx([0, 3.3], abs=0.1)


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
