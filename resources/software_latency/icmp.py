# SPDX-License-Identifier: Apache-2.0
"""ICMP echoes between devices, by `ping` on their nodes, one pair after the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from hw.errors import BenchError
from hw.open_bench import OpenBench
from reports.errors import RecordError
from reports.software_latency.evidence import LabDevice
from reports.software_latency.icmp import IcmpEchoes, icmp_times
from resources.software_latency.settings import RoundTripTimes

INTERVAL_MAX_US = 10_000
WAIT_S = 1
"""For the last reply."""
SPARE_S = 10.0


def icmp_between(
    bench: OpenBench,
    pairs: Sequence[tuple[LabDevice, LabDevice]],
    addresses: Mapping[str, str],
    times: RoundTripTimes,
    folder: Path,
) -> tuple[IcmpEchoes, ...] | None:
    """Ask each two nodes once, and where the asker has no `ping` the other way round; None: none are wanted.

    Args:
        bench: An open bench.
        pairs: Who asks whom.
        addresses: On the test network, by node.
        times: How many, how often, how large.
        folder: Evidence goes here.
    """
    return tuple(_each(bench, pairs, addresses, times, folder)) if times.icmp_echoes else None


def _each(
    bench: OpenBench,
    pairs: Sequence[tuple[LabDevice, LabDevice]],
    addresses: Mapping[str, str],
    times: RoundTripTimes,
    folder: Path,
) -> Iterator[IcmpEchoes]:
    first: dict[frozenset[str], tuple[LabDevice, LabDevice]] = {}
    for one, other in pairs:
        first.setdefault(frozenset((one.node, other.node)), (one, other))
    for asker, reflector in first.values():
        for one, other in ((asker, reflector), (reflector, asker)):
            echoes = _ask(bench, one, other, addresses[other.node], times, folder)
            yield echoes
            if not echoes.absent:
                break


def ping_argv(address: str, times: RoundTripTimes) -> list[str]:
    """Return the command line, which `ping` of iputils and of busybox both know."""
    interval_s = min(times.interval_us, INTERVAL_MAX_US) / 1e6
    argv = ["env", "LC_ALL=C", "ping", "-c", str(times.icmp_echoes), "-i", f"{interval_s:.6f}"]
    return [*argv, "-s", str(times.size_bytes), "-W", str(WAIT_S), address]


def _ask(
    bench: OpenBench,
    asker: LabDevice,
    reflector: LabDevice,
    address: str,
    times: RoundTripTimes,
    folder: Path,
) -> IcmpEchoes:
    name = f"icmp-{asker.name}-{reflector.name}.txt"
    within_s = times.icmp_echoes * INTERVAL_MAX_US / 1e6 + SPARE_S
    try:
        said = bench.node(asker.node).run(ping_argv(address, times), within_s, check=False)
    except BenchError as error:
        return IcmpEchoes(asker.name, reflector.name, name, f"{asker.name} cannot ping: {error}")
    (folder / name).write_text(said.stdout + said.stderr)
    absent = ""
    try:
        if not icmp_times(said.stdout).times_ns:
            absent = f"{reflector.name} answered no echo of {asker.name}"
    except RecordError as error:
        why = " ".join(said.stderr.split()) or f"exit code {said.exit_code}, {error}"
        absent = f"{asker.name} cannot ping: {why}"
    return IcmpEchoes(asker.name, reflector.name, name, absent)
