# SPDX-License-Identifier: Apache-2.0
"""The lock rule on logs of each servo: what locks, what must not, and what is said instead."""

from __future__ import annotations

import json

import pytest

from resources.clock_sync.lock import (
    farthest_offset_ns,
    is_locked,
    why_not_locked,
)
from resources.clock_sync.refused_answers import failed_chrony_tests, rejected_answers
from resources.clock_sync.settings import LockRule, load_stack

US = 1000
RULE = LockRule(offset_ns=100 * US, consecutive=4, source="test")
GOOD = [50 * US, -99 * US, 0, 99 * US]


def ptp4l(offsets: list[int], state: str = "s2") -> str:
    return "".join(
        f"ptp4l[{second}.000]: master offset {offset:10d} {state} freq   +3700 path delay    41000\n"
        for second, offset in enumerate(offsets, start=100)
    )


def phc2sys(offsets: list[int], state: str = "s2") -> str:
    return "".join(
        f"phc2sys[{second}.000]: CLOCK_REALTIME phc offset {offset:9d} {state} freq   +3700 delay   1500\n"
        for second, offset in enumerate(offsets, start=100)
    )


def tracking(offsets: list[int], leap: str = "N") -> str:
    return "".join(
        f"2026-11-21 18:{14 + number // 60}:{number % 60:02d} 10.77.0.50       2     44.211    610.120"
        f" {offset / 1e9:10.3e} {leap}  1  1.958e-04  0.000e+00  1.038e-03  9.775e-04  3.650e-03\n"
        for number, offset in enumerate(offsets)
    )


def ntp_user(offsets: list[int], state: str = "locked") -> str:
    return "".join(
        json.dumps(
            {
                "type": "poll",
                "time_tai_ns": 1_795_285_930_000_000_000 + number * 10**9,
                "offset_ns": offset,
                "delay_ns": 300 * US,
                "freq_ppb": 25000.0,
                "state": state,
            }
        )
        + "\n"
        for number, offset in enumerate(offsets)
    )


def time_service(offsets: list[int], state: str = "locked") -> str:
    return ntp_user(offsets, state).replace('"type": "poll"', '"type": "sync", "monotonic_ns": 1')


WRITERS = {
    "ptp-software": (ptp4l, "s0"),
    "phc2sys": (phc2sys, "s1"),
    "chrony": (tracking, "?"),
    "ntp-user": (ntp_user, "init"),
    "timeservice": (time_service, "unsynchronised"),
}


@pytest.mark.parametrize("stack", sorted(WRITERS))
def test_offsets_below_the_limit_in_a_row_lock(stack: str) -> None:
    write, _ = WRITERS[stack]
    (log,) = load_stack(stack, simulated=True).logs
    assert is_locked(write(GOOD), log, RULE)
    assert is_locked(write([5_000 * US, *GOOD]), log, RULE)


@pytest.mark.parametrize("stack", sorted(WRITERS))
@pytest.mark.parametrize(
    "offsets",
    [
        [],
        GOOD[:3],
        [100 * US] * 50,  # at the limit is not below it
        [-5_000 * US] * 50,  # steady, and wrong
        [*GOOD[:3], 101 * US] * 20,  # never four in a row
        [1_000_000_000_000 - 10 * number for number in range(50)],
    ],
)
def test_these_never_lock(stack: str, offsets: list[int]) -> None:
    write, _ = WRITERS[stack]
    (log,) = load_stack(stack, simulated=True).logs
    assert not is_locked(write(offsets), log, RULE)


@pytest.mark.parametrize("stack", sorted(WRITERS))
def test_servo_that_has_not_settled_does_not_lock_by_chance(stack: str) -> None:
    write, unsettled = WRITERS[stack]
    (log,) = load_stack(stack, simulated=True).logs
    assert not is_locked(write(GOOD * 5, unsettled), log, RULE)


@pytest.mark.parametrize("stack", sorted(set(WRITERS) - {"chrony"}))
def test_row_is_broken_by_a_servo_that_begins_anew(stack: str) -> None:
    write, unsettled = WRITERS[stack]
    (log,) = load_stack(stack, simulated=True).logs
    assert not is_locked(write(GOOD[:2]) + write(GOOD[:1], unsettled) + write(GOOD[:2]), log, RULE)


def test_summary_lines_without_a_sign_do_not_lock() -> None:
    (log,) = load_stack("ptp-software", simulated=True).logs
    text = "ptp4l[100.000]: rms   10 max   20 freq  +3700 +/-   5 delay   900 +/-   3\n" * 50
    assert not is_locked(text, log, RULE)


def test_both_servos_of_hardware_ptp_have_to_lock() -> None:
    ports, cards = load_stack("ptp-hardware", simulated=True).logs
    assert (ports.daemon, cards.daemon) == ("ptp4l", "phc2sys")


def test_farthest_offset_is_the_one_that_tells_a_lie() -> None:
    (log,) = load_stack("chrony", simulated=True).logs
    assert farthest_offset_ns(tracking([20, -3_600_000_000_000, 40]), log) == -3_600_000_000_000
    assert farthest_offset_ns("", log) == 0


def test_reason_names_what_was_seen_instead() -> None:
    (log,) = load_stack("ptp-software", simulated=True).logs
    said = why_not_locked(ptp4l([700 * US, 600 * US]), log, RULE)
    assert "2 observations, the last +600.0 us in state s2" in said
    assert "below 100 us in 4 consecutive observations" in said
    lost = (
        "ptp4l[93.1]: port 1: INITIALIZING to LISTENING on INIT_COMPLETE\n"
        "ptp4l[99.100]: port 1: SLAVE to LISTENING on ANNOUNCE_RECEIPT_TIMEOUT_EXPIRES\n"
    )
    said = why_not_locked(lost, log, RULE)
    assert "ptp4l has measured nothing" in said
    assert "from SLAVE to LISTENING on ANNOUNCE_RECEIPT_TIMEOUT_EXPIRES" in said


def test_refused_answers_are_counted_by_reason() -> None:
    rows = [{"type": "rejected", "reason": "stratum", "detail": "stratum 16"}] * 3
    rows += [{"type": "rejected", "reason": "no-answer"}]
    text = "".join(json.dumps(row) + "\n" for row in rows) + '{"type":"rejec'
    assert rejected_answers(text) == "3 answers rejected: stratum stratum 16, 1 answers rejected: no-answer"
    (log,) = load_stack("ntp-user", simulated=True).logs
    assert "3 answers rejected: stratum" in why_not_locked(text, log, RULE)


def test_chrony_says_which_tests_answers_have_failed() -> None:
    line = (
        "2026-11-21 18:14:37 10.77.0.50      N  1 {tests}   0  0 0.00  2.195e+00  4.774e-03  3.726e-05"
        "  0.000e+00  0.000e+00 7F7F0101 4B K K\n"
    )
    good, bad = line.format(tests="111 111 1111"), line.format(tests="111 101 1111")
    assert failed_chrony_tests(good * 3) == ""
    assert failed_chrony_tests(good + bad * 2) == (
        "2 of 3 answers failed the test of a synchronised server (leap and stratum)"
    )
    assert "the origin stamp" in failed_chrony_tests(line.format(tests="101 111 1111"))
    assert failed_chrony_tests("") == "no answer of the server came"
