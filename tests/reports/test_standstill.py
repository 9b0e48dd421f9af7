# SPDX-License-Identifier: Apache-2.0
"""Only a simulated run that would have passed on a quiet machine is put down to standstill."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reports.__main__ import main
from reports.record import Measurement
from reports.run_folder import RunFolder
from reports.standstill import objections
from tests.reports.clock_run import add_clock_trial
from tests.reports.sample_clock import compare_answer
from tests.reports.sample_run import Disturbance, make_run

LATE = {23: 30_000_000, 33: 30_000_000}


def test_misses_in_stalls_are_the_machines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(tmp_path, Disturbance(path_delay_ns=LATE, stalled=True)).path
    assert objections(run) == []
    assert main(["standstill", str(run)]) == 0
    assert "nothing but the standstill" in capsys.readouterr().out


def test_whole_run_not_quiet(tmp_path: Path) -> None:
    assert objections(make_run(tmp_path, Disturbance(path_delay_ns=LATE, stalled_fraction=0.02)).path) == []


@pytest.mark.parametrize(
    ("disturbance", "objection"),
    [
        (Disturbance(path_delay_ns=LATE), "DAQ-023: fail"),
        (Disturbance(path_delay_ns=LATE, stalled=True, lost={12: 3}), "DAQ-012: fail"),
        (Disturbance(generator_delay_ns={13: 20_000_000}), "DAQ-013: .*generator late"),
        (Disturbance(stalled_fraction=0.02, clock_step_ns=3_000_000), "clock local stepped"),
        (Disturbance(stalled_fraction=0.02, complete=False), "ended by SIGTERM"),
    ],
)
def test_other_reasons_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], disturbance: Disturbance, objection: str
) -> None:
    run = make_run(tmp_path, disturbance).path
    assert main(["standstill", str(run)]) == 1
    assert re.search(objection, capsys.readouterr().out)


def test_a_real_bench_never_profits(tmp_path: Path) -> None:
    run = make_run(tmp_path, Disturbance(path_delay_ns=LATE, stalled=True), simulated=False).path
    assert any("the bench is real" in objection for objection in objections(run))


@pytest.mark.parametrize(("stalls_ms", "told"), [((40,), False), ((), True)])
def test_clocks_too(tmp_path: Path, stalls_ms: tuple[int, ...], told: bool) -> None:
    """A clock that was off while the machine stood still is excused; an answer that is invalid is not."""
    run = make_run(tmp_path, close=False)
    off = compare_answer(mean_ns=90_000) if stalls_ms else compare_answer(complete=False)
    record = add_clock_trial(run, off, stalls_ms=stalls_ms)
    run.close()
    assert record.outcome == "inconclusive"
    assert any("CLK-CHRONY" in objection for objection in objections(run.path)) is told


@pytest.mark.parametrize("stalled", [True, False])
def test_a_value_in_the_guard_band_is_explained_by_standstills_only(tmp_path: Path, stalled: bool) -> None:
    def run(name: str, delay_ns: int) -> RunFolder:
        late = {33: delay_ns} | ({23: 30_000_000} if stalled else {})
        return make_run(tmp_path / name, Disturbance(path_delay_ns=late, stalled=stalled))

    def record(folder: RunFolder) -> Measurement:
        return next(m for m in folder.records().measurements if m.requirement == "DAQ-033")

    delay_ns, probed = 0, run("0", 0)
    found = record(probed)
    for number in range(1, 6):  # each time nearer to the middle of the guard band
        delay_ns += round(10_000_000 - found.uncertainty.expanded / 2 - (found.value or 0))
        probed = run(str(number), delay_ns)
        found = record(probed)
        if found.outcome == "inconclusive":
            break
    assert found.outcome == "inconclusive"
    assert (found.value or 0) < 10_000_000
    assert any("DAQ-033" in objection for objection in objections(probed.path)) is not stalled
