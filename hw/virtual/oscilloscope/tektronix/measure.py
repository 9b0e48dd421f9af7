# SPDX-License-Identifier: Apache-2.0
"""The measurement DELAY of a 5 Series MSO, with statistics over the present and over all acquisitions."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from hw.virtual.oscilloscope.delay_meter import Statistics, screen_edges
from hw.virtual.oscilloscope.dialect import Raw, Word
from hw.virtual.oscilloscope.recorder import Segment
from hw.virtual.oscilloscope.scpi_errors import ScpiError
from hw.virtual.oscilloscope.scpi_message import Parameters
from hw.virtual.oscilloscope.scpi_tree import Suffixes
from hw.virtual.oscilloscope.tektronix.front_panel import FrontPanel
from hw.virtual.oscilloscope.tektronix.replies import Statistic

TYPES = ("DELAY", "PERIOD", "FREQUENCY", "AMPLITUDE", "PHASE")
MID_PERCENT = 50.0


@dataclass
class Measurement:
    """A measurement; only DELAY has results. The first source is where it starts."""

    type: Word
    first: int = 1
    second: int = 2
    first_rising: bool = True
    second_rising: bool = True
    forward: bool = True
    current: Statistics = field(default_factory=Statistics)
    all: Statistics = field(default_factory=Statistics)


def delay_s(segment: Segment, measurement: Measurement) -> float:
    """Return the time from the first edge of one source to the next, or the last, edge of the other.

    NaN when there is none.
    """
    start = next(
        (e for e in screen_edges(segment, measurement.first) if e.rising == measurement.first_rising), None
    )
    if start is None:
        return math.nan
    times_s = [
        edge.time_s
        for edge in screen_edges(segment, measurement.second)
        if edge.rising == measurement.second_rising
    ]
    if measurement.forward:
        return min((t for t in times_s if t >= start.time_s), default=math.nan) - start.time_s
    return max((t for t in times_s if t <= start.time_s), default=math.nan) - start.time_s


class DelayMeter:
    """The measurements of the instrument."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.measurements: dict[int, Measurement] = {}

    def get(self, number: int) -> Measurement:
        """Return a measurement; one that is asked for exists from then on."""
        with self._lock:
            return self.measurements.setdefault(number, Measurement(Word("PERIOD")))

    def add(self, kind: Word) -> None:
        """Add a measurement with the next free number."""
        with self._lock:
            self.measurements[max(self.measurements, default=0) + 1] = Measurement(kind)

    def delete_all(self) -> None:
        """Remove all measurements."""
        with self._lock:
            self.measurements.clear()

    def begin(self) -> None:
        """Forget the present acquisition: another begins."""
        with self._lock:
            for measurement in self.measurements.values():
                measurement.current = Statistics()

    def take(self, segments: Sequence[Segment]) -> None:
        """Measure all frames of an acquisition."""
        with self._lock:
            for measurement in self.measurements.values():
                measurement.current = Statistics()
                if measurement.type != "DELAY":
                    continue
                for segment in segments:
                    value_s = delay_s(segment, measurement)
                    if not math.isnan(value_s):
                        measurement.current.add(value_s)
                        measurement.all.add(value_s)


def add_commands(scope: FrontPanel, meter: DelayMeter) -> None:
    """Add the commands of the group MEASUrement."""
    kinds = {name: Word(name) for name in TYPES}

    def of(suffixes: Suffixes) -> Measurement:
        return meter.get(suffixes[0])

    def put(name: str, suffixes: Suffixes, value: object) -> None:
        measurement = of(suffixes)
        setattr(measurement, name, value)
        measurement.current, measurement.all = Statistics(), Statistics()

    def add(_: Suffixes, p: Parameters) -> None:
        p.expect(1)
        meter.add(p.choice(kinds))

    scope.commands.add("MEASUrement:ADDMEAS", setter=add)
    scope.add_action("MEASUrement:DELETEALL", meter.delete_all)
    scope.add_query(
        "MEASUrement:LIST",
        lambda _: Raw(",".join(f"MEAS{number}" for number in sorted(meter.measurements)) or "NONE"),
    )
    one = "MEASUrement:MEAS<n>"
    scope.add_setting(f"{one}:TYPe", lambda s: of(s).type, lambda s, p: put("type", s, p.choice(kinds)))
    for pattern, name in (("SOUrce1", "first"), ("SOUrce2", "second")):
        scope.add_setting(
            f"{one}:{pattern}",
            lambda s, name=name: Word(f"CH{getattr(of(s), name)}"),
            lambda s, p, name=name: put(name, s, p.choice(scope.channel_words())),
        )
    # EDGE1 is the edge that the delay goes to, EDGE2 the one that it comes from.
    for pattern, name in (("EDGE1", "second_rising"), ("EDGE2", "first_rising")):
        scope.add_setting(
            f"{one}:DELay:{pattern}",
            lambda s, name=name: Word("RISe" if getattr(of(s), name) else "FALL"),
            lambda s, p, name=name: put(name, s, p.choice({"RISe": True, "FALL": False})),
        )
    scope.add_setting(
        f"{one}:TOEDGESEARCHDIRect",
        lambda s: Word("FORWard" if of(s).forward else "BACKWard"),
        lambda s, p: put("forward", s, p.choice({"FORWard": True, "BACKWard": False})),
    )
    for span, name in (("CURRentacq", "current"), ("ALLAcqs", "all")):
        _add_results(scope, meter, f"{one}:RESUlts:{span}", name)
    _add_levels(scope)


def _add_results(scope: FrontPanel, meter: DelayMeter, group: str, name: str) -> None:
    def of(suffixes: Suffixes) -> Statistics:
        return getattr(meter.get(suffixes[0]), name)

    scope.add_query(f"{group}:MEAN", lambda s: Statistic(of(s).mean))
    scope.add_query(f"{group}:MAXimum", lambda s: Statistic(of(s).maximum))
    scope.add_query(f"{group}:MINimum", lambda s: Statistic(of(s).minimum))
    scope.add_query(f"{group}:STDDev", lambda s: Statistic(of(s).deviation))
    scope.add_query(f"{group}:PK2PK", lambda s: Statistic(of(s).maximum - of(s).minimum))
    scope.add_query(f"{group}:POPUlation", lambda s: of(s).count)


def _add_levels(scope: FrontPanel) -> None:
    """Add the reference levels, of which only the middle in percent is simulated."""

    def set_method(_: Suffixes, p: Parameters) -> None:
        if p.choice({"PERCent": True, "ABSolute": False}) is False:
            raise ScpiError(221, "only PERCent is simulated")

    def set_middle(_: Suffixes, p: Parameters) -> None:
        if p.number() != MID_PERCENT:
            raise ScpiError(221, "only 50 is simulated")

    levels = "MEASUrement:CH<n>:REFLevels"
    scope.add_setting(f"{levels}:METHod", lambda _: Word("PERCent"), set_method)
    for edge in ("RISEMid", "FALLMid"):
        scope.add_setting(f"{levels}:PERCent:{edge}", lambda _: MID_PERCENT, set_middle)
