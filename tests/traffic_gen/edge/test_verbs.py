# SPDX-License-Identifier: Apache-2.0
"""Verbs of bw-edge for software on a target, under sanitizers; the guest is a page of this machine."""

from __future__ import annotations

import json
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from reports.units import NS_PER_S
from tests.patience import HANG_S
from tests.traffic_gen.clock.clock_page import finish, run, started
from tests.traffic_gen.edge.lab import OTHER, Json
from tests.traffic_gen.edge.test_device import Device, run_device
from tests.traffic_gen.timeservice_page import service

PERIOD_NS = 2_000_000
EDGES = 100
CLOCK = ("run", "--method", "clock-edge", "--period-ns", str(PERIOD_NS))
GETTIME = ("run", "--method", "gettime-software", "--period-ns", str(PERIOD_NS))


@dataclass(frozen=True)
class Software:
    """A device that is served, and the program with sanitizers: a finding changes its exit code."""

    device: Device
    program: Path

    def pin(self, name: str) -> str:
        """Return a pin of the device."""
        return f"bench:{name},{self.device.page.path}"

    def run(self, *arguments: str) -> tuple[int, Json, str]:
        """Run a verb to its end."""
        return run(self.program, *arguments)

    @contextmanager
    def reference(self) -> Generator[None]:
        """Make reference edges meanwhile."""
        output = ("output", "--pin", self.pin("sdp-out"), "--periodic", "--period-ns", str(PERIOD_NS))
        with started(self.program, *output) as process:
            yield
            code, result = finish(process)
        assert (code, result["complete"], result["valid"]) == (0, True, True)
        assert result["fired"] > 0


@pytest.fixture
def linux_build(repository: Path) -> Path:
    """Return where the time service's stand-in is built."""
    return repository / ".build" / "linux"


@pytest.fixture
def software(bw_edge: Path, checked_bw_edge: Path, edge_pins: Path, tmp_path: Path) -> Generator[Software]:
    """Give a served device."""
    with run_device(bw_edge, edge_pins, tmp_path) as device:
        yield Software(device, checked_bw_edge)


@pytest.mark.parametrize(("method", "pin"), [(CLOCK, "tgpio-out"), (GETTIME, "gpio")])
def test_edges_are_made_or_late(software: Software, method: tuple[str, ...], pin: str) -> None:
    code, result, complaint = software.run(*method, "--count", str(EDGES), "--output", software.pin(pin))
    assert code == 0, complaint
    assert (result["complete"], result["valid"], result["count"]) == (True, True, EDGES)
    assert result["programmed"] + result["late"] == EDGES
    assert result["fired"] + result["not_fired"] >= result["programmed"] > 0
    assert result["start_phc_ns"] % PERIOD_NS == 0
    assert len(software.device.scope.edges(OTHER, rising=True)) <= result["fired"]


def test_until_it_is_told_to_end(software: Software) -> None:
    with started(software.program, *CLOCK, "--count", "0", "--output", software.pin("tgpio-out")) as process:
        code, result = finish(process)
    assert code in (0, 4)  # told before its first edge, it has made none
    assert result["complete"]
    with started(
        software.program, *CLOCK, "--count", "9999", "--output", software.pin("tgpio-out")
    ) as process:
        code, result = finish(process)
    assert (code, result["complete"]) == (4, False)


AHEAD_NS = 300 * NS_PER_S


def test_edges_are_those_of_the_clock_that_is_named(
    software: Software, linux_build: Path, tmp_path: Path
) -> None:
    """A time service that is five minutes ahead has its full periods then; nothing asks the system's."""
    clock = ("--clock", f"timeservice:{tmp_path}/time", "--output", software.pin("tgpio-out"))
    with service(linux_build, tmp_path / "time", str(AHEAD_NS), str(2 * AHEAD_NS), "37"):
        before_tai_ns = time.time_ns() + 37 * NS_PER_S
        code, result, complaint = software.run(*CLOCK, *clock, "--count", str(EDGES))
    assert code == 0, complaint
    assert (result["programmed"] + result["late"], result["valid"]) == (EDGES, True)
    assert 0 < result["start_phc_ns"] - before_tai_ns - AHEAD_NS < HANG_S * NS_PER_S
    assert result["start_phc_ns"] % PERIOD_NS == 0
    assert (result["clock"]["kind"], result["clock"]["bound_ns"] >= 2 * AHEAD_NS) == ("timeservice", True)
    _, result, _ = software.run(*CLOCK, "--output", software.pin("tgpio-out"), "--count", "5")
    assert result["clock"]["name"] == "realtime"
    assert result["start_phc_ns"] - before_tai_ns < AHEAD_NS


def test_a_clock_that_gives_no_time_makes_no_edges(
    software: Software, linux_build: Path, tmp_path: Path
) -> None:
    clock = ("--clock", f"timeservice:{tmp_path}/time", "--output", software.pin("tgpio-out"))
    code, _, complaint = software.run(*CLOCK, *clock)
    assert code == 3
    assert '--clock: clock "timeservice:' in complaint
    assert "no service" in complaint
    with (
        service(linux_build, tmp_path / "time", "0", "10000000") as made,
        started(software.program, *CLOCK, *clock, "--count", "0") as process,
    ):
        made.tell("withdraw")
        said, _ = process.communicate(timeout=HANG_S)
    result = json.loads(said.splitlines()[-1])
    assert (process.returncode, result["valid"]) == (4, False)
    assert result["invalid_reasons"][0].endswith(": the clock gives no time")


def test_captures_are_those_of_the_reference(software: Software) -> None:
    with software.reference():
        capture = ("capture", "--pin", software.pin("tgpio-in"), "--duration-ms", "20000")
        code, result, complaint = software.run(*capture, "--count", str(EDGES))
    assert code == 0, complaint
    assert (result["axis"], result["count"], result["counter_hz"]) == ("counter", EDGES, software.device.hz)
    assert result["missed"] == 0
    assert [sequence for sequence, _ in result["captures"]] == list(range(EDGES))
    ticks = [instant for _, instant in result["captures"]]
    period = (ticks[-1] - ticks[0]) * 1e9 / software.device.hz / (EDGES - 1)
    assert abs(period - PERIOD_NS) < PERIOD_NS * 1e-4


def test_a_capture_ends_with_its_time(software: Software) -> None:
    capture = ("capture", "--pin", software.pin("sdp-in"), "--count", "5", "--duration-ms", "100")
    code, result, _ = software.run(*capture)
    assert (code, result["complete"], result["count"], result["captures"]) == (0, True, 0, [])


def test_every_edge_of_listing_1_has_its_capture(software: Software) -> None:
    pins = ("--output", software.pin("gpio"), "--capture", software.pin("sdp-in"))
    code, result, complaint = software.run("latch", "--clock", "gettime", "--count", "130", *pins)
    assert code == 0, complaint
    assert (result["count"], result["delay"]["n"], result["batches_lost"]) == (130, 130, 0)
    blocks = result["blocks"]
    assert (blocks["size"], len(blocks["means_ns"])) == (1, 130)
    assert sum(blocks["means_ns"]) / 130 == pytest.approx(result["delay"]["mean_ns"], rel=1e-12)


def test_a_pin_of_another_process_is_refused(software: Software) -> None:
    with software.reference():
        output = ("output", "--pin", software.pin("sdp-out"), "--periodic", "--period-ns", str(PERIOD_NS))
        code, _, complaint = software.run(*output)
    assert code == 3
    assert "another process has this pin" in complaint


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("run",), "--method is missing"),
        (("run", "--method", "guess"), 'unknown "guess"; allowed: gettime-software rdtsc-software'),
        (CLOCK, "--output is missing"),
        ((*CLOCK, "--output", "nowhere"), 'unknown pin "nowhere"; allowed: bench:OUTPUT'),
        ((*CLOCK, "--output", "ptp:"), 'unknown pin "ptp:"'),
        ((*CLOCK, "--output", "ptp:/dev/ptp0,pin=999"), "pin: must be in 0..255"),
        ((*CLOCK, "--output", "gpio:/dev/gpiochip0"), "line: is missing"),
        ((*CLOCK, "--output", "bench:led"), "sdp-out, card-pps, tgpio-out"),
        (
            (*CLOCK, "--output", "bench:gpio", "--clock", "sundial"),
            'unknown clock "sundial"; allowed: realtime,',
        ),
        (
            (*GETTIME, "--output", "bench:gpio", "--clock", "timeservice"),
            "gettime-software reads no clock by name",
        ),
        ((*CLOCK, "--period-ns", "1000", "--output", "bench:gpio"), "--period-ns"),
        (("run", "--method", "tgpio-latch", "--output", "bench:gpio"), "--phc is missing"),
        (
            ("run", "--method", "tgpio-latch", "--output", "bench:gpio", "--phc", "/dev/ptp0"),
            "--latch is missing",
        ),
        (("output", "--pin", "bench:gpio"), "either --periodic or --at-ns"),
        (("output", "--pin", "bench:gpio", "--periodic"), "--period-ns is missing"),
        (
            ("output", "--pin", "bench:gpio", "--periodic", "--period-ns", "1000000", "--start-ns", "soon"),
            "must be next or a number",
        ),
        (("capture",), "--pin is missing"),
        (("latch", "--clock", "sundial"), "allowed: gettime rdtsc"),
    ],
)
def test_bad_input_is_named(checked_bw_edge: Path, arguments: tuple[str, ...], complaint: str) -> None:
    code, _, said = run(checked_bw_edge, *arguments)
    assert code == 2, said
    assert complaint in said
    assert len(said.splitlines()) == 1
