# SPDX-License-Identifier: Apache-2.0
"""ICMP echoes beside the round trips: what two kernels take without the programs, by `ping`.

The paper's Figs 4 and 5. No verdict rests on it: it shows what of a round trip the programs and their
wake-ups add. `ping` of iputils and of busybox are understood.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from statistics import fmean, median

from reports.errors import RecordError

_REPLY = re.compile(r"\d+ bytes from \S+ (?:icmp_)?seq=\d+ ttl=\d+ time=([0-9.]+) ms")
_COUNTS = re.compile(r"(\d{1,18}) packets transmitted, (\d{1,18}) (?:packets )?received\b")
_NS_PER_MS = 1_000_000


@dataclass(frozen=True)
class IcmpEchoes:
    """ICMP echoes from one device to another, as `round_trips.json` holds them.

    Attributes:
        asker: Device whose node has run `ping`.
        reflector: Device whose kernel has answered.
        file: What `ping` said.
        absent: Why there are no times: no `ping` on the node, or no answer; "": there are.
    """

    asker: str
    reflector: str
    file: str
    absent: str = ""


@dataclass(frozen=True)
class IcmpTimes:
    """What `ping` has measured.

    Attributes:
        sent: Requests.
        times_ns: Of each that had a reply, in their order; `ping` tells a microsecond at best.
    """

    sent: int
    times_ns: tuple[int, ...]

    @property
    def median_ns(self) -> float:
        """Return the median; there is at least one reply."""
        return median(self.times_ns)

    @property
    def mean_ns(self) -> float:
        """Return the mean; there is at least one reply."""
        return fmean(self.times_ns)


def icmp_times(text: str) -> IcmpTimes:
    """Return the times that `ping` tells, in the C locale; what came twice counts once.

    Raises:
        RecordError: It is no whole answer of `ping`, or has other replies than it counts.
    """
    counts = _COUNTS.search(text)
    if counts is None:
        raise RecordError("no summary of ping: `N packets transmitted, M received`")
    found = (_REPLY.fullmatch(line.rstrip()) for line in text.splitlines())
    times_ns = tuple(int(Decimal(each[1]) * _NS_PER_MS) for each in found if each)
    sent, received = int(counts[1]), int(counts[2])
    if len(times_ns) != received:
        raise RecordError(f"ping counts {received} replies, {len(times_ns)} are there")
    return IcmpTimes(sent, times_ns)
