# SPDX-License-Identifier: Apache-2.0
"""bw-timed on the loopback: what a server says of itself beside its time, leap seconds too."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.patience import HANG_S, wait_until
from tests.targets.timeservice.lab import QUICK, TimedProcess, ToldServer, check_true, timectl

pytestmark = [pytest.mark.simulated, pytest.mark.slow]
S_NS = 10**9


def test_server_that_reads_its_clock_in_steps_is_off_by_no_more_than_the_bound(page: Path) -> None:
    """It says so by its precision; this is that of Windows' own service on older systems."""
    with ToldServer() as server:
        server.precision_log2_s = -6
        with TimedProcess(page, "--server", server.text, *QUICK) as timed:
            for _ in range(8):
                timed.syncs(1)
                check_true(page)
            said = check_true(page)
            contradictions = [line for line in timed.seen if line["type"] == "contradiction"]
    assert said["bound_ns"] < 3 * S_NS >> 6
    assert not contradictions


def test_server_whose_clock_stands_in_1970_is_refused(page: Path) -> None:
    """Its stamps read as the year 2106: without a battery, and told to serve its own time."""
    with ToldServer() as server:
        server.ahead_s = 3600 - time.time()
        with TimedProcess(page, "--server", server.text, *QUICK, "--batches", "4") as timed:
            assert timed.process.wait(HANG_S) == 0
        (source,) = timectl(page, "sourcestats")["sources"]
    assert source["rejected"]["stamps"] > 0
    assert source["received"] == 0
    assert not timectl(page, "tracking")["synchronised"]


@pytest.mark.parametrize("heard", [True, False], ids=["heard", "lost"])
def test_announced_leap_second_ends_the_time_until_a_server_is_heard(page: Path, heard: bool) -> None:
    """What was learnt before is a second off from then on, whatever its bound says."""
    day_ns = 86400 * S_NS
    with ToldServer() as server:
        midnight_ns = time.time_ns() + 8 * S_NS
        ahead_ns = day_ns - midnight_ns % day_ns
        server.ahead_s, server.leaps_at_ns = ahead_ns / S_NS, midnight_ns + ahead_ns
        with TimedProcess(page, "--server", server.text, *QUICK, "--tai-utc-s", "37") as timed:
            timed.syncs(3)
            said = check_true(page, ahead_ns)
            assert (said["leap"], said["tai_utc_s"]) == (1, 37)
            if not heard:
                server.lie = "silent"
            while time.time_ns() < midnight_ns + S_NS:
                before_ns = time.time_ns()
                said = timed.ctl("tracking")
                after_ns = time.time_ns()
                if before_ns > midnight_ns and said["synchronised"]:
                    assert said["epoch"] == 1, "a time of before"
                elif after_ns < midnight_ns - S_NS // 10:
                    assert said["synchronised"]
            if not heard:
                assert not said["synchronised"]
                return
            timed.until(lambda line: line["type"] == "step")
            timed.syncs(1)
            said = check_true(page, ahead_ns - S_NS)
    assert (said["leap"], said["tai_utc_s"], round(said["step_ns"] / S_NS)) == (0, 38, -1)


def test_announced_leap_second_is_believed_soon(page: Path) -> None:
    """Else three batches have to agree, 3 s apart here."""
    with ToldServer() as server:
        day_ns, midnight_ns = 86400 * S_NS, time.time_ns() + 12 * S_NS
        ahead_ns = day_ns - midnight_ns % day_ns
        server.ahead_s, server.leaps_at_ns = ahead_ns / S_NS, midnight_ns + ahead_ns
        settings = ("--quick-interval-ms", "3000", "--interval-ms", "3000", "--batch", "4", "--gap-us", "500")
        with TimedProcess(page, "--server", server.text, *settings) as timed:
            timed.until_state("synchronised")
            lost = timed.until_state("unsynchronised")
            step = timed.until(lambda line: line["type"] == "step")
    assert round(step["step_ns"] / S_NS) == -1
    assert step["monotonic_ns"] - lost["monotonic_ns"] < 6 * S_NS


def test_bound_keeps_the_distance_to_utc_when_an_answer_that_is_refused_says_none(page: Path) -> None:
    """A kiss-of-death comes with a root dispersion of 0, of ntpd for one."""
    with ToldServer() as server:
        server.root_dispersion_s = 0.02
        with TimedProcess(page, "--server", server.text, *QUICK) as timed:
            timed.syncs(3)
            server.lie, server.root_dispersion_s = "kiss-rate", 0.0
            timed.until_state("holdover")
            sync = timed.syncs(2)
            said = timed.ctl("tracking")
    assert sync["bound_ns"] >= 20_000_000
    assert said["synchronised"]
    assert said["bound_ns"] >= 20_000_000
    assert said["stratum"] == 2


def test_server_that_is_no_longer_synchronised_is_held_over(page: Path) -> None:
    """What it then says of its distance to UTC, chrony 1.5 s, is not of the time that it had told."""
    with ToldServer() as server, TimedProcess(page, "--server", server.text, *QUICK) as timed:
        timed.syncs(3)
        before = check_true(page)
        server.lie, server.root_dispersion_s = "stratum-16", 1.0
        timed.until_state("holdover")
        timed.syncs(2)
        said = check_true(page)
    assert said["state"] == "holdover"
    assert said["bound_ns"] < before["bound_ns"] + 1_000_000
    assert said["stratum"] == 2


def test_server_that_has_complained_of_the_rate_is_asked_again(page: Path) -> None:
    """Once it does not complain any more, within seconds here."""
    with ToldServer() as server, TimedProcess(page, "--server", server.text, *QUICK) as timed:
        timed.syncs(3)
        server.lie = "kiss-rate"
        timed.until_state("holdover")
        for _ in range(2):
            timed.until(lambda line: line["type"] == "rejected" and line["reason"] == "kiss-of-death")
        server.lie = "honest"
        timed.until_state("synchronised")
        check_true(page)


UNSYNCHRONISED = "no server is synchronised"
ANSWERS = {
    "kiss-init": (UNSYNCHRONISED, "kiss-of-death INIT"),
    "kiss-step": (UNSYNCHRONISED, "kiss-of-death STEP"),
    "kiss-rate": ("the servers want to be asked less often", "kiss-of-death RATE"),
    "leap": (UNSYNCHRONISED, "leap (leap 3, stratum 1)"),
    "stratum-16": (UNSYNCHRONISED, "stratum (leap 0, stratum 16)"),
}


@pytest.mark.parametrize("lie", ANSWERS)
@pytest.mark.parametrize("page_state", ["starting", "holdover"])
def test_server_that_answers_not_yet_is_told_by_what_it_answers(
    page: Path, lie: str, page_state: str
) -> None:
    reason, answer = ANSWERS[lie]
    with ToldServer() as server:
        server.lie = lie if page_state == "starting" else "honest"
        with TimedProcess(page, "--server", server.text, *QUICK) as timed:
            if page_state == "holdover":
                timed.until_state("synchronised")
                server.lie = lie
            timed.until(lambda line: line["type"] == "state" and line["reason"] == reason)
            wait_until(lambda: timed.ctl("tracking")["text"] != "", "the text")
            said = timed.ctl("tracking")
            (source,) = timed.ctl("sources")["sources"]
            server.lie = "honest"
            timed.until_state("synchronised")
            wait_until(lambda: timed.ctl("tracking")["text"] == "", "the end of the text")
    assert (said["state"], said["reason"], said["text"]) == (page_state, reason, f"{server.text}: {answer}")
    assert page_state == "holdover" or source["state"] == "unfit"
