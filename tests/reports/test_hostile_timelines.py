# SPDX-License-Identifier: Apache-2.0
"""Whatever the bytes of a run's evidence, its timelines are made and exported, or a problem is told."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from reports.daq_replay.emulation import TARGET_WITNESS
from reports.timeline.export_ctf import write_ctf
from reports.timelines import timelines_of_run
from tests.campaign import Campaign
from tests.reports.hostile import damaged
from tests.reports.realtime_ethernet.sample import write_ring_sample
from tests.reports.sample_run import Disturbance, write_evidence

REPLAY = Path("evidence/daq_replay/linux-rt/attempt-1")
RING = Path("evidence/realtime_ethernet/linux/traced-64-ring.gz")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the evidence of a run that has events of all kinds."""
    path = tmp_path_factory.mktemp("run")
    (path / REPLAY).mkdir(parents=True)
    write_evidence(path / REPLAY, Disturbance(path_delay_ns={33: 15_000_000}), seed=3)
    answer = json.loads((path / REPLAY / "witness.ndjson").read_text().splitlines()[-1])
    answer["windows"] = [[1_795_000_000_000_000_000, 1_795_000_000_004_000_000, 1]]
    (path / REPLAY / TARGET_WITNESS).write_text(json.dumps(answer) + "\n")
    write_ring_sample(path / RING.parent)
    return path


def _plain(data: bytes) -> bytes:
    return data


def _packed(data: bytes) -> bytes:
    return gzip.compress(data, 1)


def _unpacked(data: bytes) -> bytes:
    return gzip.decompress(data)


@pytest.mark.parametrize(
    ("file", "unpacked", "packed"),
    [
        (REPLAY / "misses.ndjson", _plain, _plain),
        (REPLAY / "recv.ndjson", _plain, _plain),
        (REPLAY / TARGET_WITNESS, _plain, _plain),
        (RING, _unpacked, _packed),
    ],
    ids=["misses", "recv", "witness", "ring"],
)
def test_damaged_evidence_is_a_problem_or_a_timeline(
    run: Path,
    file: Path,
    unpacked: Callable[[bytes], bytes],
    packed: Callable[[bytes], bytes],
    tmp_path: Path,
    campaign: Campaign,
) -> None:
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    whole = unpacked((run / file).read_bytes())
    for random in campaign.rounds(10):
        data = packed(damaged(whole, random))
        (copy / file).write_bytes(data)
        with campaign.trying(data):
            timelines, problems = timelines_of_run(copy)
            assert len(timelines) + len(problems) >= 2
            for each in timelines:
                if len(each):
                    write_ctf(each, tmp_path / "out")
                    shutil.rmtree(tmp_path / "out")
        campaign.reached.add(f"{len(timelines)} timelines, {bool(problems)}")
    assert "2 timelines, False" in campaign.reached
