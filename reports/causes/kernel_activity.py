# SPDX-License-Identifier: Apache-2.0
"""What a kernel recorded of its processors, as activities: threads, softirqs and interrupts, by their names.

Each instant of a processor belongs to one: an interrupt, a softirq on the back of whoever ran, or the thread.
A softirq in a thread that is there for it (`ksoftirqd`, `irq/…`, `napi/…`) is that thread's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from reports.causes.suspects import Activity, Spans, Times, merged
from reports.timeline.kernel_recording import Recording
from reports.timeline.kernel_ring import CpuRing

SOFTIRQS = (
    *("HI", "TIMER", "NET_TX", "NET_RX", "BLOCK"),
    *("IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"),
)
"""By their numbers (include/linux/interrupt.h)."""
SORTING = "ksoftirqd/", "irq/", "napi/", "ktimers/"
FOR_EVER = 1 << 62
"""A full buffer takes nothing more."""
_LOST = "lost"


def kernel_activities(
    node: str, recording: Recording, offset_ns: int = 0, cpus: Sequence[int] | None = None
) -> tuple[list[Activity], tuple[Times, Times]]:
    """Return what was active, the idle task left out, and stretches of which a record has nothing.

    Args:
        node: Whose kernel.
        recording: Of it.
        offset_ns: Added to the trace's times: to TAI, say.
        cpus: Of which processors; None: all.
    """
    active: dict[str, Spans] = defaultdict(list)
    unknown: Spans = []
    for number, ring in sorted(recording.rings.items()):
        if cpus is not None and number not in cpus:
            continue
        for begin, end, name in _pieces(ring):
            (unknown if name == _LOST else active[name]).append((begin + offset_ns, end + offset_ns))
        if recording.dropped.get(number):
            unknown.append((_last(ring) + offset_ns, FOR_EVER))
    found = [Activity(name, node, *merged(spans)) for name, spans in sorted(active.items()) if name]
    return found, merged(unknown)


def _last(ring: CpuRing) -> int:
    return max((int(rows["time_ns"][-1]) for rows in ring.events.values() if len(rows)), default=0)


def _steps(ring: CpuRing) -> list[tuple[float, int, str, str]]:
    """Return what begins or ends, in its order: place, time, `+`, `-`, `>` or `lost`, and of what."""
    found: list[tuple[float, int, str, str]] = [
        (float(place) - 0.5, 0, _LOST, "") for place in ring.gaps["place"].tolist()
    ]
    for event, rows in ring.events.items():
        group, _, name = event.partition("/")
        fields = rows.dtype.names or ()
        if name == "sched_switch" and "next_comm" in fields:
            what = [
                "" if pid == 0 else f"thread {comm.decode(errors='replace')}"
                for pid, comm in zip(rows["next_pid"].tolist(), rows["next_comm"].tolist(), strict=True)
            ]
            kind = ">"
        elif name in ("softirq_entry", "softirq_exit") and "vec" in fields:
            what = [
                f"softirq {SOFTIRQS[vec] if vec < len(SOFTIRQS) else vec}" for vec in rows["vec"].tolist()
            ]
            kind = "+" if name.endswith("entry") else "-"
        elif name in ("irq_handler_entry", "irq_handler_exit") and "irq" in fields:
            what = [f"interrupt {irq}" for irq in rows["irq"].tolist()]
            kind = "+" if name.endswith("entry") else "-"
        elif group in ("irq_vectors", "ipi") and name.endswith(("_entry", "_exit")):
            base, _, end = name.rpartition("_")
            what, kind = [f"interrupt {base}"] * len(rows), "+" if end == "entry" else "-"
        else:
            what, kind = [""] * len(rows), ""
        times, places = rows["time_ns"].tolist(), rows["place"].tolist()
        found += [
            (place, time, kind, each) for place, time, each in zip(places, times, what, strict=True) if kind
        ]
    return sorted(found)


def _pieces(ring: CpuRing) -> Iterator[tuple[int, int, str]]:
    """Give pieces of time with whose they are, the idle task as ``""``, and what nobody knows as lost."""
    thread: str | None = None
    within: list[str] = []
    """Interrupts and softirqs that have begun, the last on top."""
    softirqs: dict[str, list[str]] = {}
    """Of threads that were preempted within one: under PREEMPT_RT it goes on with its thread."""
    since: int | None = None
    lost_since: int | None = None
    for _, now, kind, what in _steps(ring):
        if kind == _LOST:
            lost_since = since if lost_since is None else lost_since
            thread, within, since = None, [], None
            softirqs.clear()
            continue
        if thread is not None and since is not None and now > since:
            yield since, now, _whose(thread, within)
        if kind == ">":
            if lost_since is not None:
                yield lost_since, now, _LOST
                lost_since = None
            if thread is not None:
                softirqs[thread] = [each for each in within if each.startswith("softirq")]
            thread, within = what, softirqs.pop(what, [])
        elif kind == "+":
            within = [*within, what]
        elif what in within:
            within = within[: len(within) - 1 - within[::-1].index(what)]
        since = now
    if lost_since is not None and since is not None:
        yield lost_since, since, _LOST


def _whose(thread: str, within: Sequence[str]) -> str:
    if not within:
        return thread
    if within[-1].startswith("softirq") and thread.removeprefix("thread ").startswith(SORTING):
        return thread
    return within[-1]
