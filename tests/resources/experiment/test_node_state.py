# SPDX-License-Identifier: Apache-2.0
"""What a node is compared by: what its kernel completes by itself after the boot is no change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hw.protocols import CommandResult
from resources.experiment.node_state import NodeState, state_of

BOOTED = """#section addresses
2: test0    inet 10.77.0.100/24 scope global test0\\       valid_lft forever preferred_lft forever
2: test0    inet6 fe80::5054:21ff:fe4f:66a6/64 scope link tentative proto kernel_ll
#section routes
10.77.0.0/24 dev test0 proto kernel scope link src 10.77.0.100
#section qdiscs
qdisc htb 1: dev test0 root refcnt 3 direct_packets_stat 0 direct_qlen 1000
"""
LATER = """#section addresses
2: test0    inet 10.77.0.100/24 scope global test0\\       valid_lft 300sec preferred_lft 300sec
2: test0    inet6 fe80::5054:21ff:fe4f:66a6/64 scope link proto kernel_ll
#section routes
10.77.0.0/24 dev test0 proto kernel scope link src 10.77.0.100
fe80::/64 dev test0 proto kernel metric 256 pref medium
local fe80::5054:21ff:fe4f:66a6 dev test0 table local proto kernel metric 0 pref medium
multicast ff00::/8 dev test0 table local proto kernel metric 256 pref medium
#section qdiscs
qdisc htb 1: dev test0 root refcnt 3 direct_packets_stat 7 direct_qlen 1000
"""


class _Node:
    """Says a text."""

    name, work_folder = "linux-rt", "/run"

    def __init__(self, text: str) -> None:
        self.text = text

    def run(self, argv: Sequence[str], **_: object) -> CommandResult:
        """Return it."""
        return CommandResult(tuple(argv), 0, self.text, "")


def _state(text: str) -> NodeState:
    node: Any = _Node(text)
    return state_of(node)


def test_what_a_kernel_completes_after_its_boot_is_no_change() -> None:
    assert _state(LATER).differences(_state(BOOTED)) == []


def test_an_address_of_ours_is_one() -> None:
    more = LATER.replace(
        "#section routes", "2: test0    inet 10.9.0.1/24 scope global test0\n#section routes"
    )
    assert _state(more).differences(_state(BOOTED)) == [
        "addresses: 2: test0    inet 10.9.0.1/24 scope global test0 was not there"
    ]
