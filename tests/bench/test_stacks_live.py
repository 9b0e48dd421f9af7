# SPDX-License-Identifier: Apache-2.0
"""What the live comparison of stacks counts: claims of equal stacks, misses, intervals, changes of rank."""

from __future__ import annotations

from dataclasses import replace

from bench.verdicts.bench_stacks_live import LATE_TYPE, figures_of
from reports.stacks.compare import Compared

LATE_NS = 50_000.0
FOUND = Compared(
    *("kernel", "late", "idle", LATE_TYPE, "median"),
    rounds=12,
    left_out={},
    messages=5000,
    taken=10,
    lost=0,
    difference=LATE_NS + 3000,
    expanded=10_000.0,
    smallest_seen=14_000.0,
    is_claimed=True,
)
"""50 us later, found with 3 us too much, U 10 us."""
EQUAL = replace(FOUND, second="again", difference=500.0, is_claimed=False)


def test_what_is_right_has_nothing_to_count() -> None:
    figures = figures_of([[EQUAL]] * 3, [[FOUND]] * 3)
    assert {name: figures[name] for name in ("claimed_runs", "late_missed", "late_outside")} == dict.fromkeys(
        ("claimed_runs", "late_missed", "late_outside"), 0
    )
    assert (figures["ranking_changes"], figures["inconclusive"]) == (0, 0)
    assert (figures["late_error_us"], figures["late_u_us"]) == (3, 10)


def test_each_fault_is_counted() -> None:
    other_side = replace(FOUND, difference=-LATE_NS)
    doubtful = replace(EQUAL, difference=None, doubt="too few rounds: 4 count, 8 are needed")
    figures = figures_of(
        [[EQUAL, replace(EQUAL, statistic="p99", difference=50_000.0, is_claimed=True)], [doubtful]],
        [
            [FOUND],
            [replace(FOUND, difference=LATE_NS + 11_000)],
            [other_side],
            [replace(FOUND, is_claimed=False)],
        ],
    )
    assert figures["claimed_runs"] == 1
    assert figures["late_missed"] == 2
    assert figures["late_outside"] == 2
    assert figures["ranking_changes"] == 1
    assert figures["inconclusive"] == 1
