# SPDX-License-Identifier: Apache-2.0
"""Points of the project's own programs tell what the programs' answers tell."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from reports.timeline.event_stream_file import read_event_streams
from tests.traffic_gen.events.test_events import recorder
from tests.traffic_gen.lab import Lab, Plan, Stream, pattern_text, streams_by_id

pytestmark = pytest.mark.simulated


def test_each_message_of_a_replay_is_sent_and_read_once(
    lab: Lab, tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pattern = pattern_text(Stream(11), Stream(12, "tcp", 5000), Stream(13, "tcp", 40_000, budget_us=1))
    with recorder(tool, tmp_path, "--ring-kib", "16384") as (_, environment):
        monkeypatch.setenv("BW_EVENTS", environment["BW_EVENTS"])
        recv, send = lab.begin_replay(Plan(pattern))
        sent = streams_by_id(send.result())
        received = streams_by_id(recv.result())
    by_pid = {stream.pid: stream for stream in read_event_streams(tmp_path)}
    sender, receiver = by_pid[send.process.pid], by_pid[recv.process.pid]
    begun, written = sender.of("send.begun"), sender.of("send.written")
    read, late = receiver.of("receive.message"), receiver.of("receive.late")
    assert np.array_equal(np.sort(sender.tag[begun]), np.sort(sender.tag[written]))
    for identifier in (11, 12, 13):
        mine = np.sort(sender.tag[written][sender.tag[written] >> 32 == identifier])
        theirs = np.sort(receiver.tag[read][receiver.tag[read] >> 32 == identifier])
        assert np.array_equal(mine, theirs)
        # Without the messages of the warm-up, which no answer counts.
        counted = np.count_nonzero((mine & 0xFFFFFFFF) >= mine.size - sent[identifier]["sent"])
        assert counted == sent[identifier]["sent"] == received[identifier]["received"]
        over = np.count_nonzero(receiver.tag[late] >> 32 == identifier)
        assert over == received[identifier]["misses"]
    # One counter for both: nothing is read before its first byte was handed over.
    order = np.argsort(sender.tag[begun], kind="stable")
    effects = np.argsort(receiver.tag[read], kind="stable")
    assert (receiver.ticks[read][effects] > sender.ticks[begun][order]).all()
    assert receiver.data(late).shape[1] == 8
