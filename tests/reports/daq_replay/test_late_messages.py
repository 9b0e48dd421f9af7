# SPDX-License-Identifier: Apache-2.0
"""The latest messages with the machine's pauses around them: on one clock, worst first."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from reports.daq_replay.evidence import load_replay
from reports.daq_replay.late_message_plots import figure_late_messages, shares_of
from reports.daq_replay.late_messages import (
    AROUND_NS,
    SHOWN_MAX,
    LateMessage,
    latest_messages,
    worst_messages,
)
from reports.daq_replay.verdict import ReplayResults
from reports.tools.answers import Miss, read_misses
from tests.reports.sample_run import Disturbance, write_evidence

MS = 1_000_000


def _replay(folder: Path) -> ReplayResults:
    write_evidence(folder, Disturbance(path_delay_ns={33: 15 * MS, 10: 120 * MS}, stalled=True), seed=3)
    return load_replay(folder).replay()


def test_the_worst_come_first_and_each_has_the_pauses_around_it(tmp_path: Path) -> None:
    replay = _replay(tmp_path)
    found = latest_messages(replay)
    assert 2 <= len(found) <= SHOWN_MAX
    shares = [message.received_ns / message.budget_ns for message in found]
    assert shares == sorted(shares, reverse=True)
    for message in found:
        assert 0 <= message.sent_ns < message.received_ns
        assert message.received_ns > message.budget_ns
        assert any(0 < start < end < message.received_ns for start, end, _cpu in message.pauses)
        assert all(
            end > -AROUND_NS and start < message.received_ns + AROUND_NS for start, end, _ in message.pauses
        )


def test_each_way_is_told_in_stages_that_add_up(tmp_path: Path) -> None:
    replay = _replay(tmp_path)
    found = worst_messages(replay)
    assert [message.stream for message in found] == [message.stream for message in latest_messages(replay)]
    for message in found:
        stages = (message.to_send_ns, message.to_kernel_ns, message.to_read_ns)
        assert all(stage is not None for stage in stages)
        assert sum(stage or 0 for stage in stages) == message.received_ns
        assert message.most == "kernel"
        assert 0 < message.after_start_ns < 60_000 * MS
    assert {message.stream for message in worst_messages(replay, 10)} == {10}
    assert worst_messages(dataclasses.replace(replay, witness_clock="nobody's")) == found


@pytest.mark.parametrize(
    ("sent_ns", "stamp_ns", "most", "words"),
    [
        (1, 2_780_000, "read", "of 24.72 ms, 21.94 ms between the kernel's stamp and the read"),
        (20_000_000, 20_100_000, "send", "of 24.72 ms, 20 ms before it was sent"),
        (1_000_000, 23_000_000, "kernel", "of 24.72 ms, 22 ms between sending and the kernel's stamp"),
        (1_000_000, None, "unsplit", "of 24.72 ms, 23.72 ms between sending and the read"),
        (None, 20_000_000, "unsplit", "of 24.72 ms, 20 ms between its schedule and the kernel's stamp"),
        (None, None, "unsplit", "of 24.72 ms, 24.72 ms between its schedule and the read"),
    ],
)
def test_the_stage_that_took_most_is_named(
    tmp_path: Path, sent_ns: int | None, stamp_ns: int | None, most: str, words: str
) -> None:
    replay, whole_ns = _replay(tmp_path), 24_720_000
    scheduled_tai_ns = replay.recv.start_tai_ns + MS
    own_ns = None if sent_ns is None else whole_ns - sent_ns
    stamp_tai_ns = None if stamp_ns is None else scheduled_tai_ns + stamp_ns
    miss = Miss(33, 10, whole_ns, own_ns, scheduled_tai_ns + whole_ns, stamp_tai_ns)
    (message,) = worst_messages(dataclasses.replace(replay, misses=(miss,)))
    assert message.most == most
    assert message.cause == f"worst message no. 10: {words}"
    assert message.budget_ns == 10 * MS


def _held(replay: ReplayResults, spared: int, *, stamped: bool) -> ReplayResults:
    """Return a replay in which all streams but those of one producer were held for 2 s, until one instant."""
    resumed_tai_ns = replay.recv.start_tai_ns + 20_000 * MS
    misses = [
        Miss(
            stream.id, number, length_ns, length_ns - MS, resumed_tai_ns + late_ns,
            resumed_tai_ns + late_ns - MS // 10 if stamped else None,
        )
        for stream in replay.recv.streams
        if stream.producer != spared
        for number, length_ns in enumerate(range(2000 * MS, 10 * MS, -stream.period_ns))
        for late_ns in (number * MS // 10,)
    ]  # fmt: skip
    return dataclasses.replace(replay, misses=tuple(misses))


@pytest.mark.parametrize("stamped", [True, False])
def test_a_receiver_that_stood_still_is_not_put_down_to_the_network(tmp_path: Path, stamped: bool) -> None:
    replay = _replay(tmp_path)
    producers = {stream.producer for stream in replay.recv.streams}
    said = f"all streams of {len(producers)} producers at once: the receiver or its link stalled"
    for message in worst_messages(_held(replay, 0, stamped=stamped)):
        assert message.most == ("kernel" if stamped else "unsplit")
        assert message.held == said
        assert message.cause.endswith(f"; {said}")
    assert {message.held for message in worst_messages(_held(replay, 1, stamped=stamped))} == {""}
    assert {message.held for message in worst_messages(replay)} == {""}


def test_a_log_of_an_older_tool_has_no_kernel_stamps(tmp_path: Path) -> None:
    _replay(tmp_path)
    lines = (tmp_path / "misses.ndjson").read_text().splitlines()
    older = [json.dumps({k: v for k, v in json.loads(line).items() if "stamp" not in k}) for line in lines]
    assert {miss.kernel_stamp_local_tai_ns for miss in read_misses(older)} == {None}
    assert None not in {miss.kernel_stamp_local_tai_ns for miss in read_misses(lines)}


def test_without_the_witness_s_clock_there_is_no_picture(tmp_path: Path) -> None:
    assert latest_messages(dataclasses.replace(_replay(tmp_path), witness_clock="nobody's")) == []


def test_the_figure_is_the_same_each_time_and_names_the_worst(tmp_path: Path) -> None:
    found = latest_messages(_replay(tmp_path))
    drawn = figure_late_messages("late0", found)
    assert drawn == figure_late_messages("late0", found)
    assert f"stream {found[0].stream} took" in drawn
    assert drawn.count('role="img"') == 1


def test_a_long_outage_makes_no_large_figure() -> None:
    """10 s, read every 250 µs: as many shapes as fit beside each other, and the time that was run stays."""
    second_ns = 1_000_000_000
    ran = tuple((n * 250_000, 200_000 if n % 3 else 0) for n in range(40_000))
    pauses = tuple((n * 1_000_000, n * 1_000_000 + 400_000, n % 2) for n in range(10_000))
    message = LateMessage(33, 7, 10_000_000, 0, 10 * second_ns, pauses, ran)
    assert len(figure_late_messages("late0", [message] * 8)) < 1_000_000
    times_ns, shares = shares_of(ran)
    assert len(shares) == len(times_ns) - 1 <= 600
    assert (np.diff(times_ns) * shares).sum() == pytest.approx(sum(ran_ns for _, ran_ns in ran[1:]), rel=1e-6)
    few_ns, few = shares_of(ran[:4])
    assert few_ns.tolist() == [0, 250_000, 500_000, 750_000]
    assert few.tolist() == [0.8, 0.8, 0.0]
