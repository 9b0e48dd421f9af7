# SPDX-License-Identifier: Apache-2.0
"""When a machine did not run what emulates another one, by rows of a recording written by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reports.causes.emulator_waits import LEAST_NS, emulator_waits
from reports.causes.kernel_activity import kernel_activities
from reports.timeline.kernel_recording import Recording
from reports.timeline.kernel_ring import GAP, CpuRing

EMULATOR, OTHER, IDLE = 100, 200, 0
NAMES = {EMULATOR: b"CPU 0/KVM", OTHER: b"backup", IDLE: b"swapper/0"}
RUNNABLE, PREEMPTED, ASLEEP = 0, 0x100, 1
MS = 1_000_000
SWITCH = [("prev_pid", "i4"), ("prev_state", "i8"), ("next_pid", "i4"), ("next_comm", "S16")]
WAKING = [("pid", "i4"), ("target_cpu", "i4")]
Switch = tuple[int, int, int, int]
"""Time, who leaves, in which state, who comes."""


def ring(switches: list[Switch], wakings: Sequence[tuple[int, int, int]] = (), cpu: int = 0) -> CpuRing:
    """Return a CPU's ring; a waking has its time, who, and for which CPU."""
    head = [("time_ns", "i8"), ("place", "i8")]
    order = sorted([time for time, *_ in switches] + [time for time, *_ in wakings])
    found: dict[str, Any] = {}
    rows = [(time, order.index(time), *what, NAMES[what[-1]]) for time, *what in switches]
    found["sched/sched_switch"] = np.array(rows, [*head, *SWITCH])
    woken = [(time, order.index(time), *what) for time, *what in wakings]
    found["sched/sched_waking"] = np.array(woken, [*head, *WAKING])
    return CpuRing(cpu, found, np.empty(0, GAP), ())


def waits(*rings: CpuRing) -> dict[str, list[tuple[int, int]]]:
    recording = Recording({each.cpu: each for each in rings}, {})
    ran = {each.cpu: kernel_activities("", recording, cpus=(each.cpu,))[0] for each in rings}
    found = emulator_waits("guest", recording, ran, [EMULATOR])
    return {each.name: list(zip(each.begin_ns.tolist(), each.end_ns.tolist(), strict=True)) for each in found}


def test_whoever_preempts_the_emulator_is_told() -> None:
    found = ring(
        [
            (1 * MS, IDLE, RUNNABLE, EMULATOR),
            (5 * MS, EMULATOR, PREEMPTED, OTHER),
            (9 * MS, OTHER, ASLEEP, EMULATOR),
            (12 * MS, EMULATOR, ASLEEP, OTHER),
            (20 * MS, OTHER, ASLEEP, IDLE),
        ]
    )
    assert waits(found) == {"thread backup": [(5 * MS, 9 * MS)]}


def test_an_emulator_that_is_woken_waits_for_the_processor_it_is_woken_on() -> None:
    busy = ring([(1 * MS, IDLE, RUNNABLE, OTHER), (8 * MS, OTHER, ASLEEP, EMULATOR)], cpu=1)
    waker = ring([(2 * MS, EMULATOR, ASLEEP, IDLE)], [(3 * MS, EMULATOR, 1), (4 * MS, EMULATOR, 1)])
    assert waits(busy, waker) == {"thread backup": [(3 * MS, 8 * MS)]}


def test_a_change_of_threads_is_no_wait() -> None:
    found = ring(
        [
            (1 * MS, IDLE, RUNNABLE, EMULATOR),
            (5 * MS, EMULATOR, RUNNABLE, OTHER),
            (5 * MS + LEAST_NS - 1, OTHER, ASLEEP, EMULATOR),
        ]
    )
    assert waits(found) == {}


def test_an_emulator_that_never_runs_again_is_not_said_to_wait() -> None:
    found = ring([(1 * MS, IDLE, RUNNABLE, EMULATOR), (5 * MS, EMULATOR, PREEMPTED, OTHER)])
    assert waits(found) == {}
