# SPDX-License-Identifier: Apache-2.0
"""Clock stacks between two guests: they lock, and everything is put back.

Deadlines are those of a busy machine. How well a clock is kept, and what it does when its server goes,
is for suites to measure, against a timecard (robot/clock_sync).
"""

from __future__ import annotations

import json
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from hw.bench import TargetSpec
from resources.clock_sync.config import REMOTE_RUN
from resources.clock_sync.settings import ClockSettings
from resources.clock_sync.stack import ClockStack
from tests.patience import HANG_S
from tests.targets.clock_lab import LOCK_S, WANDER, ClockLab, daemons, is_heard, kernel, stack_of

pytestmark = [pytest.mark.simulated, pytest.mark.slow]

RATE_TOLERANCE_PPB = 30_000
"""Half of what the target's clock is off at first: 25 ppm fast against a server that is 39 ppm slow."""


def servo_rate_ppb(lab: ClockLab, stack: ClockStack) -> float:
    """Return the rate that a servo gives the target's clock: the middle of its last ten seconds or so."""
    log = stack.spec.logs[-1]
    text = lab.node("linux-rt").run(["cat", f"{REMOTE_RUN}/{log.file}"]).stdout
    (series,) = log.read(text).series
    tail = round(10 / (stack.settings.sync_interval_s or 1.0))
    # Logs say by how much the oscillator is fast, so that the clock is slowed down.
    return -float(np.median(series.freq_ppb[-tail:]))


def require_rate(lab: ClockLab, stack: ClockStack) -> None:
    """Wait until the target's clock goes as the server's does, which only who has heard it can know."""
    end_s = time.monotonic() + LOCK_S
    while True:
        rate_ppb, server_ppb = servo_rate_ppb(lab, stack), kernel(lab, "grandmaster")["frequency_ppb"]
        if abs(rate_ppb - server_ppb) < RATE_TOLERANCE_PPB:
            return
        assert time.monotonic() < end_s, f"{stack.name}: {rate_ppb} ppb, the server {server_ppb} ppb"
        time.sleep(2.0)


@contextmanager
def locked(lab: ClockLab, target: TargetSpec, name: str, folder: Path) -> Generator[ClockStack]:
    """Give a stack that has locked, and require afterwards that nothing of it is left on either node."""
    before = kernel(lab, target.node), kernel(lab, "grandmaster")
    with stack_of(lab, target, name, folder) as stack:
        lock = stack.wait_locked(LOCK_S)
        assert 0 < lock.after_s < LOCK_S + 30
        require_rate(lab, stack)
        yield stack
    after = kernel(lab, target.node), kernel(lab, "grandmaster")
    for found, was in zip(after, before, strict=True):
        assert {**found, "status": found["status"] & 255} == {**was, "status": was["status"] & 255}
    assert daemons(lab, target.node) + daemons(lab, "grandmaster") == ""
    file, form = stack.servo_log
    assert (folder / file).stat().st_size > 0
    assert form == "chrony-statistics"


def test_chrony_locks_by_kernel_stamps_at_both_ends_and_holds_over(
    lab: ClockLab, target: TargetSpec, tmp_path: Path
) -> None:
    with locked(lab, target, "chrony", tmp_path) as stack:
        stack.cut_off()
        assert not is_heard(lab, target, stack, 10.0)
        stack.require_running()
        # It goes on as it went, but for the rest of a slew.
        require_rate(lab, stack)
        stack.resume()
        assert is_heard(lab, target, stack, HANG_S)
    rows = (tmp_path / "target" / "chrony-measurements.log").read_text().splitlines()
    stamps = [row.split()[-3:] for row in rows if row.startswith("20")]
    # 4I: interleaved; K K: both of the server's packets and this client's were stamped by the kernel.
    assert sum(found == ["4I", "K", "K"] for found in stamps) > len(stamps) / 2


def test_phc2sys_follows_a_card_that_wanders(lab: ClockLab, target: TargetSpec, tmp_path: Path) -> None:
    settings = ClockSettings(phc_wander=WANDER)
    with ClockStack(lab, target, "phc2sys", settings, tmp_path, print) as stack:
        stack.wait_locked(LOCK_S)
        assert is_heard(lab, target, stack, HANG_S)
    lines = (tmp_path / "target" / "bw-wander.log").read_text().splitlines()
    assert json.loads(lines[0])["clock"] == target.ptp_clock
    said = lab.node(target.node).run(["sh", "-c", f"phc_ctl {target.ptp_clock} freq 2>&1"]).stdout
    assert float(said.split()[-1].removesuffix("ppb")) == 0.0
    # The card shows TAI, and the target's clock UTC.
    seconds = lab.node(target.node).run(["sh", "-c", f"phc_ctl {target.ptp_clock} cmp 2>&1"]).stdout
    assert abs(int(seconds.split()[-1].removesuffix("ns")) + 37_000_000_000) < 50_000_000
