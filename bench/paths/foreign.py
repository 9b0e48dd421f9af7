# SPDX-License-Identifier: Apache-2.0
"""The same figures by tshark, from the same captures: what was lost, and the median time inside."""

from __future__ import annotations

import statistics
import subprocess
from decimal import Decimal
from pathlib import Path

Times = dict[tuple[str, ...], int]


def lost_and_median_ns(before: Path, behind: Path, source: str) -> tuple[int, float]:
    """Return how many datagrams of an address were lost, and the median time inside of all others, in ns.

    Raises:
        subprocess.CalledProcessError: tshark cannot read a file.
    """
    sent, came = _times_ns(before, source), _times_ns(behind, source)
    inside_ns = [came[key] - at_ns for key, at_ns in sent.items() if key in came]
    return len(sent) - len(inside_ns), statistics.median(inside_ns)


def _times_ns(file: Path, source: str) -> Times:
    """Return when each datagram was seen first, by what tells it from others."""
    fields = ("frame.time_epoch", "ip.id", "ip.dst", "udp.srcport", "udp.dstport", "udp.payload")
    options = [word for field in fields for word in ("-e", field)]
    argv = ["tshark", "-r", str(file), "-Y", f"udp and ip.src == {source}", "-T", "fields", *options]
    done = subprocess.run(argv, check=True, capture_output=True, text=True)
    times: Times = {}
    for line in done.stdout.splitlines():
        stamp, *key = line.split("\t")
        times.setdefault(tuple(key), int(Decimal(stamp) * 1_000_000_000))
    return times
