# SPDX-License-Identifier: Apache-2.0
"""Alert rules for Grafana's file provisioning. Whom they reach (contact points) is left to the user.

What no data means is decided rule by rule: without a run there is nothing to judge, and only the rule that
watches for runs may say so; all the others stay normal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dashboards.delivery.deliver import SPOOL
from dashboards.grafana.influxql import select
from dashboards.grafana.model import SOURCE, TAG, Dashboard, JsonObject
from dashboards.grafana.overview import LAST_RUN, OVERVIEW, VERDICTS, WORST_MARGIN
from dashboards.grafana.subjects import INSTRUMENT, SPOOL_DEPTH
from dashboards.points import RUN

FOLDER = "Benchwright"
NO_RUN_DAYS = 7
_JUDGED = '"branch" =~ /^(main|release)$/'
_KIND_OF_RUN = "{{ .Labels.bench }} / {{ .Labels.profile }} / {{ .Labels.branch }}"
_DAY_S = 86_400
_LAST: JsonObject = {"reducer": "last", "settings": {"mode": "dropNN"}}
_EXPRESSION: JsonObject = {"type": "__expr__", "uid": "__expr__"}


@dataclass(frozen=True)
class Rule:
    """An alert rule: the last value of each series of a query, compared with a bound.

    Attributes:
        query: InfluxQL; each series becomes an alert of its own, with its tags as labels.
        range_s: How far back the query looks, in s.
        below: The alert fires where the last value is below the bound; else where it is above.
        no_data: State where the query has no series at all.
        panel: Title of the dashboard's panel that shows the same.
    """

    uid: str
    title: str
    query: str
    summary: str
    panel: str
    dashboard: Dashboard = OVERVIEW
    range_s: int = 30 * _DAY_S
    bound: float = 0
    below: bool = False
    no_data: Literal["Alerting", "OK"] = "OK"
    severity: Literal["critical", "warning"] = "warning"

    def json(self) -> JsonObject:
        """Return the rule: query A, its last value B, the condition C."""
        evaluator = {"type": "lt" if self.below else "gt", "params": [self.bound]}
        condition = {"conditions": [{"evaluator": evaluator}]}
        place = {"dashboardUid": self.dashboard.uid, "panelId": self.dashboard.panel_id(self.panel)}
        return {
            "uid": self.uid,
            "title": self.title,
            "condition": "C",
            "data": [
                {
                    "refId": "A",
                    "relativeTimeRange": {"from": self.range_s, "to": 0},
                    "datasourceUid": SOURCE["uid"],
                    "model": {
                        "refId": "A",
                        "datasource": SOURCE,
                        "rawQuery": True,
                        "query": self.query,
                        "resultFormat": "time_series",
                        "intervalMs": 60_000,
                        "maxDataPoints": 43_200,
                    },
                },
                _expression("B", {"type": "reduce", "expression": "A", **_LAST}),
                _expression("C", {"type": "threshold", "expression": "B", **condition}),
            ],
            **place,
            "noDataState": self.no_data,
            "execErrState": "Error",
            "for": "0s",
            "annotations": {
                "summary": self.summary,
                "__dashboardUid__": place["dashboardUid"],
                "__panelId__": str(place["panelId"]),
            },
            "labels": {"project": TAG, "severity": self.severity},
            "isPaused": False,
        }


def rules(no_run_days: int = NO_RUN_DAYS) -> tuple[Rule, ...]:
    """Return the rules; after so many days without a run a bench is missed."""
    last = {"value": 'last("outcome_code")'}
    margin = {"value": 'last("worst_margin_share")'}
    # Runs a day, averaged over the days that may be without one and today: 0 means that there was none.
    daily = {"value": f'moving_average(count("outcome_code"), {no_run_days + 1})'}
    end = 'GROUP BY time(1d), "bench" fill(0)'
    return (
        Rule(
            "bw-margin",
            "Margin below zero",
            select(RUN, margin, f"{_JUDGED} AND $timeFilter", group=("bench", "profile", "branch")),
            f"{_KIND_OF_RUN}: in the last run a value plus U is over its limit; "
            "margin / limit = {{ .Values.B.Value }}",
            WORST_MARGIN,
            below=True,
            severity="critical",
        ),
        Rule(
            "bw-outcome",
            "Last run did not pass",
            select(RUN, last, f"{_JUDGED} AND $timeFilter", group=("bench", "profile", "branch")),
            f"{_KIND_OF_RUN}: the last run did not pass "
            "(1 unset, 2 inconclusive, 3 error, 4 fail): {{ .Values.B.Value }}",
            VERDICTS,
        ),
        Rule(
            "bw-no-run",
            f"No run in {no_run_days} days",
            f"{select(RUN, daily, '$timeFilter')} {end}",
            f"{{{{ .Labels.bench }}}}: no run in {no_run_days} days (no bench named: no run of any bench)",
            LAST_RUN,
            range_s=(no_run_days + 90) * _DAY_S,
            bound=1e-9,
            below=True,
            no_data="Alerting",
        ),
        Rule(
            "bw-set-aside",
            "InfluxDB refuses rows",
            select(SPOOL, {"value": 'last("rejected")'}, "$timeFilter", group=("host",)),
            "{{ .Labels.host }}: {{ .Values.B.Value }} rows set aside, see `python -m dashboards status`",
            SPOOL_DEPTH,
            INSTRUMENT,
        ),
    )


def provisioning(no_run_days: int = NO_RUN_DAYS) -> JsonObject:
    """Return the file of alert rules for `provisioning/alerting`."""
    group = {
        "orgId": 1,
        "name": "benchwright",
        "folder": FOLDER,
        "interval": "5m",
        "rules": [rule.json() for rule in rules(no_run_days)],
    }
    return {"apiVersion": 1, "groups": [group]}


def _expression(ref: str, model: JsonObject) -> JsonObject:
    return {
        "refId": ref,
        "relativeTimeRange": {"from": 0, "to": 0},
        "datasourceUid": "__expr__",
        "model": {"refId": ref, "datasource": _EXPRESSION, **model},
    }
