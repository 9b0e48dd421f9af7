# SPDX-License-Identifier: Apache-2.0
"""What the tests of drivers share: settings that the transcripts answer, and a driver on a transcript."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace

from scope.drivers.oscilloscope import ScpiOscilloscope, open_oscilloscope
from scope.settings import ChannelSettings, OscilloscopeSettings, TimebaseSettings, TriggerSettings
from tests.patience import HANG_S
from tests.scope.transcript import FOLDER, TranscriptServer

TIMEOUT_S = 0.6
"""Of sessions in which the instrument is silent on purpose: tests that keep a time."""

SETTINGS = OscilloscopeSettings(
    channels=(
        ChannelSettings(1, scale_v_per_div=0.5, offset_v=1.5, probe_ratio=10.0),
        ChannelSettings(
            2, scale_v_per_div=0.2, termination_ohm=50, bandwidth_limit_hz=20e6, deskew_s=1.68e-9
        ),
    ),
    timebase=TimebaseSettings(window_s=1e-6, lowest_sample_rate_hz=5e9),
    trigger=TriggerSettings(channel=1, level_v=1.5),
    segments=3,
)
SINGLE = replace(SETTINGS, segments=1)


def transcript(name: str, changes: str = "") -> str:
    """Return a transcript with some entries replaced."""
    return (FOLDER / f"{name}.txt").read_text() + "\n" + changes


@contextmanager
def oscilloscope(
    text: str, timeout_s: float = HANG_S
) -> Generator[tuple[ScpiOscilloscope, TranscriptServer]]:
    """Open a driver on a transcript; nothing that the transcript does not know may be asked."""
    with TranscriptServer(text) as server:
        scope = open_oscilloscope("scope-a", server.resource, timeout_s=timeout_s)
        with scope:
            yield scope, server
        assert not server.unexpected, server.unexpected
