# SPDX-License-Identifier: Apache-2.0
"""The comparison against drawn truths: a few runs of those of `make bench-stack_comparison`."""

from __future__ import annotations

from bench.verdicts.bench_stack_comparison import drawn_runs, figures_of, judged


def test_drawn_truths_are_found() -> None:
    """The benchmark's bars, in few runs of fixed seeds: a U of half its width breaks them."""
    equal, mixed = (
        [judged(run) for run in drawn_runs(12, 700, equal=is_equal)] for is_equal in (True, False)
    )
    figures = figures_of(equal, mixed)
    assert figures["claimed_share"] <= 1 / 12
    assert figures["inside_share"] >= 0.95
    assert 0.5 <= figures["half_inside_share"] <= 0.95
    assert figures["claimed_of_mixed_share"] > 0.1
    assert figures["missed_share"] <= 0.05
