# SPDX-License-Identifier: Apache-2.0
"""When an emulator did not run its guest: from the series of the machine's witness."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from reports.errors import RecordError
from reports.rt_baseline.emulator import EMULATION, emulator_of, keep_emulator, read_emulator
from reports.rt_baseline.evidence import load_wakeups
from reports.tools.witness_series import SERIES
from tests.reports.rt_baseline.sample import write_case

US = 1000
PERIOD_US = 250
RAN_US = 60
"""Of an idle guest in each period: it wakes up once."""
AWAKE = [RAN_US] * 20
ALL = 0, 10**18
BEFORE_US = (len(AWAKE)) * PERIOD_US


def pauses(ran_us: Sequence[int], due_us: int = 200) -> list[tuple[int, int]]:
    """Return the pauses, in µs from the first reading on, of what a virtual processor ran in each period."""
    times_ns = np.arange(len(ran_us) + 2 * len(AWAKE)) * PERIOD_US * US
    found = emulator_of(times_ns, np.array([*AWAKE, *ran_us, *AWAKE]) * US, due_us * US)
    return [(start // US - BEFORE_US, end // US - BEFORE_US) for start, end in found.pauses]


def test_a_guest_that_is_run_each_period_has_no_pause() -> None:
    assert pauses([RAN_US] * 9) == []


def test_a_pause_reaches_into_the_readings_beside_it() -> None:
    """Of these only what the virtual processor did not run."""
    assert pauses([60, 250, 60, 0, 0, 0, 200, 250]) == [(310, 1300)]


def test_what_it_sleeps_before_and_after_is_no_pause() -> None:
    """It wakes up rarely there, as a guest does that nothing is due in."""
    asleep, ran_us = [250, 0, 0, 0, 0, 0, 0] * 9, [*AWAKE, 0, 0, *AWAKE]
    times_ns = np.arange(2 * len(asleep) + len(ran_us)) * PERIOD_US * US
    found = emulator_of(times_ns, np.array([*asleep, *ran_us, *asleep]) * US, 200 * US)
    begin, end = (time_ns // US // PERIOD_US - len(asleep) for time_ns in found.due)
    assert (begin, end) == (-1, len(ran_us))
    assert len(found.pauses) == 1


def test_a_guest_that_was_not_due_may_sleep() -> None:
    """With a wake-up each 500 us a period without running is none; two are."""
    assert pauses([60, 60, 0, 60, 60], due_us=500) == []
    assert pauses([60, 60, 0, 0, 60], due_us=500) == [(60, 940)]


def test_what_is_too_short_to_have_run_is_idle() -> None:
    assert pauses([250, 250, 4, 4, 250]) == [(250, 750)]
    assert pauses([250, 250, 5, 5, 250]) == []


def series(path: Path, ran_us: Sequence[int], threads: int = 2) -> None:
    """Write a series of two CPUs and virtual processors, of which all but the first always run."""
    head = b"BWCAP1\n\0" + struct.pack(f"<IIq2i{threads}i", 2, threads, PERIOD_US * US, 0, 1, *range(threads))
    others = [PERIOD_US * US] * (threads - 1)
    records = b"".join(
        struct.pack(f"<qii{threads}i", number * PERIOD_US * US, 5, cpu, 0 if cpu else ran * US, *others)
        for number, ran in enumerate(ran_us)
        for cpu in (0, 1)
    )
    path.write_bytes(head + records)


def test_the_pauses_of_a_series_are_kept_and_the_rest_goes(tmp_path: Path) -> None:
    write_case(tmp_path, {0: {15: 40_000}}, machine="guest")
    series(tmp_path / SERIES, [*AWAKE, 60, 250, 60, 0, 0, 0, 200, 250, *AWAKE])
    keep_emulator(tmp_path, ["vcpu0", "vcpu1"], 200, ALL)
    assert not (tmp_path / SERIES).exists()
    found = load_wakeups(tmp_path).emulator
    assert found is not None
    assert found[0].due == (0, (len(AWAKE) * 2 + 7) * PERIOD_US * US)
    assert found[0].pauses[-1] == ((BEFORE_US + 310) * US, (BEFORE_US + 1300) * US)


def test_what_was_before_and_after_cyclictest_is_left_out(tmp_path: Path) -> None:
    series(tmp_path / SERIES, [*AWAKE, 0, 0, *AWAKE, 0, 0, *AWAKE])
    keep_emulator(tmp_path, ["vcpu0", "vcpu1"], 200, (BEFORE_US * US + 2 * PERIOD_US * US, 10**18))
    assert len(read_emulator(tmp_path / EMULATION)[0].pauses) == 1
    series(tmp_path / SERIES, AWAKE)
    with pytest.raises(RecordError, match="1 readings while cyclictest ran"):
        keep_emulator(tmp_path, ["vcpu0", "vcpu1"], 200, (0, PERIOD_US * US))


def test_threads_that_nobody_read_are_an_error(tmp_path: Path) -> None:
    series(tmp_path / SERIES, [250, 250])
    with pytest.raises(RecordError, match="2 threads, not 3"):
        keep_emulator(tmp_path, ["vcpu0", "vcpu1", "vcpu2"], 200, ALL)


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        '{"cpu":0,"due_tai_ns":[1,9]}',
        '{"cpu":0,"due_tai_ns":[1,9],"pauses_tai_ns":[[2,2]]}',
        '{"cpu":0,"due_tai_ns":[1,9],"pauses_tai_ns":[[2]]}',
        '{"cpu":0,"due_tai_ns":[1],"pauses_tai_ns":[]}',
        '{"cpu":0,"due_tai_ns":[1,9],"pauses_tai_ns":[]}\n' * 2,
        '{"cpu":0,"due_tai_ns":[9,1],"pauses_tai_ns":[]}',
        '{"cpu":0,"due_tai_ns":[1,9],"pauses_tai_ns":[[9,12]]}',
        "[]",
    ],
)
def test_a_file_that_is_damaged_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / EMULATION).write_text(text)
    with pytest.raises(RecordError, match=EMULATION):
        read_emulator(tmp_path / EMULATION)


def test_a_cpu_that_was_not_watched_is_named(tmp_path: Path) -> None:
    write_case(tmp_path, {0: {15: 40_000}}, machine="guest", emulator=[])
    (tmp_path / EMULATION).write_text("")
    with pytest.raises(RecordError, match=r"CPUs \[\] do not have all"):
        load_wakeups(tmp_path)
