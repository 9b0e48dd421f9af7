# SPDX-License-Identifier: Apache-2.0
"""What the history says of one run: what is compared with what, and what becomes of it in the store."""

from __future__ import annotations

import dataclasses
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashboards.errors import StoreError
from dashboards.line_protocol import Field, Point
from dashboards.points import EDGES, EVENT, LATENCY, SYNC, VERDICT, RunPoints
from dashboards.regressions.command import summary
from dashboards.regressions.run_advice import advise_run
from dashboards.store import Store
from reports.history.advice import Advice, parse_advice
from tests.dashboards.stored import stored_points

DAY_NS = 86_400 * 10**9
STREAMS = 3


def add_run(
    store: Store,
    number: int,
    *,
    slower: float = 1.0,
    branch: str = "main",
    profile: str = "ci",
    facts: dict[str, str] | None = None,
    commit: str = "",
    points: tuple[Point, ...] | None = None,
) -> str:
    """Store a run of some streams, of which stream 1 takes `slower` times as long; return its id."""
    run_id = f"{branch}-{number:03}"
    time_ns = number * DAY_NS + ("main", "pr", "adhoc", "release").index(branch)
    rng = np.random.default_rng([65, number])
    key = "b" if facts and facts["host.kernel"] != "6.1" else "a"
    found: list[Point] = []
    for stream in range(STREAMS):
        value = 1e6 * float(rng.lognormal(0, 0.05)) * (slower if stream == 1 else 1)
        tags = {
            "bench": "virtual",
            "target": "linux-rt",
            "stream": str(stream),
            "quantity": "one_way_latency",
            "statistic": "max",
            "profile": profile,
            "branch": branch,
        }
        fields: dict[str, Field] = {"run_id": run_id, "bench_key": key, "commit": commit}
        fields |= {"value_ns": value, "p50_ns": 0.3 * value}
        found.append(Point(LATENCY, tags, fields, time_ns))
    everything = tuple(found) if points is None else points
    store.add_run(
        RunPoints(run_id, time_ns, "virtual", profile, branch, commit, True, "pass", everything, facts or {})
    )
    return run_id


def history(store: Store, runs: int, **options: Any) -> None:
    for number in range(runs):
        add_run(store, number, **options)


def events(store: Store) -> list[tuple[dict[str, str], str]]:
    """Return tags and run of each event in the store."""
    return [(event.tags, event.run_id) for event in stored_points(store, EVENT)]


def seen_with(store: Store, folder: Path, first: int, commit: str = "") -> Advice:
    """Add slower runs and ask after each, as a bench does; return the first advice with a change."""
    for number in range(first, first + 6):
        run_id = add_run(store, number, slower=1.5, commit=commit)
        advice = advise_run(store, run_id, folder)
        if advice.changes:
            return advice
    raise AssertionError("not seen within 6 runs")


def test_a_change_is_advised_with_the_run_that_shows_it(store: Store, tmp_path: Path) -> None:
    history(store, 40)
    advice = seen_with(store, tmp_path, 40)
    assert {change.series for change in advice.changes} == {
        "stream 1 one way latency max",
        "stream 1 one way latency p50",
    }
    assert {change.kind for change in advice.changes} == {"regression"}
    worst = next(change for change in advice.changes if change.series == "stream 1 one way latency max")
    assert (worst.first_after, worst.last_before, worst.seen) == ("main-040", "main-039", advice.run_id)
    assert worst.before.runs == 40
    assert worst.share == pytest.approx(0.5, abs=0.1)
    assert worst.step == worst.after.median - worst.before.median
    assert worst.after_least <= worst.after.runs <= worst.after_most
    assert len(worst.values) == 40 + worst.after.runs
    assert np.median(worst.values[-worst.after.runs :]) == worst.after.median
    assert parse_advice(advice.to_bytes()) == advice


def test_events_are_in_the_store_once_median_and_maximum_apart(store: Store, tmp_path: Path) -> None:
    history(store, 40)
    advice = seen_with(store, tmp_path, 40)
    assert sorted((tags["statistic"], run_id) for tags, run_id in events(store)) == [
        ("max", "main-040"),
        ("p50", "main-040"),
    ]
    assert all(
        (tags["kind"], tags["measurement"], tags["stream"]) == ("regression", LATENCY, "1")
        for tags, _ in events(store)
    )
    waiting = store.status().waiting
    assert advise_run(store, advice.run_id, tmp_path) == advice
    assert store.status().waiting == waiting


def test_later_runs_change_nothing(store: Store, tmp_path: Path) -> None:
    history(store, 40)
    advice = seen_with(store, tmp_path, 40)
    for number in range(50, 60):
        add_run(store, number, slower=3)
    assert advise_run(store, advice.run_id, tmp_path) == advice


def test_little_history_is_said(store: Store, tmp_path: Path) -> None:
    history(store, 10)
    advice = advise_run(store, add_run(store, 10, slower=9), tmp_path)
    assert (advice.series, advice.series_ready) == (2 * STREAMS, 0)
    assert (advice.history_least, advice.history_most, advice.runs_needed) == (10, 10, 15)
    assert (advice.changes, advice.beyond) == ((), ())


@pytest.mark.parametrize(
    ("runs", "branch", "said"),
    [
        (14, "main", "14 of 15 earlier runs, no statement yet"),
        (18, "main", "18 of 19 earlier runs, no statement on changes yet; "),
        (19, "main", "0 regressions, 0 improvements; "),
        (19, "pr", "0 values beyond"),
    ],
)
def test_no_regression_is_said_where_one_could_be_seen(
    store: Store, tmp_path: Path, runs: int, branch: str, said: str
) -> None:
    history(store, runs)
    advice = advise_run(store, add_run(store, runs, branch=branch), tmp_path)
    assert summary(dataclasses.replace(advice, beyond=())).startswith(said)


def test_after_a_change_history_begins_anew(store: Store, tmp_path: Path) -> None:
    history(store, 40)
    seen = seen_with(store, tmp_path, 40)
    behind = seen.changes[0].after.runs
    advice = advise_run(store, add_run(store, 60, slower=1.5), tmp_path)
    assert (advice.history_least, advice.history_most) == (behind, 39 + behind + 1)
    assert advice.series_ready == 2 * (STREAMS - 1)


@pytest.mark.parametrize("slower", [1.0, 2.0])
def test_a_request_is_held_against_main(store: Store, tmp_path: Path, slower: float) -> None:
    history(store, 30)
    for number in range(30):
        add_run(store, number, branch="pr", slower=5)  # other requests
    advice = advise_run(store, add_run(store, 30, branch="pr", slower=slower), tmp_path)
    assert (advice.branch, advice.compared_with) == ("pr", "main")
    assert advice.history_most == 30
    assert advice.changes == ()
    beyond = {value.series: value for value in advice.beyond if value.series.startswith("stream 1")}
    assert beyond.keys() == (
        {"stream 1 one way latency max", "stream 1 one way latency p50"} if slower > 1 else set()
    )
    for value in beyond.values():
        assert value.side == "worse"
        assert value.value > value.highest >= value.baseline.median
        assert value.values[-1] == value.value
    assert advice.beyond_by_chance == pytest.approx(2 * STREAMS * 2 / 31)
    assert events(store) == []


def test_own_tries_are_compared_with_own_tries(store: Store, tmp_path: Path) -> None:
    history(store, 30)
    advice = advise_run(store, add_run(store, 30, branch="adhoc"), tmp_path)
    assert (advice.compared_with, advice.history_most) == ("adhoc", 0)


def test_another_profile_is_another_history(store: Store, tmp_path: Path) -> None:
    history(store, 30)
    assert advise_run(store, add_run(store, 30, profile="nightly"), tmp_path).history_most == 0


def test_a_change_of_the_bench_is_said_and_starts_anew(store: Store, tmp_path: Path) -> None:
    history(store, 30, facts={"host.kernel": "6.1"})
    new = {"host.kernel": "6.12"}
    first = advise_run(store, add_run(store, 30, facts=new, slower=3), tmp_path)
    assert (first.history_most, first.changes, first.beyond) == (0, (), ())
    assert first.bench_change is not None
    assert first.bench_change.text == "host.kernel: 6.1 -> 6.12"
    assert (first.bench_change.run_before, first.bench_change.runs_since) == ("main-029", 1)
    second = advise_run(store, add_run(store, 31, facts=new), tmp_path)
    assert second.bench_change is not None
    assert (second.bench_change.run_id, second.bench_change.runs_since) == ("main-030", 2)
    assert advise_run(store, "main-029", tmp_path).bench_change is None


def test_a_bench_that_comes_back_continues_its_history(store: Store, tmp_path: Path) -> None:
    """A kernel that was tried for some nights makes nobody forget the runs before, nor is it among them."""
    history(store, 20, facts={"host.kernel": "6.1"})
    for number in range(20, 25):
        add_run(store, number, facts={"host.kernel": "6.12"}, slower=3)
    advice = advise_run(store, add_run(store, 25, facts={"host.kernel": "6.1"}), tmp_path)
    assert (advice.history_least, advice.history_most, advice.changes) == (20, 20, ())


def test_commits_come_with_their_subjects(store: Store, tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        command = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "before")
    before = git("rev-parse", "HEAD")
    git("commit", "-q", "--allow-empty", "-m", "net: a larger buffer")
    after = git("rev-parse", "HEAD")
    history(store, 40, commit=before)
    advice = seen_with(store, tmp_path, 40, commit=after)
    for change in advice.changes:
        assert [(c.hash, c.subject) for c in change.commits] == [(after, "net: a larger buffer")]
        assert change.commits_note == ""


def signed_run(store: Store, number: int, measurement: str, quantity: str, value_ns: float) -> str:
    """Store a run with one value."""
    tags = {"bench": "virtual", "quantity": quantity, "statistic": "mean", "branch": "main"}
    value_ns += float(np.random.default_rng([66, number]).normal())
    fields: dict[str, Field] = {"run_id": f"main-{number:03}", "bench_key": "a", "value_ns": value_ns}
    return add_run(store, number, points=(Point(measurement, tags, fields, number * DAY_NS),))


@pytest.mark.parametrize(
    ("measurement", "quantity", "before", "after", "kind"),
    [
        (SYNC, "sync_offset", -20.0, -60.0, "regression"),
        (SYNC, "sync_offset", -60.0, -20.0, "improvement"),
        (EDGES, "edge_delay", 60.0, 20.0, "improvement"),
        (SYNC, "lock_time", 60.0, 20.0, "improvement"),
        (EDGES, "edge_deviation_difference", 60.0, 20.0, "regression"),
    ],
)
def test_offsets_get_worse_by_magnitude(
    store: Store, tmp_path: Path, measurement: str, quantity: str, before: float, after: float, kind: str
) -> None:
    found: list[str] = []
    for number in range(38):
        run_id = signed_run(store, number, measurement, quantity, before if number < 30 else after)
        found += [change.kind for change in advise_run(store, run_id, tmp_path).changes]
    assert found == [kind]


@pytest.mark.parametrize(
    ("quantity", "before", "after", "kind", "unit"),
    [
        ("largest_pattern", 11, 9, "regression", "producers"),
        ("largest_pattern", 9, 12, "improvement", "producers"),
        ("provisioning_difference", 0, 2, "regression", "facts"),
    ],
)
def test_what_is_no_time_is_followed_with_the_verdicts(
    store: Store, tmp_path: Path, quantity: str, before: int, after: int, kind: str, unit: str
) -> None:
    """Of a latency the verdict's value is not followed besides its own series."""
    found: list[tuple[str, str]] = []
    for number in range(38):
        points: list[Point] = []
        for each in (quantity, "one_way_latency"):
            tags = {"bench": "virtual", "quantity": each, "statistic": "max", "branch": "main"}
            value = float(before if number < 30 else after)
            fields: dict[str, Field] = {"run_id": f"main-{number:03}", "bench_key": "a", "value": value}
            points.append(Point(VERDICT, tags, fields, number * DAY_NS))
        run_id = add_run(store, number, points=tuple(points))
        found += [(change.kind, change.unit) for change in advise_run(store, run_id, tmp_path).changes]
    assert found == [(kind, unit)]


def test_a_run_without_followed_values(store: Store, tmp_path: Path) -> None:
    point = Point("hil_run", {"bench": "virtual"}, {"run_id": "main-000", "n": 1}, 0)
    advice = advise_run(store, add_run(store, 0, points=(point,)), tmp_path)
    assert (advice.series, advice.history_most) == (0, 0)


def test_a_run_that_is_not_stored(store: Store, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no run x"):
        advise_run(store, "x", tmp_path)
