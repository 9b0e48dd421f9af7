# SPDX-License-Identifier: Apache-2.0
"""What breaks in a run is told: connections, processes, files, plans."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from tests.patience import HANG_S
from tests.traffic_gen.lab import Lab, Plan, Stream, pattern_text, streams_by_id, tai_ns

pytestmark = [pytest.mark.simulated, pytest.mark.timed]

TCP = Stream(10, "tcp", 1000, 10_000)
FAST = Stream(13, "tcp", 10, 10_000, low_latency=True)
UDP = Stream(12, "udp", 1000, 10_000)


def test_broken_connections_come_back(checked_lab: Lab) -> None:
    lab = checked_lab
    recv, send = lab.begin_replay(Plan(pattern_text(TCP, UDP, FAST), duration_ms=4000))
    for seconds in (1, 2, 3):
        send.wait_line(lambda line, s=seconds: line["type"] == "progress" and line["elapsed_ms"] >= s * 1000)
        lab.break_connections(13)
    sent = streams_by_id(send.result())
    streams = streams_by_id(recv.result())
    assert sent[13]["reconnects"] == 3
    assert streams[13]["connections"] == 4
    assert (sent[10]["reconnects"], streams[10]["connections"]) == (0, 1)
    assert streams[13]["lost"] <= 3 * 3, "more is lost than what was under way when the connection broke"
    assert streams[13]["received"] + streams[13]["lost"] == streams[13]["expected"] == sent[13]["sent"]
    assert streams[10]["lost"] == streams[12]["lost"] == 0


def test_a_consumer_that_is_killed_and_started_again(lab: Lab, tmp_path: Path) -> None:
    """The producers reconnect, and what the second consumer has missed is counted as lost."""
    path = Plan(pattern_text(TCP, UDP), duration_ms=4000).write(tmp_path / "plan.toml")
    first = lab.recv(path)
    first.wait_ready()
    send = lab.send(path)
    first.wait_line(lambda line: line.get("phase") == "counting" and line["elapsed_ms"] >= 2000)
    first.close()
    assert any(line["type"] == "progress" and line["streams"][0][1] > 0 for line in first.lines())
    result = lab.recv(path).result(code=4)
    assert result["complete"]
    assert result["invalid_reasons"][0].endswith("after counting began")
    sent = streams_by_id(send.result())
    for stream in result["streams"]:
        assert 0 < stream["lost"] < stream["expected"]
        assert stream["received"] + stream["lost"] == stream["expected"]
    assert sent[10]["reconnects"] >= 1


def test_a_stopped_consumer_prints_what_it_has(lab: Lab) -> None:
    recv, send = lab.begin_replay(Plan(pattern_text(TCP, UDP), duration_ms=30_000))
    recv.wait_line(lambda line: line.get("phase") == "counting" and line["streams"][0][1] > 0)
    recv.stop()
    result = recv.result(code=4)
    assert result["complete"] is False
    assert all(stream["received"] > 0 for stream in result["streams"])
    send.stop()
    assert send.result(code=4)["complete"] is False


def test_a_consumer_that_stands_still_is_latency_not_lateness(lab: Lab) -> None:
    """No coordinated omission: slots due while the socket is blocked are blamed on the way."""
    large = Stream(10, "tcp", 640_000, 10_000)
    recv, send = lab.begin_replay(Plan(pattern_text(large, UDP), duration_ms=3000, grace_ms=2000))
    recv.wait_line(lambda line: line.get("phase") == "counting")
    recv.process.send_signal(signal.SIGSTOP)
    time.sleep(1.0)
    recv.process.send_signal(signal.SIGCONT)
    sent = streams_by_id(send.result())
    streams = streams_by_id(recv.result())
    assert sent[10]["blocked_writes"] > 0
    assert sent[10]["unsent"] == streams[10]["lost"] == streams[12]["lost"] == 0
    waited_ns = streams[10]["received_minus_sent"]["max_ns"]
    assert waited_ns > 500_000_000
    assert streams[10]["received_minus_scheduled"]["max_ns"] >= waited_ns
    assert streams[10]["sent_minus_scheduled"]["max_ns"] * 4 < waited_ns
    # All that came due in that second were held up, not only the first of them.
    held = [
        count for low_ns, _, count in streams[10]["received_minus_sent"]["buckets"] if low_ns > 100_000_000
    ]
    assert sum(held) > 50


def test_a_producer_sleeps_while_it_is_blocked(lab: Lab) -> None:
    """A real-time thread that tries again and again would take the CPU from the bench."""
    large = Stream(10, "tcp", 640_000, 10_000)
    recv, send = lab.begin_replay(Plan(pattern_text(large), warmup_ms=2000, duration_ms=1000, grace_ms=2000))
    recv.wait_line(lambda line: line.get("phase") == "warmup")
    recv.process.send_signal(signal.SIGSTOP)
    time.sleep(1.0)
    recv.process.send_signal(signal.SIGCONT)
    sent = streams_by_id(send.result())
    recv.result()
    pieces = 300 * large.size_bytes // 32_768
    assert 0 < sent[10]["blocked_writes"] < pieces


def test_a_step_before_the_first_look_at_the_course_is_no_complete_run(
    lab: Lab, tmp_path: Path, step_at_threads: Path
) -> None:
    """Whoever does not know when the producers end has not measured to the end."""
    path = Plan(pattern_text(TCP), duration_ms=30_000).write(tmp_path / "plan.toml")
    result = lab.recv(path, environment={"LD_PRELOAD": str(step_at_threads)}).result(code=4)
    assert (result["complete"], result["valid"]) == (False, False)
    assert result["invalid_reasons"] == ["the local clock was stepped"]


def test_a_killed_producer_is_loss(lab: Lab) -> None:
    recv, send = lab.begin_replay(Plan(pattern_text(TCP, UDP), duration_ms=2000))
    send.wait_line(lambda line: line["type"] == "progress" and line["sent"] > 0)
    send.close()
    result = recv.result()
    for stream in result["streams"]:
        assert stream["received"] > 0
        assert stream["lost"] == stream["expected"] - stream["received"] > 0


def test_a_full_disk_is_told(lab: Lab, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "misses.ndjson").symlink_to("/dev/full")
    recv, send = lab.begin_replay(
        Plan(pattern_text(Stream(12, budget_us=1)), duration_ms=1000), "--out", str(out)
    )
    send.result()
    result = recv.result(code=4)
    assert result["invalid_reasons"] == ["the logs are incomplete: No space left on device"]
    assert result["streams"][0]["lost"] == 0


def test_no_consumer_before_slot_0(lab: Lab, tmp_path: Path) -> None:
    path = Plan(pattern_text(TCP)).write(tmp_path / "plan.toml")
    result = lab.send(path).result(code=4)
    assert not result["valid"]
    assert (
        "stream 10: no connection to 10.77.0.100:20010 before slot 0: Connection refused"
        in result["invalid_reasons"]
    )


def test_a_producer_that_comes_too_late(lab: Lab, tmp_path: Path) -> None:
    path = Plan(pattern_text(UDP), start_tai_ns=tai_ns() - 10**9).write(tmp_path / "plan.toml")
    assert lab.send(path).result(code=4)["invalid_reasons"] == ["started after slot 0"]


def test_a_port_in_use(lab: Lab, tmp_path: Path) -> None:
    path = Plan(pattern_text(TCP), duration_ms=600_000).write(tmp_path / "plan.toml")
    first = lab.recv(path)
    first.wait_ready()
    second = lab.recv(path)
    assert second.process.wait(HANG_S) == 3
    assert second.errors() == (
        "bw-traffic recv: stream 10: 10.77.0.100:20010 cannot be opened: Address already in use\n"
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--producer", "2"], "the plan has no producer 2"),
        (["--producer", "1,0"], "allowed: a list of 1..655, or all"),
        (["--nonsense"], 'unknown option "--nonsense"'),
        ([], "--producer is missing"),
    ],
)
def test_bad_arguments(lab: Lab, tmp_path: Path, arguments: list[str], said: str) -> None:
    import subprocess

    path = Plan(pattern_text(UDP)).write(tmp_path / "plan.toml")
    done = subprocess.run(
        [lab.program, "send", path, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_sender_that_comes_too_late_says_so(lab: Lab, tmp_path: Path) -> None:
    """However shortly before slot 0 it is started, or after it: where it does not play, it says why."""
    for lead_ms in (-100, *range(4, 100, 4)):
        plan = Plan(
            pattern_text(UDP),
            warmup_ms=0,
            duration_ms=20,
            grace_ms=0,
            start_tai_ns=tai_ns() + lead_ms * 10**6,
        )
        send = lab.send(plan.write(tmp_path / "plan.toml"))
        code = send.process.wait(HANG_S)
        result = send.result(code)
        assert (code == 4) == bool(result["invalid_reasons"])
        assert code == 4 or lead_ms > 0
