# SPDX-License-Identifier: Apache-2.0
"""What a target's emulator was given: read from the witness's series, kept around late messages only."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import pytest

from reports.emulation import EMULATION, SERIES, keep_emulation, read_emulation, read_series
from reports.errors import RecordError
from reports.late_message_plots import figure_late_messages
from reports.late_messages import AROUND_NS, latest_messages
from reports.replay_evidence import load_replay
from tests.reports.sample_run import DURATION_MS, START_TAI_NS, Disturbance, write_evidence

MS = 1_000_000
PERIOD_NS = 2 * MS
HOST_OFFSET_NS = 40_000
"""What the witness's clock is ahead of the consumer's in the sample."""


def _series(path: Path, cpus: Sequence[int] = (0, 1)) -> None:
    """Write a series as docs/native-tools.md says, in which the virtual processor runs half of the time."""
    head = b"BWCAP1\n\0" + struct.pack("<IIq", len(cpus), 2, PERIOD_NS)
    head += struct.pack(f"<{len(cpus)}i", *cpus) + struct.pack("<2i", 4711, 4712)
    records = b"".join(
        struct.pack("<qiiii", START_TAI_NS + number * PERIOD_NS, 5_000, cpu, MS if cpu == cpus[0] else 0, 0)
        for cpu in cpus
        for number in range(DURATION_MS * MS // PERIOD_NS)
    )
    path.write_bytes(head + records)


def test_what_lies_around_late_messages_is_kept_and_the_rest_goes(tmp_path: Path) -> None:
    write_evidence(tmp_path, Disturbance(path_delay_ns={33: 15 * MS}, stalled=True), seed=3)
    _series(tmp_path / SERIES)
    keep_emulation(tmp_path, load_replay(tmp_path).replay())
    assert not (tmp_path / SERIES).exists()
    evidence = load_replay(tmp_path)
    assert evidence.problems == ()
    messages = latest_messages(evidence.replay(), evidence.emulation)
    assert len(messages) == len(evidence.emulation) > 1
    for message in messages:
        span_ns = message.received_ns + 2 * AROUND_NS
        assert abs(len(message.vcpu_ran) - span_ns / PERIOD_NS) <= 1
        assert all(-AROUND_NS < time_ns < message.received_ns + AROUND_NS for time_ns, _ in message.vcpu_ran)
        assert {ran_ns for _, ran_ns in message.vcpu_ran} == {MS}
    assert "Late messages" in figure_late_messages("late0", messages)


def test_a_replay_without_late_messages_keeps_nothing(tmp_path: Path) -> None:
    write_evidence(tmp_path, Disturbance(), seed=3)
    _series(tmp_path / SERIES)
    keep_emulation(tmp_path, load_replay(tmp_path).replay())
    assert not (tmp_path / SERIES).exists()
    assert not (tmp_path / EMULATION).exists()
    keep_emulation(tmp_path, load_replay(tmp_path).replay())  # without a series: nothing to do


@pytest.mark.parametrize(("begin", "end"), [(0, 0), (1, None), (0, -3), (0, 20)])
def test_a_damaged_series_is_named_and_stays_as_it_is(tmp_path: Path, begin: int, end: int | None) -> None:
    """The replay is judged without it: it only tells more of what the witness's windows say."""
    write_evidence(tmp_path, Disturbance(path_delay_ns={33: 15 * MS}, stalled=True), seed=3)
    path = tmp_path / SERIES
    _series(path)
    path.write_bytes(path.read_bytes()[begin:end])
    with pytest.raises(RecordError, match=r"witness\.series"):
        read_series(path)
    keep_emulation(tmp_path, load_replay(tmp_path).replay())
    assert path.exists()
    assert not (tmp_path / EMULATION).exists()


def test_damaged_evidence_becomes_a_problem(tmp_path: Path) -> None:
    write_evidence(tmp_path, Disturbance(), seed=3)
    (tmp_path / EMULATION).write_text('{"stream":3}\n')
    with pytest.raises(RecordError, match=EMULATION):
        read_emulation(tmp_path / EMULATION)
    assert any(EMULATION in problem for problem in load_replay(tmp_path).problems)
