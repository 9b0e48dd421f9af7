# SPDX-License-Identifier: Apache-2.0
"""One replay over real sockets, judged: what comes late or not at all fails, what comes passes.

The amounts are chosen so that no machine decides: a message that is scheduled 300 ms before it is sent comes
at least so late, and a budget of half a minute is not missed by one that has no time.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from reports.daq_replay.evidence import load_replay
from reports.daq_replay.verdict import StreamRequirement, judge_latency
from reports.record.measurement import Limit
from tests.traffic_gen.lab import Lab, Plan, Stream, pattern_text, streams_by_id, tai_ns

pytestmark = pytest.mark.simulated

MS = 1_000_000
LATE_MS, TIGHT_MS, WIDE_MS = 300, 100, 30_000
MESSAGES = 40
SOON_MS = 4
LEAD_S = 1
"""From the plan to slot 0; four times as long where a machine has no time to begin within it."""


@pytest.fixture
def lab(repository: Path, tmp_path: Path) -> Generator[Lab]:
    """Give producers and a consumer in namespaces of their own."""
    with Lab(repository / ".build" / "linux" / "traffic-gen" / "bw-traffic", tmp_path) as made:
        yield made


def test_late_and_lost_messages_fail_and_the_others_pass(lab: Lab, tmp_path: Path) -> None:
    """Producer 1 is in time, 2 sends all 300 ms after their instants, 3 ends after half of its messages."""
    budgets_ms = {10: WIDE_MS, 13: WIDE_MS, 20: TIGHT_MS, 23: TIGHT_MS, 30: WIDE_MS}
    pattern = pattern_text(
        *(
            Stream(stream, "tcp" if stream % 10 else "udp", 1000, 50_000, budget_ms * 1000)
            for stream, budget_ms in budgets_ms.items()
        )
    )

    def plan(late_ms: int = 0, duration_ms: int = MESSAGES * 50) -> Plan:
        return Plan(
            pattern,
            producers=(1, 2, 3),
            warmup_ms=3000,
            duration_ms=duration_ms,
            grace_ms=2000,
            correction="two-way",
            start_tai_ns=start_tai_ns + late_ms * MS,
        )

    lab.serve().wait_ready()
    lead_s = LEAD_S
    while True:
        start_tai_ns = tai_ns() + lead_s * 1000 * MS
        folder = tmp_path / f"lead-{lead_s}" / "attempt-1"
        folder.mkdir(parents=True)
        recv = lab.recv(plan().write(folder / "plan.toml"), "--out", str(folder), "--log")
        recv.wait_ready()
        senders = [
            lab.send(each.write(tmp_path / f"{number}.toml"), str(number))
            for number, each in {1: plan(), 2: plan(LATE_MS), 3: plan(0, MESSAGES * 25)}.items()
        ]
        begun = [sender.wait_line(lambda line: line["type"] in ("ready", "result")) for sender in senders]
        if all(line["type"] == "ready" for line in begun):
            break
        for tool in (recv, *senders):
            tool.close()
        lead_s *= 4
    for sender in senders:
        sender.result()
    streams = streams_by_id(recv.result())
    (folder / "recv.ndjson").write_bytes(recv.log.read_bytes())

    replay = load_replay(folder).replay()
    found = {stream.id: stream for stream in replay.recv.streams}
    judged = {
        stream: judge_latency(
            stream, StreamRequirement("R", Limit(budget_ms * MS, None, "test"), MESSAGES // 2), replay
        ).verdict
        for stream, budget_ms in budgets_ms.items()
    }
    outcomes = {stream: verdict.outcome for stream, verdict in judged.items()}
    assert outcomes == {10: "pass", 13: "pass", 20: "fail", 23: "fail", 30: "fail"}, judged
    assert (found[30].received, found[30].lost) == (MESSAGES // 2, MESSAGES // 2)
    # Of 40 datagrams one at least is soon there, and none is read before the kernel has stamped it.
    assert streams[10]["receive_stack"]["min_ns"] >= 0
    assert streams[10]["received_minus_sent"]["min_ns"] < SOON_MS * MS
    for stream in (20, 23):
        shortest_ns = found[stream].received_minus_scheduled.min_ns
        bound_ns = replay.recv.clocks[0].bound_ns
        assert shortest_ns is not None
        assert bound_ns is not None
        assert shortest_ns >= LATE_MS * MS - bound_ns
        assert len({miss.sequence for miss in replay.misses if miss.stream == stream}) == MESSAGES
