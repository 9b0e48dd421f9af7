# SPDX-License-Identifier: Apache-2.0
"""The verdict on a clock: U from its parts, no pass on invalid answers; stall excuses, never passes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reports.clock_sync.trial import FILTERED, TRIAL, load_trial
from reports.clock_sync.verdict import (
    judge_sync,
    sync_measurement,
    witness_difference_ns,
    witness_measurement,
)
from reports.errors import RecordError
from reports.record.context import Context
from reports.record.measurement import Conditions, Limit, Subject
from tests.reports.sample_clock import SECOND_NS, START_TAI_NS, compare_answer, write_clock_trial

LIMIT = Limit(40_000, -40_000, "paper on control loops, 4.5.1")
CONTEXT = Context("run", "test", Subject("virtual", "linux-rt", clock="chrony"), Conditions("ci"), True, ())


def _outcome(folder: Path, compare: dict[str, Any], **others: Any) -> tuple[str, str]:
    write_clock_trial(folder, compare, **others)
    verdict, _ = judge_sync(load_trial(folder), LIMIT, 99)
    return verdict.outcome, verdict.reason


def test_passes_within_the_limit(tmp_path: Path) -> None:
    write_clock_trial(tmp_path, compare_answer())
    trial = load_trial(tmp_path)
    record = sync_measurement(trial, "CLK-1", LIMIT, 99, CONTEXT)
    assert record.outcome == "pass"
    assert record.value == max(trial.filtered.offset.min_ns or 0, trial.filtered.offset.max_ns or 0, key=abs)
    assert record.uncertainty.expanded == 400 + 450  # what the reference states, half of the widest bracket


@pytest.mark.parametrize("share", [0.5, 1.5])
@pytest.mark.parametrize("sign", [-1, 1])
def test_fault_of_a_share_of_the_limit(tmp_path: Path, share: float, sign: int) -> None:
    outcome, reason = _outcome(tmp_path, compare_answer(mean_ns=round(sign * share * 40_000)))
    assert outcome == ("pass" if share < 1 else "fail"), reason


def test_certificate_of_a_card_enters(tmp_path: Path) -> None:
    write_clock_trial(tmp_path, compare_answer())
    document = json.loads((tmp_path / TRIAL).read_text())
    document["timecard"]["bound_ns"] = 39_000
    (tmp_path / TRIAL).write_text(json.dumps(document))
    verdict, uncertainty = judge_sync(load_trial(tmp_path), LIMIT, 99)
    assert uncertainty.expanded == 39_850
    assert verdict.outcome == "inconclusive"


def test_a_reference_that_states_no_bound(tmp_path: Path) -> None:
    """A PHC says nothing of its own error: its certificate has to."""
    write_clock_trial(tmp_path, compare_answer(reference_bound_ns=None))
    _, uncertainty = judge_sync(load_trial(tmp_path), LIMIT, 99)
    assert [part.name for part in uncertainty.parts] == ["bracket"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"valid": False, "invalid_reasons": ["the timecard is stale"]}, "the timecard is stale"),
        ({"valid": False}, "invalid result"),
        ({"complete": False}, "ended early"),
        ({"steps": [{"time_tai_ns": START_TAI_NS, "step_ns": 20_000}]}, "stepped by 20"),
    ],
)
def test_never_passes_on_a_doubtful_answer(tmp_path: Path, change: dict[str, Any], reason: str) -> None:
    outcome, said = _outcome(tmp_path, compare_answer(**change))
    assert outcome == "inconclusive"
    assert reason in said


def test_never_judged_where_tai_is_not_the_same(tmp_path: Path) -> None:
    """A second between the two is no error of the clock, whatever the limit."""
    answer = compare_answer(mean_ns=SECOND_NS, reference={"name": "card", "kind": "card", "tai_utc_s": 36})
    outcome, said = _outcome(tmp_path, answer)
    assert outcome == "inconclusive"
    assert "TAI - UTC is 37 s on the target and 36 s at its reference" in said


@pytest.mark.parametrize("device", [{"name": "realtime"}, {"name": "realtime", "tai_utc_s": "37"}])
def test_an_answer_has_to_say_tai(tmp_path: Path, device: dict[str, Any]) -> None:
    write_clock_trial(tmp_path, compare_answer(device=device))
    with pytest.raises(RecordError, match=r"compare\.device\.tai_utc_s"):
        load_trial(tmp_path)


def test_too_few_samples(tmp_path: Path) -> None:
    write_clock_trial(tmp_path, compare_answer(seconds=1))
    verdict, _ = judge_sync(load_trial(tmp_path), LIMIT, 2995)
    assert (verdict.outcome, verdict.reason) == ("inconclusive", "too few samples: 200 of 2995")


def test_stall_excuses_a_fail_and_nothing_else(tmp_path: Path) -> None:
    late = compare_answer(mean_ns=90_000)
    assert _outcome(tmp_path / "quiet", late)[0] == "fail"
    assert _outcome(tmp_path / "short", late, stalls_ms=(1, 1))[0] == "fail"
    outcome, reason = _outcome(tmp_path / "disturbed", late, stalls_ms=(40, 1))
    assert (outcome, "the bench stalled 1 times, up to 40" in reason) == ("inconclusive", True)
    assert _outcome(tmp_path / "good", compare_answer(), stalls_ms=(40,))[0] == "pass"


def test_a_stall_excuses_no_more_than_it_can_explain(tmp_path: Path) -> None:
    """A packet that is late by s shifts an offset by s/2."""
    far = compare_answer(mean_ns=30_000_000)
    assert _outcome(tmp_path / "far", far, stalls_ms=(40, 1))[0] == "fail"
    assert _outcome(tmp_path / "near", far, stalls_ms=(70, 1))[0] == "inconclusive"


def test_witnesses_agree_within_their_bounds(tmp_path: Path) -> None:
    write_clock_trial(tmp_path, compare_answer(), two_way_offset_ns=2_000)
    found = witness_difference_ns(load_trial(tmp_path))
    assert found is not None
    assert abs(found[0] - 1_000) < 2_000
    assert found[2].expanded > 180_000
    record = witness_measurement(load_trial(tmp_path), "BENCH-CLOCK-WITNESSES", CONTEXT)
    assert record is not None
    assert record.outcome == "pass"


def test_witnesses_that_contradict_each_other(tmp_path: Path) -> None:
    write_clock_trial(tmp_path, compare_answer(), two_way_offset_ns=900_000)
    record = witness_measurement(load_trial(tmp_path), "BENCH-CLOCK-WITNESSES", CONTEXT)
    assert record is not None
    assert record.outcome == "inconclusive"
    assert "contradict each other" in record.reason


def test_no_common_time_is_no_witness(tmp_path: Path) -> None:
    late = compare_answer()
    late["series"]["rows"] = [[row[0] + 10**12, *row[1:]] for row in late["series"]["rows"]]
    write_clock_trial(tmp_path, late)
    assert witness_measurement(load_trial(tmp_path), "BENCH-CLOCK-WITNESSES", CONTEXT) is None


@pytest.mark.parametrize("key", ["offset", "series", "valid", "reference_bound_ns", "steps"])
def test_a_missing_member_is_named(tmp_path: Path, key: str) -> None:
    answer = compare_answer()
    del answer[key]
    write_clock_trial(tmp_path, answer)
    with pytest.raises(RecordError, match=key):
        load_trial(tmp_path)


def test_missing_file_is_an_error(tmp_path: Path) -> None:
    write_clock_trial(tmp_path, compare_answer())
    (tmp_path / FILTERED).write_text('{"type":"ready"}\n')
    with pytest.raises(RecordError, match=r"filtered\.ndjson"):
        load_trial(tmp_path)
