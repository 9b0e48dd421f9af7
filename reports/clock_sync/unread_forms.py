# SPDX-License-Identifier: Apache-2.0
"""Forms that say something of a clock and that no reader here takes: each is named for what it is."""

from __future__ import annotations

import re

UNREAD_FORMS = {
    "chrony's refclocks.log": (
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6} +\S+ +(?:\d+|-) [N+?-] ",
        "chrony's log tracking has the clock's offset",
    ),
    "an answer of chronyc": (
        r"Reference ID +: [0-9A-F]{8}\b|System time +: [\d.]+ seconds (?:slow|fast) of|MS Name/IP address ",
        "it is of one moment; chrony's logs tracking, measurements and statistics are series",
    ),
    "an answer of ntpq": (
        r"(?:associd=\d+ status=[0-9a-f]{4}\b| +remote +refid +st t when poll reach\b)",
        "it is of one moment; ntpd's loopstats and peerstats are series",
    ),
    "a log of ptpd": (
        r"#+ Timestamp, State, Clock ID,|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+, [a-z_]+, |.* ptpd2?\[\d+\][.:]",
        "ptp4l's log of the same clock would be",
    ),
    "a log of the 802.1AS daemon of OpenAvnu": (
        r"[A-Z]+ *: GPTP \[\d\d:\d\d:\d\d:\d{3}\]",
        "ptp4l with its configuration gPTP.cfg writes logs that are",
    ),
    "a White Rabbit log": (
        r".*(?:\bss:'[A-Z_]+'|\bservo state: +\"?[A-Z_]*(?:SYNC|PHASE|TRACK)|\bcko:-?\d)",
        "its offset is cko, in ps",
    ),
}
"""By name: how its lines begin, and what to do instead."""
_FORMS = {name: re.compile(form) for name, (form, _) in UNREAD_FORMS.items()}


def unread_form(text: str) -> str:
    """Return, in words, what form the most lines of a log are that no reader takes; empty: none known."""
    lines = text.split("\n")
    counts = {name: sum(form.match(line) is not None for line in lines) for name, form in _FORMS.items()}
    name = max(counts, key=lambda each: counts[each])
    return f"{name}: not read; {UNREAD_FORMS[name][1]}" if counts[name] else ""
