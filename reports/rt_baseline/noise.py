# SPDX-License-Identifier: Apache-2.0
"""Hardware noise: how long somebody below the kernel had a CPU at a time, by `rtla hwnoise`.

A loop with interrupts off reads the clock without a break (the kernel's osnoise tracer). What lies between
two readings no interrupt and no thread can have taken: the hardware did, its firmware, or a hypervisor. A
folder `noise` beside the wake-ups of a case holds

    noise.json         this file's dataclass
    hwnoise.txt        the table that rtla prints
    ring.gz            each noise, by the kernel's event osnoise/sample_threshold, with its time
    …                  what the machine took meanwhile (traced.py), and load.json
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from reports.control_loops.load import AchievedLoad, KnownLoad, read_load
from reports.errors import RecordError
from reports.record.codec import omit_none
from reports.record.context import Context, Sample, build_record
from reports.record.document import read_document, write_document
from reports.record.measurement import Measurement, Uncertainty, UncertaintyPart
from reports.record.verdict import Verdict, judge
from reports.requirements import Requirement
from reports.rt_baseline.capability import HARDWARE_NOISE, MAX
from reports.rt_baseline.evidence import beside_of
from reports.rt_baseline.rtla import CpuNoise, read_noise
from reports.rt_baseline.traced import Meanwhile, Whose, evidence_of, load_meanwhile, whole_recording
from reports.units import NS_PER_US

SCHEMA = "benchwright.hardware_noise/1"
FOLDER = "noise"
NOISE = "noise.json"
TABLE = "hwnoise.txt"
EVENT = "osnoise/sample_threshold"


@dataclass(frozen=True)
class NoiseFacts:
    """What `noise.json` holds.

    Attributes:
        target: Its kind.
        threshold_us: What lies between two readings is noise from here on.
        period_us: From one period to the next.
        runtime_us: Of each, in which noise is looked for.
        machine: See `WakeupFacts`.
        load: Meanwhile; None: there was none.
    """

    target: str
    threshold_us: int
    period_us: int
    runtime_us: int
    machine: Whose
    load: KnownLoad | None = omit_none()  # noqa: RUF009 - a field
    schema: str = SCHEMA


@dataclass(frozen=True)
class Noises:
    """The evidence of one case.

    Attributes:
        table: What rtla counted, by CPU.
        by_cpu: Each noise, (start, end) by the target's clock in ns; shape (n, 2).
    """

    facts: NoiseFacts
    table: tuple[CpuNoise, ...]
    by_cpu: dict[int, np.ndarray]
    meanwhile: Meanwhile
    load: AchievedLoad | None

    @property
    def beside(self) -> str:
        """Return what was there meanwhile, as the axis has it."""
        return beside_of(self.facts.load.kind if self.facts.load else "")

    @property
    def periods(self) -> int:
        """Return how many periods each CPU has measured."""
        return min(each.periods for each in self.table)

    @property
    def count(self) -> int:
        """Return how many noises there were."""
        return sum(map(len, self.by_cpu.values()))

    @property
    def share_ppm(self) -> int:
        """Return which share of its time the worst CPU lost, in ppm."""
        return max(round(1_000_000 * each.noise_us / each.runtime_us) for each in self.table)

    def longest_ns(self, cpu: int) -> int:
        """Return how long the longest noise of a CPU was, in ns; 0: it had none."""
        return int(np.max(self.by_cpu[cpu][:, 1] - self.by_cpu[cpu][:, 0], initial=0))

    @cached_property
    def largest(self) -> tuple[int, int]:
        """Return the CPU of the longest noise, and how long that was, in ns; 0: there was none."""
        most = {cpu: self.longest_ns(cpu) for cpu in self.by_cpu}
        cpu = max(most, key=lambda each: (most[each], -each))
        return cpu, most[cpu]


def write_noise(folder: Path, facts: NoiseFacts) -> Path:
    """Write `noise.json` and return its path."""
    return write_document(folder / NOISE, facts)


def noise_files(folder: Path) -> list[Path]:
    """Return what a record rests on."""
    return evidence_of(folder, NOISE, TABLE)


def load_noise(folder: Path) -> Noises:
    """Read the evidence of a case.

    Raises:
        RecordError: It is damaged, events had no room, rtla's table or the kernel's events have a noise or a
            CPU that the other lacks, or nobody watched the emulator of one of a guest's CPUs.
    """
    facts = read_document(NoiseFacts, folder / NOISE, SCHEMA)
    if not (facts.threshold_us >= 1 and 1 <= facts.runtime_us <= facts.period_us):
        raise RecordError(f"{NOISE}: need threshold_us >= 1 and 1 <= runtime_us <= period_us")
    table, recording = read_noise(folder / TABLE), whole_recording(folder)
    by_cpu: dict[int, np.ndarray] = {}
    known = {each.cpu for each in table}
    for cpu, ring in recording.rings.items():
        if cpu not in known and len(ring.events.get(EVENT, ())):
            raise RecordError(f"{TABLE}: has no row of CPU {cpu}, the kernel's events have noise of it")
    for row in table:
        if row.cpu not in recording.rings or EVENT not in recording.rings[row.cpu].events:
            raise RecordError(f"ring.gz: has no {EVENT} of CPU {row.cpu}")
        events = recording.rings[row.cpu].events[EVENT]
        ends, lengths = events["time_ns"].astype(np.int64), events["duration"].astype(np.int64)
        most_us = int(np.max(lengths, initial=0)) // NS_PER_US
        if row.count > len(events) or row.single_us > most_us:
            raise RecordError(
                f"{TABLE}: {row.count} noises of CPU {row.cpu} up to {row.single_us} us, the kernel's events"
                f" have {len(events)} up to {most_us} us"
            )
        if row.noise_us > int(lengths.sum()) // NS_PER_US:
            raise RecordError(
                f"{TABLE}: {row.noise_us} us of CPU {row.cpu}, the kernel's events have"
                f" {int(lengths.sum()) // NS_PER_US} us"
            )
        by_cpu[row.cpu] = np.stack([ends - lengths, ends], axis=1)
    load = read_load(folder, facts.load) if facts.load else None
    meanwhile = load_meanwhile(folder, facts.machine)
    if meanwhile.emulator is not None:
        for cpu in by_cpu:
            meanwhile.emulator_pauses(cpu)
    return Noises(facts, table, by_cpu, meanwhile, load)


def noise_measurement(found: Noises, requirement: Requirement, context: Context) -> Measurement:
    """Judge the longest noise by a requirement on HARDWARE_NOISE, and return the record, in ns."""
    _, value_ns = found.largest
    part = UncertaintyPart("noise_threshold", "bound", found.facts.threshold_us * NS_PER_US)
    uncertainty, limit = Uncertainty.from_parts([part]), requirement.limit
    sample = Sample(HARDWARE_NOISE, MAX, value_ns, found.periods, requirement.samples)
    judged = judge(
        value_ns,
        limit,
        uncertainty,
        n=found.periods,
        n_required=requirement.samples,
        statistic=MAX,
        unit=sample.unit,
    )
    if judged.outcome == "fail":
        judged = _with_pauses(found, int(limit.upper or 0) + int(uncertainty.expanded), judged)
    return build_record(requirement.id, sample, limit, uncertainty, judged, context)


def _with_pauses(found: Noises, above_ns: int, judged: Verdict) -> Verdict:
    """Return a fail as it is, or what is left of it where the machine took what noises are over a time."""
    meanwhile = found.meanwhile
    if meanwhile.machine == "own":
        return judged
    if not meanwhile.is_watched:
        why = f"{judged.reason}; what its machine did then nobody watched"
        return Verdict("inconclusive", judged.margin, why)
    over = own = 0
    for cpu, noises in found.by_cpu.items():
        taken = meanwhile.taken(cpu)
        for begin_ns, end_ns in noises[noises[:, 1] - noises[:, 0] > above_ns].tolist():
            over += 1
            own += taken.most_ns(*meanwhile.reference_ns(begin_ns, end_ns)) < end_ns - begin_ns - above_ns
    if own:
        why = f"{judged.reason}; in {own} of {over} noises over it the machine was not away for as long"
        return Verdict("fail", judged.margin, why)
    why = f"{judged.reason}; pauses of the machine may explain it, each one of {over} noises"
    return Verdict("inconclusive", judged.margin, why)
