# SPDX-License-Identifier: Apache-2.0
"""What the machine took meanwhile, of a measurement whose events carry times of the target's clock.

Beside the recording of the target's kernel (`ring.gz`) a folder holds the witness's answer, of a guest when
its emulator did not run it, and what two-way transfer says of the target's clock before and after
(`clock-before.ndjson`, `clock-after.ndjson`). Between them the clock is taken to be off by something between
the two, widened by their bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from reports.clock_sync.two_way_reference import read_offset_answer
from reports.errors import RecordError
from reports.rt_baseline.emulator import EMULATION, Emulator, Pause, read_emulator
from reports.rt_baseline.excuse import of_cpu
from reports.timeline.kernel_recording import Recording, load_recording
from reports.tools.answers import WitnessResult, last_result, witness_result
from reports.tools.taken_time import TakenTime

RING = "ring.gz"
WITNESS = "witness.ndjson"
CLOCKS = "clock-before.ndjson", "clock-after.ndjson"
Whose = Literal["shared", "guest", "own"]


@dataclass(frozen=True)
class Meanwhile:
    """What is known of the machine under a target.

    Attributes:
        machine: Whose CPUs the target runs on (`WakeupFacts`).
        witness: None: there was none, or it knows nothing of that machine.
        emulator: By CPU of a guest; None: nobody watched.
        offsets_ns: The target's clock against the witness's, at least and at most, positive: it is ahead;
            None: nobody knows.
    """

    machine: Whose
    witness: WitnessResult | None = None
    emulator: dict[int, Emulator] | None = None
    offsets_ns: tuple[int, int] | None = None

    @property
    def is_watched(self) -> bool:
        """Say whether late moments of the target can be held against the machine's pauses."""
        if self.witness is None or self.offsets_ns is None or self.witness.windows_dropped:
            return False
        return self.machine == "shared" or self.emulator is not None

    def taken(self, cpu: int) -> TakenTime:
        """Return the machine's pauses as far as they are those of a CPU of the target."""
        if self.witness is None:
            raise RecordError("there was no witness")
        if self.machine == "shared":
            return TakenTime.of(of_cpu(self.witness, cpu))
        return TakenTime.of(self.witness, () if self.emulator is None else self.emulator_pauses(cpu))

    def emulator_pauses(self, cpu: int) -> tuple[Pause, ...]:
        """Return when a watched emulator did not run a CPU; raises RecordError: that CPU nobody watched."""
        if self.emulator is None or cpu not in self.emulator:
            raise RecordError(f"{EMULATION}: has no line of CPU {cpu}")
        return self.emulator[cpu].pauses

    def away(self, cpu: int) -> TakenTime | None:
        """Return when the emulator did not run a CPU of a guest, by the guest's clock; None: nobody knows.

        The clock is taken to be off by the middle of what it may be.
        """
        if self.emulator is None or self.offsets_ns is None:
            return None
        offset_ns = sum(self.offsets_ns) // 2
        pauses = self.emulator_pauses(cpu)
        return TakenTime.between([(start + offset_ns, end + offset_ns) for start, end in pauses])

    def reference_ns(self, begin_ns: int, end_ns: int) -> tuple[int, int]:
        """Return a time of the target's clock by the witness's, widened by what the clocks are unsure of."""
        low, high = self.offsets_ns or (0, 0)
        return begin_ns - high, end_ns - low


def load_meanwhile(folder: Path, machine: Whose) -> Meanwhile:
    """Read what a folder says of the machine; raises RecordError: a file is damaged."""
    if machine == "own":
        return Meanwhile(machine)
    place = folder / WITNESS
    witness = witness_result(last_result(place)) if place.exists() else None
    emulator = read_emulator(folder / EMULATION) if (folder / EMULATION).exists() else None
    return Meanwhile(machine, witness, emulator, _offsets(folder, machine))


def _offsets(folder: Path, machine: Whose) -> tuple[int, int] | None:
    if machine == "shared":
        return 0, 0  # one kernel, one clock
    if not all((folder / name).exists() for name in CLOCKS):
        return None
    answers = [read_offset_answer(folder / name) for name in CLOCKS]
    if not all(each.complete and each.valid and not each.steps for each in answers):
        return None
    return (
        min(each.offset_ns - each.bound_ns for each in answers),
        max(each.offset_ns + each.bound_ns for each in answers),
    )


def whole_recording(folder: Path) -> Recording:
    """Return the recording of a folder; raises RecordError: events are missing, there is no figure."""
    found = load_recording(folder / RING)
    for cpu, ring in found.rings.items():
        ring.require_whole(RING)
        if found.dropped[cpu] or len(ring.gaps):
            raise RecordError(f"{RING}: {found.dropped[cpu] or 'some'} events of CPU {cpu} had no room")
    return found


def evidence_of(folder: Path, *names: str) -> list[Path]:
    """Return the files of a folder that a record rests on, those of `names` first."""
    every = *names, RING, WITNESS, EMULATION, *CLOCKS, "load.json"
    return [folder / name for name in every if (folder / name).exists()]
