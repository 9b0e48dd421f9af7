# SPDX-License-Identifier: Apache-2.0
"""Parts of a dashboard in Grafana's JSON model (schema version 39, Grafana 11 and later)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

JsonObject = dict[str, Any]

SCHEMA_VERSION = 39
PLUGIN_VERSION = "11.0.0"
COLUMNS = 24
POINTS_MAX = 100
"""Of a line over time, about: over two years an interval is a week. More would cost more and show less."""
TAG = "benchwright"
SOURCE: JsonObject = {"type": "influxdb", "uid": TAG}


@dataclass(frozen=True)
class Query:
    """A query of a panel.

    Attributes:
        text: InfluxQL.
        alias: Name of its series; `$tag_NAME` and `$col` stand for a tag and the column.
        table: Rows as they are, instead of series over time.
    """

    text: str
    alias: str = ""
    table: bool = False

    def json(self, ref: str) -> JsonObject:
        """Return the query as a target with a letter."""
        target: JsonObject = {
            "datasource": SOURCE,
            "refId": ref,
            "rawQuery": True,
            "query": self.text,
            "resultFormat": "table" if self.table else "time_series",
        }
        return {**target, "alias": self.alias} if self.alias else target


@dataclass(frozen=True)
class Panel:
    """A panel; the functions of `panels` make the kinds that there are.

    Attributes:
        kind: Grafana's name of the kind.
        width: In 24ths of the page.
        height: In Grafana's units of 30 px.
        options: The kind's own options.
        defaults: How values are shown, `fieldConfig.defaults`.
        overrides: What is different for some of the fields.
        transformations: What Grafana does with the rows before it shows them.
        interval: Least interval of `$__interval`; '' for a panel that does not use it.
    """

    title: str
    kind: str
    description: str
    queries: tuple[Query, ...]
    width: int
    height: int
    options: JsonObject
    defaults: JsonObject
    overrides: tuple[JsonObject, ...] = ()
    transformations: tuple[JsonObject, ...] = ()
    interval: str = ""

    def json(self, number: int, x: int, y: int) -> JsonObject:
        """Return the panel with its id at a place."""
        panel: JsonObject = {
            "id": number,
            "type": self.kind,
            "title": self.title,
            "description": self.description,
            "gridPos": {"x": x, "y": y, "w": self.width, "h": self.height},
        }
        if self.queries:
            panel["datasource"] = SOURCE
            panel["targets"] = [q.json(chr(ord("A") + n)) for n, q in enumerate(self.queries)]
        if self.interval:
            panel |= {"interval": self.interval, "maxDataPoints": POINTS_MAX}
        panel["fieldConfig"] = {"defaults": self.defaults, "overrides": list(self.overrides)}
        panel["options"] = self.options
        if self.transformations:
            panel["transformations"] = list(self.transformations)
        panel["pluginVersion"] = PLUGIN_VERSION
        return panel


@dataclass(frozen=True)
class Variable:
    """A choice at the top of a dashboard, with the values that a query finds.

    Attributes:
        several: Any number of values, or all of them; else exactly one.
        newest_first: The values stay in the query's order, instead of the alphabet's.
    """

    name: str
    label: str
    query: str
    several: bool = True
    newest_first: bool = False

    def json(self) -> JsonObject:
        """Return the variable; `.*` for all of them holds for points that do not have the tag, too."""
        variable: JsonObject = {
            "type": "query",
            "name": self.name,
            "label": self.label,
            "datasource": SOURCE,
            "query": self.query,
            "regex": "",
            "refresh": 2,
            "sort": 0 if self.newest_first else 1,
            "multi": self.several,
            "includeAll": self.several,
            "options": [],
        }
        if self.several:
            variable |= {
                "allValue": ".*",
                "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
            }
        return variable


@dataclass(frozen=True)
class Annotation:
    """Marks on every panel over time; the query has columns `title`, `text` and `kind`."""

    name: str
    query: str
    colour: str

    def json(self) -> JsonObject:
        """Return the annotation as Grafana's InfluxDB plug-in keeps it."""
        target = {
            "refId": "Anno",
            "query": self.query,
            "queryType": "tags",
            "fromAnnotations": True,
            "name": self.name,
            "titleColumn": "title",
            "textColumn": "text",
            "tagsColumn": "kind",
            "timeEndColumn": "",
        }
        return {
            "name": self.name,
            "datasource": SOURCE,
            "enable": True,
            "hide": False,
            "iconColor": self.colour,
            "target": target,
        }


@dataclass(frozen=True)
class Dashboard:
    """A dashboard; its uid is also the name of its file."""

    uid: str
    title: str
    description: str
    panels: tuple[Panel, ...]
    variables: tuple[Variable, ...]
    annotations: tuple[Annotation, ...]

    def json(self) -> JsonObject:
        """Return the dashboard as its file holds it."""
        return {
            "uid": self.uid,
            "title": self.title,
            "description": self.description,
            "tags": [TAG],
            "schemaVersion": SCHEMA_VERSION,
            "version": 1,
            "editable": True,
            "graphTooltip": 1,
            "timezone": "browser",
            "refresh": "",
            "time": {"from": "now-90d", "to": "now"},
            "timepicker": {},
            "links": [_LINK_TO_OTHERS],
            "annotations": {"list": [_BUILT_IN, *(a.json() for a in self.annotations)]},
            "templating": {"list": [variable.json() for variable in self.variables]},
            "panels": [p.json(n, x, y) for n, (p, x, y) in enumerate(place(self.panels), start=1)],
        }

    def panel_id(self, title: str) -> int:
        """Return the id that a panel has; raises ValueError where there is none of that title."""
        return [panel.title for panel in self.panels].index(title) + 1


def place(panels: Sequence[Panel]) -> list[tuple[Panel, int, int]]:
    """Lay panels out in rows from left to right; a row is as high as its highest panel."""
    placed: list[tuple[Panel, int, int]] = []
    x = y = height = 0
    for panel in panels:
        if x + panel.width > COLUMNS:
            x, y, height = 0, y + height, 0
        placed.append((panel, x, y))
        x, height = x + panel.width, max(height, panel.height)
    return placed


_LINK_TO_OTHERS: JsonObject = {
    "type": "dashboards",
    "title": "Benchwright",
    "tooltip": "the other dashboards, with the same choice and time",
    "icon": "external link",
    "tags": [TAG],
    "asDropdown": False,
    "includeVars": True,
    "keepTime": True,
    "targetBlank": False,
    "url": "",
}
_BUILT_IN: JsonObject = {
    "builtIn": 1,
    "name": "Annotations & Alerts",
    "type": "dashboard",
    "datasource": {"type": "grafana", "uid": "-- Grafana --"},
    "enable": True,
    "hide": True,
    "iconColor": "rgba(0, 211, 255, 1)",
}
