# SPDX-License-Identifier: Apache-2.0
"""Ways to make an edge at a clock's instant, seen by an oscilloscope, and clocks by their edges."""

from __future__ import annotations

from reports.capability import Capability, Quantity, Series
from reports.requirement_keys import LOST_PERCENT, UP_TO_A_SECOND, text, whole

QUANTITY = "edge_delay"
OFFSET_QUANTITY = "sync_offset"
ORDER_QUANTITY = "edge_deviation_difference"
SHIFT_QUANTITY = "edge_error_shift"
"""Shift of the edges less the mistake that was put into the software: by this the bench checks itself."""
WITNESS_QUANTITY = "edge_witness_en"
"""Two witnesses' difference over both uncertainties: by this, too, the bench checks itself."""
MEAN, DEVIATION, PEAK_TO_PEAK = "mean", "standard_deviation", "peak_to_peak"
STATISTICS = (MEAN, DEVIATION, PEAK_TO_PEAK)
MAX_ABS = "max_abs"
OFFSET_STATISTICS = (MEAN, MAX_ABS)
METHODS = ("gettime-software", "rdtsc-software", "tgpio-filtered-read", "tgpio-latch")
"""The paper's four ways to make a timed edge, in the order of its Table II."""

_EDGES = {"samples": whole(4, 1_000_000_000)} | UP_TO_A_SECOND | LOST_PERCENT

CAPABILITY = Capability(
    position=70,
    axes={"method": ""},
    series={
        "edges": Series(
            "Timed edges",
            "Ways to make an edge at a clock's instant, seen by an oscilloscope; positive: late.",
            "method",
        ),
    },
    quantities={
        QUANTITY: Quantity(series="edges", worse="farther from zero", has_distribution=True),
        ORDER_QUANTITY: Quantity(series="edges", worse="lower"),
        SHIFT_QUANTITY: Quantity(series="edges", worse="farther from zero", is_check=True),
        WITNESS_QUANTITY: Quantity("", is_check=True),
    },
    requirements={
        QUANTITY: ({"method": text(*METHODS), "statistic": text(*STATISTICS)} | _EDGES,),
        OFFSET_QUANTITY: ({"clock": text(), "statistic": text(*OFFSET_STATISTICS)} | _EDGES,),
    },
    part_meanings={
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
    },
)
