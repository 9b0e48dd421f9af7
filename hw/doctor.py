# SPDX-License-Identifier: Apache-2.0
"""List what this machine and a bench can and cannot measure, and how to fix it.

Run as `python -m hw doctor [BENCH]`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from hw.capability import Capability, Measurement, State, Verdict, format_table, judge
from hw.errors import CapabilityError, ConfigError
from hw.probes import accelerator, clock, cpu, edges, host, network

PROBES: tuple[Callable[[], Capability | list[Capability]], ...] = (
    network.root,
    cpu.cores,
    cpu.memory,
    host.disk,
    cpu.real_time_scheduling,
    host.locked_memory,
    cpu.quiet_machine,
    cpu.clock_source,
    cpu.performance_counters,
    network.namespaces,
    network.tap,
    network.impairment,
    accelerator.accelerator,
    clock.tai_offset,
    clock.hardware_clocks,
    edges.gpio_lines,
    edges.pps_generators,
    network.timestamping,
    host.packages,
    host.emulator,
    host.wine,
    host.python_environment,
    host.native_tools,
)

_HOST = ("root", "cores", "realtime", "memlock", "disk", "packages", "python", "native")
_GUESTS = ("memory", "namespaces", "tun", "qdisc", "qemu", "accelerator")

VIRTUAL_MEASUREMENTS = (
    Measurement("12-producer replay into a PREEMPT_RT guest", (*_HOST, *_GUESTS), ("perf",)),
    Measurement("12-producer replay into a namespace of this machine", (*_HOST, "namespaces", "qdisc")),
    Measurement("impaired links (delay, loss)", (*_HOST, *_GUESTS)),
    Measurement("clock synchronisation, software stamps", (*_HOST, *_GUESTS)),
    Measurement("Windows tools under Wine", ("packages-dev", "wine", "native")),
)

VIRTUAL_BENCH_MEASUREMENTS = (
    *VIRTUAL_MEASUREMENTS,
    Measurement("timed edges before a virtual oscilloscope", (*_HOST, *_GUESTS, "edges", "oscilloscopes")),
)
"""What needs a bench file to be named."""

HARDWARE_MEASUREMENTS = (
    Measurement(
        "12-producer replay into a real target", ("bench", *_HOST, "targets"), ("capture", "witness")
    ),
    Measurement("impaired links (delay, loss)", ("bench", *_HOST, "impairment")),
    Measurement("clock synchronisation, hardware stamps", ("bench", *_HOST, "targets", "phc", "nic-stamps")),
    Measurement(
        "timed edges of a target before an oscilloscope",
        ("bench", *_HOST, "targets", "edges", "oscilloscopes"),
    ),
    Measurement("timed edges by a PTP card's pins of this machine", ("bench", *_HOST, "phc", "phc-edges")),
)


def probe_machine() -> list[Capability]:
    """Probe everything of this machine. Takes seconds; changes nothing."""
    capabilities: list[Capability] = []
    for probe in PROBES:
        answer = probe()
        capabilities.extend(answer if isinstance(answer, list) else [answer])
    return capabilities


def examine(bench: Path | None) -> tuple[list[Capability], list[Verdict]]:
    """Probe this machine, and a bench if one is named; say what can be measured with them.

    Args:
        bench: Bench file.

    Returns:
        All capabilities, those of the machine first, and one verdict a kind of measurement.
    """
    capabilities = probe_machine()
    measurements = VIRTUAL_MEASUREMENTS
    if bench is not None:
        found, virtual, without = _probe_bench(bench)
        capabilities += [capability for capability in found if capability.key not in without]
        measurements = VIRTUAL_BENCH_MEASUREMENTS if virtual else HARDWARE_MEASUREMENTS
        measurements = tuple(m for m in measurements if without.isdisjoint(m.needs))
        if virtual:
            measurements = tuple(Measurement(m.name, ("bench", *m.needs), m.helps) for m in measurements)
    by_key = {capability.key: capability for capability in capabilities}
    return capabilities, [judge(measurement, by_key) for measurement in measurements]


def _probe_bench(path: Path) -> tuple[list[Capability], bool, frozenset[str]]:
    """Probe the bench of a file, as `hw.probes.bench.bench` does."""
    try:
        from hw.probes import bench
    except ModuleNotFoundError as error:
        missing = Capability("bench", State.MISSING, f"not read: no Python module {error.name}", "make setup")
        return [missing], True, frozenset()
    return bench.bench(path)


def render_text(capabilities: list[Capability], verdicts: list[Verdict], width: int) -> str:
    """Lay out the findings for a terminal of that many columns."""
    in_the_way = {key for verdict in verdicts for key in verdict.because}
    remedies = [item for item in capabilities if item.remedy and item.state is not State.OK]
    parts = [
        format_table(
            ("CAPABILITY", "STATE", "FOUND"),
            [(item.key, item.state, item.found) for item in capabilities],
            width,
        ),
        format_table(
            ("MEASUREMENT", "STATE", "BECAUSE OF"),
            [(item.name, item.state, ", ".join(item.because)) for item in verdicts],
            width,
        ),
    ]
    for title, wanted in (("TO FIX", True), ("FOR MORE", False)):
        rows = [(item.key, item.remedy) for item in remedies if (item.key in in_the_way) is wanted]
        if rows:
            parts.append(format_table((title, "DO"), rows, width))
    return "\n\n".join(parts)


def render_json(capabilities: list[Capability], verdicts: list[Verdict]) -> str:
    """Write the findings as one JSON object."""
    document = {
        "schema": "benchwright.doctor/1",
        "capabilities": [asdict(item) for item in capabilities],
        "measurements": [asdict(item) for item in verdicts],
    }
    return json.dumps(document, indent=2)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the subcommand."""
    parser.add_argument(
        "bench", nargs="?", type=Path, help="bench file; without one, only this machine is examined"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")


def run(arguments: argparse.Namespace) -> int:
    """Examine and print; return 2 for a wrong bench file, 3 if something needed is missing, else 0."""
    capabilities, verdicts = examine(arguments.bench)
    if arguments.json:
        print(render_json(capabilities, verdicts))
    else:
        print(render_text(capabilities, verdicts, shutil.get_terminal_size((120, 40)).columns))
    missing = any(verdict.state is State.MISSING for verdict in verdicts)
    if missing and not arguments.json:
        print("\nNot everything can be measured; see TO FIX.", file=sys.stderr)
    if any(capability.bad_input for capability in capabilities):
        return ConfigError.exit_code
    return CapabilityError.exit_code if missing else 0
