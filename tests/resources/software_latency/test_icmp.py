# SPDX-License-Identifier: Apache-2.0
"""Who pings whom, and what is said of a node without `ping`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hw.errors import BenchError
from reports.software_latency.evidence import InjectedDelay, LabDevice
from reports.software_latency.icmp import icmp_times
from resources.software_latency.devices import directions, twins_of
from resources.software_latency.icmp import icmp_between
from resources.software_latency.settings import RoundTripTimes
from tests.fake_bench import FakeBench
from tests.reports.software_latency.test_icmp import BUSYBOX, UNHEARD

DEVICES = [LabDevice(name, name, f"hardware of {name}", "tool", 50) for name in ("a", "b", "c")]
ADDRESSES = {"a": "10.77.0.130", "b": "10.77.0.2", "c": "10.77.0.3"}
TIMES = RoundTripTimes(1000, 10, 1500, (512,), icmp_echoes=40)


def lab_of(unreachable: str = "", silent: str = "") -> Any:
    """Return a bench whose node `a` has no `ping`; another may not be reached, or not answer."""

    def answer(node: str, argv: Sequence[str]) -> tuple[int, str, str]:
        assert [*argv[:-1]] == [
            "env", "LC_ALL=C", "ping", "-c", "40", "-i", "0.001500", "-s", "512", "-W", "1",
        ]  # fmt: skip
        lab.log.append(f"{node} {argv[-1]}")
        if node == unreachable:
            raise BenchError(f"{node} is not reached")
        if node == "a":
            return 127, "", "env: 'ping': No such file or directory\n"
        return (1, UNHEARD, "") if argv[-1] == ADDRESSES.get(silent) else (0, BUSYBOX, "")

    lab = FakeBench(answer=answer)
    return lab


def pinged(lab: Any, folder: Path) -> list[tuple[str, str, str]]:
    pairs = directions(DEVICES, twins_of(InjectedDelay("twin", 1, 1, DEVICES[0].name), DEVICES))
    found = icmp_between(lab, pairs, ADDRESSES, TIMES, folder)
    assert all(timeout_s < 20 for node in lab.nodes.values() for timeout_s in node.timeouts_s)
    return [(each.asker, each.reflector, each.absent) for each in found or ()]


def test_each_two_nodes_are_asked_once_and_one_without_ping_is_named_and_asked(tmp_path: Path) -> None:
    lab = lab_of()
    absent = "a cannot ping: env: 'ping': No such file or directory"
    assert pinged(lab, tmp_path) == [
        ("a", "b", absent), ("b", "a", ""), ("a", "c", absent), ("c", "a", ""), ("b", "c", ""),
    ]  # fmt: skip
    assert lab.log[:2] == [f"a {ADDRESSES['b']}", f"b {ADDRESSES['a']}"]
    assert icmp_times((tmp_path / "icmp-b-c.txt").read_text()).times_ns == (83_000, 28_000)


def test_a_node_that_is_not_reached_and_one_that_does_not_answer_are_named(tmp_path: Path) -> None:
    found = pinged(lab_of("b", "c"), tmp_path)
    assert ("b", "c", "b cannot ping: b is not reached") in found
    assert ("c", "b", "") in found
    assert not (tmp_path / "icmp-b-c.txt").exists()
    found = pinged(lab_of(silent="c"), tmp_path)
    assert ("b", "c", "c answered no echo of b") in found


def test_none_are_asked_for() -> None:
    times = RoundTripTimes(1000, 10, 1500, (512,))
    assert icmp_between(lab_of(), directions(DEVICES), ADDRESSES, times, Path()) is None
