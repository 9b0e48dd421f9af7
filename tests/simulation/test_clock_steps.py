# SPDX-License-Identifier: Apache-2.0
"""A clock that steps in mid-run must not yield a wrong verdict.

These tests go over SSH to the node whose clock they step while it measures. A qualification never does that;
here it only adds to the disturbance under which no verdict may be wrong.
"""

from __future__ import annotations

import time

import pytest

from reports import load_replay
from reports.quantities import producer_of
from resources.daq_replay.replay import Replay
from tests.simulation.trial import Lab, Trial, when_quiet

pytestmark = [pytest.mark.simulated, pytest.mark.timed]

STEP_NS = 3_000_000


@pytest.mark.parametrize(
    ("node", "clock", "step_ns", "own"),
    [("linux-rt", "local", STEP_NS, None), ("producer-12", "producer-12", -STEP_NS, 12)],
)
def test_step_of_3_ms_yields_no_verdict(
    lab: Lab, node: str, clock: str, step_ns: int, own: int | None
) -> None:
    """No stream that stamps by it passes or fails: inconclusive, and the step is named with its size.

    `own` is the producer whose streams stamp by that clock; the target's takes all.
    """

    def step_in_mid_run(counting_s: float) -> None:
        time.sleep(counting_s / 2)
        lab.bench.node(node).run(["bw-setclock", "--step-ns", str(step_ns)])

    def prepare(replay: Replay) -> None:
        replay.during = step_in_mid_run

    def none_stamped_by_it_has_a_verdict(trial: Trial) -> None:
        touched = {stream for stream in trial.records if own in (None, producer_of(stream))}
        assert touched <= trial.streams("inconclusive"), trial.told(touched)
        replay = load_replay(trial.answers.folder).replay()
        steps = [step for result in (replay.recv, *replay.sends) for step in result.clock_steps]
        sizes_ns = [step.step_ns for step in steps if step.clock in (clock, "local")]
        # What a stalled thread adds to a step it cannot tell from the step: half of it is enough to name it.
        assert any(size_ns * step_ns > 0 and abs(size_ns) > STEP_NS / 2 for size_ns in sizes_ns), steps
        for stream in touched:
            assert "stepped by" in trial.records[stream].reason, trial.records[stream].reason

    def none_fails(trial: Trial) -> None:
        assert not trial.streams("fail"), trial.told(trial.streams("fail"))

    when_quiet(lambda: lab.trial(prepare), none_stamped_by_it_has_a_verdict, none_fails)
