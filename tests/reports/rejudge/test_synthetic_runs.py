# SPDX-License-Identifier: Apache-2.0
"""What the first judge says of random runs of one requirement is what the second one says.

Three hundred here; `pytest --synthetic-runs 10000` asks for more (docs/reports.md, `Judged again`).
"""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path

import pytest

from reports.rejudge.run import rejudge
from tests.reports.rejudge.synthetic_run import make_synthetic_run

PARTS = 4


@pytest.mark.parametrize("seed", range(PARTS))
def test_no_random_run_is_contradicted(tmp_path: Path, seed: int, pytestconfig: pytest.Config) -> None:
    rng = random.Random(seed)
    outcomes: Counter[str] = Counter()
    replays: Counter[int] = Counter()
    for number in range(int(str(pytestconfig.getoption("--synthetic-runs"))) // PARTS):
        run, outcome = make_synthetic_run(tmp_path, rng)
        found = rejudge(run.path)
        assert found.contradicted == (), f"run {number} of seed {seed}: {run.path}"
        assert found.worked_out == found.records > 0
        outcomes[outcome] += 1
        replays[len(list(run.path.glob("evidence/daq_replay/attempt-*")))] += 1
        shutil.rmtree(run.path)
    assert min(outcomes[each] for each in ("pass", "fail", "inconclusive")) > 5, outcomes
    assert len(replays) > 2, replays
