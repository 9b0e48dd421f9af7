# SPDX-License-Identifier: Apache-2.0
"""A thread that holds the target's processor for 20 ms is named where it makes messages late.

It is another program's, under PREEMPT_RT, at FIFO 98, and its name is drawn: nothing here knows it.
"""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from bench.verdicts.verdict_faults import build_hog, hog_arguments, hog_result
from hw.drivers.ssh import REMOTE_TOOLS
from hw.session import Bench
from reports.daq_replay.evidence import load_replay
from reports.daq_replay.excerpts import Excerpt, excerpts_of
from resources.daq_replay.pattern import load_pattern
from resources.daq_replay.plan import ReplaySettings
from resources.daq_replay.replay import Replay
from resources.tools.jobs import end_job
from tests.targets.rtdip.test_guest import bench as bench
from tests.traffic_gen.lab import Stream, pattern_text

pytestmark = [pytest.mark.simulated, pytest.mark.slow]

GUEST = "guest"
BURST_US, PAUSE_US = (20_000, 20_000), (280_000, 320_000)
STREAMS = tuple(Stream(number, "tcp", 100, 10_000, 5000, low_latency=True) for number in (10, 11, 12, 13))
EXCERPTS = 10
SETTLED = 150
MS = 1_000_000


def _replayed(bench: Bench, folder: Path, *, kernel_events: bool) -> tuple[str, list[Excerpt]]:
    """Replay for 6 s beside the hog; return its name and the excerpts of the latest messages."""
    name = f"h{secrets.token_hex(6)}"
    node = bench.node(GUEST)
    program = f"{REMOTE_TOOLS}/{name}"
    node.put(build_hog(folder), program)
    pattern = folder / "pattern.toml"
    pattern.write_text(pattern_text(*STREAMS))
    settings = ReplaySettings(
        pattern=pattern, warmup_ms=1000, duration_ms=12_000, grace_ms=500, only_producers=(1,)
    )
    (target,) = bench.spec.targets.values()
    replay = Replay(bench, target, load_pattern(pattern), settings, folder / "attempt-1", print)
    replay.kernel_events = kernel_events
    hog = node.start([program, *hog_arguments(0, 98, BURST_US, PAUSE_US, 1)], folder / "hog")
    try:
        hog.wait_ready()
        replay.run()
        assert hog_result(hog)["longest_us"] >= BURST_US[0]
    finally:
        end_job(hog)
    evidence = load_replay(folder / "attempt-1")
    found = [
        excerpt
        for stream in STREAMS
        for excerpt in excerpts_of(folder / "attempt-1", "made", evidence, stream.id).worst
    ]
    return name, found


def _is_the_hogs(excerpt: Excerpt) -> bool:
    """Say whether a message was held for about as long as the hog takes, and by nothing of this machine.

    When counting begins, the consumer itself takes its processor for 20 ms and more.
    """
    is_away = any(
        each.where.startswith(("machine", "emulator")) for each in excerpt.moments if each.at_ns > -MS
    )
    late_ns = excerpt.message.received_ns
    return excerpt.message.sequence >= SETTLED and 10 * MS <= late_ns <= 30 * MS and not is_away


def test_hog_is_named_in_every_excerpt_of_a_message_that_it_held(bench: Bench, tmp_path: Path) -> None:
    name, found = _replayed(bench, tmp_path, kernel_events=True)
    held = [each for each in found if _is_the_hogs(each)]
    assert len(held) >= EXCERPTS, [each.message for each in found]
    for excerpt in held:
        told = [each.what for each in excerpt.moments if "thread" in each.what]
        assert any(f"thread {name}" in each for each in told), told


def test_without_kernel_events_it_says_that_it_cannot_know(bench: Bench, tmp_path: Path) -> None:
    name, found = _replayed(bench, tmp_path, kernel_events=False)
    assert found
    for excerpt in found:
        assert not [each for each in excerpt.moments if name in each.what]
        assert any("kernel events were not recorded" in each for each in excerpt.unwatched)
