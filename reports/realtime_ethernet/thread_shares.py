# SPDX-License-Identifier: Apache-2.0
"""What a CPU did while a message was on its way through it, out of recorded events of its kernel.

Between the driver's hands and the echo's each instant belongs to one: a hard interrupt, a softirq on the
back of whoever ran, or the thread that ran. A softirq in a thread that is there for it (`irq/…`, `napi/…`,
`ksoftirqd/…`) is that thread's. Under PREEMPT_RT a softirq may be preempted, and goes on with its thread.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from reports.realtime_ethernet.cpu_steps import (
    HARD_ENTRY,
    HARD_EXIT,
    LOST,
    SOFT_ENTRY,
    SOFT_EXIT,
    SWITCH,
    Steps,
)

HARD_INTERRUPTS, SOFTIRQS = "hard interrupts", "softirqs in other threads"
IDLE, OTHERS = "idle", "other threads"
MIDDLE_PERCENT = 45, 55
"""Of all messages by the time from the driver to the echo: the ones that stand for the median."""
LATE_PERCENT = 99
"""Those that took longer than so many of all are late."""

_SORTING = "irq/", "napi/", "ksoftirqd/"
"""How the names of threads begin that are there for softirqs."""
_NAMED = (*_SORTING, "irq_work/", "ktimers/")
"""Of threads that are told by their names."""


@dataclass(frozen=True, slots=True)
class Trip:
    """A message that was echoed; ns.

    Attributes:
        heard_monotonic_ns: When the echo had it, by its machine's clock.
        receiving_ns: From the driver's hands until then.
    """

    heard_monotonic_ns: int
    receiving_ns: int

    @property
    def begin_ns(self) -> int:
        """Return when the driver had it."""
        return self.heard_monotonic_ns - self.receiving_ns


@dataclass(frozen=True, slots=True)
class Shares:
    """Of some messages.

    Attributes:
        messages: How many; only those of which the trace tells all.
        untold: Those of which it does not.
        receiving_ns: From the driver to the echo, their mean.
        mean_ns: What each had of it.
    """

    messages: int
    untold: int
    receiving_ns: float
    mean_ns: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class ThreadShares:
    """The messages in the middle, and those above p99."""

    median: Shares
    late: Shares

    @property
    def names(self) -> list[str]:
        """Return whatever has a share, that which has most of a late message first."""
        both = {**self.median.mean_ns, **self.late.mean_ns}
        return sorted(
            both, key=lambda name: (-self.late.mean_ns.get(name, 0), -self.median.mean_ns.get(name, 0), name)
        )


def thread_shares(steps: Steps, trips: Sequence[Trip], threads: Mapping[str, str]) -> ThreadShares:
    """Work out who had the CPU, of the messages in the middle and of the late ones.

    Args:
        steps: What the CPU began and ended, by the clock `mono`.
        trips: All messages of the trial.
        threads: What other threads are called, by their names.
    """
    by_time = sorted(trips, key=lambda each: each.receiving_ns)
    low, high, late_from = (-(-len(by_time) * percent // 100) for percent in (*MIDDLE_PERCENT, LATE_PERCENT))
    middle, late = by_time[low:high], by_time[late_from:]
    spent = _spent(steps, [*middle, *late], threads)
    return ThreadShares(_mean(middle, spent[: len(middle)]), _mean(late, spent[len(middle) :]))


def _mean(trips: Sequence[Trip], spent: Sequence[Mapping[str, int] | None]) -> Shares:
    told = [(trip, each) for trip, each in zip(trips, spent, strict=True) if each is not None]
    sums: dict[str, int] = defaultdict(int)
    for _, each in told:
        for name, ns in each.items():
            sums[name] += ns
    n = len(told) or 1
    receiving_ns = sum(trip.receiving_ns for trip, _ in told) / n
    return Shares(
        len(told), len(trips) - len(told), receiving_ns, {name: ns / n for name, ns in sums.items()}
    )


def _spent(steps: Steps, trips: Sequence[Trip], threads: Mapping[str, str]) -> list[dict[str, int] | None]:
    """Return what each had of each message, in ns; None: the trace does not tell all of it."""
    found: list[dict[str, int]] = [{} for _ in trips]
    order = sorted(range(len(trips)), key=lambda i: trips[i].begin_ns)
    first = 0
    for begin_ns, end_ns, name in _pieces(steps, threads):
        while first < len(order) and trips[order[first]].heard_monotonic_ns <= begin_ns:
            first += 1
        for k in range(first, len(order)):
            i, trip = order[k], trips[order[k]]
            if trip.begin_ns >= end_ns:
                break
            ns = min(end_ns, trip.heard_monotonic_ns) - max(begin_ns, trip.begin_ns)
            if ns > 0:
                found[i][name] = found[i].get(name, 0) + ns
    return [
        each if sum(each.values()) == trip.receiving_ns else None
        for trip, each in zip(trips, found, strict=True)
    ]


def _pieces(steps: Steps, threads: Mapping[str, str]) -> Iterator[tuple[int, int, str]]:
    """Give pieces of time, one behind the other, with whose they are; where it is not known there is none."""
    cpu = _Cpu(threads)
    since_ns: int | None = None
    for now_ns, kind, pid, comm in steps.tolist():
        if kind == LOST:  # what happened meanwhile is not known
            cpu, since_ns = _Cpu(threads), None
            continue
        name = cpu.whose()
        if since_ns is not None and name and now_ns > since_ns:
            yield since_ns, now_ns, name
        since_ns = now_ns
        cpu.take(kind, pid, comm)


class _Cpu:
    """What a CPU is at, step by step; not known before the first change of threads."""

    def __init__(self, threads: Mapping[str, str]) -> None:
        self._threads = threads
        self._pid: int | None = None
        self._comm = ""
        self._hard = 0
        self._soft: set[int] = set()
        """Threads within a softirq, also while they do not run."""

    def whose(self) -> str:
        """Return whose the time is; empty: not known."""
        if self._pid is None:
            return ""
        if self._hard:
            return HARD_INTERRUPTS
        if self._pid in self._soft and not self._comm.startswith(_SORTING):
            return SOFTIRQS
        if self._pid == 0:
            return IDLE
        if self._comm.startswith(_NAMED):
            return self._comm
        return self._threads.get(self._comm, OTHERS)

    def take(self, kind: int, pid: int, comm: bytes) -> None:
        """Take a step."""
        if kind == SWITCH:
            self._pid, self._comm, self._hard = pid, comm.decode(errors="replace"), 0
        elif self._pid is None:
            return
        elif kind == SOFT_ENTRY:
            self._soft.add(self._pid)
        elif kind == SOFT_EXIT:
            self._soft.discard(self._pid)
        elif kind == HARD_ENTRY:
            self._hard += 1
        elif kind == HARD_EXIT:
            self._hard = max(0, self._hard - 1)
