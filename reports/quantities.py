# SPDX-License-Identifier: Apache-2.0
"""What can be measured, and of what: one row a quantity, one an axis, and what each part of U means.

Records, outcome, points of the store, followed series and distributions read it here. A capability that
measures something new adds its rows; `build_record` refuses a quantity that has none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

AXES: dict[str, str] = {"stream": "stream", "clock": "", "method": "", "device": "", "size": ""}
"""What a value may be of besides target and stack, the first one first in titles: one row an axis, with the
word that stands before its values where they do not speak for themselves."""


def axis_words(axis: str, value: str) -> str:
    """Return a value of an axis as pages show it."""
    return f"{AXES.get(axis) or ''} {value}".lstrip()


def producer_of(stream: int) -> int:
    """Return the producer that sends a stream: an id is its number, then a digit for the message type."""
    return stream // 10


def family_of(axis: str, value: str) -> str:
    """Return in words what a value of an axis is one of several of; empty: it stands by itself."""
    return f"producer {producer_of(int(value))}" if axis == "stream" and value.isdecimal() else ""


VERDICT = "verdict"
"""Series of what is no time: it is followed with the verdicts."""
Worse = Literal["higher", "lower", "farther from zero"]
"""Where values get worse to: a latency higher, a number of producers lower, an offset farther from zero."""


@dataclass(frozen=True, slots=True)
class Series:
    """Times, in ns, that the store, trends and Grafana keep together.

    Attributes:
        title: On pages.
        words: What a reader has to know of the values.
        subject: What tells them apart: one of `AXES`.
        followed: Fields that the adviser follows besides the value.
    """

    title: str
    words: str
    subject: str
    followed: tuple[str, ...] = ()


SERIES: dict[str, Series] = {
    "latency": Series(
        "Latency",
        "Each stream against its budget. A value passes where value + U stays under the limit.",
        "stream",
        ("p50_ns", "p99_ns"),  # one message decides a maximum: median and p99 of a stream say more of it
    ),
    "software": Series(
        "Software latency",
        "Each device's own: what its software takes to send and to receive, together, from round trips.",
        "device",
    ),
    "messages": Series(
        "Single messages",
        "Latency by size through a network stack: half of a round trip.",
        "size",
    ),
    "sync": Series("Clock sync", "Clocks against their reference; positive: ahead of it.", "clock"),
    "edges": Series(
        "Timed edges",
        "Ways to make an edge at a clock's instant, seen by an oscilloscope; positive: late.",
        "method",
    ),
}


@dataclass(frozen=True, slots=True)
class Quantity:
    """One quantity.

    Attributes:
        unit: Of its values.
        series: What the adviser follows it in, one of SERIES or VERDICT; None: the records' verdict alone.
        worse: Where its values get worse to.
        is_check: By it the bench checks itself: it cannot fail the target, only leave it undecided.
        has_distribution: A record is of one set of samples, whose distribution the evidence holds.
    """

    unit: str = "ns"
    series: str | None = None
    worse: Worse = "higher"
    is_check: bool = False
    has_distribution: bool = False


QUANTITIES: dict[str, Quantity] = {
    "one_way_latency": Quantity(series="latency", has_distribution=True),
    "round_trip_time": Quantity(series="latency"),
    "schedule_lateness": Quantity(series="latency"),
    "software_latency": Quantity(series="software"),
    "software_latency_closure": Quantity(is_check=True),
    "software_latency_en": Quantity("", is_check=True),
    "message_latency": Quantity(series="messages"),
    "bulk_rise": Quantity("%", VERDICT),
    "receive_rise": Quantity("%", VERDICT),
    "message_throughput": Quantity("bytes/s", VERDICT, "lower"),
    "loop_delay": Quantity(series="latency"),
    "throughput": Quantity("bytes/s", worse="lower"),
    "known_delay_error": Quantity(worse="farther from zero", is_check=True),
    "largest_pattern": Quantity("producers", VERDICT, "lower"),
    "provisioning_difference": Quantity("facts", VERDICT),
    "sync_offset": Quantity(series="sync", worse="farther from zero", has_distribution=True),
    "lock_time": Quantity("s", "sync"),
    "te": Quantity(series="sync"),
    "te_l": Quantity(),
    "cte": Quantity(worse="farther from zero"),
    "mtie": Quantity(series="sync"),
    "tdev": Quantity(series="sync"),
    "dte_l_mtie": Quantity(),
    "dte_l_tdev": Quantity(),
    "bound_missed": Quantity("ppm", VERDICT),
    "bound_width": Quantity("", VERDICT),
    "u_missed": Quantity("ppm", VERDICT),
    "u_width": Quantity("", VERDICT),
    "reads_left_out": Quantity("ppm", VERDICT),
    "holdover_rate": Quantity("ppb", VERDICT, "farther from zero"),
    "clock_read_latency": Quantity(series="sync", has_distribution=True),
    "clock_step": Quantity(series="sync", worse="farther from zero", is_check=True),
    "clock_witness_difference": Quantity(series="sync", worse="farther from zero", is_check=True),
    "path_shift": Quantity(series="sync", worse="farther from zero", is_check=True),
    "edge_delay": Quantity(series="edges", worse="farther from zero", has_distribution=True),
    "edge_deviation_difference": Quantity(series="edges", worse="lower"),
    "edge_error_shift": Quantity(series="edges", worse="farther from zero", is_check=True),
    "edge_witness_en": Quantity("", is_check=True),
}

PART_MEANINGS: dict[str, str] = {
    "clock_offset": "Half the shortest round trips that carry the line of the producer's clock: no exchange "
    "can tell how a round trip divides into its two ways.",
    "clock_residual": "Largest distance between the clock line that was used while messages arrived and the "
    "fit over the whole run.",
    "own_clock_line": "Where the target stamps by another clock than the system's: what the line from one "
    "to the other was off, at most.",
    "target_clock": "What the target's own clock was off while messages arrived, measured meanwhile.",
    "two_way": "Half the shortest round trip of two-way time transfer: no exchange can tell how it divides.",
    "two_way_time_server": "The same, of the time server's clock.",
    "look": "Time between two looks at the servo's log: it may have locked right after the first.",
    "reference": "What the reference states of its own error: half the shortest round trip of its "
    "calibration, and how well its line is known.",
    "timecard_certificate": "The reference card's uncertainty against its time server, from its certificate.",
    "bracket": "Half of the widest bracket that was kept: where in it the other clock was read is not known.",
    "undecided": "Samples that were off by more than they were told by no more than half of their window.",
    "median_error": "What reference and bracket can make of the median error that U, or a bound, is held to.",
    "slope": "The steepest line that errors within the bounds of reference and mean bracket can draw.",
    "counter_pair": "What two readings of the processor's counter cost: they stand around each reading of a "
    "clock, and are in its time.",
    "counter_resolution": "A tick of the processor's counter, and rounding to whole nanoseconds.",
    "scatter": "Standard deviation of the mean of all readings.",
    "noise": "Noise of the oscilloscope that is left at the crossing, over the slew rate, of both edges.",
    "sample_interval": "What samples do not tell of the signal between them.",
    "clock_jitter": "Jitter of the oscilloscope's sample clock, of both edges.",
    "jitter": "How far the edges' own scatter moves their mean.",
    "trigger": "Jitter of the trigger: 0 where both edges lie in one record.",
    "threshold": "How well the 50 % level is known, over the slew rate, of both channels.",
    "time_base": "Largest error of the oscilloscope's time base, times the delay.",
    "skew": "Largest delay between two channels by the data sheet, where no calibration says better.",
    "channel_skew": "Residual of the channels' skew after calibration.",
    "cable_delay": "Residual of a cable's delay after calibration.",
    "pin_delay": "Residual of a pin's delay after calibration.",
    "pin_resolution": "A tick of the counter that the pin fires by: no instant within it is told apart.",
    "resolution": "A step of the clock that stamps the edge.",
    "wander": "What a clock wanders between the moments at which two witnesses see it.",
    "repeatability": "What a standard deviation of so many edges scatters by itself, by their tails.",
    "clock_wander": "How far two clocks moved against each other while they were compared.",
    "partners": "How far a device's latency moves with the devices that it is measured with.",
    "stretches": "How far a device's latency moves from one quarter of the measurement to another.",
    "hardware": "Latency of cables and switches that was taken off the round trips, by their data sheets.",
    "round_trips": "Scatter of the round trips that tell a device's latency: moving-block bootstrap.",
    "rounds": "How far one round of trials alone is off the value of all of them, at most.",
    "buckets": "Width of the buckets of the tool's histogram, of each distribution that the value is of.",
    "host_jitter": "Spread of the time stamps of the machine that measures.",
}
"""Parts of U, by the names that records have for them."""


def has_distribution(quantity: str) -> bool:
    """Tell whether the evidence of a record holds a distribution; a difference of two samples has none."""
    return quantity in QUANTITIES and QUANTITIES[quantity].has_distribution


INSTRUMENT_CHECKS: frozenset[str] = frozenset(name for name, row in QUANTITIES.items() if row.is_check)
"""Quantities by which the bench checks itself: they cannot fail the target, only leave it undecided."""
