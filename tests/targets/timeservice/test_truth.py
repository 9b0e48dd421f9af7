# SPDX-License-Identifier: Apache-2.0
"""bw-timed against a truth that is known exactly: a scaled bench_time_truth.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.targets.timeservice.lab import QUICK, SERVER_ADDRESS, Pair, TimedProcess, recompute, write_lines
from tests.targets.timeservice.truth_lab import (
    QUARTZ_PPB,
    WILD_PPB,
    TruthReader,
    TruthServer,
    begin_truth,
    check_interval,
)

pytestmark = pytest.mark.simulated
READS = 200_000
U_MISSED_SHARE = 0.001


def check_recomputed(timed: TimedProcess, log: Path) -> None:
    """Check that what it has logged gives what it has published, by the kernel's stamps, interleaved."""
    exchanges = [line for line in timed.seen if line["type"] == "exchange"]
    assert (
        sum("t1_local_ns" in line and line.get("interleaved", False) for line in exchanges)
        > len(exchanges) / 2
    )
    code, said, error = recompute(write_lines(log, timed.seen))
    assert (code, error) == (0, "")
    assert len(said.splitlines()) >= 1 + 8


@pytest.mark.parametrize("walk_ppb", [QUARTZ_PPB, WILD_PPB], ids=["quartz", "wild"])
def test_interval_always_holds_and_u_nearly_always(pair: Pair, page: Path, walk_ppb: float) -> None:
    truth = begin_truth(3, walk_ppb)
    arguments = ("--interval-ms", "1000", "--quick-interval-ms", "100", "--log-exchanges")
    with (
        TruthServer(truth, SERVER_ADDRESS, prefix=pair.inside(pair.server)) as server,
        TimedProcess(page, "--server", server.text, *arguments, prefix=pair.inside(pair.client)) as timed,
    ):
        sync = timed.syncs(8)
        answer = TruthReader(page, truth, READS, 3).answer()
    check_interval(answer)
    assert (sync["stamps"], sync["interleaved"]) == ("kernel", True)
    assert (answer["no_time"], answer["steps"]) == (0, 0)
    assert answer["u_missed"] <= U_MISSED_SHARE * (answer["reads"] - answer["left_out"]), answer["u_missed"]
    assert answer["bound_median_ns"] >= answer["u_median_ns"] > 0
    check_recomputed(timed, page.with_name("log"))


def test_reader_sees_an_interval_without_the_truth(page: Path) -> None:
    truth = begin_truth(4, QUARTZ_PPB)
    with (
        TruthServer(truth, ahead_ns=10**9) as server,
        TimedProcess(page, "--server", server.text, *QUICK) as timed,
    ):
        timed.syncs(4)
        answer = TruthReader(page, truth, READS // 10).answer()
    assert answer["interval_missed"] == answer["reads"]
    assert answer["u_missed"] == answer["beyond_10us"] == answer["reads"] - answer["left_out"]
