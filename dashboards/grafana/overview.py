# SPDX-License-Identifier: Apache-2.0
"""Overview: do the benches run, what did they decide, and how near was it."""

from __future__ import annotations

from dashboards.grafana.influxql import NOT_OF_CHECKS, RUN_VARIABLES, over_time, select, where
from dashboards.grafana.model import Dashboard, Panel, Query
from dashboards.grafana.panels import (
    COUNT,
    MARGIN,
    NONE_EXPECTED,
    SHARE,
    Look,
    by_name,
    margin_column,
    outcome_column,
    stat,
    state_timeline,
    table,
    time_series,
    units,
)
from dashboards.grafana.parts import event_annotations, link_to_run, subject_variables
from dashboards.points import EVENT, LATENCY, RUN, VERDICT

UID = "bw-overview"
VERDICTS, WORST_MARGIN, LAST_RUN = "Verdicts", "Worst margin of each run", "Last run"
_OF_RUNS = "Of whole runs: bench, profile and branch class are looked at, the other choices are not."


def dashboard() -> Dashboard:
    """Return the dashboard."""
    return Dashboard(
        uid=UID,
        title="Benchwright: overview",
        description="Verdicts, margins and the last runs of all benches.",
        panels=(
            last_run(),
            last_outcomes(),
            last_margin(),
            number_of_runs(),
            missed_requirements(),
            regressions(),
            verdicts(),
            worst_margin(),
            smallest_margins(),
            requirements_by_outcome(),
            worst_stream(),
            events(),
            last_runs(),
        ),
        variables=subject_variables(),
        annotations=event_annotations(),
    )


def last_run() -> Panel:
    """Return how long ago the last run began."""
    query = select(RUN, {"outcome": 'last("outcome_code")'}, where(variables=RUN_VARIABLES))
    return stat(
        LAST_RUN,
        f"How long ago the last run of the chosen time began. {_OF_RUNS}",
        [Query(query, table=True)],
        unit="dateTimeFromNow",
        field_name="/^Time$/",
        none="no run",
    )


def last_outcomes() -> Panel:
    """Return the outcome of each bench's last run."""
    query = select(RUN, {"outcome": 'last("outcome_code")'}, where(variables=RUN_VARIABLES), group=("bench",))
    return stat(
        "Outcome of the last run",
        f"By bench. {_OF_RUNS}",
        [Query(query, "$tag_bench")],
        unit="none",
        width=6,
        outcome=True,
    )


def last_margin() -> Panel:
    """Return the worst margin of each bench's last run."""
    query = select(
        RUN, {"margin": 'last("worst_margin_share")'}, where(variables=RUN_VARIABLES), group=("bench",)
    )
    return stat(
        "Worst margin of the last run",
        f"(limit - value - U) / limit of the requirement that came nearest. Below 0: no pass. {_OF_RUNS}",
        [Query(query, "$tag_bench")],
        unit=SHARE,
        width=5,
        steps=MARGIN,
    )


def number_of_runs() -> Panel:
    """Return how many runs there were, and how many of them passed."""
    count = {"runs": 'count("outcome_code")'}
    every = select(RUN, count, where(variables=RUN_VARIABLES))
    passed = select(
        RUN,
        {"passed": 'count("outcome_code")'},
        where("\"outcome\" = 'pass'", variables=RUN_VARIABLES),
    )
    return stat(
        "Runs",
        f"In the chosen time. {_OF_RUNS}",
        [Query(every, "runs"), Query(passed, "passed")],
        unit=COUNT,
        width=4,
        none="0",
    )


def missed_requirements() -> Panel:
    """Return how often a requirement was not passed."""
    condition = where('"outcome_code" > 0', NOT_OF_CHECKS)
    query = select(VERDICT, {"not passed": 'count("outcome_code")'}, condition)
    return stat(
        "Requirements not passed",
        "How often a requirement did not pass in the chosen time.",
        [Query(query, "times")],
        unit=COUNT,
        width=3,
        steps=NONE_EXPECTED,
        none="0",
    )


def regressions() -> Panel:
    """Return how many regressions the adviser has seen."""
    query = select(EVENT, {"regressions": 'count("z")'}, where("\"kind\" = 'regression'"))
    return stat(
        "Regressions",
        "Changes for the worse that the adviser has seen. It advises; it decides nothing.",
        [Query(query, "events")],
        unit=COUNT,
        width=2,
        steps=NONE_EXPECTED,
        none="0",
    )


def verdicts() -> Panel:
    """Return the outcome of the runs over time, a line for each bench, profile and branch class."""
    query = over_time(RUN, {"outcome": 'max("outcome_code")'}, where(variables=RUN_VARIABLES), RUN_VARIABLES)
    return state_timeline(
        VERDICTS,
        f"The gravest outcome of each interval, until the next one. {_OF_RUNS}",
        Query(query, "$tag_bench / $tag_profile / $tag_branch"),
    )


def worst_margin() -> Panel:
    """Return the margin of the requirement that came nearest to its limit, over time."""
    query = over_time(
        RUN, {"margin": 'min("worst_margin_share")'}, where(variables=RUN_VARIABLES), ("bench", "profile")
    )
    return time_series(
        WORST_MARGIN,
        f"(limit - value - U) / limit, the least of all requirements. Below 0: no pass. {_OF_RUNS}",
        [Query(query, "$tag_bench / $tag_profile")],
        unit=SHARE,
        look=Look("margin / limit", limits=True, legend=("lastNotNull", "min")),
        steps=((None, "transparent"), (0, "red")),
    )


def smallest_margins() -> Panel:
    """Return the requirements by their smallest margin."""
    columns = {
        "smallest margin": 'min("margin_share")',
        "last margin": 'last("margin_share")',
        "gravest outcome": 'max("outcome_code")',
    }
    query = select(VERDICT, columns, where(NOT_OF_CHECKS), group=("requirement",))
    return table(
        "Requirements, the nearest to their limits first",
        "Over the chosen time.",
        Query(query, table=True),
        size=(12, 9),
        overrides=[
            margin_column("smallest margin"),
            margin_column("last margin"),
            outcome_column("gravest outcome"),
        ],
        sort="smallest margin",
    )


def requirements_by_outcome() -> Panel:
    """Return how many requirements had which outcome."""
    words = ("pass", "unset", "inconclusive", "error", "fail")
    columns = {word: f'sum("count_{word}")' for word in words}
    query = over_time(RUN, columns, where(variables=RUN_VARIABLES))
    return time_series(
        "Requirements by outcome",
        f"Sums of the runs of an interval. {_OF_RUNS}",
        [Query(query, "$col")],
        unit=COUNT,
        look=Look("requirements", bars=True, legend=("sum",)),
    )


def worst_stream() -> Panel:
    """Return the least margin of all streams, over time."""
    query = over_time(LATENCY, {"margin": 'min("margin_share")'}, where(), ("target",))
    return time_series(
        "Margin of the worst stream",
        "(budget - latency - U) / budget of the stream that came nearest to its budget, by target.",
        [Query(query, "$tag_target")],
        unit=SHARE,
        look=Look("margin / budget", limits=True, legend=("lastNotNull", "min")),
        steps=((None, "transparent"), (0, "red")),
    )


def events() -> Panel:
    """Return what has changed: regressions, improvements, benches."""
    columns = {"kind": '"kind"', "what": '"title"', "bench": '"bench"', "run": '"run_id"', "text": '"text"'}
    condition = where(variables=("bench",))
    return table(
        "Events",
        "Regressions and improvements that the adviser has seen, and changes of the bench; the newest first.",
        Query(select(EVENT, columns, condition, end="ORDER BY time DESC LIMIT 50"), table=True),
        size=(24, 8),
        overrides=[by_name("run", {"links": link_to_run()}), by_name("kind", {"custom.width": 110})],
        hide_time=False,
    )


def last_runs() -> Panel:
    """Return the last runs."""
    columns = {
        "run": '"run_id"',
        "outcome": '"outcome_code"',
        "worst margin": '"worst_margin_share"',
        "of requirement": '"worst_requirement"',
        "passed": '"count_pass"',
        "failed": '"count_fail"',
        "inconclusive": '"count_inconclusive"',
        "checks failed": '"checks_failed"',
        "duration": '"duration_ns"',
        "bench": '"bench"',
        "profile": '"profile"',
        "branch": '"branch"',
        "commit": '"commit"',
    }
    query = select(RUN, columns, where(variables=RUN_VARIABLES), end="ORDER BY time DESC LIMIT 50")
    return table(
        "Last runs",
        f"The newest first. {_OF_RUNS}",
        Query(query, table=True),
        overrides=[
            by_name("run", {"links": link_to_run()}),
            outcome_column(),
            margin_column("worst margin"),
            *units("ns", "duration"),
        ],
        hide_time=False,
    )
