# SPDX-License-Identifier: Apache-2.0
"""A clock that steps in mid-run must not yield a wrong verdict.

These tests go over SSH to the node whose clock they step while it measures. A qualification never does that;
here it only adds to the disturbance under which no verdict may be wrong.
"""

from __future__ import annotations

import time

import pytest

from resources.replay.replay import Replay
from tests.simulation.trial import Lab, Trial

pytestmark = [pytest.mark.simulated, pytest.mark.timed]

STEP_NS = 3_000_000


@pytest.mark.parametrize(
    ("node", "clock", "step_ns"),
    [("linux-rt", "local", STEP_NS), ("producer-12", "producer-12", -STEP_NS)],
)
def test_step_of_3_ms_yields_no_verdict(lab: Lab, node: str, clock: str, step_ns: int) -> None:
    """Nothing passes and nothing fails: inconclusive, and the step is named with its size."""

    def step_in_mid_run(counting_s: float) -> None:
        time.sleep(counting_s / 2)
        lab.bench.node(node).run(["bw-setclock", "--step-ns", str(step_ns)])

    def prepare(replay: Replay) -> None:
        replay.during = step_in_mid_run

    trial: Trial = lab.trial(prepare)
    judged = trial.streams("pass", "fail")
    assert not judged, trial.told(judged)
    assert trial.streams("inconclusive") == set(trial.records), trial.told(set(trial.records))
    steps = [*trial.answers.recv["clock_steps"]]
    for result in trial.answers.sends.values():
        steps += result["clock_steps"]
    sizes_ns = [int(step["step_ns"]) for step in steps if step["clock"] in (clock, "local")]
    # What a stalled thread adds to a step it cannot tell from the step: half of it is enough to name it.
    assert any(size_ns * step_ns > 0 and abs(size_ns) > STEP_NS / 2 for size_ns in sizes_ns), steps
    for record in trial.records.values():
        assert "stepped by" in record.reason, record.reason
