# SPDX-License-Identifier: Apache-2.0
"""The time service as a clock stack between two guests: it locks, feeds the kernel, and leaves nothing.

How good its time is, and what it outlives, is for a suite to measure (robot/clock_sync/time_service.robot);
here what it publishes is read at all.
"""

from __future__ import annotations

import json
import shlex
import time
from pathlib import Path
from typing import Any

import pytest

from hw.bench import TargetSpec
from hw.protocols import CommandResult
from resources.clock_sync.settings import ClockSettings, load_stack
from resources.clock_sync.stack import ClockStack
from tests.patience import HANG_S
from tests.targets.clock_lab import LOCK_S, ClockLab, daemons, is_heard, kernel

pytestmark = [pytest.mark.simulated, pytest.mark.slow]

PAGE = "/run/benchwright/time/page"
FED_NS = 20_000_000
"""Of a clock that began 1.7 s behind; the loop of the kernel takes the rest away within minutes."""


def time_service(lab: ClockLab, target: TargetSpec, folder: Path) -> ClockStack:
    """Return the stack, synchronising every second against a server that wanders as a quartz does."""
    wander = load_stack("timeservice", simulated=True).server_wander
    settings = ClockSettings(sync_interval_s=1, server_wander=wander)
    return ClockStack(lab, target, "timeservice", settings, folder, print)


def read(
    lab: ClockLab, target: TargetSpec, device: str = "timeservice", reference: str = "monotonic-raw"
) -> CommandResult:
    """Read it for half a second, beside the counter of the target; or another clock, beside another one."""
    argv = [lab.tool(target.node, "bw-clock"), "compare", "--device", device]
    argv += ["--reference", reference, "--duration-ms", "500"]
    return lab.node(target.node).run(argv, check=False)


def told(lab: ClockLab, target: TargetSpec) -> dict[str, Any]:
    """Return what its readers are told of its error."""
    done = read(lab, target)
    assert done.exit_code == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer["device_bound"]


def test_it_locks_steers_nothing_and_leaves_nothing(
    lab: ClockLab, target: TargetSpec, tmp_path: Path
) -> None:
    before = kernel(lab, target.node)
    with time_service(lab, target, tmp_path) as stack:
        assert stack.device == "timeservice"
        lock = stack.wait_locked(LOCK_S)
        assert 0 < lock.after_s < LOCK_S + 30
        assert told(lab, target)["bound_checked"] > 0
        assert kernel(lab, target.node)["frequency_ppb"] == before["frequency_ppb"], "it steers no clock"
        stack.cut_off()
        stack.require_running()
        held = told(lab, target)
        assert held["bound_checked"] > 0
        time.sleep(3.0)
        assert told(lab, target)["bound"]["p50_ns"] > held["bound"]["p50_ns"], "the bound grows in holdover"
        stack.resume()
        assert is_heard(lab, target, stack, HANG_S)
    assert daemons(lab, target.node) + daemons(lab, "grandmaster") == ""
    assert lab.node(target.node).run(["test", "-e", PAGE], check=False).exit_code == 1
    file, form = stack.servo_log
    assert (tmp_path / file).stat().st_size > 0
    assert form == "bw-timed"
    assert read(lab, target).exit_code == 3, "no service: no clock"


def test_the_kernel_is_fed(lab: ClockLab, target: TargetSpec, tmp_path: Path) -> None:
    """A target without another servo: its clock, 1.7 s behind, comes to the time that the service tells."""
    node, page = lab.node(target.node), "/run/fed.page"
    before = kernel(lab, target.node)
    server = lab.spec.time_server
    assert server is not None
    with time_service(lab, target, tmp_path) as stack:
        stack.wait_locked(LOCK_S)
        timed = [lab.tool(target.node, "bw-timed"), "--server", server.address, "--interval-ms", "1000"]
        timed += ["--any-counter", "--page", page, "--feed", "kernel"]
        node.run(["sh", "-c", f"setsid {shlex.join(timed)} >/run/fed.log 2>&1 </dev/null &"])
        try:
            deadline_s = time.monotonic() + LOCK_S
            while True:
                time.sleep(1.0)
                done = read(lab, target, "realtime", f"timeservice:{page}")
                if done.exit_code == 0:
                    offset = json.loads(done.stdout.splitlines()[-1])["offset"]
                    if max(abs(offset["min_ns"]), abs(offset["max_ns"])) < FED_NS:
                        break
                assert time.monotonic() < deadline_s, done.stdout[-400:] + done.stderr
        finally:
            node.run(["pkill", "-TERM", "-f", page], check=False)
            status, ppb = str(before["status"] & 0xFF), str(round(before["frequency_ppb"]))
            node.run(["bw-setclock", "--status", status, "--frequency-ppb", ppb])
            node.run(["rm", "-f", page])
