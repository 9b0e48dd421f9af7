# SPDX-License-Identifier: Apache-2.0
"""InfluxQL that InfluxDB 1.x, 2.x and 3.x understand alike, with Grafana's variables in it.

Every column has a name of its own, and nothing is used that 3.x does not have (SLIMIT, SHOW SERIES, SAMPLE,
HOLT_WINTERS). A table is grouped by one tag at most: Grafana orders the columns of several by chance.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from dashboards.points import EDGES, EVENT, LATENCY, RUN, RUN_TAGS, SYNC, VERDICT
from reports.quantities import INSTRUMENT_CHECKS, QUANTITIES

SUBJECT_VARIABLES = ("bench", "target", "stack", "clock", "profile", "branch")
"""Tags with a variable of the same name on every dashboard."""
VARIABLES = {
    LATENCY: SUBJECT_VARIABLES,
    SYNC: ("bench", "target", "clock", "profile", "branch"),
    EDGES: ("bench", "target", "profile", "branch"),
    VERDICT: SUBJECT_VARIABLES,
    RUN: RUN_TAGS,
    EVENT: SUBJECT_VARIABLES,
}
"""Those that the points of a measurement have: a choice of others must not leave their panels empty."""

_CHECKS = f"/^({'|'.join(sorted(INSTRUMENT_CHECKS))})$/"
OF_CHECKS, NOT_OF_CHECKS = f'"quantity" =~ {_CHECKS}', f'"quantity" !~ {_CHECKS}'
"""The bench's checks of itself, and what is not one; by a tag: a field would be read of every point."""
_SUFFIX = re.compile(r"_(upper_ns|ns|share|code|id)$")
_HEADINGS = {"u": "U", "p999": "p99.9"}


@dataclass(frozen=True)
class Values:
    """The values that a panel shows.

    Attributes:
        measurement: Name of the measurement.
        columns: What to select, by the name that it gets.
        conditions: Beside the dashboard's variables and time.
        by: Tags to group by.
        variables: Those that count; None: all that the measurement's points have.
        alias: Name of its series; '' where tags and columns tell them apart.
    """

    measurement: str
    columns: Mapping[str, str]
    conditions: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    variables: tuple[str, ...] | None = None
    alias: str = ""

    def at_once(self, end: str = "") -> str:
        """Return the query of the whole time; `end`: what else stands at its end, such as an order."""
        return select(self.measurement, self.columns, self._where(), group=self.by, end=end)

    def over_time(self) -> str:
        """Return the query of one value an interval, none where there was no run."""
        tags = "".join(f', "{tag}"' for tag in self.by)
        text = select(self.measurement, self.columns, self._where())
        return f"{text} GROUP BY time($__interval){tags} fill(none)"

    def name(self) -> str:
        """Return the name of its series: their tags, and the column where there are several."""
        tags = [f"$tag_{tag}" for tag in self.by]
        column = ["$col"] if len(self.columns) > 1 else []
        return (
            self.alias
            or (" / " if self.measurement == RUN else " ").join(tags + column)
            or next(iter(self.columns))
        )

    def _where(self) -> str:
        has = VARIABLES.get(self.measurement, ())
        return where(*self.conditions, variables=has if self.variables is None else self.variables)


def of(*quantities: str) -> str:
    """Return the condition that a point is of one of some quantities."""
    if len(quantities) == 1:
        return f"\"quantity\" = '{quantities[0]}'"
    return f'"quantity" =~ /^({"|".join(quantities)})$/'


def others(series: str, *shown: str) -> str:
    """Return the condition that a point is of none of those quantities of a series that are shown already."""
    return of(*(name for name, row in QUANTITIES.items() if row.series == series and name not in shown))


def fields(*names: str) -> dict[str, str]:
    """Return columns of fields as they are, their headings without units: `margin_share` is `margin`."""
    plain = {name: _SUFFIX.sub("", name).replace("_", " ") for name in names}
    return {_HEADINGS.get(heading, heading): f'"{name}"' for name, heading in plain.items()}


def where(*conditions: str, variables: tuple[str, ...] = SUBJECT_VARIABLES) -> str:
    """Return conditions, the dashboard's variables and its time range."""
    chosen = [f'"{name}" =~ /^${name}$/' for name in variables]
    return " AND ".join([*conditions, *chosen, "$timeFilter"])


def select(
    measurement: str,
    columns: Mapping[str, str],
    condition: str,
    *,
    group: tuple[str, ...] = (),
    end: str = "",
) -> str:
    """Return a query.

    Args:
        measurement: Name of the measurement.
        columns: What to select, by the name that it gets.
        condition: Behind WHERE.
        group: Tags to group by.
        end: What else stands at the end, such as an order.
    """
    selected = ", ".join(f'{expression} AS "{name}"' for name, expression in columns.items())
    text = f'SELECT {selected} FROM "{measurement}" WHERE {condition}'  # noqa: S608 - of constants
    if group:
        text += " GROUP BY " + ", ".join(f'"{tag}"' for tag in group)
    return f"{text} {end}".rstrip()


def tag_values(measurement: str, tag: str) -> str:
    """Return the query of a variable: the values that a tag has."""
    return f'SHOW TAG VALUES FROM "{measurement}" WITH KEY = "{tag}"'
