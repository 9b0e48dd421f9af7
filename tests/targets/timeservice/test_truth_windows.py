# SPDX-License-Identifier: Apache-2.0
"""The programs for Windows, under Wine, against an exact truth: a scaled bench_time_truth.py --windows."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from hw.errors import CapabilityError
from tests.targets.timeservice.lab import SERVER_ADDRESS, Pair, TimedProcess
from tests.targets.timeservice.truth_lab import (
    QUARTZ_PPB,
    TruthReader,
    TruthServer,
    begin_truth,
    check_interval,
)
from tests.targets.timeservice.windows_programs import WINDOWS_BUILD, WINDOWS_PROGRAMS, WindowsPrograms

pytestmark = [pytest.mark.simulated, pytest.mark.slow]
READS = 100_000


@pytest.fixture
def windows(tmp_path: Path, pair: Pair) -> Generator[WindowsPrograms]:
    """Switch a machine on whose sockets are in the client's namespace."""
    if not all((WINDOWS_BUILD / program).exists() for program in WINDOWS_PROGRAMS.values()):
        pytest.skip(".build/win is not built: make setup, or make test")
    try:
        programs = WindowsPrograms(tmp_path, pair.inside(pair.client))
    except CapabilityError as error:
        pytest.skip(str(error))
    with programs:
        yield programs


def test_interval_always_holds_there_too(pair: Pair, windows: WindowsPrograms, page: Path) -> None:
    truth = begin_truth(5, QUARTZ_PPB)
    options = ("--interval-ms", "1000", "--quick-interval-ms", "200")
    with (
        TruthServer(truth, SERVER_ADDRESS, prefix=pair.inside(pair.server)) as server,
        TimedProcess(page, "--server", server.text, *options, programs=windows) as timed,
    ):
        sync = timed.syncs(8)
        assert sync["stamps"] == "user", "Wine has no others"
        answer = TruthReader(page, truth, READS, 3, windows).answer()
        assert timed.tell("hold") == 0
        timed.until_state("holdover", "asked to hold")
    check_interval(answer)
    assert (answer["no_time"], answer["steps"]) == (0, 0)
    assert answer["bound_median_ns"] >= answer["u_median_ns"] > 0
    assert answer["u_missed"] <= READS / 1000
