# SPDX-License-Identifier: Apache-2.0
"""A consumer that is killed, or whose disk fills: a clear error, no verdict, and the data are kept."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from hw.errors import MeasurementError
from resources.replay.replay import Replay
from tests.simulation.trial import TARGET, Lab, Trial

pytestmark = [pytest.mark.simulated, pytest.mark.timed]

KILL_CONSUMER = """
for process in /proc/[0-9]*; do
    case $(readlink $process/exe) in */bw-traffic)
        tr '\\0' ' ' <$process/cmdline | grep -q ' recv ' && kill -KILL ${process#/proc/} && echo killed
    esac
done
"""


def lines_of(file: Path) -> list[dict[str, Any]]:
    """Return the whole lines of a tool's answers."""
    return [json.loads(line) for line in file.read_text().splitlines() if line.endswith("}")]


def test_killed_consumer_is_named_and_its_progress_kept(lab: Lab, tmp_path: Path) -> None:
    """SIGKILL in mid-run: no verdict (exit code 4), and what it had told until then is evidence."""

    def kill(counting_s: float) -> None:
        time.sleep(counting_s / 2)
        done = lab.bench.node(TARGET).run(["sh", "-c", KILL_CONSUMER], check=False)
        assert "killed" in done.stdout

    replay = lab.replay(tmp_path)
    replay.during = kill
    with pytest.raises(
        MeasurementError, match=r"bw-traffic recv on linux-rt was killed by signal 9"
    ) as caught:
        replay.run()
    assert caught.value.exit_code == 4
    progress = [line for line in lines_of(tmp_path / "recv.ndjson") if line["type"] == "progress"]
    assert any(line["phase"] == "counting" for line in progress)
    assert (tmp_path / "misses.ndjson").exists()
    for node in ("p01", "producer-12"):
        assert lines_of(tmp_path / f"send-{node}.ndjson")[-1]["type"] == "result"
    assert (tmp_path / f"{lab.capture}.pcap").stat().st_size > 0


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
