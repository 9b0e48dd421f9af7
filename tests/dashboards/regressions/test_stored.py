# SPDX-License-Identifier: Apache-2.0
"""From the store's series to events in the store, once each, and what becomes of a new bench."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from dashboards.line_protocol import Point
from dashboards.points import EVENT, LATENCY, RunPoints
from dashboards.regressions.stored import keep_events, series_title, stored_event
from dashboards.store import Store, read_series
from tests.dashboards.chaos import latency_point

RUNS = 50
CHANGED_RUN = 40
SLOW_STREAM = 1


def fill(store: Store, *, new_bench: bool = False) -> None:
    """Store runs of three streams, of which one is slower from CHANGED_RUN on."""
    for number in range(RUNS):
        run_id, time_ns = f"run-{number:02}", number * 86_400 * 10**9
        after = number >= CHANGED_RUN
        key = "b" if new_bench and after else "a"
        points: list[Point] = []
        for stream in range(3):
            value_ns = 1e6 + 1e3 * ((7 * number + stream) % 11) + 1e5 * (after and stream == SLOW_STREAM)
            point = latency_point(stream, time_ns, number, run_id)
            points.append(
                dataclasses.replace(point, fields={**point.fields, "value_ns": value_ns, "bench_key": key})
            )
        store.add_run(RunPoints(run_id, time_ns, "virtual", "ci", "main", "c", True, "pass", tuple(points)))


def test_events_are_kept_once_with_the_run_after_the_change(store: Store, tmp_path: Path) -> None:
    fill(store)
    waiting = store.status().waiting
    (event,) = keep_events(store, LATENCY, "value_ns", "ns", tmp_path)
    assert event.series == "linux-rt stream 1 one_way_latency max"
    assert event.first_after.run_id == f"run-{CHANGED_RUN}"
    assert event.commits_note == "that of the run before the change is not known"
    assert store.status().waiting == waiting + 1
    assert keep_events(store, LATENCY, "value_ns", "ns", tmp_path) == [event]
    assert store.status().waiting == waiting + 1
    (kept,) = read_series(store, EVENT, "title")
    assert (kept.tags["kind"], kept.tags["measurement"], kept.tags["stream"]) == (
        "regression",
        LATENCY,
        "1",
    )
    assert [(v.run_id, v.value) for v in kept.values] == [(event.first_after.run_id, event.title)]


def test_a_run_asks_only_for_what_became_visible_with_it(store: Store, tmp_path: Path) -> None:
    fill(store)
    (event,) = keep_events(store, LATENCY, "value_ns", "ns", tmp_path)
    seen = int(event.seen.run_id.removeprefix("run-"))
    for number in (CHANGED_RUN, seen - 1, seen, seen + 1, RUNS - 1):
        run_id = f"run-{number:02}"
        expected = [event] if run_id == event.seen.run_id else []
        assert keep_events(store, LATENCY, "value_ns", "ns", tmp_path, seen_in=run_id) == expected


def test_a_new_bench_is_no_regression(store: Store, tmp_path: Path) -> None:
    fill(store, new_bench=True)
    assert keep_events(store, LATENCY, "value_ns", "ns", tmp_path) == []


def test_text_is_no_value(store: Store, tmp_path: Path) -> None:
    fill(store)
    assert keep_events(store, LATENCY, "run_id", "", tmp_path) == []


def test_an_event_with_all_its_commits_is_whole_in_the_store(store: Store, tmp_path: Path) -> None:
    fill(store)
    (event,) = keep_events(store, LATENCY, "value_ns", "ns", tmp_path)
    series = next(s for s in read_series(store, LATENCY, "value_ns") if s.tags["stream"] == "1")
    commits = tuple(f"{number:040x}" for number in range(24))
    point = stored_event(event.with_commits(commits, "only the newest 24 of 99"), series)
    assert str(point.fields["commits"]).split() == list(commits)
    assert str(point.fields["text"]).endswith("only the newest 24 of 99.")
    assert point.line().startswith("hil_event,")


def test_a_series_is_named_by_what_it_is_about() -> None:
    tags = {
        "bench": "b",
        "target": "linux-rt",
        "stack": "kernel",
        "stream": "31",
        "quantity": "q",
        "branch": "main",
    }
    assert series_title(tags) == "linux-rt kernel stream 31 q"
