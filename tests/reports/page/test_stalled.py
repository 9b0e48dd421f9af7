# SPDX-License-Identifier: Apache-2.0
"""Only a simulated run that would have passed on a quiet machine is put down to stall."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from reports.__main__ import main
from reports.page.stalled import discrepancies
from reports.run.manifest import TestCounts as Counts
from tests.reports.clock_run import add_clock_trial
from tests.reports.sample_clock import compare_answer
from tests.reports.sample_run import TABLE_1, Disturbance, make_run

LATE = {43: 15_000_000, 33: 15_000_000}


def test_misses_in_stalls_are_the_machines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(tmp_path, Disturbance(path_delay_ns=LATE, stalled=True)).path
    assert discrepancies(run) == []
    assert main(["stalled", str(run)]) == 0
    assert "nothing but the stall" in capsys.readouterr().out


def test_a_run_that_lost_messages_is_not_the_machines(tmp_path: Path) -> None:
    """Ten streams that lost 100 messages each, on a bench that stalled for 2 % of the time."""
    lost = Disturbance(lost=dict.fromkeys(range(10, 20), 100), stalled_fraction=0.02)
    assert len(discrepancies(make_run(tmp_path, lost).path)) >= 4


def test_every_replay_has_to_be_explained(tmp_path: Path) -> None:
    explained = Disturbance(path_delay_ns={33: 15_000_000}, stalled=True)
    once = replace(explained, path_delay_ns={33: 21_000_000})
    for first, told in ((explained, 0), (once, 1)):
        run = make_run(tmp_path / str(told), first, explained, close=False)
        run.update(tests=Counts(passed=47, failed=1))
        run.close()
        assert len(discrepancies(run.path)) == told


def test_a_replay_that_showed_the_stream_in_time_is_no_discrepancy(tmp_path: Path) -> None:
    """Beside one that the machine explains; clean ones alone, without a verdict, have no such reason."""
    explained = Disturbance(path_delay_ns={33: 15_000_000}, stalled=True)
    for first, told in ((explained, False), (Disturbance(), True)):
        run = make_run(tmp_path / str(told), first, Disturbance(), close=False)
        last = [record for record in run.records().measurements if record.requirement == "DAQ-033"][-1]
        run.append(replace(last, outcome="inconclusive", reason="clean, but not in one replay more"))
        run.update(tests=Counts(passed=47, failed=1))
        run.close()
        assert bool(discrepancies(run.path)) is told


@pytest.mark.slow
def test_a_run_in_which_little_passed_has_shown_nothing(tmp_path: Path) -> None:
    late = {10 * p + kind: 1_015_000_000 for p in TABLE_1 for kind in range(3)}
    run = make_run(tmp_path, Disturbance(path_delay_ns=late, stalled=True, stall_ns=1_100_000_000)).path
    assert any("streams passed" in discrepancy for discrepancy in discrepancies(run))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("disturbance", "discrepancy"),
    [
        (Disturbance(path_delay_ns=LATE), "DAQ-033: fail"),
        (Disturbance(path_delay_ns=LATE, stalled=True, lost={12: 3}), "DAQ-012: fail"),
        (Disturbance(generator_delay_ns={13: 20_000_000}), "DAQ-013: .*generator late"),
        (Disturbance(path_delay_ns=LATE, stalled=True, stall_ns=1_100_000), "DAQ-033: fail"),
        (Disturbance(stalled_fraction=0.02, clock_step_ns=3_000_000), "clock local stepped"),
        (Disturbance(stalled_fraction=0.02, complete=False), "ended by SIGTERM"),
    ],
)
def test_other_reasons_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], disturbance: Disturbance, discrepancy: str
) -> None:
    run = make_run(tmp_path, disturbance).path
    assert main(["stalled", str(run)]) == 1
    assert re.search(discrepancy, capsys.readouterr().out)


def test_a_real_bench_never_profits(tmp_path: Path) -> None:
    run = make_run(tmp_path, Disturbance(path_delay_ns=LATE, stalled=True), simulated=False).path
    assert any("the bench is real" in discrepancy for discrepancy in discrepancies(run))


@pytest.mark.parametrize(("stalls_ms", "told"), [((40,), False), ((), True)])
def test_clocks_too(tmp_path: Path, stalls_ms: tuple[int, ...], told: bool) -> None:
    """A clock that was off while the machine stalled is excused; an answer that is invalid is not."""
    run = make_run(tmp_path, close=False)
    off = compare_answer(mean_ns=90_000) if stalls_ms else compare_answer(complete=False)
    record = add_clock_trial(run, off, stalls_ms=stalls_ms)
    run.close()
    assert record.outcome == "inconclusive"
    assert any("CLK-CHRONY" in discrepancy for discrepancy in discrepancies(run.path)) is told
