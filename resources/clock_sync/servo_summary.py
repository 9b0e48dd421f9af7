# SPDX-License-Identifier: Apache-2.0
"""What a servo said of itself while a trial was measured, added to the trial's facts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from reports.clock_sync.logs import ServoSeries
from reports.clock_sync.phc_read_table import while_measured
from reports.clock_sync.section import servo_of
from reports.clock_sync.trial import ClockTrial, Servo, write_trial


def with_servo(trial: ClockTrial, log: str, log_format: str) -> ClockTrial:
    """Add to a trial what the servo said of itself while it was measured, and write it anew.

    Args:
        trial: As measured.
        log: The servo's log in the trial's folder; empty: none.
        log_format: How it is read (reports/clock_sync/log_formats.py).
    """
    facts = replace(trial.facts, servo_log=log, servo_format=log_format)
    trial = replace(trial, facts=facts)
    series = servo_of(trial)
    if series is not None:
        trial = replace(trial, facts=replace(facts, servo=servo_summary(trial, series)))
    write_trial(trial.folder, trial.facts)
    return trial


def servo_summary(trial: ClockTrial, series: ServoSeries) -> Servo:
    """Return what a servo said while a trial was measured; of a log in monotonic time, at its end."""
    kept = while_measured(trial, series)
    offsets = series.offset_ns[kept]
    delays = series.path_delay_ns[kept]
    delays = delays[np.isfinite(delays)]
    if not len(offsets):
        return Servo(0, None, None, None)
    return Servo(
        observations=len(offsets),
        mean_ns=float(offsets.mean()),
        max_abs_ns=int(abs(offsets).max()),
        mean_path_delay_ns=float(delays.mean()) if len(delays) else None,
    )
