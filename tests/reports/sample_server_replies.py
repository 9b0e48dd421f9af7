# SPDX-License-Identifier: Apache-2.0
"""Logs of servos with answers at chosen times of a trial, in the forms that the programs write."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from reports.clock_sync.trial import ClockTrial, ServerReplies, load_trial, write_trial
from tests.reports.sample_clock import SECOND_NS, START_TAI_NS, compare_answer, write_clock_trial

TAI_UTC_S = 37
START_MONOTONIC_NS = 100 * SECOND_NS
LOG = "servo.log"


def _chrony_statistics(after_s: float) -> str:
    return (
        f"{_utc(after_s)} 10.77.0.1        9.765e-08  4.902e-05  5.738e-08 -2.668e-05  1.109e-03 1.3e-02"
        "   3   0   3  0.00"
    )


def _chrony_measurements(after_s: float) -> str:
    return (
        f"{_utc(after_s)} 10.77.0.1       N  1 111 111 1111   0  0 0.00 -9.131e-05  3.064e-04  4.470e-08"
        "  0.000e+00  1.068e-04 7F7F0101 4B K K"
    )


def _utc(after_s: float) -> str:
    seconds = START_TAI_NS / SECOND_NS - TAI_UTC_S + after_s
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%d %H:%M:%S")


def _ntp_user(after_s: float) -> str:
    time_ns = START_TAI_NS + round(after_s * SECOND_NS)
    measured = {"offset_ns": 5, "delay_ns": 90_000, "freq_ppb": 1.5}
    return json.dumps({"type": "poll", "time_tai_ns": time_ns, **measured, "state": "locked"})


def _timed(after_s: float) -> str:
    return json.dumps(timed_sync(after_s, "locked"))


def timed_sync(after_s: float, state: str) -> dict[str, Any]:
    """Return what bw-timed says of a batch; in the state `hold` nobody was heard in it."""
    time_ns = START_MONOTONIC_NS + round(after_s * SECOND_NS)
    measured = {"offset_ns": 5, "delay_ns": 90_000, "bound_ns": 9, "u_ns": 5, "freq_ppb": 1.5}
    return {"type": "sync", "monotonic_ns": time_ns, **measured, "state": state, "server": "10.77.0.1:123"}


def _ptp4l(after_s: float) -> str:
    time_s = START_MONOTONIC_NS / SECOND_NS + after_s
    return f"ptp4l[{time_s:.3f}]: master offset        -25 s2 freq   +1502 path delay      9012"


def _phc2sys(after_s: float) -> str:
    time_s = START_MONOTONIC_NS / SECOND_NS + after_s
    return f"phc2sys[{time_s:.3f}]: CLOCK_REALTIME phc offset       -25 s2 freq   +1502 delay   1012"


LINES: dict[str, Callable[[float], str]] = {
    "chrony-statistics": _chrony_statistics,
    "chrony-measurements": _chrony_measurements,
    "bw-ntp-user": _ntp_user,
    "bw-timed": _timed,
    "ptp4l": _ptp4l,
    "phc2sys": _phc2sys,
}
"""A line of an answer by the format of its log; its time in s since the begin of the trial."""


def log_of(form: str, answers_s: Sequence[float]) -> str:
    """Return a log with an answer at each of some times."""
    return "".join(f"{LINES[form](after_s)}\n" for after_s in answers_s)


def answer_of(seconds: int, **changes: Any) -> dict[str, Any]:
    """Return a comparison that began when the logs say."""
    return compare_answer(seconds=seconds, start_monotonic_ns=START_MONOTONIC_NS, **changes)


def write_trial_with_replies(
    folder: Path, form: str, log: str, answer: dict[str, Any], **facts: Any
) -> ClockTrial:
    """Write a trial that has to show by a log that it heard its server, and read it."""
    write_clock_trial(folder, answer)
    (folder / LOG).write_text(log)
    write_trial(folder, replace(load_trial(folder).facts, hearing=ServerReplies(LOG, form), **facts))
    return load_trial(folder)
