# SPDX-License-Identifier: Apache-2.0
"""Whose each instant of a processor was, by rows of a recording written by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from reports.patterns.kernel_activity import kernel_activities
from reports.timeline.kernel_recording import Recording
from reports.timeline.kernel_ring import GAP, CpuRing

Row = tuple[int, str, Any]
"""Time in ns, event, and the thread that comes, or the number of a softirq or an interrupt."""
FIELDS: dict[str, list[tuple[str, str]]] = {
    "sched/sched_switch": [("next_pid", "i4"), ("next_comm", "S16")],
    "irq/softirq_entry": [("vec", "u4")],
    "irq/softirq_exit": [("vec", "u4")],
    "irq/irq_handler_entry": [("irq", "i4")],
    "irq/irq_handler_exit": [("irq", "i4")],
    "irq_vectors/local_timer_entry": [("vector", "i4")],
    "irq_vectors/local_timer_exit": [("vector", "i4")],
}


def ring(rows: list[Row], gaps: list[int] | None = None, cpu: int = 0) -> CpuRing:
    """Return a ring; before the rows of `gaps` events are lost."""
    events: dict[str, Any] = {}
    for name, fields in FIELDS.items():
        own = [(place, time, what) for place, (time, event, what) in enumerate(rows) if event == name]
        table = np.zeros(len(own), [("time_ns", "i8"), ("place", "i8"), *fields])
        for row, (place, time, what) in zip(table, own, strict=True):
            row["time_ns"], row["place"] = time, place
            if name == "sched/sched_switch":
                row["next_comm"], row["next_pid"] = what, 0 if what == b"swapper/0" else 7
            else:
                row[fields[0][0]] = what
        events[name] = table
    return CpuRing(cpu, events, np.array([(place, -1) for place in gaps or []], GAP), ())


def spans(*rings: CpuRing, **more: Any) -> dict[str, list[tuple[int, int]]]:
    """Return who was active when; `lost`: nobody knows."""
    recording = Recording({each.cpu: each for each in rings}, {})
    found, (begin, end) = kernel_activities("t", recording, **more)
    all_of = {
        each.name: list(zip(each.begin_ns.tolist(), each.end_ns.tolist(), strict=True)) for each in found
    }
    lost = list(zip(begin.tolist(), end.tolist(), strict=True))
    return {**all_of, "lost": lost} if lost else all_of


SWITCH, SOFT, SOFT_END = "sched/sched_switch", "irq/softirq_entry", "irq/softirq_exit"
HARD, HARD_END = "irq/irq_handler_entry", "irq/irq_handler_exit"


def test_an_interrupt_and_a_softirq_take_the_time_of_the_thread() -> None:
    found = spans(
        ring(
            [
                (0, SWITCH, b"work"),
                (10, HARD, 30),
                (14, HARD_END, 30),
                (14, SOFT, 3),
                (20, "irq_vectors/local_timer_entry", 236),
                (22, "irq_vectors/local_timer_exit", 236),
                (30, SOFT_END, 3),
                (40, SWITCH, b"swapper/0"),
                (50, SWITCH, b"work"),
                (60, SWITCH, b"swapper/0"),
            ]
        )
    )
    assert found == {
        "thread work": [(0, 10), (30, 40), (50, 60)],
        "interrupt 30": [(10, 14)],
        "softirq NET_RX": [(14, 20), (22, 30)],
        "interrupt local_timer": [(20, 22)],
    }


def test_a_softirq_that_is_preempted_goes_on_with_its_thread() -> None:
    """Under PREEMPT_RT; in a thread that is there for it, it is that thread's."""
    found = spans(
        ring(
            [
                (0, SWITCH, b"work"),
                (5, SOFT, 1),
                (10, SWITCH, b"other"),
                (20, SWITCH, b"work"),
                (25, SOFT_END, 1),
                (30, SWITCH, b"ksoftirqd/0"),
                (31, SOFT, 9),
                (39, SOFT_END, 9),
                (40, SWITCH, b"swapper/0"),
            ]
        )
    )
    assert found == {
        "thread work": [(0, 5), (25, 30)],
        "softirq TIMER": [(5, 10), (20, 25)],
        "thread other": [(10, 20)],
        "thread ksoftirqd/0": [(30, 40)],
    }


def test_what_is_lost_belongs_to_nobody() -> None:
    found = spans(
        ring(
            [
                (0, SWITCH, b"work"),
                (10, SWITCH, b"swapper/0"),
                (90, SWITCH, b"other"),
                (95, SWITCH, b"swapper/0"),
            ],
            gaps=[2],
        )
    )
    assert found == {"thread work": [(0, 10)], "thread other": [(90, 95)], "lost": [(10, 90)]}


def test_behind_a_full_buffer_nothing_is_known() -> None:
    one = ring([(0, SWITCH, b"work"), (10, SWITCH, b"swapper/0")])
    found, (begin, end) = kernel_activities("t", Recording({0: one}, {0: 3}))
    assert [each.name for each in found] == ["thread work"]
    assert (begin.tolist(), end.tolist()) == ([10], [1 << 62])


def test_processors_may_be_chosen_and_times_moved() -> None:
    one = ring([(0, SWITCH, b"work"), (10, SWITCH, b"swapper/0")])
    other = ring([(5, SWITCH, b"work"), (15, SWITCH, b"swapper/0")], cpu=1)
    assert spans(one, other) == {"thread work": [(0, 15)]}
    assert spans(one, other, cpus=[1], offset_ns=100) == {"thread work": [(105, 115)]}
