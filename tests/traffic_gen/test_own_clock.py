# SPDX-License-Identifier: Apache-2.0
"""A consumer that stamps by the time service: latencies are of that clock, however wrong the system's is."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from reports.clock_sync.tai_utc import TAI_UTC_S
from tests.patience import HANG_S
from tests.traffic_gen.lab import Lab, Plan, Stream, Tool, pattern_text
from tests.traffic_gen.timeservice_page import FOLDER, Service, service

pytestmark = [pytest.mark.simulated, pytest.mark.timed]

AHEAD_NS = 3_500_000_000
FAST_PPB = 80_000
BOUND_NS = 20_000
LINE_NS = 10_000_000
"""More than the line between both clocks is off on a busy machine, and far below what they differ by."""


@pytest.fixture
def build(repository: Path) -> Path:
    """Return the folder of the programs as they are used."""
    folder = repository / ".build" / "linux"
    if not (folder / FOLDER / "timeservice-follow").exists():
        pytest.skip("the programs are not built: make setup, or make test")
    return folder


@contextmanager
def time_service(build: Path, page: Path) -> Generator[Service]:
    """Run a time service that is ahead of this machine and fast."""
    with service(build, page, str(AHEAD_NS), str(BOUND_NS), str(TAI_UTC_S), str(FAST_PPB)) as running:
        yield running


def start(lab: Lab, tmp_path: Path, plan: Plan, page: Path) -> tuple[Tool, Tool]:
    """Start consumer and producer of a plan, whose slots each has on its own clock."""
    ahead = plan.start_tai_ns + AHEAD_NS
    theirs = replace(plan, start_tai_ns=ahead, rate_ppb=FAST_PPB, consumer_clock="timeservice")
    recv = lab.recv(theirs.write(tmp_path / "recv.toml"), environment={"BWTIME_PAGE": str(page)})
    recv.wait_ready()
    return recv, lab.send(plan.write(tmp_path / "send.toml"))


def test_latencies_are_of_the_time_service(lab: Lab, tmp_path: Path, build: Path) -> None:
    """3.5 s ahead, 80 ppm fast: as if both ends had one clock, within the bound that the service tells."""
    plan = Plan(pattern_text(Stream(10), Stream(11, "tcp")), warmup_ms=1500)
    page = tmp_path / "page"
    with time_service(build, page):
        recv, send = start(lab, tmp_path, plan, page)
        send.result()
        result = recv.result()
    assert result["valid"], result["invalid_reasons"]
    own = result["own_clock"]
    assert (own["name"], own["refused"], own["steps"]) == ("timeservice", 0, 0)
    assert own["bound_max_ns"] >= BOUND_NS
    assert 0 < own["line_error_max_ns"] < LINE_NS
    for stream in result["streams"]:
        assert (stream["received"], stream["lost"]) == (stream["expected"], 0)
        assert stream["received_minus_sent"]["min_ns"] > -own["bound_max_ns"] - own["line_error_max_ns"]
        assert stream["received_minus_sent"]["min_ns"] < 50_000_000
    begins = abs(result["start_tai_ns"] - plan.start_tai_ns - AHEAD_NS - plan.warmup_ms * 1_000_000)
    assert begins < 1_000_000, "counted time is told by the service, too"


def test_a_time_service_that_is_not_there_is_a_missing_capability(lab: Lab, tmp_path: Path) -> None:
    """By the name that plans had for it before, too."""
    plan = Plan(pattern_text(Stream(10)), consumer_clock="time-service")
    environment = {"BWTIME_PAGE": str(tmp_path / "none")}
    recv = lab.recv(plan.write(tmp_path / "plan.toml"), environment=environment)
    assert recv.process.wait(HANG_S) == 3
    assert '[consumer]: clock "timeservice": no service: bw-timed does not run' in recv.errors()


def test_an_unknown_clock_is_bad_input(lab: Lab, tmp_path: Path) -> None:
    plan = Plan(pattern_text(Stream(10)), consumer_clock="moondial")
    recv = lab.recv(plan.write(tmp_path / "plan.toml"))
    assert recv.process.wait(HANG_S) == 2
    assert '[consumer]: unknown clock "moondial"; allowed: realtime, ' in recv.errors()


def made_up_clock(build: Path, arguments: str) -> str:
    """Return the clock of a made-up stack, as its `stack.toml` would name it."""
    return f"plugin:{build / 'traffic-gen' / 'clock' / 'example-clock.so'},{arguments}"


def test_latencies_are_of_any_clock_by_its_name(lab: Lab, tmp_path: Path, build: Path) -> None:
    clock = made_up_clock(build, f"offset_ns={AHEAD_NS},bound_ns={BOUND_NS}")
    plan = Plan(pattern_text(Stream(10)), warmup_ms=1500)
    theirs = replace(plan, start_tai_ns=plan.start_tai_ns + AHEAD_NS, consumer_clock=clock)
    recv = lab.recv(theirs.write(tmp_path / "recv.toml"))
    recv.wait_ready()
    lab.send(plan.write(tmp_path / "send.toml")).result()
    result = recv.result()
    assert result["valid"], result["invalid_reasons"]
    own = result["own_clock"]
    assert (own["name"], own["bound_max_ns"], own["refused"]) == (clock, BOUND_NS, 0)
    assert 0 < own["line_error_max_ns"] < LINE_NS
    (stream,) = result["streams"]
    assert (stream["received"], stream["lost"]) == (stream["expected"], 0)
    assert -LINE_NS < stream["received_minus_sent"]["min_ns"] < 50_000_000


def test_any_clock_that_fails_makes_the_result_invalid(lab: Lab, tmp_path: Path, build: Path) -> None:
    plan = Plan(pattern_text(Stream(10)), consumer_clock=made_up_clock(build, "fail_after=40"))
    result = lab.recv(plan.write(tmp_path / "plan.toml")).result(4)
    assert result["own_clock"]["bound_max_ns"] is None
    assert any(f"clock {plan.consumer_clock} gave no time" in why for why in result["invalid_reasons"])


def test_a_time_service_that_withdraws_its_time_makes_the_result_invalid(
    lab: Lab, tmp_path: Path, build: Path
) -> None:
    """It says in mid-run that there is no time with a bound any more."""
    page = tmp_path / "page"
    with time_service(build, page) as service_of_page:
        recv, _send = start(lab, tmp_path, Plan(pattern_text(Stream(10)), duration_ms=2500), page)
        recv.wait_line(lambda line: line.get("phase") == "counting")
        service_of_page.tell("withdraw")
        result = recv.result(4)
    assert result["own_clock"]["refused"] > 0
    assert any("times: a server contradicts what it said before" in why for why in result["invalid_reasons"])


def test_a_step_of_the_time_service_makes_the_result_invalid(lab: Lab, tmp_path: Path, build: Path) -> None:
    page = tmp_path / "page"
    with time_service(build, page) as service_of_page:
        recv, _send = start(lab, tmp_path, Plan(pattern_text(Stream(10)), duration_ms=2500), page)
        recv.wait_line(lambda line: line.get("phase") == "counting")
        service_of_page.tell("step 1000000000")
        result = recv.result(4)
    assert "clock timeservice was stepped by 1000000000 ns" in result["invalid_reasons"]


def test_both_corrections_at_once_are_refused(lab: Lab, tmp_path: Path) -> None:
    plan = Plan(pattern_text(Stream(10)), correction="two-way", consumer_clock="timeservice")
    recv = lab.recv(plan.write(tmp_path / "plan.toml"))
    assert recv.process.wait(HANG_S) == 2
    assert '[consumer]: clock: "timeservice" needs correction = "none" in table [run]' in recv.errors()
