# SPDX-License-Identifier: Apache-2.0
"""bw-timed against a truth that is known exactly: its interval holds through liars, crashes and silence."""

from __future__ import annotations

import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.targets.timeservice.lab import QUICK, TimedProcess
from tests.targets.timeservice.truth_lab import (
    QUARTZ_PPB,
    WILD_PPB,
    TruthReader,
    TruthServer,
    begin_truth,
    check_interval,
)

pytestmark = [pytest.mark.simulated, pytest.mark.slow]
READS = 200_000
BOUND_MAX_NS = 70_000
"""Without a server it grows to that within a few seconds: by the limit of drift and more."""
STEPPED_SYSTEM_CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>

/* CLOCK_REALTIME is stepped two seconds after its first reading. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
	static int (*real)(clockid_t, struct timespec *);
	static time_t stepped_s;
	int result;

	if (!real)
		real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	result = real(clock, now);
	if (result || clock != CLOCK_REALTIME)
		return result;
	if (!stepped_s)
		stepped_s = now->tv_sec + 2;
	if (now->tv_sec >= stepped_s)
		now->tv_sec += STEP_S;
	return 0;
}
"""


@pytest.mark.parametrize("ahead_ns", [10**6, 10**9, 3600 * 10**9], ids=["1ms", "1s", "1h"])
def test_liar_among_three_leaves_the_clock_inside_its_interval(page: Path, ahead_ns: int) -> None:
    truth = begin_truth(5, QUARTZ_PPB)
    with ExitStack() as stack:
        servers = [stack.enter_context(TruthServer(truth, ahead_ns=lie)) for lie in (ahead_ns, 0, 0)]
        arguments = [word for server in servers for word in ("--server", server.text)]
        timed = stack.enter_context(TimedProcess(page, *arguments, *QUICK))
        timed.syncs(1)
        reader = TruthReader(page, truth, READS, 2)
        timed.syncs(3)
        answer = reader.answer()
        states = {source["address"]: source["state"] for source in timed.ctl("sources")["sources"]}
    check_interval(answer)
    assert states[servers[0].text] == "falseticker"


def test_killed_service_leaves_a_true_interval_and_is_started_anew(page: Path) -> None:
    truth = begin_truth(6, QUARTZ_PPB)
    with TruthServer(truth) as server:
        with TimedProcess(page, "--server", server.text, *QUICK) as timed:
            timed.syncs(4)
            reader = TruthReader(page, truth, READS, 4)
            timed.syncs(2)
            timed.kill()
        time.sleep(0.5)
        with TimedProcess(page, "--server", server.text, *QUICK) as timed:
            timed.until_state("synchronised")
            answer = reader.answer()
    check_interval(answer)
    assert answer["steps"] == 0
    assert answer["bound_max_ns"] > answer["bound_median_ns"]


def test_dead_service_gives_no_time_once_its_bound_is_too_wide(page: Path) -> None:
    truth = begin_truth(7, WILD_PPB)
    with TruthServer(truth) as server:
        arguments = ("--server", server.text, *QUICK, "--bound-max-ns", str(BOUND_MAX_NS))
        with TimedProcess(page, *arguments) as timed:
            timed.syncs(2)
            reader = TruthReader(page, truth, READS, 5)
            timed.syncs(2)
            timed.kill()
        answer = reader.answer()
    check_interval(answer)
    assert answer["no_time"] > 0
    assert answer["bound_max_ns"] <= BOUND_MAX_NS


def test_lost_server_is_held_over_and_heard_again(page: Path) -> None:
    truth = begin_truth(8, QUARTZ_PPB)
    with TruthServer(truth) as server, TimedProcess(page, "--server", server.text, *QUICK) as timed:
        timed.syncs(4)
        reader = TruthReader(page, truth, READS, 5)
        server.end()
        timed.until_state("holdover", "no server answers")
        time.sleep(1)
        with TruthServer(truth, server.text):
            timed.until_state("synchronised")
            answer = reader.answer()
    check_interval(answer)
    assert answer["free_running"] > 0
    assert (answer["no_time"], answer["steps"]) == (0, 0)


def test_root_distance_counts_after_the_server_has_slewed_it_away(page: Path) -> None:
    truth = begin_truth(10, QUARTZ_PPB)
    with (
        TruthServer(truth, ahead_ns=2_000_000, slew_ppb=400_000) as server,
        TimedProcess(page, "--server", server.text, *QUICK, "--log-exchanges") as timed,
    ):
        timed.syncs(1)
        reader = TruthReader(page, truth, READS, 4)
        timed.until_state("holdover", "no server answers")
        check_interval(reader.answer())
        answer = TruthReader(page, truth, READS, 2).answer()
    check_interval(answer)
    assert answer["free_running"] > 0
    told_ns = [line["root_distance_ns"] for line in timed.seen if "root_distance_ns" in line]
    assert max(told_ns) > 2 * min(told_ns), told_ns


@pytest.mark.parametrize("step_s", [3600, -3600])
def test_step_of_the_system_clock_changes_nothing(page: Path, tmp_path: Path, step_s: int) -> None:
    # The service sees the step, this machine does not.
    library = tmp_path / "stepped.so"
    compiler = ["gcc", "-shared", "-fPIC", "-xc", f"-DSTEP_S={step_s}", "-o", str(library), "-"]
    subprocess.run(compiler, input=STEPPED_SYSTEM_CLOCK, check=True, text=True)
    truth = begin_truth(9, QUARTZ_PPB)
    prefix = ("env", f"LD_PRELOAD={library}")
    with (
        TruthServer(truth) as server,
        TimedProcess(page, "--server", server.text, *QUICK, prefix=prefix) as timed,
    ):
        first = timed.syncs(2)
        reader = TruthReader(page, truth, READS, 4)
        later = timed.until(
            lambda line: (
                line["type"] == "sync" and abs(line["time_tai_ns"] - first["time_tai_ns"]) > 1800 * 10**9
            )
        )
        answer = reader.answer()
    check_interval(answer)
    assert (later["epoch"], answer["steps"], answer["no_time"]) == (0, 0, 0)
