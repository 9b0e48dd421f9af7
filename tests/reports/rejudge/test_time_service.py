# SPDX-License-Identifier: Apache-2.0
"""What readers of the time service were told is held against the service's own log."""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Callable
from typing import Any

import pytest

from reports.clock_sync.capability import STATED_BOUND_STATISTICS as STATISTICS
from reports.clock_sync.capability import U_MISSED
from reports.clock_sync.trial import load_trial, write_trial
from reports.rejudge.reported_bound import reported_bound_discrepancies
from reports.run.folder import RunFolder
from tests.reports.clock_sync.test_reported_bound import told
from tests.reports.rejudge.test_reported_bound import record_of, trial_in
from tests.reports.sample_clock import SECOND_NS, START_TAI_NS, compare_answer
from tests.reports.sample_server_replies import LOG, START_MONOTONIC_NS, TAI_UTC_S

YEAR_NS = 365 * 86_400 * SECOND_NS
R_NS = 15_000

Json = dict[str, Any]


def answer() -> Json:
    """A U of 18 us, an interval of 20 us, and no error beyond either."""
    return told(compare_answer(start_monotonic_ns=START_MONOTONIC_NS), bound_ns=20_000, u_ns=18_000)


def lines(servers: int = 1) -> list[Json]:
    """The log of a service that publishes every second, from 5 s before the comparison on."""
    found: list[Json] = [{"type": "ready", "servers": ["10.77.0.1:123"] * servers}]
    for second in range(-5, 12):
        utc_ns = START_TAI_NS - TAI_UTC_S * SECOND_NS + second * SECOND_NS
        exchange: Json = {"type": "exchange", "index": 0, "t2_utc_ns": utc_ns}
        found += [exchange | ({} if second > -5 else {"root_distance_ns": R_NS})]
        sync: Json = {"type": "sync", "monotonic_ns": START_MONOTONIC_NS + second * SECOND_NS}
        sync |= {"offset_ns": 5, "bound_ns": 19_000, "u_ns": 17_500, "state": "locked"}
        sync |= {"line_low_ns": 18_900, "line_high_ns": 18_990, "line_u_ns": 17_499.5}
        found += [sync]
    return found


def discrepancies(run: RunFolder, said: Json, log: list[Json], quantity: str = U_MISSED) -> list[str]:
    """Judge a trial whose record was made of the answer as it is: changed in both alike."""
    trial = trial_in(run, said)
    (trial.folder / LOG).write_text("".join(json.dumps(line) + "\n" for line in log))
    write_trial(trial.folder, dataclasses.replace(trial.facts, servo_log=LOG, servo_format="bw-timed"))
    found, count = reported_bound_discrepancies(
        run.path, [record_of(run, load_trial(trial.folder), quantity)]
    )
    assert count == 1
    return found


@pytest.mark.parametrize("quantity", STATISTICS)
def test_an_honest_trial_is_not_refused(run: RunFolder, quantity: str) -> None:
    assert discrepancies(run, answer(), lines(), quantity) == []


def scale(said: Json, form: str, factor: float) -> None:
    size_ns = int(said["device_bound"][form]["max_ns"] * factor)
    u_ns, bound_ns = (
        size_ns if form == name else said["device_bound"][name]["max_ns"] for name in ("u", "bound")
    )
    said |= told(said, bound_ns=bound_ns, u_ns=u_ns)


def shift(said: Json, by_ns: int) -> None:
    said["start_tai_ns"] += by_ns
    for row in said["series"]["rows"]:
        row[0] += by_ns


def shift_rows(said: Json) -> None:
    for row in said["series"]["rows"]:
        row[0] += YEAR_NS


CHANGES: dict[str, tuple[Callable[[Json], None], str]] = {
    "U halved": (lambda said: scale(said, "u", 0.5), "the service published 17500 and more"),
    "U doubled": (
        lambda said: scale(said, "u", 2),
        "device_bound.u.p50_ns is 36000, that of the interval 20000",
    ),
    "interval halved": (lambda said: scale(said, "bound", 0.5), "the server's root distance 15000 and more"),
    "a year later": (lambda said: shift(said, YEAR_NS), "the server showed"),
    "a year earlier": (lambda said: shift(said, -YEAR_NS), "the server showed"),
    "the series a year later": (shift_rows, "its series ends at"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_answer_and_record_alike_is_named(run: RunFolder, name: str) -> None:
    change, wanted = CHANGES[name]
    said = copy.deepcopy(answer())
    change(said)
    assert any(wanted in each for each in discrepancies(run, said, lines()))


@pytest.mark.parametrize(
    ("key", "value", "wanted"),
    [
        ("u_ns", 9_000, "u_ns is 9000, its line has 17499.5"),
        ("bound_ns", 18_000, "bound_ns is 18000, its line has 18990"),
        ("u_ns", 19_500, "u_ns is 19500, bound_ns 19000"),
    ],
)
def test_a_log_that_contradicts_its_own_lines_is_named(
    run: RunFolder, key: str, value: int, wanted: str
) -> None:
    log = lines()
    log[-1][key] = value
    assert any(wanted in each for each in discrepancies(run, answer(), log))


def test_an_error_beyond_what_missed_nothing_is_named(run: RunFolder) -> None:
    said = told(compare_answer(), bound_ns=9_000, u_ns=8_000)
    assert any("bound_missed is 0, an offset of" in each for each in discrepancies(run, said, []))


@pytest.mark.parametrize("log", [lines(servers=2), lines()[30:]], ids=["two servers", "begun anew"])
def test_a_log_that_cannot_say_what_was_published_refuses_nothing(run: RunFolder, log: list[Json]) -> None:
    said = answer()
    said |= told(said, bound_ns=20_000, u_ns=16_000)
    assert discrepancies(run, said, log) == []
