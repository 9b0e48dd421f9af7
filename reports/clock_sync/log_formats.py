# SPDX-License-Identifier: Apache-2.0
"""Readers of clock daemons' logs by the name of their format, as `stacks.toml` and `trial.json` have it.

A clock stack names the format of its log; who reads that log needs to know nothing else of the stack.
"""

from __future__ import annotations

from collections.abc import Callable

from reports.clock_sync.chrony_logs import (
    read_chrony_measurements,
    read_chrony_statistics,
    read_chrony_tracking,
)
from reports.clock_sync.client_logs import read_ntp_user, read_stripchart, read_time_service
from reports.clock_sync.linuxptp_logs import read_phc2sys, read_ptp4l, read_ts2phc
from reports.clock_sync.logs import ClockLog
from reports.clock_sync.other_logs import read_loopstats, read_peerstats, read_pmc

LOG_READERS: dict[str, Callable[[str, int], ClockLog]] = {
    "ptp4l": lambda text, _tai_utc_s: read_ptp4l(text),
    "phc2sys": lambda text, _tai_utc_s: read_phc2sys(text),
    "ts2phc": lambda text, _tai_utc_s: read_ts2phc(text),
    "chrony-measurements": read_chrony_measurements,
    "chrony-statistics": read_chrony_statistics,
    "chrony-tracking": read_chrony_tracking,
    "ntpd-loopstats": read_loopstats,
    "ntpd-peerstats": read_peerstats,
    "pmc": lambda text, _tai_utc_s: read_pmc(text),
    "bw-ntp-user": lambda text, _tai_utc_s: read_ntp_user(text),
    "bw-timed": lambda text, _tai_utc_s: read_time_service(text),
    "w32tm": lambda text, _tai_utc_s: read_stripchart(text),
}
"""How a log is read: its text, and TAI - UTC in s."""
NOT_SHOWN = ("w32tm-stripchart",)
"""Formats of a trial's log of which no page shows a series: their times are not those of the trial."""
USER_STAMPS, KERNEL_STAMPS = ("bw-ntp-user",), ("chrony-statistics",)
"""Logs of NTP clients that stamp in user space, and of those for which the kernel stamps."""
