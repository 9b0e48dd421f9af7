# SPDX-License-Identifier: Apache-2.0
"""A clock by two-way transfer alone: U is the round trip's, what was held up goes by its width."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reports.clock_sync.trial import ClockTrial, Timecard, TrialFacts, load_trial, write_trial
from reports.clock_sync.two_way_reference import SERVER_FILE, TARGET_FILE, TWO_WAY, read_two_way
from reports.clock_sync.verdict import judge_sync, sync_measurement, witness_measurement
from reports.errors import RecordError
from reports.record.context import Context
from reports.record.measurement import Conditions, Limit, Subject

START_NS = 1_795_000_000_000_000_000
STEP_NS = 50_000_000
LIMIT = Limit(500_000, -500_000, "a test")
CONTEXT = Context("run", "test", Subject("virtual", "windows", clock="as-found"), Conditions("ci"), True, ())


def answer(
    n: int = 120, offset_ns: int = 2_000, bound_ns: int = 20_000, rate_ppb: int = 0, **others: Any
) -> dict[str, Any]:
    """Return the result of `bw-traffic offset --peer`: the peer is ahead by so much."""
    end_ns = START_NS + n * STEP_NS
    series = [
        [
            at_ns := START_NS + k * STEP_NS,
            offset_ns + round((at_ns - end_ns) * rate_ppb / 1e9) + (k % 3 - 1) * 1000,
            bound_ns,
        ]
        for k in range(n)
    ]
    found: dict[str, Any] = {"type": "result", "tool": "bw-traffic offset", "peer": "10.78.0.110:19999"}
    found |= {"complete": True, "valid": True, "invalid_reasons": [], "exchanges": 8 * n, "kept": n}
    found |= {"offset_ns": offset_ns, "rate_ppb": rate_ppb, "bound_ns": 9_000, "bound_growth_ppb": 4_000}
    found |= {"at_local_tai_ns": end_ns, "tai_utc_s": 37, "series": series, "clock_steps": []}
    return found | others


def trial(
    folder: Path, target: dict[str, Any], server: dict[str, Any] | None = None, name: str = "as-found"
) -> ClockTrial:
    """Write a trial without timecard and read it again."""
    for file, data in ((TARGET_FILE, target), (SERVER_FILE, server)):
        if data is not None:
            (folder / file).write_text(json.dumps(data) + "\n")
    card = Timecard(TWO_WAY, 0, "the control network")
    write_trial(folder, TrialFacts(name, "sync", None, "idle", "none", None, None, None, card))
    return load_trial(folder)


def test_a_clock_at_the_reference_passes_and_u_is_half_the_longest_round_trip(tmp_path: Path) -> None:
    record = sync_measurement(trial(tmp_path, answer()), "CLK-AS-FOUND", LIMIT, 99, CONTEXT)
    assert (record.outcome, record.value, record.n) == ("pass", 3_000, 120)
    parts = [(part.name, part.kind, part.value) for part in record.uncertainty.parts]
    assert parts == [("two_way", "bound", 20_000)]


@pytest.mark.parametrize(
    ("offset_ns", "outcome"),
    [(3_000_000_000, "fail"), (-3_000_000_000, "fail"), (490_000, "inconclusive"), (600_000, "fail")],
)
def test_a_clock_that_is_wrong_never_passes(tmp_path: Path, offset_ns: int, outcome: str) -> None:
    verdict, _ = judge_sync(trial(tmp_path, answer(offset_ns=offset_ns)), LIMIT, 99)
    assert verdict.outcome == outcome


def test_exchanges_that_were_held_up_go_by_their_width_alone(tmp_path: Path) -> None:
    found = answer()
    found["series"][5][1:] = [3_000_000, 3_000_500]  # a late answer: it says little, and is bounded so
    found["series"][6][1:] = [900_000, 20_000]  # as sure as the others: it counts
    compare = read_two_way(trial(tmp_path, found).folder)
    assert (compare.discarded, compare.offset.n, compare.extreme_ns) == (1, 119, 900_000)
    assert compare.window.max_ns == 40_000


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"complete": False}, "incomplete"),
        ({"valid": False, "invalid_reasons": ["the peer's clock stepped"]}, "the peer's clock stepped"),
        (
            {"clock_steps": [{"clock": "peer", "time_tai_ns": START_NS, "step_ns": 1_000_000}]},
            "stepped by 1 ms",
        ),
    ],
)
def test_an_answer_with_a_fault_passes_nothing(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    verdict, _ = judge_sync(trial(tmp_path, answer(**change)), LIMIT, 99)
    assert verdict.outcome == "inconclusive"
    assert said in verdict.reason


def test_too_few_exchanges_pass_nothing(tmp_path: Path) -> None:
    verdict, _ = judge_sync(trial(tmp_path, answer(n=98)), LIMIT, 99)
    assert verdict.outcome == "inconclusive"
    verdict, _ = judge_sync(trial(tmp_path, answer(n=0)), LIMIT, 99)
    assert verdict.outcome == "unset"


def test_a_time_server_is_what_the_target_is_held_against(tmp_path: Path) -> None:
    """Both are 40 us ahead of this machine and gain 100 ppm: only what they differ by counts."""
    server = answer(offset_ns=40_000, rate_ppb=100_000)
    found = trial(tmp_path, answer(offset_ns=42_000, rate_ppb=100_000), server, "w32time")
    assert found.filtered.extreme_ns == 3_000
    _, uncertainty = judge_sync(found, LIMIT, 99)
    parts = {part.name: part.value for part in uncertainty.parts}
    assert parts == {"two_way": 20_000, "two_way_time_server": 9_000 + 24_000}  # 6 s of growth


def test_no_second_witness_is_invented(tmp_path: Path) -> None:
    assert witness_measurement(trial(tmp_path, answer()), "BENCH-CLOCK-WITNESSES", CONTEXT) is None


def test_answers_with_another_tai_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="tai_utc_s"):
        trial(tmp_path, answer(), answer(tai_utc_s=36))


def test_a_missing_answer_is_named(tmp_path: Path) -> None:
    trial(tmp_path, answer())
    (tmp_path / TARGET_FILE).write_text('{"type":"ready"}\n')
    with pytest.raises(RecordError):
        load_trial(tmp_path)
