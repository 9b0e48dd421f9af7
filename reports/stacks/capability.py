# SPDX-License-Identifier: Apache-2.0
"""Network stacks against each other: differences of latency, and of what is beyond its budget."""

from __future__ import annotations

from reports.capability import VERDICT, Capability, Quantity
from reports.requirement_keys import SAMPLES, UP_TO_A_SECOND, number, text

LATENCY_DIFFERENCE = "stack_latency_difference"
OVER_BUDGET_DIFFERENCE = "stack_over_budget_difference"
QUANTITIES = LATENCY_DIFFERENCE, OVER_BUDGET_DIFFERENCE
UNDER, PAIR, MESSAGE_TYPE = "under", "pair", "message_type"
"""Axes: under what condition, of which two stacks, of which type of streams. Requirements name the first."""
MEDIAN, P99, SHARE = "median", "p99", "share"

CAPABILITY = Capability(
    position=65,
    axes={UNDER: "", PAIR: "", MESSAGE_TYPE: ""},
    quantities={
        LATENCY_DIFFERENCE: Quantity(series=VERDICT),
        OVER_BUDGET_DIFFERENCE: Quantity("%", VERDICT),
    },
    requirements={
        LATENCY_DIFFERENCE: (
            {UNDER: text(), "statistic": text(MEDIAN, P99), "samples": SAMPLES} | UP_TO_A_SECOND,
        ),
        OVER_BUDGET_DIFFERENCE: (
            {UNDER: text(), "statistic": text(SHARE), "samples": SAMPLES}
            | {"upper_percent": number(0.001, 100)},
        ),
    },
    part_meanings={
        "rounds_together": "Scatter of the difference over rounds of turns, so wide that all comparisons of "
        "the run hold together: half of the interval's half width.",
    },
)
