# SPDX-License-Identifier: Apache-2.0
"""Run detail: everything that is stored of one run, and where its report is."""

from __future__ import annotations

from collections.abc import Mapping

from dashboards.grafana.influxql import Values, fields, select, where
from dashboards.grafana.model import Panel, Variable
from dashboards.grafana.panels import MARGIN, by_name, stat, table, text
from dashboards.grafana.parts import dashboard
from dashboards.points import LATENCY, PHYSICAL, RUN, RUN_TAGS, VERDICT
from reports.quantities import AXES, SERIES


def _of_run(measurement: str, columns: Mapping[str, str]) -> Values:
    return Values(measurement, columns, ("\"run_id\" = '$run'",), variables=())


def _values(title: str, measurement: str, subject: str) -> Panel:
    names = ("quantity", "statistic", "condition", "outcome_code", "margin_share", "value_ns")
    columns = fields(subject, *names, "limit_upper_ns", "u_ns", "n")
    return table(
        title,
        "As far as the run has measured them.",
        _of_run(measurement, columns),
        size=(12, 9),
        sort="margin",
    )


RUN_DETAIL = dashboard(
    "run",
    "run detail",
    "One run. Bench, profile and branch class narrow the list of runs.",
    stat(
        "Outcome",
        "Of the run as a whole.",
        _of_run(RUN, fields("outcome_code")),
        unit="none",
        width=6,
        outcome=True,
    ),
    stat(
        "Worst margin",
        "(limit - value - U) / limit, the least of all requirements.",
        _of_run(RUN, {"margin": '"worst_margin_share"'}),
        steps=MARGIN,
    ),
    stat(
        "Values",
        "Values by outcome; requirements that were asked and have no value.",
        _of_run(
            RUN,
            {word: f'"count_{word}"' for word in ("pass", "fail", "inconclusive", "error", "unset")}
            | {word: f'"requirements_{word}"' for word in ("skipped", "untested")},
        ),
        width=8,
    ),
    stat(
        "Instrument",
        "A latency is worth no more than these.",
        _of_run(RUN, {"generator's lateness": '"lateness_max_ns"', "largest U": '"u_max_ns"'}),
        width=6,
    ),
    table(
        "Run",
        "Another bench key is another bench: kernel, cable, calibration, instrument.",
        _of_run(
            RUN,
            fields("run_id", "bench", "profile", "branch", "commit", "bench_key", "duration_ns")
            | fields("worst_requirement", "tests_passed", "tests_failed", "attempts", "checks_failed")
            | fields("lost", "problems", "simulated", "complete"),
        ),
        size=(24, 4),
        hide_time=False,
    ),
    table(
        "Verdicts, the nearest to their limits first",
        "Every judged value, in its own unit.",
        _of_run(
            VERDICT,
            fields("requirement", "outcome_code", "margin_share", "value", "u", "unit", "quantity")
            | fields("statistic", "target", "stack", *sorted(AXES), "condition", "reason"),
        ),
        size=(24, 16),
        overrides=[by_name("reason", {"custom.width": 300})],
        sort="margin",
    ),
    table(
        "Latency by stream",
        "Latency: received - scheduled; lateness: the generator's own, sent - scheduled.",
        _of_run(
            LATENCY,
            fields("stream", "outcome_code", "margin_share")
            | {"largest": '"value_ns"', "budget": '"limit_upper_ns"'}
            | fields("u_ns", "p50_ns", "p90_ns", "p99_ns", "p999_ns", "n", "lost")
            | {"over budget": '"misses"', "lateness": '"lateness_max_ns"'},
        ),
        size=(24, 14),
        sort="margin",
    ),
    *(_values(row.title, PHYSICAL[name], row.subject) for name, row in SERIES.items() if name != "latency"),
    text(
        "Report and raw data",
        "The report, the raw data and their hashes are in the run's folder, "
        "`results/<start>-<bench>-<profile>/qualification.html`, on the machine that measured. "
        "`make show RUN=FOLDER` prints the verdict, "
        "`make verify RUN=FOLDER` finds any changed byte.",
    ),
    variables=(
        Variable(
            "run",
            "Run",
            select(RUN, fields("run_id"), where(variables=RUN_TAGS), end="ORDER BY time DESC"),
            several=False,
            newest_first=True,
        ),
    ),
)
