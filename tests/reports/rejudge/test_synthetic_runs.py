# SPDX-License-Identifier: Apache-2.0
"""What the first judge says of random runs of one requirement is what the second one says.

Three hundred here; `pytest --synthetic-runs 10000` asks for more (docs/reports.md, `Judged again`). Whole
ones, finalised as the listener does it, are judged by the command: two here, more by `--whole-runs`.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from reports.page.render import write_page
from reports.rejudge.run import rejudge
from reports.run.files import write_file_list
from reports.run.seal import bench_key, fingerprint, key_file, seal
from tests.reports.rejudge.synthetic_run import make_synthetic_run

PARTS = 4


@pytest.mark.parametrize("seed", range(PARTS))
def test_no_random_run_is_contradicted(tmp_path: Path, seed: int, pytestconfig: pytest.Config) -> None:
    rng = random.Random(seed)
    outcomes: Counter[str] = Counter()
    replays: Counter[int] = Counter()
    for_others = 0
    for number in range(int(str(pytestconfig.getoption("--synthetic-runs"))) // PARTS):
        run, outcome = make_synthetic_run(tmp_path, rng)
        found = rejudge(run.path)
        assert found.contradicted == (), f"run {number} of seed {seed}: {run.path}"
        loose = [each for each in found.problems if "a replay that no record names" in each]
        assert not loose, f"run {number} of seed {seed}: {run.path}"
        named = {each.evidence[0].path for each in run.records().measurements}
        made = len(list(run.path.glob("evidence/daq_replay/attempt-*")))
        for_others += made > len(named)
        assert found.worked_out == found.records > 0
        outcomes[outcome] += 1
        replays[made] += 1
        shutil.rmtree(run.path)
    assert min(outcomes[each] for each in ("pass", "fail", "inconclusive")) > 5, outcomes
    assert len(replays) > 2, replays
    assert for_others, "replays that were made for the load alone"


def test_whole_runs_are_verified_by_command(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    rng = random.Random(PARTS)
    key = bench_key(key_file())
    for _ in range(int(str(pytestconfig.getoption("--whole-runs")))):
        run, _ = make_synthetic_run(tmp_path, rng)
        write_file_list(run)
        write_page(run.path)
        seal(run.path, key)
        run.finalise()
        records = len(run.records().measurements)
        argv = [sys.executable, "-m", "reports", "verify", "--sealed-by", fingerprint(key), str(run.path)]
        done = subprocess.run(argv, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        assert f"{records} records are consistent; {records} worked out again from raw data" in done.stdout
