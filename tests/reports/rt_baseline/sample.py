# SPDX-License-Identifier: Apache-2.0
"""A made-up case of wake-ups, in the files that cyclictest and the witness write."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from reports.control_loops.load import LOAD_FILE, KnownLoad
from reports.rt_baseline.emulator import EMULATION
from reports.rt_baseline.evidence import CYCLICTEST, HISTOGRAM, PRINTED, WITNESS, WakeupFacts, write_facts

Json = dict[str, Any]
Counts = Mapping[int, int]

TARGET = "linux"
CYCLES = 40_000
HISTOGRAM_US = 50_000
PERIOD_NS = 250_000
QUIET: Counts = {15: CYCLES - 10, 80: 9, 120: 1}
"""Its p99.99 is 80 µs, whose upper end is the largest: 120 µs."""


def late(*latencies_us: int) -> Counts:
    """Return as many wake-ups as in QUIET, some of which are late."""
    return {15: CYCLES - len(latencies_us)} | {us: latencies_us.count(us) for us in sorted(set(latencies_us))}


def write_case(
    folder: Path,
    cpus: Mapping[int, Counts] | None = None,
    *,
    pauses: Sequence[tuple[int, int]] | None = (),
    ran_ns: Sequence[int] | None = None,
    unclaimed_ns: Sequence[int] | None = None,
    stolen_ns: int = 0,
    dropped: int = 0,
    machine: Literal["shared", "guest", "own"] = "shared",
    emulator: Sequence[tuple[int, int]] | None = None,
    load: KnownLoad | None = None,
    cycles: int = CYCLES,
    overflow: int = 0,
) -> Path:
    """Write the evidence of a case and return its folder.

    Args:
        folder: Made where it is not there.
        cpus: Of each CPU, how many wake-ups had each latency in µs.
        pauses: CPU, and how late the witness woke up there, in ns; None: there is no witness.
        ran_ns: Of each pause, what the target ran; None: it has CPUs of its own.
        unclaimed_ns: Of each pause, what nobody claims; None likewise.
        stolen_ns: Of each CPU, by its hypervisor's count.
        dropped: Pauses that the witness had no room for.
        machine: See `WakeupFacts`.
        emulator: CPU, and how long its virtual processor did not run, ns, half a second behind each pause;
            None: nobody watched.
        load: What was there meanwhile.
        cycles: That were asked for.
        overflow: Wake-ups of each CPU beyond the histogram, of 60 ms, in addition.
    """
    folder.mkdir(parents=True, exist_ok=True)
    found = {1: QUIET} if cpus is None else cpus
    width_us = max(HISTOGRAM_US, *(max(each) + 1 for each in found.values()))
    write_facts(
        folder,
        WakeupFacts(TARGET, 200, cycles, width_us, 95, machine, 8, 1724, latency_target_us=0, load=load),
    )
    (folder / PRINTED).write_text("# /dev/cpu_dma_latency set to 0us\n")
    _write_json(folder / CYCLICTEST, found, overflow)
    _write_text(folder / HISTOGRAM, list(found.values()), overflow)
    if pauses is not None:
        result: Json = {
            "type": "result",
            "tool": "bw-traffic witness",
            "cpus": [_watched(cpu, stolen_ns) for cpu in sorted({*found, *(cpu for cpu, _ in pauses)})],
            "stalled_fraction": 0.01,
            "windows": [[place * 10**9, place * 10**9 + ns, cpu] for place, (cpu, ns) in enumerate(pauses)],
            "windows_dropped": dropped,
            "period_ns": PERIOD_NS,
        }
        for name, values in (("target_ran_ns", ran_ns), ("unclaimed_ns", unclaimed_ns)):
            if values is not None:
                result[name] = list(values)
        (folder / WITNESS).write_text(json.dumps(result) + "\n")
    if emulator is not None:
        lines = [
            {
                "cpu": cpu,
                "period_ns": PERIOD_NS,
                "readings": 9,
                "due_tai_ns": [0, 100 * 10**9],
                "pauses_tai_ns": [
                    [place * 10**9 + 5 * 10**8, place * 10**9 + 5 * 10**8 + ns]
                    for place, (at, ns) in enumerate(emulator)
                    if at == cpu
                ],
            }
            for cpu in found
        ]
        (folder / EMULATION).write_text("".join(json.dumps(line) + "\n" for line in lines))
    if load is not None:
        amounts = {"cpu_s": 16.0, "written_bytes": 1e6, "received_bit_s": None, "forks": 160}
        document = {
            "schema": "benchwright.load/1",
            "load": {"kind": load.kind, "node": load.node},
            "over_s": 8,
        }
        document |= {name: {"value": value} for name, value in amounts.items()}
        (folder / LOAD_FILE).write_text(json.dumps(document))
    return folder


def _watched(cpu: int, stolen_ns: int) -> Json:
    return dict.fromkeys(("samples", "stalls", "stalled_ns", "max_ns"), 0) | {
        "cpu": cpu,
        "steal_ns": stolen_ns,
    }


def _write_json(file: Path, cpus: Mapping[int, Counts], overflow: int) -> None:
    threads: Json = {}
    for place, (cpu, counts) in enumerate(cpus.items()):
        threads[str(place)] = {
            "histogram": {str(us): count for us, count in counts.items()},
            "cycles": sum(counts.values()) + overflow,
            "min": min(counts),
            "max": 60_000 if overflow else max(counts),
            "avg": 15.0,
            "cpu": cpu,
            "node": -1,
        }
    document = {
        "file_version": 1,
        "cmdline:": "cyclictest",
        "rt_test_version:": "2.40",
        "return_code": 0,
        "sysinfo": {"release": "6.18", "version": "#1 SMP", "realtime": 0},
        "num_threads": len(cpus),
        "resolution_in_ns": 0,
        "thread": threads,
    }
    file.write_text(json.dumps(document, indent=2))


def _write_text(file: Path, columns: Sequence[Counts], overflow: int) -> None:
    rows = range(max(max(each) for each in columns) + 10)
    lines = ["# Histogram"]
    lines += [f"{us:06d} " + "\t".join(f"{each.get(us, 0):06d}" for each in columns) for us in rows]
    most = 60_000 if overflow else None
    for name, values in (
        ("Total", [sum(each.values()) for each in columns]),
        ("Min Latencies", [min(each) for each in columns]),
        ("Avg Latencies", [15 for _ in columns]),
        ("Max Latencies", [most or max(each) for each in columns]),
        ("Histogram Overflows", [overflow for _ in columns]),
    ):
        lines.append(f"# {name}: " + " ".join(f"{each:05d}" for each in values))
    lines.append("# Histogram Overflow at cycle number:")
    lines += [f"# Thread {place}: {'00017' if overflow else ''}" for place, _ in enumerate(columns)]
    file.write_text("\n".join(lines) + "\n\n")
