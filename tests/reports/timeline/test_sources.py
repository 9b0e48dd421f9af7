# SPDX-License-Identifier: Apache-2.0
"""Clock records from two-way transfer, from the time service's own log, and from a clock behind another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reports.errors import RecordError
from reports.timeline.clock_record import NS_PER_S, ClockRecord
from reports.timeline.global_time import GlobalTime
from reports.timeline.sources import (
    chained_record,
    read_time_service_record,
    read_two_way_record,
    two_way_record,
)
from tests.patience import HANG_S
from tests.reports.timeline.test_global_time import TAI0_NS, record, whole
from tests.targets.timeservice.lab import QUICK, TimedProcess, ToldServer

AHEAD_S = 5
READY: dict[str, Any] = {
    "type": "ready",
    "counter_hz": 1_000_000,
    "origin_ticks": 1000,
    "origin_local_ns": 7 * NS_PER_S,
}
SYNC: dict[str, Any] = {
    "type": "sync",
    "at_ticks": 2_001_000,
    "line_offset_ns": 300,
    "line_low_ns": 40,
    "line_high_ns": 60,
    "line_u_ns": 9.6,
}


def offset_answer(series: list[list[int]]) -> str:
    answer = {
        "type": "result", "tool": "bw-traffic offset", "version": "0.2.2", "peer": "10.0.0.1:19999",
        "complete": True, "valid": True, "invalid_reasons": [], "exchanges": 8 * len(series),
        "at_local_tai_ns": 0, "offset_ns": 0, "rate_ppb": 0, "bound_ns": 0, "bound_growth_ppb": 0,
        "tai_utc_s": 37, "clock_steps": [], "series": series,
    }  # fmt: skip
    return json.dumps(answer) + "\n"


def test_an_exchange_bounds_by_half_its_round_trip(tmp_path: Path) -> None:
    """U has what it took beyond the shortest near it, and half of the shortest for the asymmetry."""
    path = tmp_path / "offset-p01.ndjson"
    rows = [[TAI0_NS + number * NS_PER_S, 2_000, half] for number, half in enumerate((100, 500, 120, 90_000))]
    path.write_text(offset_answer(rows))
    found = read_two_way_record(path, "p01")
    assert found.local_ns.tolist() == [row[0] + 2_000 for row in rows]
    assert found.bound_ns.tolist() == [100, 500, 120, 90_000]
    assert found.u_ns.tolist() == [50, 450, 70, 89_950]
    places = GlobalTime(found).place(found.local_ns)
    assert (places.tai_ns - found.tai_ns).tolist() == [0, 0, 0, 0]


def test_the_shortest_round_trip_is_looked_for_near_by() -> None:
    """A path that becomes longer for good is not held against what it was."""
    half = whole([100] * 300 + [1000] * 300)
    found = two_way_record("n", "c", (TAI0_NS + np.arange(600) * NS_PER_S, np.zeros_like(half), half))
    assert found.u_ns[[0, 300, 599]].tolist() == [50, 950, 500]


def test_an_answer_without_exchanges_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "offset-p01.ndjson"
    path.write_text(offset_answer([]))
    with pytest.raises(RecordError, match=r"offset-p01\.ndjson: series: no exchange"):
        read_two_way_record(path, "p01")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (None, r"series\[0\]: expected three integers, found None"),
        (7, r"series\[0\]: expected three integers, found 7"),
        ([1, 2], r"series\[0\]: expected three integers"),
        ([1, True, 2], r"series\[0\]: expected three integers"),
        ([1 << 63, 0, 1], "series: "),
        ([1, 0, 1 << 54], "clock of p01: .*bound_ns|u_ns: must be at most"),
    ],
)
def test_an_answer_whose_exchanges_are_none_is_refused(tmp_path: Path, row: Any, message: str) -> None:
    path = tmp_path / "offset-p01.ndjson"
    path.write_text(offset_answer([row]))
    with pytest.raises(RecordError, match=message):
        read_two_way_record(path, "p01")


def _log(folder: Path, *lines: Any, tail: str = "") -> Path:
    path = folder / "bw-timed.log"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + tail)
    return path


def test_a_batch_of_the_time_service_is_a_reading_of_the_counter(tmp_path: Path) -> None:
    later = SYNC | {"at_ticks": 3_001_000, "line_offset_ns": -300, "line_u_ns": 999.0}
    found = read_time_service_record(_log(tmp_path, READY, SYNC, later, tail='{"type": "sy'), "rt", 37)
    assert (found.node, found.clock, found.is_counter) == ("rt", "counter", True)
    assert found.local_ns.tolist() == [2_001_000_000, 3_001_000_000]
    assert found.tai_ns.tolist() == [46 * NS_PER_S + 300, 47 * NS_PER_S - 300]
    assert (found.bound_ns.tolist(), found.u_ns.tolist()) == ([60, 60], [10, 60])


def test_the_log_of_a_running_service_says_the_servers_time(tmp_path: Path) -> None:
    """The server is 5 s ahead of this machine, whose own clock the log shows beside the counter."""
    log = tmp_path / "bw-timed.log"
    arguments = (*QUICK, "--log", str(log), "--log-exchanges", "--batches", "6")
    with ToldServer() as server:
        server.ahead_s = AHEAD_S
        with TimedProcess(tmp_path / "page", "--server", server.text, *arguments) as timed:
            assert timed.process.wait(HANG_S) == 0
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    written_ns = whole([line["time_tai_ns"] for line in lines if line["type"] == "sync"])
    found = read_time_service_record(log, "here", 0)
    places = GlobalTime(found).place(found.local_ns)
    assert places.known.all()
    assert found.tai_ns.size >= 4
    # A line is written after its reading, in TAI, whose difference from UTC the kernel may not know.
    ahead_s = (places.tai_ns - written_ns).max() / NS_PER_S
    assert round(ahead_s) in (AHEAD_S, AHEAD_S - 37)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([READY], "no line `sync` with at_ticks: was it made with --log-exchanges"),
        ([READY, SYNC, READY | {"counter_hz": 2_000_000}, SYNC], "counter_hz: changes within the log"),
        ([SYNC], r"1: ZeroDivisionError"),
        ([READY, {"type": "sync", "at_ticks": 5}], "2: KeyError"),
        ([READY | {"counter_hz": "fast"}], "1: ValueError"),
        ([["no object"]], "1: TypeError"),
        ([READY, SYNC | {"at_ticks": 1 << 70}], "a line `sync`: "),
    ],
)
def test_a_log_that_cannot_serve_is_refused(tmp_path: Path, lines: list[Any], message: str) -> None:
    with pytest.raises(RecordError, match=rf"bw-timed\.log:? ?{message}"):
        read_time_service_record(_log(tmp_path, *lines), "rt", 37)


def test_a_log_is_refused_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "bw-timed.log"
    path.write_text(json.dumps(READY) + "\n{nonsense}\n")
    with pytest.raises(RecordError, match=r"^bw-timed\.log:2: "):
        read_time_service_record(path, "rt", 37)
    with pytest.raises(RecordError, match=r"^missing: "):
        read_time_service_record(tmp_path / "missing", "rt", 37)


def test_a_counter_is_known_by_way_of_the_clock_it_was_read_beside() -> None:
    """The clock is 4 s ahead of TAI; the counter runs 50 ppm fast of the clock, and began at 9 s."""
    outer = GlobalTime(record([4, 14, 24], [0, 10, 20]))
    seconds = np.array([1.0, 5, 14, 23, 90])
    counter_ns = np.rint((seconds * (1 + 50e-6) + 9) * NS_PER_S).astype(np.int64)
    clock_ns = np.rint(seconds * NS_PER_S).astype(np.int64)
    few = np.full(5, 200)
    inner = ClockRecord("n", "counter", "pairs", True, counter_ns, clock_ns, few, few)
    found = chained_record(inner, outer)
    assert (found.name, found.source) == ("n:counter", "pairs, a test")
    assert found.tai_ns.tolist() == [TAI0_NS + round(value * NS_PER_S) for value in (1, 10, 19)]
    assert (found.bound_ns == outer.place(clock_ns[1:4]).bound_ns + 200).all()
    assert np.abs(found.u_ns - 10_050).max() < 200
    with pytest.raises(RecordError, match="clock n:counter: no reading lies in the record of n:clock"):
        chained_record(inner, GlobalTime(record([400, 410], [0, 10])))
