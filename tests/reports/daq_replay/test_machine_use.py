# SPDX-License-Identifier: Apache-2.0
"""What else ran on the bench's machine: from how much on, and by how much, it excuses a message."""

from __future__ import annotations

from pathlib import Path

import pytest

from reports.daq_replay.evidence import load_replay
from reports.daq_replay.machine_use import MACHINE_USE, KnownUse, Other
from reports.daq_replay.verdict import StreamVerdict, judge_latency
from reports.errors import RecordError
from tests.reports.sample_run import Disturbance, requirement_of, write_evidence

MS = 1_000_000
S = 10**9


def judged(folder: Path, disturbance: Disturbance, use: KnownUse | None, stream: int) -> StreamVerdict:
    folder.mkdir(exist_ok=True)
    write_evidence(folder, disturbance, seed=3)
    if use is not None:
        use.write(folder)
    return judge_latency(stream, requirement_of(stream), load_replay(folder).replay())


@pytest.mark.parametrize(
    ("others_ns", "standing"),
    [(None, "over"), (0, "over"), (2 * S, "over"), (2 * S + 40_000, "marginal"), (30 * S, "marginal")],
)
def test_beside_more_than_a_twentieth_by_others_half_of_a_message_is_no_miss(
    others_ns: int | None, standing: str, tmp_path: Path
) -> None:
    use = None if others_ns is None else KnownUse(2, 20 * S, 17 * S + others_ns, 17 * S)
    found = judged(tmp_path, Disturbance(path_delay_ns={33: 15 * MS}), use, 33)
    assert found.standing == standing
    assert found.verdict.outcome == ("fail" if standing == "over" else "inconclusive")


def test_what_takes_more_than_twice_as_long_fails_beside_whomever(tmp_path: Path) -> None:
    use = KnownUse(2, 20 * S, 37 * S, 17 * S)
    assert judged(tmp_path, Disturbance(path_delay_ns={33: 25 * MS}), use, 33).standing == "over"


def test_the_reason_has_who_it_was(tmp_path: Path) -> None:
    use = KnownUse(2, 20 * S, 30 * S, 17 * S, (Other("python", 11 * S), Other("cc1", S)))
    reason = judged(tmp_path, Disturbance(path_delay_ns={33: 15 * MS}), use, 33).verdict.reason
    assert reason.endswith("other programs had 32.5 % of this machine's CPUs (python 11.0 s, cc1 1.0 s)"), (
        reason
    )


def test_a_pass_and_a_loss_stand_as_they_are(tmp_path: Path) -> None:
    use = KnownUse(2, 20 * S, 30 * S, 17 * S)
    assert judged(tmp_path / "quiet", Disturbance(), use, 33).standing == "clean"
    assert judged(tmp_path / "lost", Disturbance(lost={12: 6}), use, 12).standing == "over"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        '{"schema":"benchwright.machine_use/1","cpus":0,"elapsed_ns":1,"every_ns":1,"own_ns":1,"others":[]}',
        '{"schema":"benchwright.machine_use/1","cpus":2,"elapsed_ns":0,"every_ns":1,"own_ns":1,"others":[]}',
        '{"schema":"benchwright.machine_use/1","cpus":2,"elapsed_ns":1,"every_ns":-1,"own_ns":1,"others":[]}',
    ],
)
def test_a_damaged_file_is_named_and_nothing_passes(text: str, tmp_path: Path) -> None:
    write_evidence(tmp_path, Disturbance(), seed=3)
    (tmp_path / MACHINE_USE).write_text(text)
    with pytest.raises(RecordError, match=MACHINE_USE):
        KnownUse.read(tmp_path / MACHINE_USE)
    found = judge_latency(33, requirement_of(33), load_replay(tmp_path).replay())
    assert (found.standing, MACHINE_USE in found.verdict.reason) == ("undecided", True)
