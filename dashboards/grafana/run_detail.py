# SPDX-License-Identifier: Apache-2.0
"""Run detail: everything that is stored of one run, and where its report is."""

from __future__ import annotations

from dashboards.grafana.influxql import select
from dashboards.grafana.model import Dashboard, Panel, Query
from dashboards.grafana.panels import (
    COUNT,
    MARGIN,
    NS,
    SHARE,
    by_name,
    margin_column,
    outcome_column,
    stat,
    table,
    text,
    units,
)
from dashboards.grafana.parts import event_annotations, run_variable, subject_variables
from dashboards.points import EDGES, LATENCY, RUN, SYNC, VERDICT

UID = "bw-run"
_RUN = "\"run_id\" = '$run' AND $timeFilter"


def dashboard() -> Dashboard:
    """Return the dashboard."""
    return Dashboard(
        uid=UID,
        title="Benchwright: run detail",
        description="One run. Bench, profile and branch class narrow the list of runs.",
        panels=(
            outcome(),
            worst_margin(),
            counts(),
            instrument(),
            facts(),
            verdicts(),
            streams(),
            clocks(),
            edges(),
            report(),
        ),
        variables=(*subject_variables(), run_variable()),
        annotations=event_annotations(),
    )


def outcome() -> Panel:
    """Return the run's outcome."""
    query = select(RUN, {"outcome": '"outcome_code"'}, _RUN)
    return stat(
        "Outcome", "Of the run as a whole.", [Query(query, "outcome")], unit="none", width=6, outcome=True
    )


def worst_margin() -> Panel:
    """Return the run's worst margin."""
    query = select(RUN, {"margin": '"worst_margin_share"'}, _RUN)
    return stat(
        "Worst margin",
        "(limit - value - U) / limit, the least of all requirements.",
        [Query(query, "margin")],
        unit=SHARE,
        width=4,
        steps=MARGIN,
    )


def counts() -> Panel:
    """Return how many values had which outcome, and how many requirements have none."""
    columns = {word: f'"count_{word}"' for word in ("pass", "fail", "inconclusive", "error", "unset")}
    columns |= {word: f'"requirements_{word}"' for word in ("skipped", "untested")}
    query = Query(select(RUN, columns, _RUN), "$col")
    about = "Values by outcome; requirements that were asked and have no value."
    return stat("Values", about, [query], unit=COUNT, width=8)


def instrument() -> Panel:
    """Return what the bench says of itself."""
    columns = {"generator's lateness": '"lateness_max_ns"', "largest U": '"u_max_ns"'}
    query = Query(select(RUN, columns, _RUN), "$col")
    return stat("Instrument", "A latency is worth no more than these.", [query], unit=NS, width=6)


def facts() -> Panel:
    """Return the run's other facts."""
    columns = {
        "run": '"run_id"',
        "bench": '"bench"',
        "profile": '"profile"',
        "branch": '"branch"',
        "commit": '"commit"',
        "bench key": '"bench_key"',
        "duration": '"duration_ns"',
        "worst requirement": '"worst_requirement"',
        "tests passed": '"tests_passed"',
        "tests failed": '"tests_failed"',
        "attempts": '"attempts"',
        "checks failed": '"checks_failed"',
        "lost": '"lost"',
        "problems": '"problems"',
        "simulated": '"simulated"',
        "complete": '"complete"',
    }
    return table(
        "Run",
        "Another bench key is another bench: kernel, cable, calibration, instrument.",
        Query(select(RUN, columns, _RUN), table=True),
        size=(24, 4),
        overrides=units(NS, "duration"),
        hide_time=False,
    )


def verdicts() -> Panel:
    """Return every judged value of the run."""
    columns = {
        "requirement": '"requirement"',
        "outcome": '"outcome_code"',
        "margin": '"margin_share"',
        "value": '"value"',
        "U": '"u"',
        "unit": '"unit"',
        "quantity": '"quantity"',
        "statistic": '"statistic"',
        "target": '"target"',
        "stack": '"stack"',
        "clock": '"clock"',
        "method": '"method"',
        "stream": '"stream"',
        "condition": '"condition"',
        "reason": '"reason"',
    }
    return table(
        "Verdicts, the nearest to their limits first",
        "Every judged value, in its own unit.",
        Query(select(VERDICT, columns, _RUN), table=True),
        size=(24, 16),
        overrides=[outcome_column(), margin_column(), by_name("reason", {"custom.width": 300})],
        sort="margin",
    )


def streams() -> Panel:
    """Return the run's streams with their distributions."""
    columns = {
        "stream": '"stream"',
        "outcome": '"outcome_code"',
        "margin": '"margin_share"',
        "largest": '"value_ns"',
        "budget": '"limit_upper_ns"',
        "U": '"u_ns"',
        "p50": '"p50_ns"',
        "p90": '"p90_ns"',
        "p99": '"p99_ns"',
        "p99.9": '"p999_ns"',
        "n": '"n"',
        "lost": '"lost"',
        "over budget": '"misses"',
        "lateness": '"lateness_max_ns"',
    }
    times = ("largest", "budget", "U", "p50", "p90", "p99", "p99.9", "lateness")
    return table(
        "Latency by stream",
        "Latency: received - scheduled; lateness: the generator's own, sent - scheduled.",
        Query(select(LATENCY, columns, _RUN), table=True),
        size=(24, 14),
        overrides=[*units(NS, *times), outcome_column(), margin_column()],
        sort="margin",
    )


def clocks() -> Panel:
    """Return the run's values of clocks."""
    return _values("Clocks", SYNC, "clock")


def edges() -> Panel:
    """Return the run's values of edges."""
    return _values("Timed edges", EDGES, "method")


def _values(title: str, measurement: str, subject: str) -> Panel:
    columns = {
        subject: f'"{subject}"',
        "quantity": '"quantity"',
        "statistic": '"statistic"',
        "condition": '"condition"',
        "outcome": '"outcome_code"',
        "margin": '"margin_share"',
        "value": '"value_ns"',
        "limit": '"limit_upper_ns"',
        "U": '"u_ns"',
        "n": '"n"',
    }
    return table(
        title,
        "As far as the run has measured them.",
        Query(select(measurement, columns, _RUN), table=True),
        size=(12, 9),
        overrides=[*units(NS, "value", "limit", "U"), outcome_column(), margin_column()],
        sort="margin",
    )


def report() -> Panel:
    """Return where the run's report is."""
    content = (
        "The report, the raw data and their hashes are in the run's folder, "
        "`results/<start>-<bench>-<profile>/qualification.html`, on the machine that measured. "
        "`python -m reports show FOLDER` prints the verdict, "
        "`python -m reports verify FOLDER` finds any changed byte."
    )
    return text("Report and raw data", content)
