# SPDX-License-Identifier: Apache-2.0
"""Late wake-ups of timerlat, split by both readers, and rtla's histogram among the samples."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from reports.errors import RecordError
from reports.rejudge.timerlat import timerlat_discrepancies
from reports.rt_baseline.rtla import Column
from reports.rt_baseline.timerlat import (
    HISTOGRAM,
    TIMERLAT,
    Split,
    TimerlatFacts,
    has_in_a_row,
    keep_timerlat,
    read_timerlat,
    timerlat_files,
)
from tests.reports.rt_baseline.trace_sample import (
    MS,
    Event,
    irq,
    sample,
    softirq,
    thread,
    write_histogram,
    write_machine,
    write_ring,
)

ASKED = TimerlatFacts("linux-rt", 1000, 9999, "own")
US = 1000
# Due at 10 ms, it ran 4 ms late: an interrupt within a softirq within a thread, and one behind all.
SCENE = (
    thread(9 * MS, 2 * MS, b"before"),
    irq(11 * MS, 300 * US),
    softirq(11 * MS + 500 * US, 400 * US),
    thread(12 * MS, 5 * MS, b"a busy one"),
    irq(13 * MS + 990 * US, 20 * US),
    thread(13 * MS + 995 * US, 900 * US, b"swapper/0", 0),
    sample(13 * MS + 980 * US, 3_970 * US, 0),
    sample(14 * MS, 4 * MS),
    sample(15 * MS, 40 * US, 0),
    sample(15 * MS + 10 * US, 60 * US),
)


def made(folder: Path, events: Sequence[Event] = SCENE, asked: TimerlatFacts = ASKED) -> TimerlatFacts:
    """Split what a folder's recording holds."""
    write_ring(folder, events)
    if not (folder / HISTOGRAM).exists():
        write_histogram(folder / HISTOGRAM, {40: 1, 3970: 1}, {60: 1, 4000: 1})
    return keep_timerlat(folder, asked)


def problems(folder: Path) -> str:
    """Return what the second judge has against it."""
    record = {"evidence": [{"path": file.name} for file in timerlat_files(folder)]}
    return "\n".join(timerlat_discrepancies(folder, [record])[0])


def test_time_goes_to_who_had_the_cpu(tmp_path: Path) -> None:
    """Of the thread that was there before, what fits: 2 ms less 0.7 ms of those that broke into it."""
    found = made(tmp_path)
    [split] = found.latest
    parts = split.irq_ns, split.softirq_ns, split.thread_ns, split.outside_ns
    assert parts == (320 * US, 400 * US, 1300 * US, 1980 * US)
    assert (split.late_ns, split.by, split.taken_ns) == (4 * MS, "a busy one", None)
    assert (found.samples, found.late) == (2, 1)
    assert found.sums == (dataclasses.replace(split, by="", end_ns=0),)
    assert read_timerlat(tmp_path) == found
    assert not problems(tmp_path)


@pytest.mark.parametrize(
    ("pauses", "emulator", "taken_us"),
    [
        ([], [], 0),
        ([(11 * MS, 12 * MS)], [], 1000),
        ([], [(11 * MS, 12 * MS)], 1000),
        ([(11 * MS, 12 * MS)], [(11 * MS + 500 * US, 12 * MS + 500 * US)], 1500),
        ([(9 * MS, 20 * MS)], [], 1980),  # no more than was outside
        ([(9 * MS, 10 * MS + 100 * US), (13 * MS + 900 * US, 20 * MS)], [], 200),
        ([(2 * MS, 9 * MS), (15 * MS, 17 * MS)], [], 0),
    ],
)
def test_what_was_outside_is_held_against_the_machine(
    pauses: list[tuple[int, int]], emulator: list[tuple[int, int]], taken_us: int, tmp_path: Path
) -> None:
    write_machine(tmp_path, pauses, emulator, offset_ns=-1_700 * MS, bound_ns=0)
    [split] = made(tmp_path, asked=dataclasses.replace(ASKED, machine="guest")).latest
    assert split.taken_ns == taken_us * US
    assert not problems(tmp_path)


@pytest.mark.parametrize(
    ("emulator", "parts_us"),
    [
        ([], (320, 400, 1300, 1980)),
        # While nobody was there: as it is. In the middle of the interrupt: its own, and no one else's.
        ([(12 * MS + 100 * US, 13 * MS + 200 * US)], (320, 400, 1300, 1980)),
        ([(10 * MS + 800 * US, 10 * MS + 900 * US)], (220, 400, 1300, 2080)),
        # From the softirq into the thread that it broke into.
        ([(11 * MS + 400 * US, 11 * MS + 700 * US)], (320, 300, 1100, 2280)),
        ([(9 * MS, 20 * MS)], (0, 0, 0, 4000)),
    ],
)
def test_a_guest_is_not_charged_with_what_its_emulator_did_not_run(
    emulator: list[tuple[int, int]], parts_us: tuple[int, ...], tmp_path: Path
) -> None:
    write_machine(tmp_path, [], emulator, offset_ns=-1_700 * MS, bound_ns=0)
    [split] = made(tmp_path, asked=dataclasses.replace(ASKED, machine="guest")).latest
    assert (split.irq_ns, split.softirq_ns, split.thread_ns, split.outside_ns) == tuple(
        each * US for each in parts_us
    )
    assert split.away_ns == (parts_us[3] - 1980) * US
    assert not problems(tmp_path)


def test_a_run_of_before_is_split_as_it_was(tmp_path: Path) -> None:
    write_machine(tmp_path, [], [(10 * MS + 800 * US, 10 * MS + 900 * US)], bound_ns=0)
    made(tmp_path, asked=dataclasses.replace(ASKED, machine="guest"))
    text = (tmp_path / TIMERLAT).read_text()
    facts = json.loads(text)
    for each in (*facts["sums"], *facts["latest"]):
        del each["away_ns"]
        each["irq_ns"], each["outside_ns"] = 320 * US, 1980 * US
    (tmp_path / TIMERLAT).write_text(json.dumps(facts))
    assert read_timerlat(tmp_path).latest[0].away_ns is None
    assert "taken_ns" in problems(tmp_path) or not problems(tmp_path)


def test_what_the_clocks_are_unsure_of_counts_for_the_machine(tmp_path: Path) -> None:
    write_machine(tmp_path, [(9 * MS, 10 * MS)], bound_ns=300 * US)
    [split] = made(tmp_path, asked=dataclasses.replace(ASKED, machine="guest")).latest
    assert split.taken_ns == 300 * US
    assert not problems(tmp_path)


@pytest.mark.parametrize("gone", ["witness.ndjson", "emulation.ndjson", "clock-before.ndjson"])
def test_where_nobody_watched_a_guest_nobody_knows(gone: str, tmp_path: Path) -> None:
    write_machine(tmp_path, [(9 * MS, 20 * MS)])
    (tmp_path / gone).unlink()
    [split] = made(tmp_path, asked=dataclasses.replace(ASKED, machine="guest")).latest
    assert split.taken_ns is None
    assert not problems(tmp_path)


def test_wakeups_in_time_have_nothing_to_split(tmp_path: Path) -> None:
    write_histogram(tmp_path / HISTOGRAM, {}, {1000: 1})
    found = made(tmp_path, [sample(5 * MS, 1 * MS), sample(6 * MS, 1 * MS)])
    assert (found.samples, found.late, found.sums, found.latest) == (2, 0, (), ())
    assert not problems(tmp_path)


def test_the_latest_come_first_and_all_are_summed_up(tmp_path: Path) -> None:
    write_histogram(tmp_path / HISTOGRAM, {}, {})
    events = [sample(100 * MS * number, number * MS) for number in range(1, 40)]
    found = made(tmp_path, events)
    assert found.late == 38
    assert [each.late_ns // MS for each in found.latest] == list(range(39, 19, -1))
    assert found.sums == (Split(0, sum(range(2, 40)) * MS, 0, 0, 0, sum(range(2, 40)) * MS),)
    assert not problems(tmp_path)


@pytest.mark.parametrize(
    ("latencies", "counts", "over", "is_there"),
    [
        ([1, 2, 3, 2], {2: 2, 3: 1}, 0, True),
        ([1, 2, 3, 2], {1: 1, 2: 1, 3: 1}, 0, True),
        ([1, 2, 3, 2], {1: 1, 3: 1}, 0, False),
        ([1, 2, 3, 2], {2: 2}, 0, False),
        ([1, 2, 12, 10], {2: 1}, 2, True),
        ([1, 2, 12, 9], {2: 1}, 2, False),
        ([1, 2], {1: 1, 2: 1, 3: 1}, 0, False),
        ([], {}, 0, True),
    ],
)
def test_a_histogram_is_of_samples_in_a_row(
    latencies: list[int], counts: dict[int, int], over: int, is_there: bool, tmp_path: Path
) -> None:
    assert has_in_a_row(latencies, Column(counts, over), 10) == is_there
    write_histogram(tmp_path / HISTOGRAM, {}, {})
    made(tmp_path, [sample(MS * (1 + place), us * US) for place, us in enumerate(latencies or [50])], _any())
    write_histogram(tmp_path / HISTOGRAM, {}, counts, over)
    _of_threads(tmp_path)
    assert ("in a row" in problems(tmp_path)) != is_there


def _any() -> TimerlatFacts:
    return dataclasses.replace(ASKED, entries=10)


def _of_threads(folder: Path) -> None:
    """Leave no count of interrupts in a histogram."""
    text = (folder / HISTOGRAM).read_text().replace("IRQ-000   Thr-000", "Thr-000")
    lines = [line.split() for line in text.splitlines()]
    kept = [
        " ".join([line[0], line[2]]) if line and (line[0].isdigit() or line[0] == "over:") else " ".join(line)
        for line in lines
    ]
    (folder / HISTOGRAM).write_text("\n".join(kept) + "\n")


def test_rtlas_histogram_of_other_samples_leaves_no_split(tmp_path: Path) -> None:
    write_histogram(tmp_path / HISTOGRAM, {40: 2}, {60: 1, 4000: 1})
    with pytest.raises(RecordError, match=r"no samples in a row of CPU 0 have its counts of IRQ"):
        made(tmp_path)
    assert not (tmp_path / TIMERLAT).exists()


def test_events_without_room_leave_no_split(tmp_path: Path) -> None:
    write_histogram(tmp_path / HISTOGRAM, {}, {})
    write_ring(tmp_path, SCENE, dropped=3)
    with pytest.raises(RecordError, match=r"ring\.gz: 3 events of CPU 0 had no room"):
        keep_timerlat(tmp_path, ASKED)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"samples": 3}, "1 late of 3, ring.gz has 1 of 2"),
        ({"latest": []}, "the latest are 0, not 1"),
        ({"sums": []}, "its sums are of other CPUs"),
    ],
)
def test_what_the_recording_contradicts_is_named(change: dict[str, Any], told: str, tmp_path: Path) -> None:
    made(tmp_path)
    document = json.loads((tmp_path / TIMERLAT).read_text())
    (tmp_path / TIMERLAT).write_text(json.dumps(document | change))
    assert told in problems(tmp_path)


@pytest.mark.parametrize("part", ["late_ns", "irq_ns", "softirq_ns", "thread_ns", "outside_ns"])
def test_a_part_that_is_another_is_named(part: str, tmp_path: Path) -> None:
    made(tmp_path)
    document = json.loads((tmp_path / TIMERLAT).read_text())
    for each in (*document["sums"], *document["latest"]):
        each[part] += 1
    (tmp_path / TIMERLAT).write_text(json.dumps(document))
    told = problems(tmp_path)
    assert f"{part} of CPU 0" in told
    assert "one of the latest is" in told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "timerlat.hist: has no columns"),
        ("Index   IRQ-000   Thr-000\n40 1 0\n60 0 1\n", "timerlat.hist: ends before it says how many"),
        ("Index   IRQ-000   Thr-000\n40 1 0\nover: 0 0\n", "timerlat.hist: ends before it says how many"),
        ("Index   Thr-000   Thr-000\nover: 0 0\ncount: 0 0\n", "timerlat.hist: has a column twice"),
        (
            "Index   IRQ-000   Thr-000\n40 1 0\n60 0 1\nover: 0 0\ncount: 1 9\n",
            "timerlat.hist: says [1, 9], its rows sum up to [1, 1]",
        ),
    ],
)
def test_a_histogram_that_is_not_whole_is_named_by_verify(text: str, told: str, tmp_path: Path) -> None:
    """It is held against the recording column by column: without columns nothing was."""
    made(tmp_path)
    (tmp_path / HISTOGRAM).write_text(text)
    assert told in problems(tmp_path)
