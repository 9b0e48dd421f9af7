# SPDX-License-Identifier: Apache-2.0
"""Every query for Grafana (panels, variables, annotations, alerts); whether an answer has data."""

from __future__ import annotations

import json
import urllib.error
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

import yaml

from dashboards.grafana.files import files
from tests.dashboards.grafana.interpolation import Span, Value, interpolate
from tests.dashboards.two_years import BEGIN_NS, END_NS, runs

TWO_YEARS = Span(BEGIN_NS, END_NS)
Answer = list[dict[str, Any]]
Choice = Mapping[str, tuple[str, ...]]
_ONE = {"run": (runs()[-1].run_id,), "one": ("23",)}
"""What is chosen of variables that take one value only; the stream has messages enough for p99.9."""


class Query(NamedTuple):
    """A query: the dashboard's uid (or `alerts`), the place in it, and the text as the server gets it."""

    dashboard: str
    place: str
    query: str


def all_dashboards() -> dict[str, dict[str, Any]]:
    """Return the dashboards as Grafana reads them, by uid."""
    found = [json.loads(text) for name, text in sorted(files().items()) if name.startswith("json/")]
    return {dashboard["uid"]: dashboard for dashboard in found}


def alert_rules() -> list[dict[str, Any]]:
    """Return the alert rules as Grafana reads them."""
    content = yaml.safe_load(files()["provisioning/alerting/benchwright.yaml"])
    return [rule for group in content["groups"] for rule in group["rules"]]


def all_queries(span: Span = TWO_YEARS, choice: Choice | None = None) -> list[Query]:
    """Return every query, its variables replaced as Grafana does it.

    Args:
        span: The dashboards' time; alerts look back from its end.
        choice: Values that are chosen, by variable; of all others all values, and the newest run.
    """
    found: list[Query] = []
    for dashboard in all_dashboards().values():
        found += queries_of(dashboard, span, choice or {})
    for rule in alert_rules():
        for part in rule["data"]:
            if "query" in part["model"]:
                text = rule_query(part, span.end_ns)
                found.append(Query("alerts", f"{rule['uid']} {part['refId']}", text))
    return found


def queries_of(dashboard: dict[str, Any], span: Span, choice: Choice) -> list[Query]:
    """Return the queries of one dashboard."""
    uid = str(dashboard["uid"])
    listed = cast("list[dict[str, Any]]", dashboard["templating"]["list"])
    values = {str(variable["name"]): _value(variable, choice) for variable in listed}
    found = [
        Query(uid, f"variable {variable['name']}", interpolate(variable["query"], span, values))
        for variable in listed
    ]
    for annotation in dashboard["annotations"]["list"]:
        if "builtIn" not in annotation:
            text = interpolate(annotation["target"]["query"], span, values)
            found.append(Query(uid, f"annotation {annotation['name']}", text))
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            text = interpolate(
                target["query"],
                span,
                values,
                points_max=panel.get("maxDataPoints", 1000),
                least=panel.get("interval", ""),
            )
            found.append(Query(uid, f"panel {panel['id']} {panel['title']!r} {target['refId']}", text))
    return found


def rule_query(part: dict[str, Any], end_ns: int) -> str:
    """Return an alert rule's query at a time; without variables, there are none in alerts."""
    looks = part["relativeTimeRange"]
    span = Span(end_ns - looks["from"] * 10**9, end_ns - looks["to"] * 10**9)
    return interpolate(part["model"]["query"], span, {})


def fault(ask: Callable[[str], Answer], query: str) -> str:
    """Return what is wrong with a query's answer; '' where each of its columns has data.

    Args:
        ask: Asks a server and returns the series of the answer; raises HTTPError or AssertionError.
        query: InfluxQL.
    """
    try:
        answer = ask(query)
    except urllib.error.HTTPError as error:
        return f"error {error.code}: {error.read().decode()}"
    except AssertionError as error:
        return f"error: {error}"
    if not answer:
        return "no series"
    rows = [row for series in answer for row in series["values"]]
    columns = answer[0]["columns"]
    if any(series["columns"] != columns for series in answer):
        return "series of different columns"
    empty = [name for n, name in enumerate(columns) if all(row[n] is None for row in rows)]
    return f"no value in {', '.join(empty)}" if empty else ""


def _value(variable: dict[str, Any], choice: Choice) -> Value:
    name = str(variable["name"])
    if not variable["multi"]:
        return Value(choice.get(name, _ONE[name]), several=False)
    return Value(choice.get(name), all_value=str(variable["allValue"]))
