# SPDX-License-Identifier: Apache-2.0
"""Must fail: a path that is delayed by far more than a budget; more in tests/simulation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hw.path_settings import PathSettings
from hw.paths import producer_path, router_of
from hw.provisioning import Provisioner
from hw.session import open_bench
from tests.simulation.trial import PROFILE, TARGET, VIRTUAL_BENCH, Lab

pytestmark = pytest.mark.simulated

PRODUCERS, LATE, DELAY_US = [2, 3], {23, 33}, 200_000
"""Streams with a budget of 10 ms: the machine would have to take 190 ms from every message."""
UNTOUCHED = 1
"""A third producer is enough to show that the others' delay is not its own; a guest would have to boot."""
SHORT = replace(PROFILE, warmup_ms=1000, duration_ms=3000)
"""Their slowest streams have 15 messages; a pass takes 14."""
ATTEMPTS = 3


def test_streams_of_delayed_producers_fail(tmp_path: Path) -> None:
    """On a bench of its own name: whoever qualifies a target meanwhile holds the other one."""
    file = tmp_path / "bench.yaml"
    file.write_text(VIRTUAL_BENCH.read_text().replace("name: virtual\n", "name: gate\n", 1))
    with open_bench(file) as bench:
        target = bench.spec.targets[TARGET]
        bench.power_on([target.node, router_of(bench.spec).node])
        Provisioner(bench.node(target.node), target).prepare(tmp_path)
        lab = Lab(bench, tmp_path / "results", producers=(UNTOUCHED, *PRODUCERS), profile=SHORT)
        paths = [producer_path(bench.spec, number, target.node) for number in PRODUCERS]
        bench.router().configure(paths, PathSettings(delay_us=DELAY_US))
        told = ""
        for _ in range(ATTEMPTS):  # a bench whose clocks could not be compared has no verdict
            trial = lab.trial()
            assert not LATE & trial.streams("pass"), trial.told(LATE)
            for stream in LATE:
                assert (
                    trial.seen[stream].max_ns >= DELAY_US * 1000 - trial.records[stream].uncertainty.expanded
                )
            if trial.streams("fail") >= LATE and trial.streams("pass"):
                return
            told = trial.told(LATE | trial.streams("pass"))
        raise AssertionError(told)
