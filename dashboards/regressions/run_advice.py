# SPDX-License-Identifier: Apache-2.0
"""From the store to the advice of one run: what became visible with it, and which of its values stick out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dashboards.regressions.changes import DEFAULTS, Settings, change_needs, find_changes
from dashboards.regressions.commits import add_commits, subjects_of
from dashboards.regressions.event import Event, Level, RunValue
from dashboards.regressions.new_patterns import new_patterns
from dashboards.regressions.run_history import (
    SeriesHistory,
    StoredRun,
    last_bench_change,
    run_histories,
    stored_run,
)
from dashboards.regressions.series_events import event_of, series_title, stored_event
from dashboards.store import Store
from reports.capability import Worse
from reports.history.advice import (
    ADVICE_SCHEMA,
    Advice,
    AdvisedCommit,
    AdvisedLevel,
    BeyondBaseline,
    SeriesChange,
)

DRAWN_RUNS = 60
"""So many runs of a series go into the advice, to be drawn."""


@dataclass(frozen=True, slots=True)
class _HistoryResult:
    """What was found in one history.

    Attributes:
        event: What became visible with the run.
        level_runs: Runs before this one since the last change, on the same bench.
    """

    history: SeriesHistory
    event: Event | None
    beyond: BeyondBaseline | None
    level_runs: int


def advise_run(store: Store, run_id: str, repository: Path, settings: Settings = DEFAULTS) -> Advice:
    """Look at the history of a stored run, store the events that became visible with it, and return all.

    The same store gives the same advice; later runs do not change it.

    Args:
        store: The store.
        run_id: The run.
        repository: Repository that the runs' commits are of.
        settings: How changes are looked for.

    Raises:
        StoreError: The run is not in the store, or the store cannot be read or written.
    """
    run = stored_run(store, run_id)
    histories = run_histories(store, run)
    common = _common_tags(histories)
    looked = [_look(run, history, settings, common) for history in histories]
    told = [(o.history, add_commits(o.event, repository)) for o in looked if o.event is not None]
    for history, event in told:
        point = stored_event(event, history.watched.measurement, history.watched.tags)
        store.add_points(event.first_after.run_id, [point])
    subjects = subjects_of(repository, {commit for _, event in told for commit in event.commits})
    changes = [_change(history, event, subjects, common) for history, event in told]
    ready = [one.level_runs for one in looked if one.level_runs >= settings.baseline_min]
    beyond = [one.beyond for one in looked if one.beyond is not None]
    lengths = [one.level_runs for one in looked]
    patterns = new_patterns(store, run)
    return Advice(
        schema=ADVICE_SCHEMA,
        run_id=run_id,
        bench=run.bench,
        profile=run.profile,
        branch=run.branch,
        compared_with=run.compared_with,
        runs_needed=settings.baseline_min,
        series=len(looked),
        series_ready=len(ready),
        history_least=min(lengths, default=0),
        history_most=max(lengths, default=0),
        bench_change=last_bench_change(store, run),
        changes=tuple(sorted(changes, key=lambda change: -abs(change.z))),
        beyond=tuple(sorted(beyond, key=_distance, reverse=True)),
        beyond_by_chance=float(sum(2 / (min(n, settings.baseline_max) + 1) for n in ready)),
        change_needs=change_needs(settings),
        new_patterns=patterns.new,
        patterns_untold=patterns.untold,
    )


def _look(
    run: StoredRun, history: SeriesHistory, settings: Settings, common: set[tuple[str, str]]
) -> _HistoryResult:
    """Look for a change that became visible with the run, and whether its value sticks out."""
    runs = history.same_bench
    values = np.array([one.value for one in runs])
    own_class = run.branch == run.compared_with
    # A run of another class is no part of the history: it is held against it.
    found = find_changes(values if own_class else values[:-1], settings)
    last = len(runs) - 1
    begin = found[-1].begin if found else 0
    event = None
    if own_class and found and found[-1].seen == last:
        title = series_title(history.watched.tags)
        event = event_of(title, history.watched.unit, runs, values, found[-1], history.watched.worse)
    baseline = values[begin:last][-settings.baseline_max :]
    beyond = None
    if len(baseline) >= settings.baseline_min:
        beyond = _beyond(history, baseline.tolist(), runs[last].value, common)
    return _HistoryResult(history, event, beyond, last - begin)


def _beyond(
    history: SeriesHistory, baseline: Sequence[float], value: float, common: set[tuple[str, str]]
) -> BeyondBaseline | None:
    lowest, highest = min(baseline), max(baseline)
    if lowest <= value <= highest:
        return None
    level = Level.of(np.array(baseline))
    worse = _is_worse(history.watched.worse, value, level.median)
    return BeyondBaseline(
        side="worse" if worse else "better",
        series=_short_title(history, common),
        unit=history.watched.unit,
        value=value,
        baseline=_level(level),
        lowest=lowest,
        highest=highest,
        values=(*baseline[-DRAWN_RUNS:], value),
    )


def _is_worse(worse: Worse, value: float, median: float) -> bool:
    if worse == "farther from zero":
        return abs(value) > abs(median)
    return (value > median) == (worse == "higher")


def _distance(beyond: BeyondBaseline) -> float:
    """Return how far a value lies beyond its baseline, in widths between the quartiles."""
    width = beyond.baseline.upper_quartile - beyond.baseline.lower_quartile
    far = max(beyond.value - beyond.highest, beyond.lowest - beyond.value)
    return far / width if width else float("inf")


def _common_tags(histories: Sequence[SeriesHistory]) -> set[tuple[str, str]]:
    """Return what all series of a run share: to name it with each of them would tell nothing."""
    tags = [set(history.watched.tags.items()) for history in histories]
    if len(tags) < 2:
        return set()
    shared = tags[0].intersection(*tags[1:])
    return {(name, value) for name, value in shared if name not in ("quantity", "statistic")}


def _short_title(history: SeriesHistory, common: set[tuple[str, str]]) -> str:
    title = series_title(dict(set(history.watched.tags.items()) - common))
    return title.replace("_", " ")


def _change(
    history: SeriesHistory, event: Event, subjects: dict[str, str], common: set[tuple[str, str]]
) -> SeriesChange:
    runs = history.same_bench
    place = {run.run_id: number for number, run in enumerate(runs)}
    end = place[event.seen.run_id] + 1
    return SeriesChange(
        kind=event.kind,
        series=_short_title(history, common),
        unit=event.unit,
        last_before=event.last_before.run_id,
        first_after=event.first_after.run_id,
        range_before=event.range_before.run_id,
        range_after=event.range_after.run_id,
        seen=event.seen.run_id,
        before=_level(event.before),
        after=_level(event.after),
        after_least=end - place[event.range_after.run_id],
        after_most=end - place[event.range_before.run_id] - 1,
        z=event.z,
        commits=tuple(AdvisedCommit(name, subjects.get(name, "")) for name in event.commits),
        commits_note=event.commits_note,
        values=tuple(_drawn(runs[:end], event)),
    )


def _drawn(runs: Sequence[RunValue], event: Event) -> list[float]:
    """Return the last values up to the event: all behind the change, and some before it."""
    count = max(DRAWN_RUNS, 2 * event.after.runs)
    return [run.value for run in runs[-count:]]


def _level(level: Level) -> AdvisedLevel:
    return AdvisedLevel(level.runs, level.median, level.lower_quartile, level.upper_quartile)
