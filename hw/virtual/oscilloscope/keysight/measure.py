# SPDX-License-Identifier: Apache-2.0
"""Subsystem MEASure of an InfiniiVision: delay between two channels, and its statistics."""

from __future__ import annotations

import math
import threading

from hw.virtual.oscilloscope.delay_meter import ScreenEdge, Statistics, nearest, numbered, screen_edges
from hw.virtual.oscilloscope.dialect import Raw, Word
from hw.virtual.oscilloscope.keysight.front_panel import FrontPanel
from hw.virtual.oscilloscope.keysight.waveform import number
from hw.virtual.oscilloscope.recorder import Segment
from hw.virtual.oscilloscope.scpi_errors import ScpiError
from hw.virtual.oscilloscope.scpi_message import Parameters, short_form
from hw.virtual.oscilloscope.scpi_tree import Suffixes

MEASUREMENTS_MAX = 8
EDGES_MAX = 1000
NOT_MEASURABLE = "+9.9E+37"
STATISTICS_MODES = ("ON", "CURRent", "MAXimum", "MEAN", "MINimum", "STDDev")
Delay = tuple[bool, int, int]
"""Edges chosen by the instrument?, first source, second source."""


class DelayMeter:
    """The measurements on the screen. Installed by commands, fed by acquisitions."""

    def __init__(self, scope: FrontPanel) -> None:
        self._scope = scope
        self._lock = threading.Lock()
        self._statistics: list[Statistics] = []

    def reset(self) -> None:
        """Begin the statistics anew, for all that is installed."""
        with self._lock:
            self._statistics = [Statistics() for _ in self._scope.settings.delays]

    def install(self, delay: Delay) -> None:
        """Put a measurement on the screen; the oldest goes when there is no room."""
        with self._lock:
            delays = self._scope.settings.delays
            if len(delays) >= MEASUREMENTS_MAX:
                del delays[0], self._statistics[0]
            delays.append(delay)
            self._statistics.append(Statistics())
        self.measure_screen()

    def clear(self) -> None:
        """Take all measurements off the screen."""
        with self._lock:
            self._scope.settings.delays.clear()
            self._statistics.clear()

    def measure_screen(self) -> None:
        """Take the segment on the screen into the statistics."""
        shown = self._shown()
        if shown is not None:
            self._take((shown,))

    def measure_all(self) -> None:
        """Begin anew with all segments."""
        self.reset()
        self._take(tuple(self._scope.acquisition.segments))

    def measure(self, delay: Delay) -> float:
        """Measure the segment on the screen; NaN when it cannot be measured."""
        shown = self._shown()
        return math.nan if shown is None else self._delay_s(shown, delay)

    def results(self) -> str:
        """Return what :MEASure:RESults? answers."""
        mode = self._scope.settings.statistics
        with self._lock:
            pairs = list(zip(self._scope.settings.delays, self._statistics, strict=True))
        fields: list[str] = []
        for (_, first, second), s in pairs:
            values = {
                "CURRent": s.current,
                "MINimum": s.minimum,
                "MAXimum": s.maximum,
                "MEAN": s.mean,
                "STDDev": s.deviation,
            }
            if mode == "ON":
                fields.append(f"Delay({first}-{second})")
                fields += [written(value) for value in values.values()]
                fields.append(f"{s.count}")
            else:
                fields.append(written(values[mode]))
        return ",".join(fields)

    def _shown(self) -> Segment | None:
        segments = self._scope.acquisition.segments
        return segments[min(self._scope.segment_index, len(segments)) - 1] if segments else None

    def _take(self, segments: tuple[Segment, ...]) -> None:
        with self._lock:
            for delay, statistics in zip(self._scope.settings.delays, self._statistics, strict=True):
                for segment in segments:
                    value = self._delay_s(segment, delay)
                    if not math.isnan(value):
                        statistics.add(value)

    def _delay_s(self, segment: Segment, delay: Delay) -> float:
        """Return time of the edge on the second source less that on the first."""
        automatic, *sources = delay
        found: list[ScreenEdge | None] = []
        for source, wanted in zip(sources, self._scope.settings.delay_edges, strict=True):
            edges = screen_edges(segment, source)
            reference_s = self._scope.settings.timebase_position_s
            found.append(
                nearest(edges, reference_s) if automatic else numbered(edges, wanted > 0, abs(wanted))
            )
        first, second = found
        return math.nan if first is None or second is None else second.time_s - first.time_s


def written(value: float) -> str:
    """Return a number, or what stands for one that cannot be measured."""
    return NOT_MEASURABLE if math.isnan(value) else number(value)


def add_commands(scope: FrontPanel, meter: DelayMeter) -> None:
    """Add the commands of the subsystem."""
    settings = lambda: scope.settings  # noqa: E731 - *RST replaces the settings

    def sources(p: Parameters, skip: int) -> tuple[int, int]:
        if len(p) == skip:
            return settings().measure_sources
        p.expect(skip + 2)
        return p.choice(scope.channel_words(), skip), p.choice(scope.channel_words(), skip + 1)

    def parse(p: Parameters, automatic: bool) -> Delay:
        p.expect(0, 3)
        modes = {"MANual": False, "MAN": False, "AUTO": True}
        moded = bool(p.texts) and p.texts[0].upper() in {"MANUAL", "MAN", "AUTO"}
        mode = p.choice(modes) if moded else automatic
        return (mode, *sources(p, int(moded)))

    def define(_: Suffixes, p: Parameters) -> None:
        p.expect(3)
        p.choice({"DELay": None})
        settings().delay_edges = (_edge(p, 1), _edge(p, 2))

    def definition(_: Suffixes, p: Parameters) -> object:
        p.expect(1)
        p.choice({"DELay": None})
        first, second = settings().delay_edges
        return Raw(f"DEL,{first:+d},{second:+d}")

    def set_sources(_: Suffixes, p: Parameters) -> None:
        p.expect(1, 2)
        chosen = [p.choice(scope.channel_words(), place) for place in range(len(p))]
        settings().measure_sources = (chosen[0], chosen[-1] if len(p) > 1 else settings().measure_sources[1])

    def set_statistics(_: Suffixes, p: Parameters) -> None:
        settings().statistics = p.choice({name: Word(name) for name in STATISTICS_MODES})

    # PG4 p. 580: without a mode, the command means AUTO and the query MANual.
    scope.commands.add(
        "MEASure:DELay",
        setter=lambda _, p: meter.install(parse(p, automatic=True)),
        getter=lambda _, p: meter.measure(parse(p, automatic=False)),
    )
    scope.commands.add("MEASure:DEFine", setter=define, getter=definition)
    scope.commands.add("MEASure:SOURce", setter=set_sources, getter=lambda _, p: Raw(_source_names(scope, p)))
    scope.add_setting("MEASure:STATistics", lambda _: settings().statistics, set_statistics)
    scope.add_action("MEASure:STATistics:RESet", meter.reset)
    scope.add_action("MEASure:CLEar", meter.clear)
    scope.add_query("MEASure:RESults", lambda _: Raw(meter.results()))
    scope.add_query("MEASure", lambda _: Raw(_dump(scope)))


def _edge(p: Parameters, index: int) -> int:
    """Return an edge: its sign is the direction, its size the number from the left."""
    value = p.integer_within(-EDGES_MAX, EDGES_MAX, index)
    if value == 0:
        raise ScpiError(222)
    return value


def _source_names(scope: FrontPanel, parameters: Parameters) -> str:
    parameters.expect(0)
    return ",".join(f"CHAN{number}" for number in scope.settings.measure_sources)


def _dump(scope: FrontPanel) -> str:
    first, second = scope.settings.measure_sources
    return f":MEAS:SOUR CHAN{first},CHAN{second};STAT {short_form(scope.settings.statistics)}"
