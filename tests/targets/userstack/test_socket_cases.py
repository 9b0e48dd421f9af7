# SPDX-License-Identifier: Apache-2.0
"""What sockets say, by both stacks: one program of 491 cases, each by IPv4, IPv6 and IPv4 within IPv6."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from tests.link import run_in
from tests.patience import HANG_S
from tests.targets.userstack.accel_lab import FAR, NEAR, AccelLab, Started
from tests.targets.userstack.socket_end import WAYS

KINDS = ("connected", "listening", "datagrams")
NOT_THE_STACKS = (
    *("SO_DONTROUTE", "SO_OOBINLINE", "SO_REUSEPORT", "SO_RCVLOWAT", "SO_MARK"),
    *("IP_TTL", "IP_RECVTOS", "IP_FREEBIND", "length of IP_TTL"),
)
NOT_THE_STACKS_IPV6 = ("IPV6_UNICAST_HOPS", "IPV6_DONTFRAG")

# Where the stacks differ, by the reason; a name that begins with no way is one by every way.
DIFFERENT = {
    "an option that is not the stack's is ENOPROTOOPT, and named": (
        *(f"{kind}: {name}" for kind in KINDS for name in NOT_THE_STACKS),
        *(f"{way}: {kind}: {name}" for way in WAYS[1:] for kind in KINDS for name in NOT_THE_STACKS_IPV6),
        *(f"{kind}: {name}" for kind in KINDS[:2] for name in ("TCP_SYNCNT", "TCP_LINGER2")),
        *("datagrams: SO_KEEPALIVE", "datagrams: length of SO_KEEPALIVE"),
        *("v6: datagrams: IPV6_MULTICAST_HOPS", "mapped: datagrams: IPV6_MULTICAST_HOPS"),
    ),
    "segments have no room for timestamps": ("connected: TCP_MAXSEG",),
    "the kernel's socket behind it is asked, which does not send": (
        *("connected: SO_SNDBUF", "connected: SO_INCOMING_CPU"),
    ),
    "the kernel's socket behind it is for one family, so that it leaves the other's port free": (
        *("v6: connected: IPV6_V6ONLY", "v6: datagrams: IPV6_V6ONLY"),
    ),
    "the kernel's socket behind it keeps address and port": (
        *("refused: names", "refused: binds", "shut to write: binds", "reset: binds"),
        *("shut both ways: binds", "shut to write, then read: binds"),
        "datagrams say where they are from",
    ),
    "a peer is not taken back by AF_UNSPEC": ("a peer is taken back",),
    "no urgent data": ("urgent data come", "urgent data are sent"),
    "a datagram has 65507 bytes at most by either family": ("v6: datagrams too large",),
    "an end is told, as of a stream": ("datagrams shut to read: reads",),
    "the family is looked at first": ("connect by the wrong family",),
}
MAIN = "from tests.targets.userstack.socket_cases import main; main()"


def test_sockets_say_what_they_say_by_the_kernel(lab: AccelLab, repository: Path) -> None:
    """A difference that is not listed fails, and so does one that is listed and is none any more."""
    python = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(repository)!r}); {MAIN}"]
    for limit in ("ipv4.icmp_ratelimit", "ipv6.icmp.ratelimit"):
        run_in(lab.far, "sysctl", "-qw", f"net.{limit}=0")  # each refusal of a datagram is told
    Started(lab.start(lab.far, *python, "far")).ready()
    said: list[dict[str, str]] = []
    for environment in (dict(os.environ), lab.near_environment()):
        argv = [*python, "near", NEAR[4], FAR[4], NEAR[6], FAR[6]]
        program = lab.start(lab.near, *argv, environment=environment)
        out, err = program.communicate(timeout=HANG_S)
        assert program.returncode == 0, err
        said.append(json.loads(out))
    kernel, user = said
    assert kernel.keys() == user.keys()
    assert not [name for each in said for name, what in each.items() if what.startswith("HangError")]
    listed = {
        full
        for names in DIFFERENT.values()
        for name in names
        for full in ([name] if name.split(":")[0] in WAYS else [f"{way}: {name}" for way in WAYS])
    }
    different = {name for name in kernel if kernel[name] != user[name]}
    unexpected = "\n".join(
        f"{name}\n  kernel {kernel[name]}\n  user   {user[name]}" for name in different - listed
    )
    assert not unexpected, unexpected
    assert not listed - different, "the same by both, but listed as different"
