# SPDX-License-Identifier: Apache-2.0
"""When a machine did not run what emulates another one, and what it ran instead.

A thread waits from when it is woken, or preempted, until it runs; meanwhile its processor has another one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from reports.causes.suspects import Activity, merged, overlap
from reports.timeline.kernel_recording import Recording

_RUNNABLE = 0, 0x100
"""States of a thread that leaves its processor and would go on: TASK_RUNNING, and preempted."""
_WAKES = "sched/sched_waking", "sched/sched_wakeup", "sched/sched_wakeup_new"
_AWAKE, _RUN, _PREEMPTED, _ASLEEP = range(4)
LEAST_NS = 50_000
"""A shorter wait is what changing threads takes."""


def emulator_waits(
    node: str, recording: Recording, ran: Mapping[int, Sequence[Activity]], tids: Iterable[int]
) -> list[Activity]:
    """Return what a machine ran while threads that emulate a node waited for their processors.

    Args:
        node: Which they emulate.
        recording: Of the machine's kernel, with who is woken.
        ran: What each of its processors ran, by the trace's clock.
        tids: The threads.
    """
    spans: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for tid in tids:
        for begin, end, cpu in _waits(recording, tid):
            spans[cpu].append((begin, end))
    found: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for cpu, of_cpu in spans.items():
        waits = merged(of_cpu)
        for activity in ran[cpu]:
            both = overlap(activity, *waits)
            found[activity.name] += zip(both.begin_ns.tolist(), both.end_ns.tolist(), strict=True)
    return [Activity(name, node, *merged(own)) for name, own in sorted(found.items()) if own]


def _waits(recording: Recording, tid: int) -> Sequence[tuple[int, int, int]]:
    """Return when a thread waited for a processor: from, until, and for which."""
    steps: list[tuple[int, int, int, int]] = []
    """Time, CPU, what, and for which CPU."""
    for cpu, ring in recording.rings.items():
        switches = ring.events.get("sched/sched_switch")
        if switches is not None and len(switches):
            own = switches[switches["next_pid"] == tid]
            steps += [(int(at), cpu, _RUN, cpu) for at in own["time_ns"]]
            own = switches[switches["prev_pid"] == tid]
            runnable = np.isin(own["prev_state"], _RUNNABLE)
            steps += [
                (int(at), cpu, _PREEMPTED if on else _ASLEEP, cpu)
                for at, on in zip(own["time_ns"], runnable, strict=True)
            ]
        for name in _WAKES:
            wakes = ring.events.get(name)
            if wakes is not None and len(wakes):
                own = wakes[wakes["pid"] == tid]
                steps += [
                    (int(at), cpu, _AWAKE, int(on))
                    for at, on in zip(own["time_ns"], own["target_cpu"], strict=True)
                ]
    found: list[tuple[int, int, int]] = []
    since: int | None = None
    is_running = True
    on = 0
    for at, _, what, cpu in sorted(steps):
        if what == _RUN:
            # It may have been moved: it waited for the processor on which it was due.
            if since is not None and at - since >= LEAST_NS:
                found.append((since, at, on))
            since, is_running = None, True
        elif what == _PREEMPTED or (what == _AWAKE and not is_running and since is None):
            since, on, is_running = at, cpu, False
        elif what == _ASLEEP:
            since, is_running = None, False
    return found
