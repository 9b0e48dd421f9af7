# SPDX-License-Identifier: Apache-2.0
"""What a CPU began or ended, in the order of time: by recorded events of its kernel, or an older run's text.

Text is as the kernel (ftrace) writes it, times to the microsecond: runs before 0.2.2 hold it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reports.errors import RecordError
from reports.timeline.kernel_ring import CpuRing
from reports.units import NS_PER_US

Steps = NDArray[Any]
STEP = np.dtype([("time_ns", "i8"), ("kind", "u1"), ("pid", "i4"), ("comm", "S16")])
"""A step; pid and comm are those of the thread that comes, of a SWITCH alone."""
LOST, SWITCH, SOFT_ENTRY, SOFT_EXIT, HARD_ENTRY, HARD_EXIT, OTHER = range(7)
"""Kinds: LOST, what happened before is not known; OTHER, nothing changes, but the trace goes on till then."""

_SWITCH_EVENT = "sched/sched_switch"
_TO = "next_pid", "next_comm"
_STAMP_DIGITS = 9


def kind_of(event: str) -> int:
    """Return the kind of an event by its name."""
    known = {"sched_switch": SWITCH, "softirq_entry": SOFT_ENTRY, "softirq_exit": SOFT_EXIT}
    if event in known:
        return known[event]
    return HARD_ENTRY if event.endswith("_entry") else HARD_EXIT if event.endswith("_exit") else OTHER


def ring_steps(ring: CpuRing) -> Steps:
    """Return the steps of a CPU's ring; raises RecordError: its changes of threads do not say to which."""
    parts: list[Steps] = []
    places: list[NDArray[np.float64]] = []
    for name, events in ring.events.items():
        part = np.zeros(len(events), STEP)
        part["time_ns"] = events["time_ns"]
        part["kind"] = kind_of(name.rpartition("/")[2])
        if name == _SWITCH_EVENT:
            kinds = [events.dtype[each].kind for each in _TO if each in (events.dtype.names or ())]
            if kinds != ["i", "S"]:
                raise RecordError(f"{_SWITCH_EVENT}: lacks {' and '.join(_TO)}, or not as number and text")
            part["pid"], part["comm"] = (events[each] for each in _TO)
        parts.append(part)
        places.append(events["place"].astype(np.float64))
    lost = np.zeros(len(ring.gaps), STEP)
    lost["kind"] = LOST
    order = np.argsort(np.concatenate([ring.gaps["place"] - 0.5, *places]), kind="stable")
    return np.concatenate([lost, *parts])[order]


def text_steps(lines: Iterable[str]) -> Steps:
    """Return the steps of a trace that the kernel has written as text, one CPU's, by the clock `mono`."""
    found: list[tuple[int, int, int, bytes]] = []
    for line in lines:
        # "  measure-800  [001] d..2. 13823.119196: sched_switch: prev_comm=…"; a name may hold a colon, too.
        head, _, rest = line.rstrip("\n").partition(": ")
        now_ns = _stamp_ns(head)
        while now_ns is None and rest:
            head, _, rest = rest.partition(": ")
            now_ns = _stamp_ns(head)
        if now_ns is None:
            if "[LOST" in line:
                found.append((0, LOST, 0, b""))
            continue
        event, _, about = rest.partition(": ")
        kind, pid, comm = kind_of(event), 0, ""
        if kind == SWITCH:
            comm, _, after = about.rpartition(" ==> next_comm=")[2].rpartition(" next_pid=")
            word = after.partition(" ")[0]
            if comm and word.isascii() and word.isdigit() and len(word) < 10:
                pid = int(word)
            else:
                kind = OTHER
        found.append((now_ns, kind, pid, comm.encode()))
    return np.array(found, STEP)


def _stamp_ns(head: str) -> int | None:
    """Return the time at the end of what stands before an event; None: there is none."""
    seconds, _, micros = head.rpartition(" ")[2].partition(".")
    if len(micros) != 6 or not 0 < len(seconds) <= _STAMP_DIGITS or not f"{seconds}{micros}".isdecimal():
        return None
    return int(seconds + micros) * NS_PER_US
