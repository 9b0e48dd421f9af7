# SPDX-License-Identifier: Apache-2.0
"""The first valid attempt decides, unless a waiver sets it aside; a pass under doubt is none."""

from __future__ import annotations

import datetime

import pytest

from reports.dossier.attempts import Candidate, Decision, decide, discrepancy, in_guard_band
from reports.dossier.waivers import NONE, Waiver, Waivers
from reports.record.measurement import Limit, Measurement, Uncertainty
from reports.record.verdict import judge
from tests.reports.dossier.sample import record

GUARD_BAND = "49.5 ms lies within U = 1 ms of the limit 50 ms"
STALLED = "60 ms is over 50 ms by more than U = 1 ms; 1 of 1 misses were under way while the bench stalled"


def within_u() -> Measurement:
    return record("inconclusive", GUARD_BAND)


def stalled() -> Measurement:
    return record("inconclusive", STALLED, value=60_000_000)


def decision(*tried: Measurement | Candidate, waivers: Waivers = NONE) -> Decision:
    candidates = [
        each if isinstance(each, Candidate) else Candidate("run-1", number, each, each.simulated, ())
        for number, each in enumerate(tried, start=1)
    ]
    return decide(candidates, waivers)


def roles(found: Decision) -> list[str]:
    return [attempt.role for attempt in found.attempts]


def waiver(**changes: object) -> Waivers:
    day = datetime.date(2026, 11, 22)
    fields: dict[str, object] = {
        "id": "W-1", "requirement": "DAQ-031", "target": "linux-rt on bench-1", "stack": "kernel",
        "run": "run-1", "attempt": 1, "reason": "cable pulled", "approver": "A. Reviewer", "date": day,
        "expires": None,
    }  # fmt: skip
    return Waivers("waivers.toml", "0" * 64, (Waiver(**{**fields, **changes}),))  # type: ignore[arg-type]


def test_the_first_valid_one_decides_and_later_ones_are_listed():
    found = decision(record("fail"), record("pass"))
    assert (found.status, found.shown, roles(found)) == ("fail", 1, ["decides", "valid"])


def test_what_the_bench_spoilt_is_not_valid_and_the_next_one_decides():
    found = decision(stalled(), record("error", "the consumer died", value=None), record("pass"))
    assert (found.status, found.shown) == ("pass", 3)
    assert roles(found) == ["not valid", "not valid", "decides"]
    assert "stalled" in found.attempts[0].why


def test_a_value_within_u_decides_so_that_nobody_repeats_until_it_passes():
    found = decision(within_u(), record("pass"))
    assert (found.status, found.reason, found.shown) == ("inconclusive", GUARD_BAND, 1)


def test_a_value_within_u_on_a_bench_that_stood_still_decides_nothing():
    spoilt = record("inconclusive", f"{GUARD_BAND}; 2 of 3 misses were under way while the bench stalled")
    assert decision(spoilt, record("pass")).status == "pass"


def test_unset_decides_and_is_no_pass():
    found = decision(record("unset", "no sample"), record("pass"))
    assert (found.status, found.reason) == ("inconclusive", "no sample")


def test_without_a_valid_attempt_it_is_inconclusive_and_says_why():
    found = decision(stalled(), stalled())
    assert (found.status, found.shown) == ("inconclusive", 2)
    assert "no valid attempt" in found.reason


def test_the_bench_not_capable_and_too_few_samples_are_no_valid_attempts():
    few = judge(8, Limit(50, None, "x"), Uncertainty(0, ()), n=5, n_required=9)
    for reason in ("bench not capable: U = 60 ms leaves no room under the limit", few.reason):
        assert discrepancy(Candidate("run-1", 1, record("inconclusive", reason), False, ())) != ""


def test_the_guard_band_is_told_from_the_verdicts_own_words():
    assert in_guard_band(within_u())
    assert not in_guard_band(stalled())
    assert not in_guard_band(record("inconclusive", GUARD_BAND, n=5))
    assert not in_guard_band(record("pass"))


def test_a_doubt_takes_a_pass_away_but_never_a_fail():
    doubt = ("card: calibration expired on 2026-11-01, the run was on 2026-11-22",)
    passed = Candidate("run-1", 1, record("pass"), False, doubt)
    failed = Candidate("run-1", 1, record("fail"), False, doubt)
    assert (decision(passed).status, roles(decision(passed))) == ("inconclusive", ["not valid"])
    assert "expired" in decision(passed).reason
    assert (decision(failed).status, roles(decision(failed))) == ("fail", ["decides"])


@pytest.mark.parametrize("outcome", ["pass", "fail"])
def test_what_is_simulated_decides_nothing_whatever_came_of_it(outcome: str):
    tried = record("fail", simulated=True) if outcome == "fail" else record("pass", simulated=True)
    found = decision(tried)
    assert (found.status, roles(found)) == ("untested on hardware", ["not valid"])
    assert outcome in found.reason


def test_a_simulated_pass_does_not_help_beside_real_attempts_that_are_not_valid():
    assert decision(record("pass", simulated=True), stalled()).status == "inconclusive"
    found = decision(record("pass", simulated=True), record("fail"))
    assert (found.status, found.shown) == ("fail", 2)


def test_of_simulated_attempts_the_one_that_would_decide_is_shown():
    spoilt = record("inconclusive", STALLED, value=60_000_000, simulated=True)
    assert decision(spoilt, record("pass", simulated=True), record("fail", simulated=True)).shown == 2


def test_a_waiver_sets_an_attempt_aside_and_the_next_one_decides():
    found = decision(record("fail"), record("pass"), waivers=waiver())
    assert (found.status, roles(found)) == ("pass", ["waived", "decides"])
    assert found.attempts[0].why == "waiver W-1"
    assert found.waivers == ("W-1",)


@pytest.mark.parametrize(
    "other",
    [
        {"attempt": 2},
        {"run": "run-2"},
        {"requirement": "DAQ-032"},
        {"target": "linux-rt on bench-2"},
        {"stack": "rtdip"},
        {"run": None, "attempt": None},
    ],
)
def test_a_waiver_of_something_else_sets_nothing_aside(other: dict[str, object]):
    assert decision(record("fail"), waivers=waiver(**other)).status == "fail"


@pytest.mark.parametrize("wider", [{"attempt": None}, {"requirement": None, "attempt": None}])
def test_a_waiver_of_a_run_sets_all_attempts_of_it_aside(wider: dict[str, object]):
    found = decision(record("fail"), record("pass"), waivers=waiver(**wider))
    assert (found.status, roles(found)) == ("inconclusive", ["waived", "waived"])


def test_a_later_fail_contradicts_a_pass_until_it_is_waived():
    assert decision(record("pass"), record("fail")).contradicted
    assert decision(record("pass"), record("fail")).status == "pass"
    assert not decision(record("pass"), record("fail"), waivers=waiver(attempt=2)).contradicted


def test_the_last_attempt_of_a_run_contradicts_its_pass_for_the_run_is_no_pass_either():
    assert decision(record("pass"), stalled()).contradicted
    assert not decision(record("pass"), stalled(), waivers=waiver(attempt=2)).contradicted
    assert not decision(stalled(), record("pass")).contradicted
    later = Candidate("run-2", 1, stalled(), False, ())
    assert not decision(record("pass"), later).contradicted
