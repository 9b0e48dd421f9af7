# SPDX-License-Identifier: Apache-2.0
"""Edges of a guest, from its registers to the driver of an oscilloscope, and to its own inputs."""

from __future__ import annotations

import json
import time
from collections.abc import Generator
from itertools import pairwise
from pathlib import Path

import pytest

from hw.edges import EdgeRole
from hw.errors import BenchError
from hw.session import Bench
from resources.clocks.timecard import serve_timecards
from resources.edges.device import FOLLOW_STEM, SERVE_STEM, run_edge_device
from scope.edges import EdgeSettings, find_edges, settle_fit
from scope.levels import estimate_levels
from scope.settings import OscilloscopeSettings, TimebaseSettings, TriggerSettings
from tests.simulation.trial import TARGET

PERIOD_NS = 2_000_000
SEGMENTS = 100
RATE_ERROR = 1e-4
"""By which the PHC and this machine's counter may differ in rate."""
TAI_UTC_NS = 37_000_000_000
NS_PER_S = 1_000_000_000

pytestmark = [pytest.mark.simulated, pytest.mark.timed]


@pytest.fixture(scope="module")
def bench(opened: Bench, tmp_path_factory: pytest.TempPathFactory) -> Generator[Bench]:
    """Give the virtual bench with its target on and its timecard served."""
    opened.power_on([TARGET])
    with serve_timecards(opened, [TARGET], None, tmp_path_factory.mktemp("cards")):
        yield opened


def _in_s(bench: Bench, seconds: float) -> int:
    """Return an instant of TAI on the target's clock."""
    now_ns = int(bench.node(TARGET).run(["date", "+%s%N"]).stdout)
    return now_ns + TAI_UTC_NS + round(seconds * NS_PER_S)


@pytest.mark.parametrize("name", ["infiniivision", "mso"])
def test_periodic_edges_of_the_phc_reach_the_oscilloscope(bench: Bench, name: str, tmp_path: Path) -> None:
    signal = bench.spec.oscilloscopes[name].signals["reference"]
    settings = OscilloscopeSettings(
        channels=(signal.channel,),
        timebase=TimebaseSettings(2e-6),
        trigger=TriggerSettings(signal.channel.number, signal.level_v),
        segments=SEGMENTS,
    )
    with run_edge_device(bench, TARGET, name, tmp_path) as device:
        reference = bench.instruments.timed_output(TARGET, EdgeRole.REFERENCE, tmp_path)
        latch = bench.instruments.edge_capture(TARGET, EdgeRole.LATCH, tmp_path)
        assert reference.clock == "phc:/dev/ptp0"
        assert reference.start_periodic(PERIOD_NS) % PERIOD_NS == 0
        scope = bench.instruments.oscilloscope(name)
        scope.configure(settings)
        latch.start(SEGMENTS, 20_000)
        scope.arm()
        acquisition = scope.collect(30.0)
        scope.close()
        latched = latch.collect(30.0)
        device.require_running()
        assert reference.stop()["fired"]
    frames = sorted(acquisition.frames, key=lambda frame: frame.index)
    levels = estimate_levels(frames)
    edges = find_edges(frames, EdgeSettings(levels, settle_fit(frames, levels)))
    assert len(frames) == SEGMENTS
    assert edges.rising.all()
    assert float(abs(edges.time_s).max()) < 10e-9  # where the trigger is
    tags_s = [frame.time_tag_s for frame in frames if frame.time_tag_s is not None]
    _expect_period([tag * NS_PER_S for tag in tags_s])
    hz = latched.result["counter_hz"]
    assert isinstance(hz, int)
    assert len(latched.edges) == SEGMENTS
    _expect_period([ticks * NS_PER_S / hz for _number, ticks in latched.edges])
    served = json.loads((tmp_path / f"{SERVE_STEM}.ndjson").read_text().splitlines()[-1])
    assert served["pages"][0]["outputs"]["sdp-out"]["fired"] >= SEGMENTS
    assert served["scope"]["lost"] == 0
    followed = json.loads((tmp_path / f"{FOLLOW_STEM}.ndjson").read_text().splitlines()[-1])
    assert followed["complete"] is True


def _expect_period(instants_ns: list[float]) -> None:
    """Say that instants are consecutive edges, apart from at most a few that were not seen."""
    apart = [(later - earlier) / PERIOD_NS for earlier, later in pairwise(instants_ns)]
    assert all(abs(periods - round(periods)) < 2 * RATE_ERROR for periods in apart)
    assert sum(round(periods) == 1 for periods in apart) > 0.9 * len(apart)
    length = sum(round(periods) for periods in apart) * PERIOD_NS
    assert instants_ns[-1] - instants_ns[0] == pytest.approx(length, rel=RATE_ERROR)


def test_edges_at_an_instant_and_of_software_are_captured(bench: Bench, tmp_path: Path) -> None:
    with run_edge_device(bench, TARGET, "", tmp_path):
        timed = bench.instruments.timed_output(TARGET, EdgeRole.TIMED, tmp_path)
        software = bench.instruments.timed_output(TARGET, EdgeRole.SOFTWARE, tmp_path)
        capture = bench.instruments.edge_capture(TARGET, EdgeRole.CAPTURE, tmp_path)
        assert (timed.clock, capture.clock) == ("tai", "phc:/dev/ptp0")
        capture.start(1, 30_000)
        timed.fire_at(_in_s(bench, 1.5), 20.0)
        with pytest.raises(BenchError, match=r"pin bench:tgpio-out: .*: the instant had passed"):
            timed.fire_at(_in_s(bench, -1.0), 20.0)
        assert [number for number, _instant in capture.collect(10.0).edges] == [0]
        capture.start(10_000, 30_000)
        software.start_periodic(5 * PERIOD_NS)
        time.sleep(1.0)
        fired = software.stop()["fired"]  # what came too late is not made
        captured = capture.stop()
    assert isinstance(fired, int)
    assert fired > 20
    assert captured.seen == fired
