# SPDX-License-Identifier: Apache-2.0
"""Whether the server of a stack replied while it was measured, by the log of its servo.

A client whose server falls silent goes on running, and its clock drifts away by so little in a trial that it
may look synchronised. So the longest time without an answer, from the begin of the measurement to its end, is
held against what a client bears before it gives its server up: eight intervals (RFC 5905's reach register),
at least 10 s. Logs of chrony have whole seconds: a silence is known to a second there.
"""

from __future__ import annotations

import numpy as np

from reports.clock_sync.log_formats import LOG_READERS
from reports.clock_sync.logs import ClockLog
from reports.clock_sync.trial import ClockTrial
from reports.units import NS_PER_S

STALE_INTERVALS = 8
STALE_MIN_S = 10.0
ANSWER_FORMATS = ("chrony-statistics", "chrony-measurements", "bw-ntp-user", "bw-timed", "ptp4l", "phc2sys")
"""Formats of logs with a line for each answer that the client has used, and no line without one."""
OF_THE_PHC = "phc2sys"
"""Format of the log of a program that hears no server: it reads a card."""


def invalid_causes(trial: ClockTrial) -> list[str]:
    """Return why nothing may pass on a trial: an invalid answer, a silent server; empty: it may."""
    return [*trial.filtered.invalid(), *silence_causes(trial)]


def silence_causes(trial: ClockTrial) -> list[str]:
    """Return, in words, that the server was silent for too long; empty: it was not, or the trial asks not."""
    facts = trial.facts
    if facts.hearing is None:
        return []
    silence_s, most_s = longest_silence_ns(trial) / NS_PER_S, silence_max_s(float(facts.interval_s or 0))
    if silence_s <= most_s:
        return []
    what = "reading of its PHC" if facts.hearing.format == OF_THE_PHC else "answer of its server"
    silent = f"no {what} for {silence_s:.1f} s while it was measured; at most {most_s:g} s"
    return [f"{facts.clock}: {silent}: it was not synchronised"]


def silence_max_s(interval_s: float) -> float:
    """Return how long a server may be silent, in s, that is asked at an interval."""
    return max(STALE_MIN_S, STALE_INTERVALS * interval_s)


def longest_silence_ns(trial: ClockTrial) -> int:
    """Return the longest time without an answer while a trial was measured, its begin and end included.

    A log that is not there has no answer. Two-way transfer does not say when it was in the monotonic time of
    the target: of logs in that time it counts as ended with the last line.
    """
    compare, log = trial.filtered, _log_of(trial)
    if log is None or not log.series:
        return compare.elapsed_ns
    times_ns = np.unique(np.concatenate([series.time_ns for series in log.series]))
    begin_ns = compare.start_tai_ns if log.series[0].clock == "tai" else compare.start_monotonic_ns
    if begin_ns is None:
        begin_ns = int(times_ns[-1]) - compare.elapsed_ns
    end_ns = begin_ns + compare.elapsed_ns
    replies_ns = times_ns[(times_ns > begin_ns) & (times_ns < end_ns)]
    return int(np.diff([begin_ns, *replies_ns.tolist(), end_ns]).max())


def _log_of(trial: ClockTrial) -> ClockLog | None:
    """Return the log that the trial names; None: there is none that can be read."""
    hearing = trial.facts.hearing
    if hearing is None or hearing.format not in ANSWER_FORMATS:
        return None
    path = trial.folder / hearing.log
    if not path.is_file():
        return None
    return LOG_READERS[hearing.format](path.read_text(encoding="utf-8", errors="replace"), trial.tai_utc_s)
