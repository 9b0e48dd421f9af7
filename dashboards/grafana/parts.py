# SPDX-License-Identifier: Apache-2.0
"""What every dashboard has: the choice of bench and subject, marks of events, links to a run."""

from __future__ import annotations

from dashboards.grafana.influxql import SUBJECT_VARIABLES, fields, select, tag_values, where
from dashboards.grafana.model import Annotation, Dashboard, Panel, Variable
from dashboards.points import EVENT, RUN, RUN_TAGS, VERDICT

_LABELS = {"branch": "Branch class"}


def dashboard(
    name: str, title: str, description: str, *panels: Panel, variables: tuple[Variable, ...] = ()
) -> Dashboard:
    """Return a dashboard with what all of them have; `variables`: its own choices besides."""
    subject = (
        Variable(
            tag, _LABELS.get(tag, tag.capitalize()), tag_values(RUN if tag in RUN_TAGS else VERDICT, tag)
        )
        for tag in SUBJECT_VARIABLES
    )
    return Dashboard(
        uid=f"bw-{name}",
        title=f"Benchwright: {title}",
        description=description,
        panels=panels,
        variables=(*subject, *variables),
        annotations=event_annotations(),
    )


def event_annotations() -> tuple[Annotation, ...]:
    """Return marks of regressions and improvements of the chosen subjects, and of changes of the bench."""
    columns = fields("title", "text", "kind")
    changed = where('"kind" =~ /^(regression|improvement)$/')
    other = where("\"kind\" = 'bench-change'", variables=("bench",))
    return (
        Annotation("Regressions", select(EVENT, columns, changed), "red"),
        Annotation("Bench changes", select(EVENT, columns, other), "blue"),
    )


def link_to_run() -> list[object]:
    """Return the link from a run's id in a table to the page of the run, with the same choice and time."""
    address = "/d/bw-run?var-run=${__data.fields.run}&${__url_time_range}&${__all_variables}"
    return [{"title": "Show the run", "url": address, "targetBlank": False}]
