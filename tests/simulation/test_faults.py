# SPDX-License-Identifier: Apache-2.0
"""A consumer whose disk fills: a clear error, no verdict, and the data are kept."""

from __future__ import annotations

import pytest

from resources.daq_replay.replay import Replay
from tests.simulation.trial import TARGET, Lab, Trial

pytestmark = [pytest.mark.simulated, pytest.mark.timed]


def test_full_disk_of_the_consumer_is_named_and_nothing_passes(lab: Lab) -> None:
    """The consumer's own logs do not fit: its result is invalid, says why, and no stream passes on it."""
    node = lab.bench.node(TARGET)
    folder = "/run/benchwright/replay"
    node.run(["mkdir", "-p", folder])
    node.run(["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", folder])

    def log_all(replay: Replay) -> None:
        replay.log_messages = True

    try:
        trial: Trial = lab.trial(log_all)
        free = node.run(["df", "--output=avail", folder]).stdout.split()[-1]
        assert free == "0", "the test did not fill the disk"
    finally:
        node.run(["umount", folder])
    assert not trial.streams("pass", "fail"), trial.told(trial.streams("pass", "fail"))
    for record in trial.records.values():
        assert "No space left on device" in record.reason, record.reason
    assert all(stream["received"] for stream in trial.answers.recv["streams"])
