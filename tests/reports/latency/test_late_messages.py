# SPDX-License-Identifier: Apache-2.0
"""The latest messages with the machine's pauses around them: on one clock, worst first."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from reports.latency.evidence import load_replay
from reports.latency.late_message_plots import figure_late_messages
from reports.latency.late_messages import AROUND_NS, SHOWN_MAX, latest_messages
from reports.latency.verdict import ReplayResults
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


def test_without_the_witness_s_clock_there_is_no_picture(tmp_path: Path) -> None:
    assert latest_messages(dataclasses.replace(_replay(tmp_path), witness_clock="nobody's")) == []


def test_the_figure_is_the_same_each_time_and_names_the_worst(tmp_path: Path) -> None:
    found = latest_messages(_replay(tmp_path))
    drawn = figure_late_messages("late0", found)
    assert drawn == figure_late_messages("late0", found)
    assert f"stream {found[0].stream} took" in drawn
    assert drawn.count('role="img"') == 1
