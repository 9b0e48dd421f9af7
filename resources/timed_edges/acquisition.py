# SPDX-License-Identifier: Apache-2.0
"""Watching edges with an oscilloscope of the bench: set up, armed and read until there are enough pairs."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace

from hw.errors import CapabilityError
from hw.oscilloscopes import OscilloscopeSpec, SignalSpec
from hw.protocols import Oscilloscope
from reports.timed_edges.waveforms import SEGMENTS_MAX
from reports.units import format_value
from resources.timed_edges.settings import EdgeView
from scope.delay import Counts, DelayMeter, DelayResult
from scope.errors import ScopeError, WaveformError
from scope.incomplete import IncompleteAcquisitionError
from scope.pairs import PairSettings
from scope.settings import OscilloscopeSettings, RealisedSettings, TimebaseSettings, TriggerSettings
from scope.waveform import Acquisition, Frame

REFERENCE, EDGE = "reference", "edge"
"""Signals of an oscilloscope, as the bench file names them."""
PAIRED_WITHIN = 0.49
"""Of the window: so far from its middle a partner is looked for; the rest is for the trigger's place."""
FIRST_TRIES = 3
"""Armings after which a signal without edges is taken for what it is: at first software may stall."""
PATIENCE = 4.0
"""An arming may take so much longer than its segments' periods, and SLACK_S."""
SLACK_S = 10.0

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Observation:
    """What an oscilloscope saw.

    Attributes:
        instrument: As it names itself.
        result: None: there is no pair.
        counts: What became of all segments.
        frames: Some segments of the first arming, of both channels.
        settings: As a reader wants them.
        failed: Which instrument failed at which command, and why; empty: it did not.
        fault: The error behind it.
    """

    instrument: str
    result: DelayResult | None
    counts: Counts
    frames: tuple[Frame, ...] = ()
    settings: dict[str, str] = field(default_factory=dict[str, str])
    failed: str = ""
    fault: ScopeError | None = None


def signals_of(spec: OscilloscopeSpec) -> tuple[SignalSpec, SignalSpec]:
    """Return the inputs of reference and edge.

    Raises:
        CapabilityError: One of them is not connected.
    """
    for name in (REFERENCE, EDGE):
        if name not in spec.signals:
            raise CapabilityError(
                f"oscilloscope {spec.name}: no signal {name!r} on its inputs; add it to"
                f" benchwright.oscilloscopes.{spec.name}.signals of the bench file"
            )
    return spec.signals[REFERENCE], spec.signals[EDGE]


def oscilloscope_settings(spec: OscilloscopeSpec, view: EdgeView) -> OscilloscopeSettings:
    """Return how an oscilloscope is set up for a view: triggered by the reference."""
    reference, edge = signals_of(spec)
    limit_hz = view.bandwidth_limit_hz
    channels = tuple(
        one.channel if limit_hz is None else replace(one.channel, bandwidth_limit_hz=limit_hz)
        for one in (reference, edge)
    )
    return OscilloscopeSettings(
        channels=channels,
        timebase=TimebaseSettings(view.window_ns * 1e-9, view.centre_ns * 1e-9, view.sample_rate_hz),
        trigger=TriggerSettings(reference.channel.number, reference.level_v),
        segments=view.segments,
    )


def watch_edges(
    scope: Oscilloscope,
    spec: OscilloscopeSpec,
    view: EdgeView,
    wanted: int,
    period_ns: int,
    max_s: float,
    progress: Progress,
) -> Observation:
    """Read segments until there are enough pairs, or the time is over.

    Whatever goes wrong with the instrument is in the result: what was acquired until then is kept.

    Args:
        scope: Connected; it is set up here.
        spec: What the bench file says of it.
        view: What it is to show.
        wanted: Pairs.
        period_ns: From one reference edge to the next.
        max_s: Time after which no arming is begun any more.
        progress: Called with a line of text now and then.
    """
    watch = _Watch(scope, spec, view, progress)
    deadline_s = time.monotonic() + max_s
    arming_s = view.segments * period_ns * 1e-9 * PATIENCE + SLACK_S
    try:
        watch.set_up()
        while watch.meter.counts.pairs < wanted and time.monotonic() < deadline_s:
            watch.take(arming_s)
    except ScopeError as error:
        return watch.watched(f"oscilloscope {error}", error)
    return watch.watched()


class _Watch:
    """What is known while an oscilloscope is read."""

    def __init__(
        self, scope: Oscilloscope, spec: OscilloscopeSpec, view: EdgeView, progress: Progress
    ) -> None:
        self._scope = scope
        self._view = view
        self._settings = oscilloscope_settings(spec, view)
        self._progress = progress
        reference, edge = (channel.number for channel in self._settings.channels)
        pairing = PairSettings(
            expected_s=view.centre_ns * 1e-9, within_s=PAIRED_WITHIN * view.window_ns * 1e-9
        )
        self.meter = DelayMeter(reference, edge, pairing)
        self._frames: tuple[Frame, ...] = ()
        self._tries = 0
        self._realised: RealisedSettings | None = None
        self._instrument = spec.name

    def set_up(self) -> None:
        """Set the instrument up."""
        self._instrument = str(self._scope.identity)
        self._realised = self._scope.configure(self._settings)

    def take(self, timeout_s: float) -> None:
        """Arm once, and count what comes."""
        self._scope.arm()
        try:
            acquisition = self._scope.collect(timeout_s)
        except IncompleteAcquisitionError as error:
            with suppress(WaveformError):
                self._count(error.acquired)
            raise
        self._tries += 1
        try:
            self._count(acquisition)
        except WaveformError as error:
            if self._frames or self._tries >= FIRST_TRIES:
                raise WaveformError(f"{self._instrument}: {error}") from error
            self._progress(f"no delays yet: {error}")

    def _count(self, acquisition: Acquisition) -> None:
        self.meter.add(acquisition)
        if not self._frames:
            self._frames = tuple(frame for frame in acquisition.frames if frame.index < SEGMENTS_MAX)

    def watched(self, failed: str = "", fault: ScopeError | None = None) -> Observation:
        """Return what was seen so far."""
        return Observation(
            self._instrument,
            self.meter.result(),
            self.meter.counts,
            self._frames,
            self._words(),
            failed,
            fault,
        )

    def _words(self) -> dict[str, str]:
        """Return the settings as a reader wants them."""
        words = {"window": format_value(self._view.window_ns, "ns"), "segments": str(self._view.segments)}
        if self._realised is not None:
            rate_hz = self._realised.sample_rate_hz
            words["sample interval"] = format_value(1e9 / rate_hz, "ns")
        limit_hz = self._view.bandwidth_limit_hz
        words["bandwidth limit"] = "as the bench file" if limit_hz is None else f"{limit_hz / 1e6:g} MHz"
        return words
