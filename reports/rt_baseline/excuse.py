# SPDX-License-Identifier: Apache-2.0
"""Which late wake-ups the bench's machine explains: in amounts, since cyclictest says no instants.

Each pause of the machine delays one wake-up of a CPU at most, and by no more than it lasted: cyclictest
leaves out the wake-ups that have passed. So of the wake-ups over a time those are explained that can be given
a pause of their own which is as long as what they are over. Who cannot is late by itself, whenever it was.

A guest needs two threads of its emulator, on any CPU, and what it has to catch up with after a pause is done
at the pace of an emulator. So there a late wake-up is given a time as long as it was late, of its own, from
which the machine has taken what it is over: pauses of any CPU and of the virtual processor (emulator.py), and
the work they left (reports/tools/taken_time.py).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, compress, repeat

from reports.rt_baseline.cyclictest import CpuWakeups
from reports.rt_baseline.evidence import Wakeups
from reports.tools.answers import WitnessResult
from reports.tools.taken_time import TakenTime


@dataclass(frozen=True, slots=True)
class LateWakeups:
    """Of one CPU, wake-ups over a time.

    Attributes:
        over: How many.
        unexplained: Of these without a pause of their own, whoever took that.
        unknown: Likewise, without what nobody claims.
    """

    over: int
    unexplained: int
    unknown: int


def late_wakeups(found: Wakeups, cpu: CpuWakeups, limit_ns: int) -> LateWakeups:
    """Return what the witness explains of the wake-ups of a CPU above a time in ns."""
    over_ns = [(ns - limit_ns, count) for ns, count in cpu.above_ns(limit_ns)]
    over = sum(count for _, count in over_ns)
    if found.facts.machine == "guest":
        given = [_given_in_time(found, cpu, limit_ns, known=known) for known in (False, True)]
    else:
        given = [_given(over_ns, pauses_ns(found, cpu.cpu, known=known)) for known in (False, True)]
    return LateWakeups(over, over - given[0], over - given[1])


def pauses_ns(found: Wakeups, cpu: int, *, known: bool) -> list[int]:
    """Return the length of each pause that may have delayed a CPU of the target, in ns.

    A hypervisor that takes a CPU while the target runs there takes it in the target's name: by the
    scheduler's account the target ran. So what that account takes off a pause may be the machine's after all,
    as far as the hypervisor's own count of that CPU (steal) goes; whose it was nobody knows.

    Args:
        found: Of a target that runs on a machine of its own there are none.
        cpu: Its number.
        known: Only what is known to be the machine's: without what nobody claims (`WitnessResult.pauses`),
            and without what the target may have run.
    """
    witness = found.witness
    if witness is None or found.facts.machine == "own":
        return []
    if found.facts.machine == "shared":
        witness = of_cpu(witness, cpu)
    if known or witness.target_ran_ns is None:
        return [end - begin for begin, end in witness.pauses(known=known)]
    stolen_ns = {each.cpu: each.steal_ns for each in witness.cpus}
    ran_ns = witness.target_ran_ns or (0,) * len(witness.windows)
    lengths = [
        end - begin + witness.period_ns - ran + min(ran, stolen_ns.get(at, 0))
        for (begin, end, at), ran in zip(witness.windows, ran_ns, strict=True)
    ]
    return [each for each in lengths if each > 0]


def _given_in_time(found: Wakeups, cpu: CpuWakeups, limit_ns: int, *, known: bool) -> int:
    """Return how many late wake-ups of a guest's CPU can be given a time of their own.

    Args:
        found: Without a witness, or what it saw of the emulator, none can.
        cpu: Of the guest.
        limit_ns: Above it they are late.
        known: See `pauses_ns`.
    """
    if found.witness is None or found.emulator is None:
        return 0
    emulator = found.emulator[cpu.cpu]
    taken = TakenTime.of(_during(found.witness, emulator.due), emulator.pauses, known=known)
    gone: list[tuple[int, int]] = []
    for late_ns, count in cpu.above_ns(limit_ns):
        ends_ns = {*taken.ends_ns, *(start_ns + late_ns for start_ns in taken.starts_ns)}
        times = sorted((taken.most_ns(end_ns - late_ns, end_ns), end_ns) for end_ns in ends_ns)
        enough = bisect_left(times, (late_ns - limit_ns, 0))
        for _, end_ns in times[enough:]:
            if not count:
                break
            if all(end_ns <= begin or end_ns - late_ns >= end for begin, end in gone):
                gone.append((end_ns - late_ns, end_ns))
                count -= 1
    return len(gone)


def _during(witness: WitnessResult, due: tuple[int, int]) -> WitnessResult:
    """Return a witness that has watched for some time alone, (start, end) in ns."""
    return _chosen(witness, [start < due[1] and end > due[0] for start, end, _ in witness.windows])


def of_cpu(witness: WitnessResult, cpu: int) -> WitnessResult:
    """Return a witness that has watched one CPU alone."""
    return _chosen(witness, [window[2] == cpu for window in witness.windows])


def _chosen(witness: WitnessResult, which: Sequence[bool]) -> WitnessResult:
    def chosen(values: tuple[int, ...] | None) -> tuple[int, ...] | None:
        return tuple(compress(values, which)) if values else values

    return replace(
        witness,
        windows=tuple(compress(witness.windows, which)),
        target_ran_ns=chosen(witness.target_ran_ns),
        unclaimed_ns=chosen(witness.unclaimed_ns),
    )


def _given(over_ns: Sequence[tuple[int, int]], pauses: Sequence[int]) -> int:
    """Return how many can be given a pause of their own that is long enough, the shortest that is.

    Args:
        over_ns: By how much wake-ups are over, and how many by that, ascending.
        pauses: Their lengths in ns, in any order.
    """
    given = 0
    waiting = chain.from_iterable(repeat(ns, count) for ns, count in over_ns)
    wanted = next(waiting, None)
    for length in sorted(pauses):
        if wanted is None:
            break
        if length >= wanted:
            given += 1
            wanted = next(waiting, None)
    return given
