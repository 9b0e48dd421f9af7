# SPDX-License-Identifier: Apache-2.0
"""Single messages through network stacks: live between two namespaces and the native machine."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hw.provisioning import TARGETS
from hw.session import Bench
from reports.realtime_ethernet.capability import RISES
from reports.realtime_ethernet.evidence import (
    ALONE,
    BESIDE,
    LATENCY,
    RTDIP,
    THROUGHPUT,
    UDP,
    load_bulk,
    load_messages,
    load_round_trips,
    load_thread_shares,
    load_transfers,
)
from reports.realtime_ethernet.verdict import find_latency, find_rise, find_throughput
from resources.network_stack import load_network_stack
from resources.network_stack_ends import network_stack_on, stack_interfaces
from resources.realtime_ethernet.settings import MessageTimes
from resources.realtime_ethernet.trials import measure_messages

MACHINE = "linux"
TIMES = MessageTimes(
    rounds=2,
    sizes_bytes=(4, 1400),
    trips=50,
    interval_us=1000,
    probes=30,
    probe_interval_us=10_000,
    probe_bytes=64,
    throughput_sizes_bytes=(64, 1400),
    throughput_ms=100,
    bulk_bytes=1400,
    fragment_sizes_bytes=(16384,),
    traced_trips=100,
)
pytestmark = pytest.mark.simulated


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "over", "busy_poll_us"), [("kernel", UDP, None), ("kernel", UDP, 50), ("rtdip", RTDIP, None)]
)
def test_messages_go_through_the_stack(
    bench: Bench, name: str, over: str, busy_poll_us: int | None, tmp_path: Path
) -> None:
    stack = load_network_stack(TARGETS / MACHINE, name)
    if busy_poll_us:
        stack = replace(stack, message_receive_arguments=("--busy-poll-us", str(busy_poll_us)))
    target = bench.spec.targets[MACHINE]
    interfaces = stack_interfaces(bench.spec, stack, MACHINE, MACHINE, target.test_interface)
    with network_stack_on(stack, bench, MACHINE, interfaces, tmp_path / "stack"):
        measure_messages(bench, target, stack, target.test_interface, TIMES, tmp_path, print)
    receivers = [
        json.loads((tmp_path / f"{verb}.ndjson").read_text().split("\n", 1)[0]) for verb in ("echo", "sink")
    ]
    assert [ready.get("busy_poll_us") for ready in receivers] == [busy_poll_us] * 2
    messages = load_messages(tmp_path)
    assert (messages.over, messages.cpu) == (over, 1)
    trips = load_round_trips(tmp_path, [*messages.of(LATENCY), *messages.of(ALONE), *messages.of(BESIDE)])
    transfers = load_transfers(tmp_path, messages.of(THROUGHPUT))
    bulk = load_bulk(tmp_path, messages.of(BESIDE))
    assert [each.over for each in (*trips, *transfers, *bulk)] == [over] * (10 + 6 + 2)
    assert {each.round_trip.n for each in trips} == {50, 30}
    assert min(each.windows for each in (*transfers, *bulk)) > 0
    assert messages.sizes_bytes(LATENCY) == [4, 1400, 16384]
    assert messages.sizes_bytes(THROUGHPUT) == [64, 1400, 16384]
    order = [(each.round, each.kind) for each in messages.trials if each.kind in (ALONE, BESIDE)]
    assert order == [(0, ALONE), (0, BESIDE), (1, BESIDE), (1, ALONE)]
    assert all(each.ticks > 0 for each in messages.trials)
    latency = find_latency(messages, tmp_path, 4, "median")
    throughput = find_throughput(messages, tmp_path, 1400)
    rises = [find_rise(each, messages, tmp_path, "p99") for each in RISES]
    for found in (latency, throughput, *rises):  # rounds in which this machine lost time do not count
        assert f"{found.rounds} of 2 rounds count, 14 are needed" in found.causes[0]
        assert (found.value is not None) == (found.rounds > 0)
    assert latency.value is None or 1000 < latency.value < 1_000_000
    assert throughput.value is None or throughput.value > 100_000
    assert messages.traced is not None
    if not messages.traced.missing:
        shares = load_thread_shares(tmp_path, messages.traced)
        assert [each.messages + each.untold for each in (shares.median, shares.late)] == [10, 1]
        assert sum(shares.late.mean_ns.values()) == pytest.approx(shares.late.receiving_ns)
        assert messages.traced.dropped_events or "echo" in shares.names
