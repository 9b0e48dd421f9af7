# SPDX-License-Identifier: Apache-2.0
"""Waiting for what a servo says, beside its lock: a settled frequency, another grandmaster."""

from __future__ import annotations

import time

from hw.errors import MeasurementError
from resources.clock_sync.lock import selected_grandmaster, settled_freq_ppb
from resources.clock_sync.stack import LOOK_S, ClockStack


def wait_settled(stack: ClockStack, tolerance_ppb: float, deadline_s: float) -> float:
    """Return the frequency error that a servo takes out, once it has settled on it.

    Args:
        stack: A stack that runs.
        tolerance_ppb: How far the medians of two rows of observations may be apart, each as long as the rule
            of the lock says.
        deadline_s: From now on.

    Returns:
        ppb; positive: the oscillator is fast.

    Raises:
        MeasurementError: It has not settled in time, or says no frequency.
    """
    end_s = time.monotonic() + deadline_s
    rule, logs = stack.spec.lock, stack.spec.logs
    while rule is not None and logs:
        found = settled_freq_ppb(stack.servo_text(), logs[-1], rule, tolerance_ppb)
        if found is not None:
            return found
        stack.require_running()
        if time.monotonic() > end_s:
            break
        time.sleep(LOOK_S)
    raise MeasurementError(
        f"{stack.name}: its servo has not settled on a frequency within {deadline_s:g} s, to"
        f" {tolerance_ppb / 1000:g} ppm"
    )


def wait_grandmaster(stack: ClockStack, wanted: str, deadline_s: float) -> None:
    """Return once the target's ptp4l has selected a grandmaster.

    Raises:
        MeasurementError: It has not until the deadline, or a daemon has ended.
    """
    end_s = time.monotonic() + deadline_s
    while (found := selected_grandmaster(stack.servo_text())) != wanted:
        stack.require_running()
        if time.monotonic() > end_s:
            raise MeasurementError(
                f"{stack.name}: follows {found or 'nobody'}, not {wanted}, after {deadline_s:g} s"
            )
        time.sleep(LOOK_S)
