# SPDX-License-Identifier: Apache-2.0
"""Overview: do the benches run, what did they decide, and how near was it."""

from __future__ import annotations

from dashboards.grafana.influxql import NOT_OF_CHECKS, Values, fields
from dashboards.grafana.panels import (
    LEAST_MARGIN,
    MARGIN,
    MARGIN_LOOK,
    NONE_EXPECTED,
    OUTCOME,
    Look,
    by_name,
    stat,
    state_timeline,
    table,
    time_series,
)
from dashboards.grafana.parts import dashboard, link_to_run
from dashboards.points import EVENT, LATENCY, RUN, RUN_TAGS, VERDICT

VERDICTS, WORST_MARGIN, LAST_RUN = "Verdicts", "Worst margin of each run", "Last run"
_OF_RUNS = "Of whole runs: bench, profile and branch class are looked at, the other choices are not."
_LAST_OUTCOME = {"outcome": 'last("outcome_code")'}
_NEWEST = "ORDER BY time DESC LIMIT 50"
_TO_RUN = by_name("run", {"links": link_to_run()})

OVERVIEW = dashboard(
    "overview",
    "overview",
    "Verdicts, margins and the last runs of all benches.",
    stat(
        LAST_RUN,
        f"How long ago the last run of the chosen time began. {_OF_RUNS}",
        Values(RUN, _LAST_OUTCOME),
        unit="dateTimeFromNow",
        field_name="/^Time$/",
        none="no run",
    ),
    stat(
        "Outcome of the last run",
        f"By bench. {_OF_RUNS}",
        Values(RUN, _LAST_OUTCOME, by=("bench",)),
        unit="none",
        width=6,
        outcome=True,
    ),
    stat(
        "Worst margin of the last run",
        "(limit - value - U) / limit of the requirement that came nearest, of the last run with a margin; "
        f"a run without one may be newer. Below 0: no pass. {_OF_RUNS}",
        Values(RUN, {"margin": 'last("worst_margin_share")'}, by=("bench",)),
        width=5,
        steps=MARGIN,
    ),
    stat(
        "Runs",
        f"In the chosen time. {_OF_RUNS}",
        Values(RUN, {"runs": 'count("outcome_code")'}),
        Values(RUN, {"passed": 'count("outcome_code")'}, ("\"outcome\" = 'pass'",)),
        none="0",
    ),
    stat(
        "Requirements not passed",
        "How often a requirement did not pass in the chosen time.",
        Values(
            VERDICT,
            {"not passed": 'count("outcome_code")'},
            ('"outcome_code" > 0', NOT_OF_CHECKS),
            alias="times",
        ),
        width=3,
        steps=NONE_EXPECTED,
        none="0",
    ),
    stat(
        "Regressions",
        "Changes for the worse that the adviser has seen. It advises; it decides nothing."
        " 0 says nothing of series that have too few runs for it.",
        Values(EVENT, {"regressions": 'count("z")'}, ("\"kind\" = 'regression'",), alias="events"),
        width=2,
        steps=NONE_EXPECTED,
        none="0",
    ),
    state_timeline(
        VERDICTS,
        f"The worst outcome of each interval, until the next one. {_OF_RUNS}",
        Values(RUN, OUTCOME, by=RUN_TAGS),
    ),
    time_series(
        WORST_MARGIN,
        f"(limit - value - U) / limit, the least of all requirements. Below 0: no pass. {_OF_RUNS}",
        Values(RUN, {"margin": 'min("worst_margin_share")'}, by=("bench", "profile")),
        MARGIN_LOOK,
    ),
    table(
        "Requirements, the nearest to their limits first",
        "Over the chosen time.",
        Values(
            VERDICT,
            {
                "smallest margin": 'min("margin_share")',
                "last margin": 'last("margin_share")',
                "worst outcome": 'max("outcome_code")',
            },
            (NOT_OF_CHECKS,),
            ("requirement",),
        ),
        size=(12, 9),
        sort="smallest margin",
    ),
    time_series(
        "Values by outcome",
        f"Sums of the runs of an interval. {_OF_RUNS}",
        Values(
            RUN,
            {word: f'sum("count_{word}")' for word in ("pass", "unset", "inconclusive", "error", "fail")},
        ),
        Look("values", bars=True, legend=("sum",)),
    ),
    time_series(
        "Margin of the worst stream",
        "(budget - latency - U) / budget of the stream that came nearest to its budget, by target.",
        Values(LATENCY, LEAST_MARGIN, by=("target",)),
        Look("margin / budget", limit=0, legend=("lastNotNull", "min")),
    ),
    table(
        "Events",
        "Regressions and improvements that the adviser has seen, and changes of the bench; the newest first.",
        Values(
            EVENT,
            fields("kind") | {"what": '"title"'} | fields("bench", "run_id", "text"),
            variables=("bench",),
        ),
        end=_NEWEST,
        size=(24, 8),
        overrides=[_TO_RUN, by_name("kind", {"custom.width": 110})],
        hide_time=False,
    ),
    table(
        "Last runs",
        f"The newest first. {_OF_RUNS}",
        Values(
            RUN,
            {
                **fields("run_id", "outcome_code", "worst_margin_share"),
                "of requirement": '"worst_requirement"',
                "passed": '"count_pass"',
                "failed": '"count_fail"',
                "inconclusive": '"count_inconclusive"',
                **fields("checks_failed", "duration_ns", "bench", "profile", "branch", "commit"),
            },
        ),
        end=_NEWEST,
        overrides=[_TO_RUN],
        hide_time=False,
    ),
)
