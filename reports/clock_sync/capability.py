# SPDX-License-Identifier: Apache-2.0
"""Clocks of a target against their reference: offset, lock, time error, and what a clock states of itself."""

from __future__ import annotations

from reports.capability import VERDICT, Capability, Quantity, Series
from reports.requirement_keys import MASK, UP_TO_A_SECOND, text, whole

MISSED, WIDTH, LEFT_OUT, HOLDOVER = "bound_missed", "bound_width", "reads_left_out", "holdover_rate"
U_MISSED, U_WIDTH = "u_missed", "u_width"
STATED_BOUND_STATISTICS = {
    MISSED: "share",
    WIDTH: "median",
    U_MISSED: "share",
    U_WIDTH: "median",
    LEFT_OUT: "share",
    HOLDOVER: "slope",
}
"""Each quantity on the bound that a clock states, with its statistic."""
_LIMITS = (
    (MISSED, "upper_ppm", 0, 1_000_000),
    (WIDTH, "upper_ratio", 1, 1000),
    (U_MISSED, "upper_ppm", 0, 1_000_000),
    (U_WIDTH, "upper_ratio", 1, 1000),
    (LEFT_OUT, "upper_ppm", 1, 1_000_000),
    (HOLDOVER, "upper_ppb", 1, 1_000_000),
)

CAPABILITY = Capability(
    position=30,
    axes={"clock": ""},
    series={"sync": Series("Clock sync", "Clocks against their reference; positive: ahead of it.", "clock")},
    quantities={
        "sync_offset": Quantity(series="sync", worse="farther from zero", has_distribution=True),
        "lock_time": Quantity("s", "sync"),
        "te": Quantity(series="sync"),
        "te_l": Quantity(),
        "cte": Quantity(worse="farther from zero"),
        "mtie": Quantity(series="sync"),
        "tdev": Quantity(series="sync"),
        "dte_l_mtie": Quantity(),
        "dte_l_tdev": Quantity(),
        MISSED: Quantity("ppm", VERDICT),
        WIDTH: Quantity("", VERDICT),
        U_MISSED: Quantity("ppm", VERDICT),
        U_WIDTH: Quantity("", VERDICT),
        LEFT_OUT: Quantity("ppm", VERDICT),
        HOLDOVER: Quantity("ppb", VERDICT, "farther from zero"),
        "clock_step": Quantity(series="sync", worse="farther from zero", is_check=True),
        "clock_witness_difference": Quantity(series="sync", worse="farther from zero", is_check=True),
        "path_shift": Quantity(series="sync", worse="farther from zero", is_check=True),
    },
    requirements={
        "sync_offset": (
            {"clock": text(), "statistic": text("max_abs"), "lock_within_s": whole(1, 86_400)}
            | UP_TO_A_SECOND
            | MASK,
        ),
        **{
            quantity: (
                {"clock": text(), "statistic": text(STATED_BOUND_STATISTICS[quantity])}
                | {"samples": whole(1, 10_000_000_000), limit: whole(least, most)},
            )
            for quantity, limit, least, most in _LIMITS
        },
    },
    part_meanings={
        "two_way": "Half the shortest round trip of two-way time transfer: no exchange can tell how it "
        "divides.",
        "two_way_time_server": "The same, of the time server's clock.",
        "poll_interval": "Time between two looks at the servo's log: it may have locked right after the "
        "first.",
        "reference": "What the reference states of its own error: half the shortest round trip of its "
        "calibration, and how well its line is known.",
        "timecard_certificate": "The reference card's uncertainty against its time server, from its "
        "certificate.",
        "bracket": "Half of the widest bracket that was kept: where in it the other clock was read is not "
        "known.",
        "undecided": "Samples that were off by more than they were told by no more than half of their "
        "window.",
        "median_error": "What reference and bracket can make of the median error that U, or a bound, is "
        "held to.",
        "slope": "The steepest line that errors within the bounds of reference and mean bracket can draw.",
    },
)
