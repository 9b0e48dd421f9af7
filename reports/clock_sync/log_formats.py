# SPDX-License-Identifier: Apache-2.0
"""Readers of clock daemons' logs by the name of their format, as `stack.toml` and `trial.json` have it.

A clock stack names the format of its log; who reads that log needs to know nothing else of the stack.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from reports.clock_sync.chrony_logs import (
    read_chrony_measurements,
    read_chrony_statistics,
    read_chrony_tracking,
)
from reports.clock_sync.client_logs import read_ntp_user, read_stripchart, read_time_service
from reports.clock_sync.linuxptp_logs import read_phc2sys, read_ptp4l, read_ts2phc
from reports.clock_sync.logs import ClockLog
from reports.clock_sync.other_logs import read_loopstats, read_peerstats, read_pmc

Reader: TypeAlias = Callable[[str, int], ClockLog]
LOG_READERS: dict[str, Reader] = {
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
_WITHOUT_NAME = r"^\[\d"
_CHRONY = r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d +\S+ +"
_NTPD, _JSON = (r"^\d{5} \d",), (r"^\{",)
LOG_MARKS: dict[str, tuple[str, ...]] = {
    "ptp4l": ("ptp4l", _WITHOUT_NAME, " offset "),
    "phc2sys": ("phc2sys", _WITHOUT_NAME),
    "ts2phc": ("ts2phc", _WITHOUT_NAME),
    "chrony-measurements": (_CHRONY + "[N+?-] ",),
    "chrony-statistics": (_CHRONY + r"[-+]?\d+[.e]",),
    "chrony-tracking": (_CHRONY + r"\d+ ",),
    "ntpd-loopstats": _NTPD,
    "ntpd-peerstats": _NTPD,
    "pmc": (" RESPONSE MANAGEMENT ",),
    "bw-ntp-user": _JSON,
    "bw-timed": _JSON,
    "w32tm": (r"^\d{1,2}:\d\d:\d\d",),
}
"""Expressions of which each line that is of use to a format has one: in a log without them it has none."""
NOT_SHOWN = ("w32tm-stripchart",)
"""Formats of a trial's log of which no page shows a series: their times are not those of the trial."""
USER_STAMPS, KERNEL_STAMPS = ("bw-ntp-user",), ("chrony-statistics",)
"""Logs of NTP clients that stamp in user space, and of those for which the kernel stamps."""
