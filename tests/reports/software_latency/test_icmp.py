# SPDX-License-Identifier: Apache-2.0
"""What `ping` of iputils and of busybox say, and answers that are not whole."""

from __future__ import annotations

import pytest

from reports.errors import RecordError
from reports.software_latency.icmp import icmp_times

IPUTILS = """PING 10.77.0.1 (10.77.0.1) 64(92) bytes of data.
72 bytes from 10.77.0.1: icmp_seq=1 ttl=64 time=0.052 ms
72 bytes from 10.77.0.1: icmp_seq=1 ttl=64 time=0.055 ms (DUP!)
72 bytes from 10.77.0.1: icmp_seq=2 ttl=64 time=1.23 ms
From 10.77.0.9 icmp_seq=3 Destination Host Unreachable
72 bytes from 10.77.0.1: icmp_seq=4 ttl=64 time=104 ms

--- 10.77.0.1 ping statistics ---
4 packets transmitted, 3 received, +1 duplicates, +1 errors, 25% packet loss, time 30ms
rtt min/avg/max/mdev = 0.052/35.094/104.000/1.2 ms
"""
BUSYBOX = """PING 10.77.0.1 (10.77.0.1): 64 data bytes
72 bytes from 10.77.0.1: seq=0 ttl=64 time=0.083 ms
72 bytes from 10.77.0.1: seq=1 ttl=64 time=0.028 ms
72 bytes from 10.77.0.1: seq=1 ttl=64 time=0.031 ms (DUP!)

--- 10.77.0.1 ping statistics ---
2 packets transmitted, 2 packets received, 1 duplicates, 0% packet loss
round-trip min/avg/max = 0.028/0.055/0.083 ms
"""
UNHEARD = """PING 10.77.0.1 (10.77.0.1) 64(92) bytes of data.

--- 10.77.0.1 ping statistics ---
2 packets transmitted, 0 received, 100% packet loss, time 1ms
"""


def test_both_forms_are_read() -> None:
    iputils, busybox = icmp_times(IPUTILS), icmp_times(BUSYBOX)
    assert (iputils.sent, iputils.times_ns) == (4, (52_000, 1_230_000, 104_000_000))
    assert iputils.median_ns == 1_230_000
    assert (busybox.sent, busybox.times_ns, busybox.mean_ns) == (2, (83_000, 28_000), 55_500)
    assert icmp_times(UNHEARD).times_ns == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no summary of ping"),
        ("\n".join(IPUTILS.splitlines()[:4]), "no summary of ping"),
        (BUSYBOX.replace("seq=0 ttl=64 time=0.083 ms", ""), "ping counts 2 replies, 1 are there"),
        (BUSYBOX.replace("time=0.083", "time=0,083"), "ping counts 2 replies, 1 are there"),
    ],
)
def test_an_answer_that_is_not_whole_is_refused(text: str, said: str) -> None:
    with pytest.raises(RecordError, match=said):
        icmp_times(text)
