# SPDX-License-Identifier: Apache-2.0
"""Wake-ups of a target: the evidence.

A folder a case, `idle` and `beside-LOAD`, each with

    wakeups.json       this file's dataclass: how it was measured
    cyclictest.json    what cyclictest writes with --json
    cyclictest.hist    the same histograms as text, --histfile
    cyclictest.ndjson  what it prints: whether /dev/cpu_dma_latency could be set
    witness.ndjson     the answer of the bench's witness, where the bench has one
    emulation.ndjson   of a guest, when its emulator did not run it (emulator.py)
    load.json          what the load achieved
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from reports.control_loops.load import LOAD_FILE, AchievedLoad, KnownLoad, read_load
from reports.errors import RecordError
from reports.record.codec import omit_none
from reports.record.document import read_document, write_document
from reports.rt_baseline.capability import NOTHING
from reports.rt_baseline.cyclictest import Cyclictest, read_cyclictest
from reports.rt_baseline.emulator import EMULATION, Emulator, read_emulator
from reports.tools.answers import WitnessResult, last_result, witness_result

SCHEMA = "benchwright.rt_baseline/1"
FOLDER = "rt_baseline"
WAKEUPS = "wakeups.json"
CYCLICTEST = "cyclictest.json"
HISTOGRAM = "cyclictest.hist"
PRINTED = "cyclictest.ndjson"
WITNESS = "witness.ndjson"
IDLE = "idle"


@dataclass(frozen=True)
class WakeupFacts:
    """What `wakeups.json` holds.

    Attributes:
        target: Its kind.
        interval_us: From one wake-up of a thread to the next.
        cycles: That each thread was asked for.
        histogram_us: Latencies from there on overflow.
        priority: Of the threads, SCHED_FIFO.
        latency_target_us: What cyclictest has set /dev/cpu_dma_latency to; None: it could not.
        machine: Whose CPUs the target runs on: `shared`, those that the bench's witness watches, by their
            numbers; `guest`, any of them; `own`: the witness knows nothing of it.
        stolen_ticks: Of `ticks`, 1/100 s of all processors of the target, its hypervisor's (/proc/stat).
        load: Meanwhile; None: there was none.
    """

    target: str
    interval_us: int
    cycles: int
    histogram_us: int
    priority: int
    machine: Literal["shared", "guest", "own"]
    stolen_ticks: int
    ticks: int
    latency_target_us: int | None = omit_none()
    load: KnownLoad | None = omit_none()  # noqa: RUF009 - a field
    schema: str = SCHEMA


@dataclass(frozen=True)
class Wakeups:
    """The evidence of one case.

    Attributes:
        witness: None: the bench has none.
        load: What the load came to; None: there was none.
        emulator: When the emulator of a guest did not run it, by CPU; None: nobody watched.
    """

    facts: WakeupFacts
    run: Cyclictest
    witness: WitnessResult | None
    load: AchievedLoad | None
    emulator: dict[int, Emulator] | None = None

    @property
    def beside(self) -> str:
        """Return what was there meanwhile, as the axis has it."""
        return beside_of(self.facts.load.kind if self.facts.load else "")

    @property
    def stolen_ppm(self) -> int:
        """Return the share of its time that the target's hypervisor took, in ppm."""
        return round(1_000_000 * self.facts.stolen_ticks / self.facts.ticks) if self.facts.ticks else 0


def beside_of(load: str) -> str:
    """Return a load as the axis has it: `compile-like load`; empty: `nothing`."""
    return f"{load} load" if load else NOTHING


def folder_of(load: str) -> str:
    """Return the name of the folder of a case."""
    return f"beside-{load}" if load else IDLE


def write_facts(folder: Path, facts: WakeupFacts) -> Path:
    """Write `wakeups.json` and return its path."""
    return write_document(folder / WAKEUPS, facts)


def evidence_files(folder: Path) -> list[Path]:
    """Return what a record rests on, of a case's folder."""
    names = WAKEUPS, CYCLICTEST, HISTOGRAM, PRINTED, WITNESS, EMULATION, LOAD_FILE
    return [folder / name for name in names if (folder / name).exists()]


def load_wakeups(folder: Path) -> Wakeups:
    """Read the evidence of a case.

    Raises:
        RecordError: It is damaged, cyclictest ended early, or a latency is beyond the histogram: there is no
            figure. Names file and key.
    """
    facts = read_document(WakeupFacts, folder / WAKEUPS, SCHEMA)
    if min(facts.interval_us, facts.cycles, facts.histogram_us, facts.priority) < 1:
        raise RecordError(f"{WAKEUPS}: need interval_us, cycles, histogram_us, priority >= 1")
    if not 0 <= facts.stolen_ticks <= facts.ticks:
        raise RecordError(f"{WAKEUPS}: need 0 <= stolen_ticks <= ticks")
    run = read_cyclictest(folder / CYCLICTEST)
    if len({each.cpu for each in run.cpus}) < len(run.cpus):
        raise RecordError(f"{CYCLICTEST}: two threads on one CPU")
    for each in run.cpus:
        if each.cycles != facts.cycles:
            raise RecordError(
                f"cyclictest ended early: {each.cycles} of {facts.cycles} cycles of CPU {each.cpu}"
            )
        if each.overflow:
            raise RecordError(
                f"the histogram overflows: {each.overflow} of {each.cycles} wake-ups of CPU {each.cpu} were"
                f" {facts.histogram_us} us late or more, up to {each.max_us} us: no quantile is known"
            )
        if each.max_us >= facts.histogram_us:
            raise RecordError(
                f"{CYCLICTEST}: the histogram of CPU {each.cpu} goes on to {each.max_us} us, it was asked for"
                f" as far as {facts.histogram_us - 1} us"
            )
    place = folder / WITNESS
    witness = witness_result(last_result(place)) if place.exists() else None
    load = read_load(folder, facts.load) if facts.load else None
    emulator = read_emulator(folder / EMULATION) if (folder / EMULATION).exists() else None
    if emulator is not None and not {each.cpu for each in run.cpus} <= emulator.keys():
        raise RecordError(f"{EMULATION}: CPUs {sorted(emulator)} do not have all of {CYCLICTEST}")
    return Wakeups(facts, run, witness, load, emulator)
