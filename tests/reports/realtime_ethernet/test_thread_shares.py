# SPDX-License-Identifier: Apache-2.0
"""Who had the CPU while a message was on its way: traces made up and recorded, and what they do not tell."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from reports.errors import RecordError
from reports.realtime_ethernet import evidence
from reports.realtime_ethernet.cpu_steps import ring_steps, text_steps
from reports.realtime_ethernet.evidence import (
    FOLDER,
    THREADS,
    load_messages,
    load_thread_shares,
    load_trips,
)
from reports.realtime_ethernet.section import gather_messages
from reports.realtime_ethernet.thread_shares import (
    HARD_INTERRUPTS,
    IDLE,
    OTHERS,
    SOFTIRQS,
    ThreadShares,
    Trip,
    thread_shares,
)
from reports.section import TargetData
from reports.timeline.kernel_formats import parse_formats
from reports.timeline.kernel_ring import decode_ring
from tests.reports.realtime_ethernet.sample import (
    TARGET,
    line,
    switch,
    trip,
    write_ring_sample,
    write_sample_messages,
    write_traced_sample,
)
from tests.reports.timeline.real_ring import record
from tests.reports.timeline.ring_pages import Machine, Page

RECORDED = Path(__file__).with_name("traces")
IRQ, SINK, ECHO, SHELL, SWAPPER = (
    ("irq/25-virtio0-", 70), ("rtdip-sink", 300), ("rtdip-echo", 301), ("sh", 400), ("swapper/0", 0),
)  # fmt: skip


def of_one(trace: Iterable[str], begin_us: int, end_us: int) -> dict[str, float] | None:
    """Return what each had of one message, in us; None: the trace does not tell it all."""
    return of_trip(trace, trip(begin_us, end_us))


def of_trip(trace: Iterable[str], one: Trip) -> dict[str, float] | None:
    """Return what each had of one message, in us; None: the trace does not tell it all."""
    # Late is one of a hundred; the others were away before the trace began.
    others = [Trip(5_000, each) for each in range(1, 100)]
    late = thread_shares(text_steps(trace), [one, *others], THREADS).late
    assert late.messages + late.untold == 1
    if late.untold:
        return None
    assert sum(late.mean_ns.values()) == late.receiving_ns == one.receiving_ns
    return {name: ns / 1000 for name, ns in late.mean_ns.items()}


def test_each_instant_is_somebody_s() -> None:
    trace = [
        "# tracer: nop\n",
        switch(10, SINK),
        line(110, "irq_handler_entry", "irq=25 name=virtio0-input.0"),
        line(113, "irq_handler_exit", "irq=25 ret=handled"),
        switch(115, IRQ),
        line(120, "softirq_entry", "vec=3 [action=NET_RX]"),
        line(150, "softirq_exit", "vec=3 [action=NET_RX]"),
        switch(155, SHELL),
        switch(160, SWAPPER),
        switch(170, ECHO),
        line(300, "softirq_entry", "vec=1 [action=TIMER]"),
    ]
    found = of_one(trace, 100, 180)
    assert found == {
        "bulk receiver": 12,
        HARD_INTERRUPTS: 3,
        "irq/25-virtio0-": 40,
        OTHERS: 5,
        IDLE: 10,
        "echo": 10,
    }


def test_a_softirq_is_of_the_thread_that_is_there_for_it_or_of_none() -> None:
    trace = [
        switch(0, SINK),
        line(110, "softirq_entry", "vec=3 [action=NET_RX]"),
        line(120, "local_timer_entry", "vector=236"),
        line(122, "local_timer_exit", "vector=236"),
        line(140, "softirq_exit", "vec=3 [action=NET_RX]"),
        switch(200, SINK),
    ]
    assert of_one(trace, 100, 150) == {"bulk receiver": 20, SOFTIRQS: 28, HARD_INTERRUPTS: 2}


def test_a_softirq_that_is_preempted_goes_on_with_its_thread() -> None:
    """As under PREEMPT_RT."""
    trace = [
        switch(0, SINK),
        line(110, "softirq_entry", "vec=3 [action=NET_RX]"),
        switch(120, ECHO),
        switch(130, SINK),
        line(145, "softirq_exit", "vec=3 [action=NET_RX]"),
        switch(200, SINK),
    ]
    assert of_one(trace, 100, 150) == {"bulk receiver": 15, SOFTIRQS: 25, "echo": 10}


@pytest.mark.parametrize(
    ("stack", "one", "expected"),
    [
        # The card's thread is above the echo: what comes behind the message is sorted first.
        (
            "kernel",
            Trip(55_445_178_418, 2_660_901),
            {"irq/30-virtio2-": 2288.483, "echo": 264.418, HARD_INTERRUPTS: 108},
        ),
        # It is below: the echo has the CPU as soon as it is woken.
        (
            "rtdip",
            Trip(114_159_781_467, 82_474),
            {"irq/30-virtio2-": 17.007, HARD_INTERRUPTS: 30, "irq_work/0": 14, "echo": 21.467},
        ),
        (
            "rtdip",
            Trip(114_300_346_086, 341_525),
            {"irq/30-virtio2-": 20.439, HARD_INTERRUPTS: 123, "irq_work/0": 63, "echo": 135.086},
        ),
    ],
)
def test_a_recorded_trace_tells_what_is_read_out_of_it_by_hand(
    stack: str, one: Trip, expected: dict[str, float]
) -> None:
    with (RECORDED / f"linux-rt-{stack}.txt").open() as trace:
        assert of_trip(trace, one) == pytest.approx(expected)


@pytest.mark.parametrize(
    "trace",
    [
        [],
        [switch(120, SINK), switch(300, ECHO)],  # begins too late
        [switch(0, SINK), switch(149, ECHO)],  # ends too soon
        [switch(0, SINK), "CPU:0 [LOST 12 EVENTS]\n", switch(120, ECHO), switch(300, SINK)],
        [line(0, "irq_handler_exit", "irq=25"), line(300, "irq_handler_exit", "irq=25")],
        ["\n", ": : :\n", "0.000000: x: y\n", line(200, "sched_switch", "==> next_comm= next_pid=x")],
    ],
)
def test_what_a_trace_does_not_tell_is_not_told(trace: Sequence[str]) -> None:
    assert of_one(trace, 100, 150) is None


def test_the_middle_and_what_is_above_p99_are_told() -> None:
    trips = [trip(1000 * k, 1000 * k + 100 + k) for k in range(200)]
    trace = [switch(0, SINK), switch(999_999, ECHO)]
    found = thread_shares(text_steps(trace), trips, THREADS)
    assert (found.median.messages, found.late.messages) == (20, 2)
    assert found.median.mean_ns == {"bulk receiver": 199_500}
    assert found.late.mean_ns == {"bulk receiver": 298_500}
    assert found.names == ["bulk receiver"]


def test_no_message_has_no_share() -> None:
    found = thread_shares(text_steps([switch(0, SINK)]), [], THREADS)
    assert (found.median.messages, found.late.messages, found.names) == (0, 0, [])


def shares_of(folder: Path) -> ThreadShares:
    traced = load_messages(folder).traced
    assert traced is not None
    return load_thread_shares(folder, traced)


def test_evidence_is_read(tmp_path: Path) -> None:
    found = shares_of(write_traced_sample(tmp_path))
    assert len(load_trips(tmp_path, "traced-64.ndjson")) == 200
    assert found.late.mean_ns == {"bulk receiver": 249_000, "echo": 49_500}


def test_a_ring_has_the_shares_of_the_text_of_an_older_run(tmp_path: Path) -> None:
    older = shares_of(write_traced_sample(tmp_path / "older"))
    found = shares_of(write_ring_sample(tmp_path / "ring"))
    assert found == older
    assert found.late.messages == 2


def test_a_ring_of_this_machine_has_the_shares_of_its_text(tmp_path: Path) -> None:
    real = record(tmp_path, "sched irq irq_vectors", 200)
    ring = decode_ring(real.pages, parse_formats(real.description), 0)
    steps, as_text = ring_steps(ring), text_steps(real.text)
    assert len(steps) == len(as_text) > 1000
    steps["time_ns"] = (steps["time_ns"] + 500) // 1000 * 1000  # as the kernel rounds in its text
    begin_ns, end_ns = int(steps["time_ns"][0]), int(steps["time_ns"][-1])
    lengths_ns = [1000 * (1 + k) for k in range(400)]
    trips = [Trip(begin_ns + (end_ns - begin_ns) * k // 400 + ns, ns) for k, ns in enumerate(lengths_ns)]
    found, expected = (thread_shares(each, trips, {"sh": "shell"}) for each in (steps, as_text))
    assert found == expected
    assert found.median.messages > 0
    assert "shell" in found.names  # who else ran meanwhile is the machine's affair


def test_a_ring_that_lost_events_does_not_tell_what_was_then(tmp_path: Path) -> None:
    it = Machine()
    first = Page(it, 1_000_000_000_000).event(0, it.switch(b"rtdip-sink", 300)).packed()
    second = Page(it, 1_000_199_200_000).event(0, it.switch(b"rtdip-echo", 301))
    second.extend(800_799_000).event(0, it.switch(b"sh", 7))
    untold = shares_of(write_ring_sample(tmp_path / "lost", first + second.packed(lost=2))).late
    assert (untold.messages, untold.untold) == (0, 2)
    told = shares_of(write_ring_sample(tmp_path / "whole", first + second.packed())).late
    assert (told.messages, told.untold) == (2, 0)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (rb"next_pid;", b"other_pid;", "lacks next_pid and next_comm"),
        (rb"char next_comm\[16\]", b"u64 next_comm[2]", "lacks next_pid and next_comm"),
        (rb"(?s)\npages: .*", b"\n", "holds 0 CPUs, not one"),
        (rb"(?s)pages: cpu3 4096(.*).$", rb"pages: cpu3 4095\1", "CPU 3: byte 0: the last page ends after"),
    ],
)
def test_a_ring_that_does_not_tell_is_named(tmp_path: Path, old: bytes, new: bytes, said: str) -> None:
    folder = write_ring_sample(tmp_path)
    file = folder / "traced-64-ring.gz"
    whole = gzip.decompress(file.read_bytes())
    file.write_bytes(gzip.compress(re.sub(old, new, whole)))
    with pytest.raises(RecordError, match=rf"traced-64-ring\.gz: .*{said}"):
        shares_of(folder)


def test_an_older_run_has_no_trace(tmp_path: Path) -> None:
    write_sample_messages(tmp_path)
    assert "traced" not in json.loads((tmp_path / "messages.json").read_text())
    assert load_messages(tmp_path).traced is None


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"file": "../x"}, "is no file of this folder"),
        ({"trace_file": ""}, "if and only if nothing is missing"),
        ({"missing": "no tracefs"}, "if and only if nothing is missing"),
        ({"dropped_events": -1}, "dropped_events >= 0"),
    ],
)
def test_wrong_evidence_is_refused(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(RecordError, match=said):
        load_messages(write_traced_sample(tmp_path, **changes))


@pytest.mark.parametrize("trace", [b"no gzip", gzip.compress(b"x" * 100_000, mtime=0)[:-20]])
def test_a_damaged_trace_is_named(tmp_path: Path, trace: bytes) -> None:
    with pytest.raises(RecordError, match=r"traced-64-trace\.gz"):
        shares_of(write_traced_sample(tmp_path, trace))


@pytest.mark.parametrize("trace", [b"", gzip.compress(b"\xff\n\0", mtime=0)], ids=["nothing", "no line"])
def test_an_empty_trace_tells_nothing(tmp_path: Path, trace: bytes) -> None:
    found = shares_of(write_traced_sample(tmp_path, trace))
    assert (found.late.messages, found.late.untold) == (0, 2)


def test_a_trace_that_is_too_long_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "TRACE_MAX_BYTES", 50_000)
    folder = write_traced_sample(tmp_path, gzip.compress(b"x" * 60_000))
    with pytest.raises(RecordError, match="holds more than 50000 bytes"):
        shares_of(folder)


def test_the_section_shows_threads_or_says_why_there_are_none(tmp_path: Path) -> None:
    whole = tmp_path / "evidence" / FOLDER / TARGET
    write_traced_sample(whole / "kernel")
    without: dict[str, Any] = {"missing": "linux: no tracefs", "file": "", "trace_file": ""}
    write_traced_sample(whole / "other", **without)
    (write_traced_sample(whole / "third") / "traced-64-trace.gz").unlink()
    shown = gather_messages(TargetData(tmp_path, target=TARGET))
    assert shown is not None
    first, *others = shown.stacks
    assert first.threads is not None
    assert first.threads.names == ["bulk receiver", "echo"]
    assert [each.threads for each in others] == [None, None]
    assert others[0].untraced == "linux: no tracefs"
    assert "traced-64-trace.gz" in others[1].untraced
