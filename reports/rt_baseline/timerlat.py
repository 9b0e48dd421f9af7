# SPDX-License-Identifier: Apache-2.0
"""Who made a wake-up late: samples of the kernel's timerlat tracer, split by its osnoise events.

The tracer wakes up a thread a CPU by a timer, and says how late the timer's interrupt was and how late the
thread. Meanwhile each interrupt, softirq and thread that had the CPU says at its end how long, without what
broke into it (kernel, Documentation/trace/timerlat-tracer.rst). So the time from when a late thread was due
to when it ran is split: interrupts (NMIs with them), softirqs, threads, and what is left, in which nobody of
this kernel had the CPU. Of what began before the thread was due, only that counts which fits behind it. The
kernel of a guest charges whom it finds with the time in which its emulator did not run it: that is taken off.

A folder `timerlat` beside the wake-ups of a case holds

    timerlat.json      this file's dataclass
    timerlat.hist      rtla's histogram
    ring.gz            samples and events, by a second instance of the tracer
    …                  what the machine took meanwhile (traced.py), and load.json
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from reports.control_loops.load import KnownLoad
from reports.errors import RecordError
from reports.record.codec import omit_none
from reports.record.document import read_document, write_document
from reports.rt_baseline.evidence import beside_of
from reports.rt_baseline.rtla import CONTEXTS, Column, read_histogram
from reports.rt_baseline.traced import Meanwhile, Whose, evidence_of, load_meanwhile, whole_recording
from reports.timeline.kernel_ring import CpuRing
from reports.tools.taken_time import TakenTime
from reports.units import NS_PER_MS, NS_PER_US

SCHEMA = "benchwright.timerlat/1"
FOLDER = "timerlat"
TIMERLAT = "timerlat.json"
HISTOGRAM = "timerlat.hist"
SAMPLES = "ftrace/timerlat"
LATE_NS = NS_PER_MS
"""A thread that wakes up later is split."""
SHOWN = 20
"""Of the latest."""
KINDS = ("irq", ("osnoise/nmi_noise", "osnoise/irq_noise")), ("softirq", ("osnoise/softirq_noise",)), (
    "thread", ("osnoise/thread_noise",),
)  # fmt: skip
"""Who may have a CPU, those first that break into the ones behind them; by which events they say so."""


@dataclass(frozen=True, slots=True)
class Split:
    """Where the time of late wake-ups went, in ns; a single one's or a sum.

    Attributes:
        late_ns: From when a thread was due to when it ran.
        irq_ns: Of it interrupts.
        outside_ns: Nobody of this kernel.
        taken_ns: Of `outside_ns` at most, what the machine took in that time; None: nobody knows.
        away_ns: Of `outside_ns` what interrupts, softirqs and threads of a guest were charged with while its
            emulator did not run it; None: nobody knows, or it was not taken off (runs of before).
        by: The thread that had most of `thread_ns`; empty: none had any, or it is a sum.
        end_ns: When it ran, by the target's clock; 0: it is a sum.
    """

    cpu: int
    late_ns: int
    irq_ns: int
    softirq_ns: int
    thread_ns: int
    outside_ns: int
    taken_ns: int | None = omit_none()
    away_ns: int | None = omit_none()
    by: str = ""
    end_ns: int = 0


@dataclass(frozen=True)
class TimerlatFacts:
    """What `timerlat.json` holds.

    Attributes:
        target: Its kind.
        period_us: From one wake-up of a thread to the next.
        entries: Of rtla's histogram, each of a microsecond.
        machine: See `WakeupFacts`.
        samples: Of all CPUs, threads' alone.
        late: How many of them were later than LATE_NS.
        sums: Of these, by CPU that has any.
        latest: The SHOWN latest, the latest first.
        load: Meanwhile; None: there was none.
    """

    target: str
    period_us: int
    entries: int
    machine: Whose
    samples: int = 0
    late: int = 0
    sums: tuple[Split, ...] = ()
    latest: tuple[Split, ...] = ()
    load: KnownLoad | None = omit_none()  # noqa: RUF009 - a field
    schema: str = SCHEMA

    @property
    def beside(self) -> str:
        """Return what was there meanwhile, as the axis has it."""
        return beside_of(self.load.kind if self.load else "")


def timerlat_files(folder: Path) -> list[Path]:
    """Return what the split rests on."""
    return evidence_of(folder, TIMERLAT, HISTOGRAM)


def read_timerlat(folder: Path) -> TimerlatFacts:
    """Read `timerlat.json`; raises RecordError: it is damaged."""
    return read_document(TimerlatFacts, folder / TIMERLAT, SCHEMA)


def keep_timerlat(folder: Path, asked: TimerlatFacts) -> TimerlatFacts:
    """Split what a folder's recording holds, write `timerlat.json` and return it.

    Args:
        folder: With all but that file.
        asked: How it was measured.

    Raises:
        RecordError: Events had no room, or no samples in a row of the recording have rtla's histogram.
    """
    recording = whole_recording(folder)
    meanwhile = load_meanwhile(folder, asked.machine)
    for (cpu, kind), column in read_histogram(folder / HISTOGRAM).items():
        if cpu not in recording.rings or SAMPLES not in recording.rings[cpu].events:
            raise RecordError(f"ring.gz: has no {SAMPLES} of CPU {cpu}")
        events = recording.rings[cpu].events[SAMPLES]
        own = events["timer_latency"][events["context"] == CONTEXTS[kind]].astype(np.int64) // NS_PER_US
        if not has_in_a_row(own.tolist(), column, asked.entries):
            raise RecordError(f"{HISTOGRAM}: no samples in a row of CPU {cpu} have its counts of {kind}")
    samples, splits = 0, list[Split]()
    for ring in recording.rings.values():
        if SAMPLES not in ring.events:
            raise RecordError(f"ring.gz: has no {SAMPLES} of CPU {ring.cpu}")
        samples += int(np.count_nonzero(ring.events[SAMPLES]["context"] == 1))
        splits += splits_of(ring, meanwhile)
    if not samples:
        raise RecordError("ring.gz: no thread woke up")
    cpus = sorted({each.cpu for each in splits})
    found = TimerlatFacts(
        asked.target,
        asked.period_us,
        asked.entries,
        asked.machine,
        samples,
        len(splits),
        tuple(_sum(cpu, [each for each in splits if each.cpu == cpu]) for cpu in cpus),
        tuple(sorted(splits, key=lambda each: (-each.late_ns, each.end_ns))[:SHOWN]),
        asked.load,
    )
    write_document(folder / TIMERLAT, found)
    return found


def has_in_a_row(latencies_us: Sequence[int], column: Column, entries: int) -> bool:
    """Say whether some samples in a row have just the counts of a histogram; one of none always is.

    Args:
        latencies_us: Of samples, by time.
        column: Of the histogram.
        entries: Latencies in µs from there on are over it.
    """
    if column.total > len(latencies_us):
        return False
    places = [min(each, entries) for each in latencies_us]
    left = Counter({**column.counts, entries: column.counts.get(entries, 0) + column.over})
    left.subtract(places[: column.total])
    differing = sum(1 for count in left.values() if count)
    for gone, come in zip(places, places[column.total :], strict=False):
        if not differing:
            return True
        for place, step in ((gone, 1), (come, -1)):
            differing -= left[place] != 0
            left[place] += step
            differing += left[place] != 0
    return not differing


def splits_of(ring: CpuRing, meanwhile: Meanwhile) -> list[Split]:
    """Split each late wake-up of a CPU, by time."""
    events = ring.events[SAMPLES]
    late = events[(events["context"] == 1) & (events["timer_latency"] > LATE_NS)]
    noises = {kind: _noises(ring, names) for kind, names in KINDS}
    is_known = meanwhile.is_watched and len(late) > 0
    taken = meanwhile.taken(ring.cpu) if is_known else None
    away = meanwhile.away(ring.cpu) if is_known else None
    found: list[Split] = []
    for end_ns, late_ns in zip(late["time_ns"].tolist(), late["timer_latency"].tolist(), strict=True):
        begin_ns = end_ns - late_ns
        parts = _parts(noises, begin_ns, end_ns, away)
        had_ns = {kind: parts.had_ns[kind] - parts.away_ns[kind] for kind in parts.had_ns}
        outside_ns = max(0, late_ns - sum(had_ns.values()))
        taken_ns = None
        if taken is not None:
            taken_ns = min(outside_ns, taken.paused_ns(*meanwhile.reference_ns(begin_ns, end_ns)))
        away_ns = None if away is None else sum(parts.away_ns.values())
        own = had_ns["irq"], had_ns["softirq"], had_ns["thread"]
        found.append(Split(ring.cpu, late_ns, *own, outside_ns, taken_ns, away_ns, parts.by, end_ns))
    return found


_Noises = tuple[list[int], list[int], list[str]]
"""Ends, ascending, lengths and names, of one kind."""


def _noises(ring: CpuRing, names: Sequence[str]) -> _Noises:
    """Return who had a CPU by events of some names; without the thread that is there when nobody is."""
    rows: list[tuple[int, int, str]] = []
    for name in names:
        if name not in ring.events:
            continue
        events = ring.events[name]
        who = [b""] * len(events)
        if "comm" in (events.dtype.names or ()):
            events = events[events["pid"] != 0]
            who = [bytes(each) for each in events["comm"].tolist()]
        whose = [each.partition(b"\0")[0].decode(errors="replace") for each in who]
        rows += zip(events["time_ns"].tolist(), events["duration"].tolist(), whose, strict=True)
    rows.sort(key=lambda row: row[0])
    return [row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows]


@dataclass(frozen=True)
class _Parts:
    """What each kind was charged with, of that what the emulator did not run, in ns; whose most of it was."""

    had_ns: Mapping[str, int]
    away_ns: Mapping[str, int]
    by: str


def _parts(noises: Mapping[str, _Noises], begin_ns: int, end_ns: int, away: TakenTime | None) -> _Parts:
    """Return who had a CPU between two instants.

    Of what an emulator did not run, one is charged with what those that broke into it are not.
    """
    charged: dict[str, list[_Charged]] = {}
    inner: list[_Charged] = []
    whose: Counter[str] = Counter()
    for kind, (ends, lengths, names) in noises.items():
        own: list[_Charged] = []
        since = begin_ns
        for place in range(bisect_right(ends, begin_ns), bisect_right(ends, end_ns)):
            end = ends[place]
            within = inner[bisect_right(inner, (since, end_ns)) : bisect_left(inner, (end, end_ns))]
            nested_ns = sum(ns for _, ns, _ in within)
            had_ns = max(0, min(lengths[place], end - since - nested_ns))
            paused_ns = away.paused_ns(end - had_ns - nested_ns, end) if away else 0
            away_ns = max(0, min(had_ns, paused_ns - sum(ns for _, _, ns in within)))
            own.append((end, had_ns, away_ns))
            if names[place]:
                whose[names[place]] += had_ns - away_ns
            since = end
        charged[kind] = own
        inner = sorted([*inner, *own])
    most = max(whose.items(), key=lambda each: (each[1], each[0]), default=("", 0))
    return _Parts(
        {kind: sum(ns for _, ns, _ in own) for kind, own in charged.items()},
        {kind: sum(ns for _, _, ns in own) for kind, own in charged.items()},
        most[0] if most[1] else "",
    )


_Charged = tuple[int, int, int]
"""When one ended, what it was charged with, and of that what the emulator did not run; in ns."""


def _sum(cpu: int, splits: Sequence[Split]) -> Split:
    known = [each.taken_ns for each in splits if each.taken_ns is not None]
    away = [each.away_ns for each in splits if each.away_ns is not None]
    return Split(
        cpu,
        sum(each.late_ns for each in splits),
        sum(each.irq_ns for each in splits),
        sum(each.softirq_ns for each in splits),
        sum(each.thread_ns for each in splits),
        sum(each.outside_ns for each in splits),
        sum(known) if len(known) == len(splits) else None,
        sum(away) if len(away) == len(splits) else None,
    )
