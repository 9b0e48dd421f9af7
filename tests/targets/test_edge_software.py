# SPDX-License-Identifier: Apache-2.0
"""Software that makes edges in a real guest: instants that have passed, pins that are not there.

What an oscilloscope sees of each method is for the suites of `robot/timed_edges`.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from hw.session import Bench
from resources.tools.jobs import end_and_fetch
from tests.patience import HANG_S
from tests.targets.edge_guest import GUEST, PHC, edge_guest
from tests.traffic_gen.edge.lab import Json

pytestmark = [pytest.mark.simulated, pytest.mark.timed]

PERIOD_NS = 2_000_000
RDTSC, CLOCK = "rdtsc-software", "clock-edge"


@dataclass(frozen=True)
class Lab:
    """A guest whose edge device runs."""

    bench: Bench

    def tool(self, *arguments: object) -> tuple[int, Json, str]:
        """Run bw-edge in the guest; return its exit code, its result ({}: none) and what it complains of."""
        argv = [self.bench.tool(GUEST, "bw-edge"), *(str(argument) for argument in arguments)]
        done = self.bench.node(GUEST).run(argv, timeout_s=HANG_S, check=False)
        lines = done.stdout.splitlines()
        return done.exit_code, json.loads(lines[-1]) if lines else {}, done.stderr


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Generator[Lab]:
    """Boot a guest with an edge device and reference edges."""
    folder = tmp_path_factory.mktemp("software")
    with edge_guest(folder) as guest, ExitStack() as stack:
        output = ["output", "--pin", "bench:sdp-out", "--periodic", "--period-ns", str(PERIOD_NS)]
        argv = [guest.bench.tool(GUEST, "bw-edge"), *output]
        job = guest.bench.node(GUEST).start(argv, folder / "output")
        stack.callback(end_and_fetch, job)
        job.wait_ready()
        yield Lab(guest.bench)


def test_one_pulse_and_one_that_comes_too_late(lab: Lab) -> None:
    code, now, complaint = lab.tool("capture", "--pin", "bench:tgpio-in", "--count", 1, "--duration-ms", 5000)
    assert (code, now["count"], now["axis"]) == (0, 1, "counter"), complaint
    soon = int(lab.bench.node(GUEST).run(["date", "+%s%N"]).stdout) + 40_000_000_000
    code, result, complaint = lab.tool("output", "--pin", "bench:tgpio-out", "--at-ns", soon)
    assert (code, result["fired"]) == (0, 1), complaint
    code, result, _ = lab.tool("output", "--pin", "bench:tgpio-out", "--at-ns", soon - 4_000_000_000)
    assert (code, result["valid"], result["not_fired"]) == (4, False, 1)
    assert result["invalid_reasons"] == ["the instant had passed"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("output", "--pin", "ptp:/dev/ptp0,pin=0", "--at-ns", "1"), "the clock has no such pin"),
        (
            ("output", "--pin", "ptp:/dev/ptp0", "--periodic", "--period-ns", "1000000"),
            "the clock has no such channel",
        ),
        (("capture", "--pin", "ptp:/dev/ptp0", "--count", "1"), "the clock has no such channel"),
        (("capture", "--pin", "ptp:/dev/rtc0", "--count", "1"), "not a PTP hardware clock"),
        (("capture", "--pin", "ptp:/dev/ptp9", "--count", "1"), "no such device"),
        (("capture", "--pin", "gpio:/dev/gpiochip0,line=1", "--count", "1"), "no such device"),
        (("capture", "--pin", "bench:gpio", "--count", "1"), "captures no such edges"),
        (
            (
                "output",
                "--pin",
                "tgpio-pps:/sys/class/pps-gen/pps-gen0",
                "--periodic",
                "--period-ns",
                "1000000000",
            ),
            "no generator of pulses per second there",
        ),
        (
            ("run", "--method", CLOCK, "--output", "bench:sdp-in"),
            "cannot be programmed in ticks of the processor's counter",
        ),
        (("run", "--method", RDTSC, "--phc", PHC, "--output", "bench:tgpio-out"), "cannot do that"),
        (("run", "--method", CLOCK, "--output", f"tgpio:{PHC},channel=0"), "cannot do that"),
    ],
)
def test_what_a_machine_has_not_is_said(lab: Lab, arguments: tuple[str, ...], complaint: str) -> None:
    code, result, said = lab.tool(*arguments)
    assert (code, result.get("type")) != (0, "result")
    assert code == 3, said
    assert complaint in said
