# SPDX-License-Identifier: Apache-2.0
"""Why a client did not use its server's answers, by its log."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

from hw.answers import json_line


def rejected_answers(text: str) -> str:
    """Return, in words, why bw-ntp-user or bw-timed did not use answers; empty: it used all."""
    counts: Counter[str] = Counter()
    for line in text.splitlines():
        if '"rejected"' not in line:
            continue
        answer = json_line(line)
        if answer is not None and answer.get("type") == "rejected":  # None: a torn line
            counts[" ".join(str(answer[key]) for key in ("reason", "detail") if key in answer)] += 1
    return ", ".join(f"{count} answers rejected: {reason}" for reason, count in counts.most_common(4))


_RAW_MEASUREMENT = re.compile(r"^\S+ \S+ +(?P<source>\S+) +\S +\d+ +(?P<tests>[01]{3} [01]{3} [01]{4}) ")
CHRONY_TESTS = (
    "duplicates",
    "the origin stamp",
    "missing stamps",
    "authentication",
    "a synchronised server (leap and stratum)",
    "root distance",
    "round-trip delay",
    "round-trip delay ratio",
    "round-trip delay deviation",
    "synchronisation loop",
)
"""NTP tests in the order of chrony's measurements.log (chrony.conf(5), `log rawmeasurements`)."""


def failed_chrony_tests(measurements: str) -> str:
    """Return, in words, which NTP tests answers have failed in chrony's measurements.log; empty: none."""
    counts: Counter[str] = Counter()
    total = 0
    for line in measurements.splitlines():
        found = _RAW_MEASUREMENT.match(line)
        if found is None:
            continue
        total += 1
        bits = found["tests"].replace(" ", "")
        counts.update(name for bit, name in zip(bits, CHRONY_TESTS, strict=True) if bit == "0")
    if not total:
        return "no answer of the server came"
    return ", ".join(
        f"{count} of {total} answers failed the test of {name}" for name, count in counts.most_common(4)
    )


ANSWER_READERS: dict[str, Callable[[str], str]] = {"chrony-measurements": failed_chrony_tests}
"""How a log of a server's answers is read, by its format in `stack.toml`."""
