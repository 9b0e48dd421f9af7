# SPDX-License-Identifier: Apache-2.0
"""The kinds of panels, with the looks that they have in common. Nothing is told by colour alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dashboards.grafana.model import JsonObject, Panel, Query
from dashboards.points import OUTCOME_CODE

NS, SHARE, COUNT = "ns", "percentunit", "short"
HOUR = "1h"
_COLOURS = {"pass": "green", "unset": "text", "inconclusive": "yellow", "error": "purple", "fail": "red"}
_DASHED: JsonObject = {"fill": "dash", "dash": [10, 10]}

Steps = tuple[tuple[float | None, str], ...]
PLAIN: Steps = ((None, "text"),)
MARGIN: Steps = ((None, "red"), (0, "yellow"), (0.1, "green"))
NONE_EXPECTED: Steps = ((None, "green"), (1, "red"))


@dataclass(frozen=True)
class Look:
    """How lines are drawn.

    Attributes:
        label: What the axis says.
        log: Whether the axis is logarithmic.
        bars: Stacked bars instead of lines.
        limits: Draw the thresholds as lines.
        legend: Figures beside each name.
    """

    label: str = ""
    log: bool = False
    bars: bool = False
    limits: bool = False
    legend: tuple[str, ...] = ("lastNotNull", "max")
    legend_right: bool = False


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
    queries: Sequence[Query],
    *,
    unit: str,
    size: tuple[int, int] = (12, 9),
    look: Look | None = None,
    steps: Steps = PLAIN,
    overrides: Iterable[JsonObject] = (),
) -> Panel:
    """Return lines or bars over time; a point is one interval's value."""
    look = look or Look()
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
        "scaleDistribution": {"type": "log", "log": 10} if look.log else {"type": "linear"},
        "stacking": {"mode": "normal" if look.bars else "none", "group": "A"},
        "thresholdsStyle": {"mode": "dashed" if look.limits else "off"},
    }
    defaults: JsonObject = {
        "unit": unit,
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
        queries=tuple(queries),
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
    queries: Sequence[Query],
    *,
    unit: str,
    width: int = 4,
    steps: Steps = PLAIN,
    outcome: bool = False,
    none: str = "-",
    field_name: str = "",
) -> Panel:
    """Return figures: of each series the last value, or of a table the last of one field."""
    defaults: JsonObject = {
        "unit": unit,
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
    return Panel(title, "stat", description, tuple(queries), width, 4, options, defaults)


def state_timeline(title: str, description: str, query: Query, *, size: tuple[int, int] = (24, 8)) -> Panel:
    """Return a line of states for each series of outcome codes, with their words in them."""
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
    query: Query,
    *,
    size: tuple[int, int] = (24, 10),
    overrides: Iterable[JsonObject] = (),
    sort: str = "",
    descending: bool = False,
    hide_time: bool = True,
) -> Panel:
    """Return rows as the query gives them, its names as headings."""
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
        "sortBy": [{"displayName": sort, "desc": descending}] if sort else [],
    }
    hidden = ({"id": "organize", "options": {"excludeByName": {"Time": True}}},) if hide_time else ()
    return Panel(title, "table", description, (query,), *size, options, defaults, tuple(overrides), hidden)


def text(title: str, content: str, *, size: tuple[int, int] = (24, 4)) -> Panel:
    """Return a panel of Markdown."""
    options: JsonObject = {"mode": "markdown", "content": content}
    return Panel(title, "text", "", (), *size, options, {})


def by_name(name: str, properties: Mapping[str, object]) -> JsonObject:
    """Return what is different for the field of a name; properties such as `unit` or `custom.width`."""
    found = [{"id": key, "value": value} for key, value in properties.items()]
    return {"matcher": {"id": "byName", "options": name}, "properties": found}


def units(unit: str, *names: str) -> list[JsonObject]:
    """Return the unit of columns of a table."""
    return [by_name(name, {"unit": unit}) for name in names]


def margin_column(name: str = "margin") -> JsonObject:
    """Return the looks of a column with margins as shares of their limits."""
    return by_name(
        name,
        {
            "unit": SHARE,
            "thresholds": thresholds(MARGIN),
            "custom.cellOptions": {"type": "color-text"},
        },
    )


def outcome_column(name: str = "outcome") -> JsonObject:
    """Return the looks of a column with outcome codes: their words on their colours."""
    return by_name(
        name,
        {
            "mappings": outcome_mappings(),
            "custom.cellOptions": {"type": "color-background", "mode": "basic"},
            "custom.width": 110,
        },
    )


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
