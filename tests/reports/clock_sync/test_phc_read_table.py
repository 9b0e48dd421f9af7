# SPDX-License-Identifier: Apache-2.0
"""A PHC by each way of reading it: what is shown of each, and the paper's figures beside."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reports.clock_sync.logs import ServoSeries
from reports.clock_sync.phc_read_table import paper_jitter, phc_read_rows
from reports.clock_sync.trial import ClockTrial, load_trial, phc_read_file
from reports.errors import RecordError
from tests.reports.sample_clock import SECOND_NS, START_TAI_NS, compare_answer, write_clock_trial
from tests.reports.sample_run import summary


def trial_with(folder: Path, ways: tuple[str, ...]) -> ClockTrial:
    write_clock_trial(folder, compare_answer(seconds=10))
    for number, way in enumerate(ways):
        offsets = [-1000 - number, *[10] * 98, 500]
        answer = compare_answer(offset=summary(offsets), window=summary([900] * 100), phc_read=way)
        (folder / phc_read_file(way)).write_text(json.dumps(answer) + "\n")
    return load_trial(folder)


def servo(clock: Any, times_s: list[float], offsets_ns: list[int]) -> ServoSeries:
    base_ns = START_TAI_NS if clock == "tai" else 0
    n = len(times_s)
    return ServoSeries(
        program="phc2sys",
        source="phc",
        clock=clock,
        time_ns=np.array([base_ns + round(second * SECOND_NS) for second in times_s], np.int64),
        offset_ns=np.array(offsets_ns, np.int64),
        freq_ppb=np.zeros(n),
        path_delay_ns=np.array([480.0] * (n - 1) + [np.nan]),
        state=("s2",) * n,
    )


def test_the_figures_are_the_papers() -> None:
    found = {read: (row.figure, row.peak_to_peak_ns) for read, row in paper_jitter().items()}
    assert found == {"software": ("Fig. 3", 721), "hardware": ("Fig. 7", 2 * 44)}


def test_each_way_stands_beside_its_figure_of_the_paper(tmp_path: Path) -> None:
    rows = phc_read_rows(trial_with(tmp_path, ("basic", "extended", "precise")), None)
    assert [(row.way, row.own, row.n, row.paper.peak_to_peak_ns) for row in rows] == [
        ("precise", True, 0, 88),
        ("basic", False, 100, 721),
        ("extended", False, 100, 721),
        ("precise", False, 100, 88),
    ]
    assert [row.peak_to_peak_ns for row in rows[1:]] == [1500, 1501, 1502]
    assert [row.bracket_ns for row in rows] == [None, 900, 900, None]
    # One interruption to each side does not widen the middle 95 %.
    assert [row.half_95_ns for row in rows[1:]] == [0, 0, 0]


def test_a_way_that_is_not_offered_is_there_without_figures(tmp_path: Path) -> None:
    rows = phc_read_rows(trial_with(tmp_path, ("basic", "extended")), None)
    assert [(row.way, row.n) for row in rows] == [
        ("extended", 0),
        ("basic", 100),
        ("extended", 100),
        ("precise", 0),
    ]
    assert (rows[3].peak_to_peak_ns, rows[3].half_95_ns) == (None, None)


@pytest.mark.parametrize(
    ("clock", "times_s"),
    [("tai", [-30.0, -1.0, 1.0, 5.0, 9.0]), ("monotonic", [70.0, 99.0, 101.0, 105.0, 109.5])],
)
def test_of_the_servos_log_only_what_it_said_meanwhile(
    tmp_path: Path, clock: str, times_s: list[float]
) -> None:
    series = servo(clock, times_s, [900_000, 800_000, 100, -500, 100])
    row = phc_read_rows(trial_with(tmp_path, ("basic",)), series)[0]
    assert (row.way, row.own, row.n, row.min_ns, row.max_ns, row.mean_ns) == (
        "basic",
        True,
        3,
        -500,
        100,
        -100,
    )
    assert (row.peak_to_peak_ns, row.bracket_ns) == (600, 480)


def test_a_servo_that_was_silent_meanwhile(tmp_path: Path) -> None:
    row = phc_read_rows(trial_with(tmp_path, ("basic",)), servo("tai", [-30.0, -20.0], [5, 6]))[0]
    assert (row.n, row.peak_to_peak_ns) == (0, None)


def test_no_table_where_the_phc_was_not_read_in_several_ways(tmp_path: Path) -> None:
    assert phc_read_rows(trial_with(tmp_path, ()), None) == ()


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("sundial,Fig. 3,721", ":2: read: need software and hardware"),
        ("software,Fig. 3,721\nsoftware,Fig. 3,721", ":3: read: need software and hardware, each once"),
        ("software,Fig. 3,0", ":2: peak_to_peak_ns: need a whole number"),
        ("software,Fig. 3,-7", ":2: peak_to_peak_ns: need a whole number"),
        ("software,Fig. 3,721", "need a row for software and one for hardware"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, rows: str, said: str) -> None:
    path = tmp_path / "table.csv"
    path.write_text(f"read,figure,peak_to_peak_ns\n{rows}\n")
    with pytest.raises(RecordError) as refused:
        paper_jitter(path)
    assert said in str(refused.value)
