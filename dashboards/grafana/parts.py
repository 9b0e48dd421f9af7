# SPDX-License-Identifier: Apache-2.0
"""What every dashboard has: the choice of bench and subject, and marks of events."""

from __future__ import annotations

from dashboards.grafana.influxql import select, tag_values, where
from dashboards.grafana.model import Annotation, Variable
from dashboards.points import EVENT, LATENCY, RUN, VERDICT

LABELS = {
    "bench": "Bench",
    "target": "Target",
    "stack": "Stack",
    "clock": "Clock",
    "profile": "Profile",
    "branch": "Branch class",
}
RUN_PATH = "/d/bw-run"

_COLUMNS = {"title": '"title"', "text": '"text"', "kind": '"kind"'}


def subject_variables() -> tuple[Variable, ...]:
    """Return the choice that every dashboard has."""
    measurement = {"target": VERDICT, "stack": VERDICT, "clock": VERDICT}
    return tuple(
        Variable(name, label, tag_values(measurement.get(name, RUN), name)) for name, label in LABELS.items()
    )


def stream_variable() -> Variable:
    """Return the choice of streams."""
    return Variable("stream", "Stream", tag_values(LATENCY, "stream"))


def one_stream_variable() -> Variable:
    """Return the choice of the one stream whose distribution is shown."""
    return Variable("one", "Distribution of stream", tag_values(LATENCY, "stream"), several=False)


def run_variable() -> Variable:
    """Return the choice of one run in the dashboard's time, the newest first."""
    condition = where(variables=("bench", "profile", "branch"))
    query = select(RUN, {"run": '"run_id"'}, condition, end="ORDER BY time DESC")
    return Variable("run", "Run", query, several=False, newest_first=True)


def event_annotations() -> tuple[Annotation, ...]:
    """Return marks of regressions and improvements of the chosen subjects, and of changes of the bench."""
    changed = where('"kind" =~ /^(regression|improvement)$/')
    other = where("\"kind\" = 'bench-change'", variables=("bench",))
    return (
        Annotation("Regressions", select(EVENT, _COLUMNS, changed), "red"),
        Annotation("Bench changes", select(EVENT, _COLUMNS, other), "blue"),
    )


def link_to_run(field: str = "run") -> list[object]:
    """Return the link from a run's id in a table to the page of the run, with the same choice and time."""
    run = f"var-run=${{__data.fields.{field}}}"
    address = f"{RUN_PATH}?{run}&${{__url_time_range}}&${{__all_variables}}"
    return [{"title": "Show the run", "url": address, "targetBlank": False}]
