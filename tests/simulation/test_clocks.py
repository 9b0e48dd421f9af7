# SPDX-License-Identifier: Apache-2.0
"""Clocks on the virtual bench: faults of a known size, and a path whose asymmetry the servo cannot see."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest

from hw.session import Bench
from reports.clock_sync.trial import ClockTrial
from reports.clock_sync.verdict import disturbing_stalls_ns, judge_sync, witness_difference_ns
from reports.record.measurement import Limit
from resources.clocks.requirements import load_clock_requirements
from resources.clocks.settings import ClockSettings
from resources.clocks.stack import ClockStack
from resources.clocks.sync import ClockLab
from resources.clocks.trial import TrialSettings, measure_trial
from resources.profiles import load_profile
from tests.simulation.trial import ROOT, TARGET

REQUIREMENTS = ROOT / "robot" / "requirements" / "clock_sync_virtual.toml"
CHRONY = load_clock_requirements(REQUIREMENTS).of("chrony")
LIMIT = Limit(CHRONY.upper_ns, -CHRONY.upper_ns, CHRONY.limit.source)
MEASURE_S = 4
ASYMMETRY_US = 5000
"""With it a round trip takes under 10 ms: over a longer path chrony polls no more than once a second."""

pytestmark = [pytest.mark.simulated, pytest.mark.timed]


@pytest.fixture(scope="module")
def clock_lab(opened: Bench, tmp_path_factory: pytest.TempPathFactory) -> Generator[ClockLab]:
    """Let the bench's time server wander, and serve timecards."""
    folder = tmp_path_factory.mktemp("clocks")
    profile = load_profile("ci")
    assert profile.clocks is not None
    short = replace(profile, clocks=replace(profile.clocks, measure_s=8, alternations=1))
    with ClockLab(opened, opened.spec.targets[TARGET], short, folder, print) as lab:
        yield lab
    opened.power_off(lab.server.node)


def _measured(lab: ClockLab, folder: Path, two_way: bool = False) -> ClockTrial:
    stack = ClockStack(lab.bench, lab.target, "free-run", ClockSettings(), folder, print)
    settings = TrialSettings(MEASURE_S, sequential=False, two_way=two_way)
    return measure_trial(lab.bench, lab.target, lab.facts(stack, "sync", None), settings, folder)


def test_faults_of_known_size(clock_lab: ClockLab, tmp_path: Path) -> None:
    """A clock that is off by half the limit passes, by one and a half it never does; the size is found."""
    node = clock_lab.bench.node(TARGET)
    with ClockStack(
        clock_lab.bench, clock_lab.target, "chrony", ClockSettings(), tmp_path / "chrony", print
    ) as stack:
        stack.wait_locked(CHRONY.lock_within_s)
        stack.cut_off()
        before = _measured(clock_lab, tmp_path / "before", two_way=True)
        verdicts: dict[float, str] = {}
        for share, step in ((0.5, 0.5), (1.5, 1.0)):
            node.run(["bw-setclock", "--step-ns", str(round(step * CHRONY.upper_ns))])
            trial = _measured(clock_lab, tmp_path / f"{share}")
            verdict, uncertainty = judge_sync(trial, LIMIT, 99)
            verdicts[share] = verdict.outcome
            shift_ns = (trial.filtered.offset.mean_ns or 0) - (before.filtered.offset.mean_ns or 0)
            wander_ns = 50_000 * (MEASURE_S + 10)  # 50 ppm between the trials, should chrony not know them
            assert abs(shift_ns - share * CHRONY.upper_ns) <= wander_ns + uncertainty.expanded, verdict.reason
            excused = "inconclusive" if disturbing_stalls_ns(trial) else "fail"
    assert verdicts[0.5] == "pass"
    assert verdicts[1.5] in ("fail", excused)
    found = witness_difference_ns(before)
    assert found is not None
    assert abs(found[0]) <= found[2].expanded


def test_servo_is_blind_to_an_asymmetric_path(clock_lab: ClockLab) -> None:
    """The servo looks as good as before, the reference shows half of the asymmetry, with its sign."""
    ((before, after),) = clock_lab.asymmetry_trials(CHRONY, ASYMMETRY_US)
    shift_ns = (after.filtered.offset.mean_ns or 0) - (before.filtered.offset.mean_ns or 0)
    expected_ns = -ASYMMETRY_US * 1000 / 2
    assert abs(shift_ns - expected_ns) < abs(expected_ns) / 4
    assert after.facts.servo is not None
    assert after.facts.servo.mean_ns is not None
    assert abs(after.facts.servo.mean_ns) < abs(expected_ns) / 4
