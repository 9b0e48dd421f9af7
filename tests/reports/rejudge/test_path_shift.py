# SPDX-License-Identifier: Apache-2.0
"""The shift by an asymmetric path is worked out again alike, and what was changed in it is named."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pytest
from scipy.special import stdtrit

from reports.clock_sync.path_shift import path_shift, shift_measurement
from reports.clock_sync.trial import FILTERED, TRIAL, ClockTrial
from reports.rejudge.path_shift import path_shift_discrepancies, student_t
from reports.run.folder import RunFolder
from tests.reports.rejudge.clock_trials import Json, context, edit, named, trial_of
from tests.reports.sample_clock import compare_answer


def shift(
    run: RunFolder,
    means_ns: Sequence[tuple[int, int]],
    seen_ns: Sequence[tuple[int, int]] | None = None,
    transits_ns: tuple[int, int] | None = None,
) -> Json:
    """Write pairs of trials without and with a delay of 50 us, and return their record.

    Args:
        run: Where.
        means_ns: Of each pair.
        seen_ns: The asymmetry of each pair's path, without and with it.
        transits_ns: What runs of earlier versions saw: one way, without and with it.
    """
    pairs: list[tuple[ClockTrial, ClockTrial]] = []
    for number, means in enumerate(means_ns, start=1):
        found: list[ClockTrial] = []
        for index, (delay_us, mean_ns) in enumerate(zip((0, 50), means, strict=True)):
            facts: Json = {"kind": "asymmetry", "impairment": f"{delay_us} us one way"}
            facts["server_to_target_ns"] = transits_ns[index] if transits_ns else None
            facts["asymmetry_ns"] = seen_ns[number - 1][index] if seen_ns else None
            name = f"chrony-asymmetry/pair-{number}-{delay_us}-us"
            found.append(trial_of(run, name, compare_answer(mean_ns=mean_ns), **facts))
        pairs.append((found[0], found[1]))
    files = [trial.folder / name for pair in pairs for trial in pair for name in (TRIAL, FILTERED)]
    where = dataclasses.replace(
        context(run, pairs[0][1]), evidence=tuple(run.evidence(file) for file in files)
    )
    # Earlier versions took what they had seen of one way for all pairs.
    asymmetry_ns = transits_ns[1] - transits_ns[0] if transits_ns else 50_000
    return shift_measurement(path_shift(pairs, asymmetry_ns), where).to_json()


SEEN = [(3_000, -21_000), (5_000, -21_000), (1_000, -24_500), (2_000, -22_500)]
WANDERS = [(0, -45_000), (0, -65_000), (0, -52_500)]


@pytest.mark.parametrize(
    ("means_ns", "seen_ns", "outcome"),
    [
        (SEEN, None, "pass"),
        ([(0, 500), (0, -700), (0, 300)], None, "inconclusive"),
        ([(0, -60_000), (0, 9_000), (0, -24_000)], None, "inconclusive"),
        (WANDERS, [(-9_000, 82_000), (10_000, 140_000), (5_000, 109_000)], "pass"),
        (WANDERS, [(0, 100_000)] * 3, "pass"),
        (WANDERS, [(0, 84_000), (0, 124_000), (0, 99_000)], "inconclusive"),
    ],
)
def test_a_shift_is_judged_alike(
    run: RunFolder,
    means_ns: Sequence[tuple[int, int]],
    seen_ns: Sequence[tuple[int, int]] | None,
    outcome: str,
) -> None:
    record = shift(run, means_ns, seen_ns)
    assert record["outcome"] == outcome
    assert path_shift_discrepancies(run.path, [record]) == ([], 1)


@pytest.mark.parametrize(
    ("means_ns", "transits_ns", "outcome"),
    [
        (SEEN[:3], (400_000, 451_000), "pass"),
        (SEEN, (400_000, 514_000), "inconclusive"),
        (SEEN[::-1], (514_000, 400_000), "inconclusive"),
    ],
)
def test_a_run_of_an_earlier_version_is_judged_as_it_was(
    run: RunFolder, means_ns: Sequence[tuple[int, int]], transits_ns: tuple[int, int], outcome: str
) -> None:
    record = shift(run, means_ns, transits_ns=transits_ns)
    assert record["outcome"] == outcome
    assert path_shift_discrepancies(run.path, [record]) == ([], 1)


def test_a_shift_that_was_changed_is_named(run: RunFolder) -> None:
    record = shift(run, SEEN)
    named(path_shift_discrepancies, run, record | {"value": -25_500}, "value is -25500, its pairs say")
    named(path_shift_discrepancies, run, record | {"n": 5}, "n is 5, its pairs say 4")
    wide = {"upper": -1, "lower": -90_000, "source": ""}
    named(path_shift_discrepancies, run, record | {"limit": wide}, "the 95 % interval gives")
    folder = run.path / "evidence" / "clock_sync" / "linux-rt" / "chrony-asymmetry"
    edit(folder / "pair-2-50-us" / FILTERED, ("offset.mean_ns", -900))
    named(path_shift_discrepancies, run, record, "mean_ns is -900")
    record["evidence"] = record["evidence"][:8]
    named(path_shift_discrepancies, run, record, "2 pairs of trials")


def test_pairs_of_which_half_is_missing_are_left_alone(run: RunFolder) -> None:
    record = shift(run, SEEN)
    record["evidence"] = record["evidence"][2:]
    assert path_shift_discrepancies(run.path, [record]) == ([], 0)


def test_the_quantile_is_students() -> None:
    for freedom in range(1, 40):
        assert student_t(freedom) == pytest.approx(float(stdtrit(freedom, 0.975)), rel=1e-9)
