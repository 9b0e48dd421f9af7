# SPDX-License-Identifier: Apache-2.0
"""A made-up recording of osnoise and timerlat, in the files that kernel, rtla, witness and clocks write.

Formats and tables are those of Linux 6.12 and its rtla.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reports.rt_baseline.emulator import EMULATION
from reports.rt_baseline.traced import CLOCKS, RING, WITNESS
from reports.timeline.kernel_recording import write_recording
from tests.reports.timeline.ring_pages import COMMON, EVENTS, Machine, Page

Json = dict[str, Any]
MS = 1_000_000
BEGIN_NS = 1_000 * MS
"""Of the recording, by the target's clock; the first events are later."""
THREAD_NOISE, IRQ_NOISE, SOFTIRQ_NOISE, TIMERLAT, THRESHOLD = 516, 514, 515, 17, 512
OWN = {
    "ftrace/timerlat": (
        TIMERLAT,
        (
            "\tfield:unsigned int seqnum;\toffset:8;\tsize:4;\tsigned:0;\n"
            "\tfield:int context;\toffset:12;\tsize:4;\tsigned:1;\n"
            "\tfield:u64 timer_latency;\toffset:16;\tsize:8;\tsigned:0;\n"
        ),
    ),
    "osnoise/irq_noise": (
        IRQ_NOISE,
        (
            "\tfield:u64 start;\toffset:8;\tsize:8;\tsigned:0;\n"
            "\tfield:u64 duration;\toffset:16;\tsize:8;\tsigned:0;\n"
            "\tfield:__data_loc char[] desc;\toffset:24;\tsize:4;\tsigned:0;\n"
            "\tfield:int vector;\toffset:28;\tsize:4;\tsigned:1;\n"
        ),
    ),
    "osnoise/softirq_noise": (
        SOFTIRQ_NOISE,
        (
            "\tfield:u64 start;\toffset:8;\tsize:8;\tsigned:0;\n"
            "\tfield:u64 duration;\toffset:16;\tsize:8;\tsigned:0;\n"
            "\tfield:int vector;\toffset:24;\tsize:4;\tsigned:1;\n"
        ),
    ),
    "osnoise/thread_noise": (
        THREAD_NOISE,
        (
            "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
            "\tfield:u64 start;\toffset:24;\tsize:8;\tsigned:0;\n"
            "\tfield:u64 duration;\toffset:32;\tsize:8;\tsigned:0;\n"
            "\tfield:pid_t pid;\toffset:40;\tsize:4;\tsigned:1;\n"
        ),
    ),
    "osnoise/sample_threshold": (
        THRESHOLD,
        (
            "\tfield:u64 start;\toffset:8;\tsize:8;\tsigned:0;\n"
            "\tfield:u64 duration;\toffset:16;\tsize:8;\tsigned:0;\n"
            "\tfield:u64 interference;\toffset:24;\tsize:8;\tsigned:0;\n"
        ),
    ),
}


@dataclass(frozen=True)
class Event:
    """One event: its end in ns after BEGIN_NS, and its bytes behind the fields that all have."""

    end_ns: int
    number: int
    rest: bytes


def irq(end_ns: int, ns: int) -> Event:
    """Return an interrupt's end; so long it had the CPU."""
    return Event(end_ns, IRQ_NOISE, struct.pack("<QQIi", 0, ns, 32 | 8 << 16, 236) + b"a_timer\0")


def softirq(end_ns: int, ns: int) -> Event:
    """Return a softirq's end."""
    return Event(end_ns, SOFTIRQ_NOISE, struct.pack("<QQi", 0, ns, 3))


def thread(end_ns: int, ns: int, name: bytes = b"rtla", pid: int = 226) -> Event:
    """Return when a thread gave the CPU away; without those that broke into it it had it so long."""
    return Event(end_ns, THREAD_NOISE, struct.pack("<16sQQi", name, 0, ns, pid))


def sample(end_ns: int, late_ns: int, context: int = 1) -> Event:
    """Return a sample of timerlat; 0: of the interrupt, 1: of the thread."""
    return Event(end_ns, TIMERLAT, struct.pack("<IiQ", 1, context, late_ns))


def noise(end_ns: int, ns: int) -> Event:
    """Return what a CPU was kept from reading its clock for."""
    return Event(end_ns, THRESHOLD, struct.pack("<QQQ", 0, ns, 0))


def write_ring(
    folder: Path,
    events: Sequence[Event],
    dropped: int = 0,
    cpu: int = 0,
    others: Mapping[int, Sequence[Event]] | None = None,
) -> Path:
    """Write `ring.gz` of one CPU, and of others by number, and return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    it = Machine()
    text = it.description(dropped).replace("per_cpu/cpu3", f"per_cpu/cpu{cpu}")
    for name in EVENTS:
        text = text.replace(f"file: events/{name}/format", f"file: other/{name}")
    for name, (number, fields) in OWN.items():
        short = name.rpartition("/")[2]
        text += f"file: events/{name}/format\nname: {short}\nID: {number}\n"
        text += f'{COMMON}\n{fields}\nprint fmt: "x"\n'
    raws: dict[int, Path] = {}
    for number, own in {cpu: events, **(others or {})}.items():
        if number != cpu:
            text += f"file: per_cpu/cpu{number}/stats\nentries: 0\ndropped events: 0\nread events: 0\n"
        raws[number] = folder / f"raw{number}"
        raws[number].write_bytes(_pages(it, own))
    write_recording(folder / RING, text, raws)
    for raw in raws.values():
        raw.unlink()
    return folder


def _pages(it: Machine, events: Sequence[Event]) -> bytes:
    """Return the pages of a CPU's ring."""
    pages, page, now_ns = b"", Page(it, BEGIN_NS), 0
    for each in sorted(events, key=lambda event: event.end_ns):
        payload = it.common(each.number, 5) + each.rest
        if len(page.data) + len(payload) + 16 > it.page_bytes - it.head_bytes:
            pages += page.packed()
            page = Page(it, BEGIN_NS + now_ns)
        page.extend(each.end_ns - now_ns).event(0, payload.ljust(-(-len(payload) // 4) * 4, b"\0"))
        now_ns = each.end_ns
    return pages + page.packed()


def write_table(file: Path, noise_us: int, single_us: int, count: int, periods: int = 4) -> None:
    """Write what hwnoise prints of CPU 0: `periods` of 375 ms."""
    runtime_us = periods * 375_000
    share = f"{100 - 100 * noise_us / runtime_us:.5f}"
    file.write_text(
        "                                          Hardware-related Noise                       \n"
        "duration:   0 00:00:03 | time is in us\n"
        "CPU Period       Runtime        Noise  % CPU Aval   Max Noise   Max Single          HW"
        "          NMI\n"
        f"  0 #{periods}      {runtime_us}       {noise_us}    {share}      {noise_us}     {single_us}"
        f"       {count}            0 \n"
    )


def write_histogram(file: Path, irqs: Mapping[int, int], threads: Mapping[int, int], over: int = 0) -> None:
    """Write what `timerlat hist` prints of CPU 0."""
    lines = ["# RTLA timerlat histogram", "# Time unit is microseconds (us)", "Index   IRQ-000   Thr-000"]
    lines += [f"{us:<9} {irqs.get(us, 0):>5} {threads.get(us, 0):>9} " for us in sorted({*irqs, *threads})]
    total = sum(irqs.values()) + over, sum(threads.values()) + over
    lines += [f"over: {over:>8} {over:>9} ", f"count: {total[0]:>7} {total[1]:>9} "]
    lines += ["min:          1         1 ", "ALL:        IRQ       Thr", "count:        0         0 "]
    file.write_text("\n".join(lines) + "\n")


def write_machine(
    folder: Path,
    pauses: Sequence[tuple[int, int]] = (),
    emulator: Sequence[tuple[int, int]] = (),
    offset_ns: int = 0,
    bound_ns: int = 1000,
) -> None:
    """Write what the machine of a guest did: pauses of the witness and of the emulator.

    Args:
        folder: Of the case.
        pauses: (start, end) of each, in ns after BEGIN_NS, by the target's clock.
        emulator: Likewise.
        offset_ns: The target's clock is ahead of the witness's.
        bound_ns: Of what the clocks are unsure of.
    """
    shift_ns = BEGIN_NS - offset_ns
    cpu = dict.fromkeys(("samples", "stalls", "stalled_ns", "max_ns", "steal_ns"), 0) | {"cpu": 0}
    result: Json = {
        "type": "result",
        "tool": "bw-traffic witness",
        "cpus": [cpu],
        "stalled_fraction": 0.01,
        "windows": [[start + shift_ns, end + shift_ns, 0] for start, end in pauses],
        "windows_dropped": 0,
        "period_ns": 0,
    }
    (folder / WITNESS).write_text(json.dumps(result) + "\n")
    line = {
        "cpu": 0,
        "period_ns": 250_000,
        "readings": 9,
        "due_tai_ns": [0, 100 * 10**9],
        "pauses_tai_ns": [[start + shift_ns, end + shift_ns] for start, end in emulator],
    }
    (folder / EMULATION).write_text(json.dumps(line) + "\n")
    for name in CLOCKS:
        answer: Json = dict.fromkeys(("exchanges", "at_local_tai_ns", "rate_ppb", "bound_growth_ppb"), 0)
        answer |= {"type": "result", "complete": True, "valid": True, "invalid_reasons": [], "peer": "guest"}
        answer |= {
            "offset_ns": offset_ns,
            "bound_ns": bound_ns,
            "tai_utc_s": 37,
            "series": [],
            "clock_steps": [],
        }
        (folder / name).write_text(json.dumps(answer) + "\n")
