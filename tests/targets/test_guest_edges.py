# SPDX-License-Identifier: Apache-2.0
"""The edge device of a real guest: what an oscilloscope is told, against what software in the guest did."""

from __future__ import annotations

import itertools
import json
import statistics
import struct
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from hw.protocols import READY_S, Job
from hw.session import Bench
from hw.tools import BUILD
from tests.targets.edge_guest import GUEST, PHC, edge_guest
from tests.traffic_gen.edge.lab import ART_HZ, CALIBRATION, OTHER, REFERENCE, SDP_HZ, Json, ListeningScope

pytestmark = [pytest.mark.simulated, pytest.mark.timed]

PINS = "/run/edge-pins"
PERIOD_NS = 2_000_000
EDGES = 1500
ALIGNED_NS = 1000
"""By how much two ways to read the PHC may differ: less than half of the shortest reading under emulation."""


@dataclass(frozen=True)
class Observation:
    """What came of one run: the results of the tools, and the edges."""

    scope: ListeningScope
    serve: Json
    follow: Json
    fired: Json
    latched: Json
    readings: Json
    edges_in_phc: Json
    offset: int
    """Oscilloscope's counter less the guest's, as the device has it."""

    @property
    def hz(self) -> int:
        """Return the ticks per second of the counter, as the device has them."""
        return self.latched["counter_hz"]


class Guest:
    """The guest of an open bench, and edge-pins on it."""

    def __init__(self, bench: Bench, folder: Path) -> None:
        self.node = bench.node(GUEST)
        self.folder = folder
        self.node.put(BUILD / "static" / "tests" / "traffic_gen" / "edge-pins", PINS)

    def start(self, name: str, *arguments: object) -> Job:
        """Start edge-pins; returns when it is at work."""
        job = self.node.start([PINS, "-", *(str(argument) for argument in arguments)], self.folder / name)
        job.wait_ready()
        return job

    def work(self, name: str, *arguments: object) -> Json:
        """Run edge-pins to its end."""
        return ended(self.start(name, *arguments))


def ended(job: Job, timeout_s: float = 60.0) -> Json:
    """Wait for the end of a tool; return its result."""
    assert job.wait(timeout_s) == 0
    return result_of(job)


def result_of(job: Job) -> Json:
    """Return the last line of what a tool has said."""
    return json.loads(job.fetch().read_text(encoding="utf-8").splitlines()[-1])


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Generator[Observation]:
    """Boot a guest, run its edge device, and let software in it work all pins."""
    folder = tmp_path_factory.mktemp("edges")
    with edge_guest(folder) as lab:
        scope, bench, serve, follow = lab.scope, lab.bench, lab.serve, lab.follow
        guest = Guest(bench, folder)
        reference = guest.start("reference", "periodic", "sdp-out", 0, PERIOD_NS, 60_000)
        latching = guest.start("latched", "capture", "tgpio-in", EDGES, 5000)
        readings = guest.work("readings", "phc", PHC, 1000, 2000)
        latched = ended(latching)
        fired = guest.work("fired", "fire", 200, latched["counter_hz"] // 100, latched["counter_hz"] // 20)
        edges_in_phc = guest.work("edges", "latch", 200, 1000)
        for job in (reference, follow, serve):
            job.stop()
            assert job.wait(READY_S) == 0, result_of(job)
        scope.wait_for_all(result_of(serve))
        memory = Path(str(bench.virtual.timecard_page(GUEST))).read_bytes()
        offset: int = struct.unpack_from("<q", memory, CALIBRATION + 8)[0]
        answers = (result_of(serve), result_of(follow), fired, latched, readings, edges_in_phc)
        yield Observation(scope, *answers, offset)


def line_through(readings: Sequence[Sequence[int]]) -> tuple[float, float, int, int]:
    """Fit the PHC through the shortest fifth: ns a tick, ns after the first reading, counter, PHC of that."""
    short = sorted(readings, key=lambda reading: reading[2] - reading[0])[: len(readings) // 5]
    counter, _, _ = readings[0]
    phc_ns = readings[0][1]
    fit = statistics.linear_regression(
        [(before + after) / 2 - counter for before, _, after in short],
        [read - phc_ns for _, read, _ in short],
    )
    return fit.slope, fit.intercept, counter, phc_ns


def test_firmware_followed_the_phc(watched: Observation) -> None:
    assert watched.follow["valid"], watched.follow
    assert watched.follow["restarts"] == 0
    assert watched.follow["deviation_ns"] < ALIGNED_NS
    assert watched.serve["pages"][0]["calibration_bound_ns"] == watched.follow["calibration_bound_ns"] < 5000


def test_every_edge_was_told_in_order(watched: Observation) -> None:
    assert watched.scope.disorder() == []
    assert watched.serve["scope"]["lost"] == 0
    assert watched.serve["scope"]["edges"] == len(watched.scope.edges())
    page = watched.serve["pages"][0]
    fired = {name: counts["fired"] for name, counts in page["outputs"].items()}
    assert len(watched.scope.edges(REFERENCE, rising=True)) == fired["sdp-out"]
    assert len(watched.scope.edges(OTHER, rising=True)) == fired["tgpio-out"] + fired["gpio"]
    assert [counts["refused"] for counts in page["outputs"].values()] == [0, 0, 0, 0]


def test_reference_is_regular(watched: Observation) -> None:
    times_ns = [edge.time_ps / 1000 for edge in watched.scope.edges(REFERENCE, rising=True)]
    intervals_ns = [after - before for before, after in itertools.pairwise(times_ns)]
    assert len(intervals_ns) >= EDGES
    # One cycle of the card, and what the line of the PHC moves by when it is renewed, each way.
    assert max(intervals_ns) - min(intervals_ns) < 2 * (1e9 / SDP_HZ + 100)
    assert statistics.pstdev(intervals_ns) < 25
    assert abs(statistics.fmean(intervals_ns) - PERIOD_NS) < PERIOD_NS * 5e-6


def test_reference_is_at_its_instants_of_the_phc(watched: Observation) -> None:
    """By readings that software made by itself: each edge is at a whole number of periods."""
    slope, intercept, counter, phc_ns = line_through(watched.readings["done"])
    away_ns: list[float] = []
    for _, tick in watched.latched["done"]:
        instant_ns = (phc_ns % PERIOD_NS) + intercept + (tick - counter) * slope
        away_ns.append((instant_ns + PERIOD_NS / 2) % PERIOD_NS - PERIOD_NS / 2)
    assert abs(statistics.fmean(away_ns)) < ALIGNED_NS
    assert max(away_ns) - min(away_ns) < 1e9 / ART_HZ + 1e9 / SDP_HZ + 500


def guest_ticks(watched: Observation, channel: int) -> list[float]:
    """Return when the rising edges of a channel were, on the guest's counter."""
    seen = watched.scope.edges(channel, rising=True)
    return [edge.time_ps * watched.hz / 1e12 - watched.offset for edge in seen]


def test_latched_edges_are_those_of_the_oscilloscope(watched: Observation) -> None:
    """Software latches the last tick of ART before each edge."""
    latched = watched.latched["done"]
    assert [sequence for sequence, _ in latched] == list(range(EDGES))
    seen = guest_ticks(watched, REFERENCE)
    begin = next(number for number, at in enumerate(seen) if at > latched[0][1] - 2)
    late_ns = [(at - tick) * 1e9 / watched.hz for at, (_, tick) in zip(seen[begin:], latched, strict=False)]
    assert -1 < min(late_ns) <= max(late_ns) < 1e9 / ART_HZ + 1


def test_programmed_edges_come_at_the_next_tick_of_art(watched: Observation) -> None:
    """Edges for which a stall of this machine made software late do not come; the others are in time."""
    count = watched.fired["fired"]
    assert count + watched.fired["not_fired"] == len(watched.fired["done"]) == 200
    assert count >= 100
    for at in guest_ticks(watched, OTHER)[:count]:
        nearest = min(watched.fired["done"], key=lambda tick: abs(at - tick))
        assert -1 < (at - nearest) * 1e9 / watched.hz < 1e9 / ART_HZ + 1


def test_captured_edges_are_in_the_phc(watched: Observation) -> None:
    slope, intercept, counter, phc_ns = line_through(watched.readings["done"])
    assert watched.edges_in_phc["overruns"] == 0
    errors_ns = [
        captured - phc_ns - intercept - (after - counter) * slope
        for _, after, _, captured in watched.edges_in_phc["done"]
    ]
    # The readings end some seconds before, so their slope adds to the error.
    assert max(abs(error_ns) for error_ns in errors_ns) < 2 * ALIGNED_NS
