# SPDX-License-Identifier: Apache-2.0
"""The whole pattern over real sockets: every message is counted once, the three latencies belong together."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.patience import HANG_S
from tests.traffic_gen.lab import Json, Lab, Plan, Stream, pattern_text, streams_by_id

pytestmark = [pytest.mark.simulated, pytest.mark.timed]

LATENCIES = ("received_minus_scheduled", "received_minus_sent", "sent_minus_scheduled")


def _check_summary(summary: Json) -> None:
    assert sum(count for _, _, count in summary["buckets"]) + summary["overflow"] == summary["n"]
    if summary["n"] == 0:
        assert summary["min_ns"] is None
        return
    order = [summary[key] for key in ("min_ns", "p50_ns", "p90_ns", "p99_ns", "p999_ns", "max_ns")]
    assert order == sorted(order)
    assert order[0] <= summary["mean_ns"] <= order[-1]


def test_all_messages_of_the_pattern_arrive(lab: Lab, repository: Path) -> None:
    pattern = (repository / "traffic-gen/patterns/daq12.toml").read_text()
    plan = Plan(pattern, tuple(range(1, 13)), phase="aligned-12", duration_ms=3000, correction="two-way")
    lab.serve().wait_ready()
    recv, send = lab.begin_replay(plan, "--check-fill")
    sent = streams_by_id(send.result())
    result = recv.result()

    assert result["complete"]
    assert result["valid"]
    assert len(result["streams"]) == 48
    for stream in result["streams"]:
        assert abs(stream["expected"] - 3_000_000_000 / stream["period_ns"]) < 1
        assert (stream["received"], stream["lost"], stream["duplicates"], stream["reordered"]) == (
            stream["expected"],
            0,
            0,
            0,
        )
        assert stream["connections"] == (0 if stream["transport"] == "udp" else 1)
        assert stream["invalid_samples"] == 0
        for name in LATENCIES:
            assert stream[name]["n"] == stream["received"]
            _check_summary(stream[name])
        means = [stream[name]["mean_ns"] for name in LATENCIES]
        assert means[0] == pytest.approx(means[1] + means[2], abs=3)
        assert (
            stream["received_minus_sent"]["min_ns"]
            > -result["clocks"][0]["bound_ns"] - result["clocks"][0]["residual_ns"]
        )
        own = sent[stream["id"]]
        assert (own["scheduled"], own["sent"], own["unsent"]) == (stream["expected"], stream["expected"], 0)
        assert own["sent_minus_scheduled"]["buckets"] == stream["sent_minus_scheduled"]["buckets"]
    assert set(result["hostile"].values()) == {0}
    assert result["memory"]["rss_end_bytes"] - result["memory"]["rss_start_bytes"] < 2**20


def test_a_silent_clock_makes_the_result_invalid(lab: Lab, tmp_path: Path) -> None:
    plan = Plan(pattern_text(Stream(10)), correction="two-way")
    path = Plan(plan.pattern, correction="two-way", start_tai_ns=plan.start_tai_ns + 4 * 10**9).write(
        tmp_path / "plan.toml"
    )
    recv = lab.recv(path)
    lab.send(path).result()
    result = recv.result(code=4)
    assert not result["valid"]
    assert result["invalid_reasons"] == ["clock peer never answered"]
    stream = result["streams"][0]
    assert stream["received"] == stream["expected"] == stream["invalid_samples"]
    assert stream["received_minus_scheduled"]["n"] == 0


def test_a_large_message_does_not_hold_up_a_small_one(lab: Lab) -> None:
    """Compared within one run: a piece of the large message, not all of it, stands before the small one."""
    large = Stream(10, "tcp", 16_000_000, 400_000, 1_000_000)
    small = Stream(13, "tcp", 10, 400_000, 1_000_000, low_latency=True)
    recv, send = lab.begin_replay(Plan(pattern_text(large, small), duration_ms=4000))
    send.result()
    streams = streams_by_id(recv.result())
    assert streams[13]["received"] == 10
    assert (
        streams[13]["received_minus_scheduled"]["p50_ns"] * 4
        < streams[10]["received_minus_scheduled"]["p50_ns"]
    )


def test_misses_are_logged_in_full(lab: Lab, tmp_path: Path) -> None:
    import json

    recv, send = lab.begin_replay(
        Plan(pattern_text(Stream(10, budget_us=1))), "--out", str(tmp_path / "out"), "--log"
    )
    send.result()
    result = recv.result()
    stream = result["streams"][0]
    misses = [json.loads(line) for line in (tmp_path / "out/misses.ndjson").read_text().splitlines()]
    messages = (tmp_path / "out/messages.csv").read_text().splitlines()
    assert result["recorder"] == {"miss_log_dropped": 0, "message_log_dropped": 0}
    assert len(misses) == stream["misses"] == stream["received"]
    assert len(messages) == 1 + stream["received"]
    assert (
        max(miss["received_minus_scheduled_ns"] for miss in misses)
        == stream["received_minus_scheduled"]["max_ns"]
    )
    for miss in misses:
        assert (
            miss["received_reference_tai_ns"] - miss["scheduled_tai_ns"]
            == miss["received_minus_scheduled_ns"]
        )
        assert miss["received_minus_sent_ns"] + miss["lateness_ns"] == miss["received_minus_scheduled_ns"]


def test_a_witness_watches_from_within(lab: Lab, tmp_path: Path) -> None:
    plan = Plan(pattern_text(Stream(10)), duration_ms=1000)
    answer = tmp_path / "within.ndjson"
    recv, send = lab.begin_replay(plan, "--witness", str(answer))
    send.result()
    assert recv.result()["valid"]
    (line,) = answer.read_text().splitlines()
    seen = json.loads(line)
    assert (seen["type"], seen["tool"], seen["complete"]) == ("result", "bw-traffic witness", True)
    assert (seen["period_ns"], seen["threshold_ns"]) == (2_997_000, 1_000_000)
    assert len(seen["cpus"]) == len(os.sched_getaffinity(0))
    for cpu in seen["cpus"]:  # each wake-up that was not slept through was told
        slept_ns = seen["elapsed_ns"] - cpu["stalled_ns"]
        assert slept_ns / seen["period_ns"] / 2 < cpu["samples"] <= seen["elapsed_ns"] / seen["period_ns"] + 1


def test_a_witness_without_a_place_for_its_answer_is_refused(lab: Lab, tmp_path: Path) -> None:
    path = Plan(pattern_text(Stream(10)), duration_ms=1000).write(tmp_path / "plan.toml")
    recv = lab.recv(path, "--witness", str(tmp_path / "none" / "within.ndjson"))
    assert recv.process.wait(HANG_S) == 3
    assert "within.ndjson: No such file or directory" in recv.errors()
