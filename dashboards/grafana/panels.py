# SPDX-License-Identifier: Apache-2.0
"""The kinds of panels, with the looks that they have in common. Nothing is told by colour alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from dashboards.grafana.influxql import Values
from dashboards.grafana.model import JsonObject, Panel, Query
from dashboards.points import OUTCOME_CODE

NS, SHARE, COUNT = "ns", "percentunit", "short"
_UNITS = {"_ns": NS, "_share": SHARE}
HOUR = "1h"
_COLOURS = {"pass": "green", "unset": "text", "inconclusive": "yellow", "error": "purple", "fail": "red"}
_DASHED: JsonObject = {"fill": "dash", "dash": [10, 10]}
_SCALES: Mapping[str, JsonObject] = {
    "linear": {"type": "linear"},
    "log": {"type": "log", "log": 10},
    "symlog": {"type": "symlog", "log": 10, "linearThreshold": 1},
}

Steps = tuple[tuple[float | None, str], ...]
PLAIN: Steps = ((None, "text"),)
MARGIN: Steps = ((None, "red"), (0, "yellow"), (0.1, "green"))
NONE_EXPECTED: Steps = ((None, "green"), (1, "red"))


@dataclass(frozen=True)
class Look:
    """How lines are drawn.

    Attributes:
        label: What the axis says.
        scale: Of the axis: `symlog` has values of both signs, linear within a nanosecond of 0.
        bars: Stacked bars instead of lines.
        limit: Draw a line there.
        legend: Figures beside each name.
    """

    label: str = ""
    scale: Literal["linear", "log", "symlog"] = "linear"
    bars: bool = False
    limit: float | None = None
    legend: tuple[str, ...] = ("lastNotNull", "max")
    legend_right: bool = False


MARGIN_LOOK = Look("margin / limit", limit=0, legend=("lastNotNull", "min"))
U_LOOK = Look("U", "log")
OUTCOME = {"outcome": 'max("outcome_code")'}
LEAST_MARGIN = {"margin": 'min("margin_share")'}
LARGEST_U = {"U": 'max("u_ns")'}


def unit_of(expression: str) -> str:
    """Return Grafana's unit of a column, by the name of its field."""
    return next((unit for suffix, unit in _UNITS.items() if f'{suffix}"' in expression), COUNT)


def thresholds(steps: Steps) -> JsonObject:
    """Return steps of value and colour; the first has no value."""
    return {"mode": "absolute", "steps": [{"value": value, "color": colour} for value, colour in steps]}


def outcome_mappings() -> list[JsonObject]:
    """Return the words of the outcome's codes."""
    options = {
        str(code): {"text": name, "color": _COLOURS[name], "index": code}
        for name, code in OUTCOME_CODE.items()
    }
    return [{"type": "value", "options": options}]


def time_series(
    title: str,
    description: str,
    values: Values,
    look: Look,
    *,
    size: tuple[int, int] = (12, 9),
    overrides: Iterable[JsonObject] = (),
) -> Panel:
    """Return lines or bars over time; a point is one interval's value."""
    steps: Steps = PLAIN if look.limit is None else ((None, "transparent"), (look.limit, "red"))
    custom: JsonObject = {
        "drawStyle": "bars" if look.bars else "line",
        "lineInterpolation": "linear",
        "lineWidth": 1,
        "fillOpacity": 60 if look.bars else 0,
        "showPoints": "never" if look.bars else "always",
        "pointSize": 4,
        "spanNulls": True,
        "axisPlacement": "auto",
        "axisLabel": look.label,
        "scaleDistribution": _SCALES[look.scale],
        "stacking": {"mode": "normal" if look.bars else "none", "group": "A"},
        "thresholdsStyle": {"mode": "off" if look.limit is None else "dashed"},
    }
    defaults: JsonObject = {
        "unit": unit_of(next(iter(values.columns.values()))),
        "color": {"mode": "palette-classic"},
        "thresholds": thresholds(steps),
        "custom": custom,
    }
    if look.bars:
        defaults["decimals"] = 0
    legend: JsonObject = {
        "showLegend": True,
        "displayMode": "table",
        "placement": "right" if look.legend_right else "bottom",
        "calcs": list(look.legend),
    }
    options: JsonObject = {"legend": legend, "tooltip": {"mode": "multi", "sort": "desc"}}
    return Panel(
        title=title,
        kind="timeseries",
        description=description,
        queries=(Query(values.over_time(), values.name()),),
        width=size[0],
        height=size[1],
        options=options,
        defaults=defaults,
        overrides=tuple(overrides),
        interval=HOUR,
    )


def stat(
    title: str,
    description: str,
    *values: Values,
    unit: str = "",
    width: int = 4,
    steps: Steps = PLAIN,
    outcome: bool = False,
    none: str = "-",
    field_name: str = "",
) -> Panel:
    """Return figures: of each series the last value, or of a table the last of one field."""
    queries = tuple(
        Query(v.at_once(), "" if field_name else v.name(), table=bool(field_name)) for v in values
    )
    defaults: JsonObject = {
        "unit": unit or unit_of(next(iter(values[0].columns.values()))),
        "color": {"mode": "thresholds"},
        "thresholds": thresholds(steps),
        "mappings": outcome_mappings() if outcome else [],
        "noValue": none,
    }
    options: JsonObject = {
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": field_name, "values": False},
        "orientation": "auto",
        "textMode": "auto",
        "wideLayout": True,
        "colorMode": "background" if outcome else "value",
        "graphMode": "none",
        "justifyMode": "auto",
        "showPercentChange": False,
        "percentChangeColorMode": "standard",
    }
    return Panel(title, "stat", description, queries, width, 4, options, defaults)


def state_timeline(title: str, description: str, values: Values, *, size: tuple[int, int] = (24, 8)) -> Panel:
    """Return a line of states for each series of outcome codes, with their words in them."""
    query = Query(values.over_time(), values.name())
    defaults: JsonObject = {
        "unit": "none",
        "color": {"mode": "thresholds"},
        "thresholds": thresholds(PLAIN),
        "mappings": outcome_mappings(),
        "custom": {"lineWidth": 0, "fillOpacity": 75},
    }
    options: JsonObject = {
        "mergeValues": True,
        "showValue": "auto",
        "alignValue": "left",
        "rowHeight": 0.85,
        "legend": {"showLegend": True, "displayMode": "list", "placement": "bottom", "calcs": []},
        "tooltip": {"mode": "single", "sort": "none"},
    }
    return Panel(
        title,
        "state-timeline",
        description,
        (query,),
        *size,
        options,
        defaults,
        interval=HOUR,
    )


def table(
    title: str,
    description: str,
    values: Values,
    *,
    end: str = "",
    size: tuple[int, int] = (24, 10),
    overrides: Iterable[JsonObject] = (),
    sort: str = "",
    hide_time: bool = True,
) -> Panel:
    """Return rows as the query gives them, its names as headings; `end`: of the query, such as an order."""
    query = Query(values.at_once(end), table=True)
    defaults: JsonObject = {
        "unit": COUNT,
        "color": {"mode": "thresholds"},
        "thresholds": thresholds(PLAIN),
        "noValue": "",
        "custom": {"align": "auto", "cellOptions": {"type": "auto"}, "inspect": False, "filterable": True},
    }
    options: JsonObject = {
        "showHeader": True,
        "cellHeight": "sm",
        "frameIndex": 0,
        "sortBy": [{"displayName": sort, "desc": False}] if sort else [],
    }
    looks = (*_columns(values.columns), *overrides)
    hidden = ({"id": "organize", "options": {"excludeByName": {"Time": True}}},) if hide_time else ()
    return Panel(title, "table", description, (query,), *size, options, defaults, looks, hidden)


def text(title: str, content: str) -> Panel:
    """Return a panel of Markdown."""
    options: JsonObject = {"mode": "markdown", "content": content}
    return Panel(title, "text", "", (), 24, 4, options, {})


def by_name(name: str, properties: Mapping[str, object]) -> JsonObject:
    """Return what is different for the field of a name; properties such as `unit` or `custom.width`."""
    found = [{"id": key, "value": value} for key, value in properties.items()]
    return {"matcher": {"id": "byName", "options": name}, "properties": found}


def _columns(columns: Mapping[str, str]) -> list[JsonObject]:
    """Return the looks of a table's columns by their fields: times first, then margins and outcomes."""
    looks = [by_name(name, {"unit": NS}) for name, shown in columns.items() if unit_of(shown) == NS]
    margin = {"unit": SHARE, "thresholds": thresholds(MARGIN), "custom.cellOptions": {"type": "color-text"}}
    outcome = {
        "mappings": outcome_mappings(),
        "custom.cellOptions": {"type": "color-background", "mode": "basic"},
        "custom.width": 110,
    }
    for name, shown in columns.items():
        if unit_of(shown) == SHARE:
            looks.append(by_name(name, margin))
        elif "outcome_code" in shown and not shown.startswith("count("):
            looks.append(by_name(name, outcome))
    return looks


def dashed(name: str) -> JsonObject:
    """Return the looks of a limit: a dashed line without points."""
    return by_name(
        name,
        {
            "custom.lineStyle": _DASHED,
            "custom.showPoints": "never",
            "custom.lineWidth": 2,
            "color": {"mode": "fixed", "fixedColor": "red"},
        },
    )
