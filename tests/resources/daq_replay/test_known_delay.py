# SPDX-License-Identifier: Apache-2.0
"""The known-delay check: finds a delay that is there, and fails where the instrument would be wrong."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from hw.errors import MeasurementError
from reports import Conditions, Subject
from reports.daq_replay.known_delay import KnownDelay
from reports.record.context import Context
from resources.daq_replay.known_delay import SET_DELAY_TOLERANCE_NS, compare, known_delay_record
from resources.daq_replay.replay import ReplayAnswers

MS = 1_000_000
DELAY_NS = 5 * MS
WANDER_NS = 60_000


def _answers(bound_ns: int | None = 50_000, residual_ns: int | None = 10_000) -> ReplayAnswers:
    """Return a replay whose clocks are known to bound + residual."""
    recv = {
        "clocks": [
            {"bound_ns": bound_ns, "residual_ns": residual_ns},
            {"bound_ns": None, "residual_ns": None},
        ]
    }
    return ReplayAnswers(Path(), recv, {}, {}, [])


def _latencies(offset_ns: int, n: int, seed: int) -> list[int]:
    chance = random.Random(seed)
    return [offset_ns + round(chance.expovariate(1 / 100_000)) for _ in range(n)]


def _check(
    found_ns: int, transits: dict[str, int | None], n: int = 200, answers: ReplayAnswers | None = None
) -> KnownDelay:
    latencies = {"without": _latencies(MS, n, 1), "with": _latencies(MS + found_ns, n, 1)}
    latencies["again"] = latencies["without"]
    return compare(3, DELAY_NS, latencies, transits, answers or _answers())


SEEN: dict[str, int | None] = {"without": 200_000, "with": 5_350_000, "again": 200_000}
"""What a capture saw: the impairment node added 5.15 ms where 5 ms were set."""
UNSEEN: dict[str, int | None] = {"without": None, "with": None, "again": None}


def test_what_the_capture_saw_is_the_truth_not_what_was_set() -> None:
    found = _check(5_150_000, SEEN)
    assert (found.outcome, found.applied_ns, found.error_ns) == ("pass", 5_150_000, 0)
    parts = {part.name: part.value for part in found.uncertainty.parts}
    assert set(parts) == {"median_without", "median_with", "target_drift", "clock_wander"}
    assert parts["clock_wander"] == 2 * WANDER_NS


def test_without_a_capture_the_set_delay_counts_with_the_nodes_tolerance() -> None:
    found = _check(5_150_000, UNSEEN)
    assert (found.outcome, found.applied_ns, found.error_ns) == ("pass", DELAY_NS, 150_000)
    assert {part.name: part.value for part in found.uncertainty.parts}["set_delay"] == SET_DELAY_TOLERANCE_NS
    assert found.uncertainty.expanded == _check(5_150_000, SEEN).uncertainty.expanded + SET_DELAY_TOLERANCE_NS


@pytest.mark.parametrize("transits", [SEEN, UNSEEN])
@pytest.mark.parametrize("sign", [-1, 1])
def test_an_error_beyond_u_fails_and_one_within_passes(transits: dict[str, int | None], sign: int) -> None:
    exact = _check(5_150_000, transits)
    for beyond, outcome in ((-1, "pass"), (0, "pass"), (1, "fail")):
        error_ns = sign * (exact.uncertainty.expanded + beyond)
        assert _check(round(exact.applied_ns + error_ns), transits).outcome == outcome


def test_a_target_that_becomes_faster_meanwhile_is_no_error_of_the_instrument() -> None:
    """As an emulated one does: 0.5 ms faster in the second section than before, 0.1 ms more in the third."""
    warm = _latencies(MS + 5_150_000, 200, 1)
    before, after = _latencies(1_500_000, 200, 1), _latencies(900_000, 200, 1)
    answers = _answers()
    found = compare(3, DELAY_NS, {"without": before, "with": warm, "again": after}, SEEN, answers)
    assert found.outcome == "pass"
    assert found.error_ns == -200_000
    found = compare(3, DELAY_NS, {"without": before, "with": warm, "again": before}, SEEN, answers)
    assert found.outcome == "fail", "a difference that comes and goes with the delay is the instrument's"


def test_u_grows_with_the_worst_clock_and_shrinks_with_samples() -> None:
    good = _check(DELAY_NS, UNSEEN)
    bad_clock = _check(DELAY_NS, UNSEEN, answers=_answers(bound_ns=500_000))
    assert bad_clock.uncertainty.expanded == good.uncertainty.expanded + 2 * 450_000
    assert _check(DELAY_NS, UNSEEN, n=2000).uncertainty.expanded < good.uncertainty.expanded


def test_a_clock_offset_that_all_sections_share_cancels() -> None:
    shifted = {"without": _latencies(7_000 * MS, 200, 1), "with": _latencies(7_000 * MS + DELAY_NS, 200, 1)}
    shifted["again"] = shifted["without"]
    assert compare(3, DELAY_NS, shifted, UNSEEN, _answers()).error_ns == 0


def test_too_few_messages_are_no_measurement() -> None:
    for counts in ((19, 200, 200), (200, 19, 200), (200, 200, 19), (0, 0, 0)):
        latencies = {
            name: _latencies(MS, n, 1) for name, n in zip(("without", "with", "again"), counts, strict=True)
        }
        with pytest.raises(MeasurementError, match=f"only {min(counts)} messages came, not 20"):
            compare(3, DELAY_NS, latencies, UNSEEN, _answers())


@pytest.mark.parametrize(("error_ns", "outcome"), [(0, "pass"), (30 * MS, "fail")])
def test_the_record_says_how_much_of_u_is_used_up(error_ns: int, outcome: str) -> None:
    found = _check(DELAY_NS + error_ns, UNSEEN)
    record = known_delay_record(
        found,
        Context(
            "run-1",
            "known-delay check",
            Subject("lab", "linux-rt", "kernel", "two-way", None),
            Conditions("ci", "staggered", "idle", "none"),
            True,
            (),
        ),
    )
    assert (record.outcome, record.value) == (outcome, error_ns)
    assert record.limit.upper == found.uncertainty.expanded
    assert record.limit.lower == -found.uncertainty.expanded
    assert record.margin == found.uncertainty.expanded - error_ns
    assert record.simulated
