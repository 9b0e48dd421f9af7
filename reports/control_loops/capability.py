# SPDX-License-Identifier: Apache-2.0
"""Control loops: what the whole loop takes, and each of its stretches."""

from __future__ import annotations

from reports.capability import VERDICT, Capability, Quantity, Series
from reports.requirement_keys import COUNT, SAMPLES, UP_TO_A_SECOND, text, whole

LOOP_DELAY = "loop_delay"
LOOP_WIRE_DELAY = "loop_wire_delay"
DELAYS = LOOP_DELAY, LOOP_WIRE_DELAY
ORDER = "loop_contradictions"
WHOLE_OUTSIDE = "loop_whole_outside"
WHOLE_BEYOND_U = "loop_whole_beyond_u"
UNACCOUNTED = "loop_unaccounted"
HOLD_ERROR = "loop_hold_error"
WITNESSES = "loop_witnesses_en"
OUT_OF_PICTURE = "loop_out_of_picture"
SLOPE_ERROR = "loop_slope_error"
STRETCH = "stretch"
WHOLE = "whole"
QUANTILES = {"median": 0.5, "p99": 0.99}
_FORM = {STRETCH: text(), "statistic": text(*QUANTILES), "samples": SAMPLES, "lost": COUNT} | UP_TO_A_SECOND

CAPABILITY = Capability(
    position=80,
    axes={STRETCH: ""},
    series={
        "loop": Series(
            "Control loop",
            "What a message takes round the whole loop, and on each stretch of it.",
            STRETCH,
        ),
    },
    quantities={
        LOOP_DELAY: Quantity(series="loop"),
        LOOP_WIRE_DELAY: Quantity(series="loop"),
        ORDER: Quantity("", is_check=True),
        WHOLE_OUTSIDE: Quantity("", is_check=True),
        WHOLE_BEYOND_U: Quantity("%", is_check=True),
        UNACCOUNTED: Quantity("", is_check=True),
        WITNESSES: Quantity("", is_check=True),
        SLOPE_ERROR: Quantity("", worse="farther from zero", is_check=True),
        OUT_OF_PICTURE: Quantity("%", VERDICT),
        HOLD_ERROR: Quantity(series="loop", worse="farther from zero", is_check=True),
    },
    requirements={
        LOOP_DELAY: (_FORM,),
        LOOP_WIRE_DELAY: (_FORM,),
        OUT_OF_PICTURE: (
            {STRETCH: text(), "statistic": text("share"), "samples": SAMPLES, "upper_percent": whole(0, 100)},
        ),
    },
    part_meanings={
        "loop": "U of the loop's medians at both ends of a slope, over the range of delays.",
        "path": "U of the path's measured delay at both ends of a slope, over the range of delays.",
        "counter": "By how much a machine's counter may run off: 300 ppm of what it measured.",
    },
)
