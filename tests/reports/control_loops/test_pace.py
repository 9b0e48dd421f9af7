# SPDX-License-Identifier: Apache-2.0
"""How late a source's own clock makes what it sends: it is slowed down for a while, and brought back."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from reports.control_loops.pace import LEAST_NS, clock_lag_ns, due_ns
from reports.control_loops.ring import Ring, load_ring
from tests.reports.control_loops.ring_sample import BEGIN_NS, INTERVAL_NS, MACHINES, TARGET, write_sample_ring

COUNT = 4000
SLOW_S, BACK_S, STEADY_S = 5.0, 7.0, 9.0
"""From when on it loses 1000 ppm, from when on it gains as much, and when it is as before."""
PPM = 1000


def lag_ns(at_s: float) -> float:
    """Return by how much the clock is behind, in ns."""
    return 1000 * PPM * (min(max(at_s - SLOW_S, 0), 2) - min(max(at_s - BACK_S, 0), 2))


@pytest.fixture
def ring(tmp_path: Path) -> Ring:
    """Return a ring whose evidence has that clock in its exchanges."""
    write_sample_ring(tmp_path, count=COUNT, kernel_stamps=False)
    ring = load_ring(tmp_path)
    path = tmp_path / str(ring.facts.ends[0].exchanges)
    answer = json.loads(path.read_text())
    scatter_ns = np.random.default_rng(1).integers(-60_000, 60_000, len(answer["series"])).tolist()
    answer["series"] = [
        (at_ns, offset_ns - round(lag_ns((at_ns - BEGIN_NS) / 1e9)) + scattered_ns, half_ns)
        for (at_ns, offset_ns, half_ns), scattered_ns in zip(answer["series"], scatter_ns, strict=True)
    ]
    path.write_text(json.dumps(answer) + "\n")
    return ring


def test_a_clock_that_loses_time_makes_messages_late(ring: Ring, tmp_path: Path) -> None:
    due = due_ns(ring, tmp_path)
    at_s = ring.whole.number * INTERVAL_NS / 1e9
    wanted = np.array([lag_ns(each) for each in at_s.tolist()])
    found = clock_lag_ns(ring, due, tmp_path)
    assert np.abs(found - wanted)[wanted > 2 * LEAST_NS].max() < 150_000
    assert not found[at_s < SLOW_S].any()
    assert not found[at_s > STEADY_S].any()


def test_a_clock_that_nobody_asked_is_not_blamed(tmp_path: Path) -> None:
    machines = {TARGET: MACHINES["p01"]}
    write_sample_ring(tmp_path, count=COUNT // 4, machines=machines, kernel_stamps=False)
    ring = load_ring(tmp_path)
    assert not clock_lag_ns(ring, due_ns(ring, tmp_path), tmp_path).any()


def test_a_steady_clock_is_not_blamed_for_its_rate(tmp_path: Path) -> None:
    write_sample_ring(tmp_path, count=COUNT // 4, kernel_stamps=False)
    ring = load_ring(tmp_path)
    assert not clock_lag_ns(ring, due_ns(ring, tmp_path), tmp_path).any()
