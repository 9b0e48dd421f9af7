# SPDX-License-Identifier: Apache-2.0
"""InfluxQL that InfluxDB 1.x, 2.x and 3.x understand alike, with Grafana's variables in it.

Every column has a name of its own, and nothing is used that 3.x does not have (SLIMIT, SHOW SERIES, SAMPLE,
HOLT_WINTERS). A table is grouped by one tag at most: Grafana orders the columns of several by chance.
"""

from __future__ import annotations

from collections.abc import Mapping

from dashboards.points import RUN_TAGS
from reports.quantities import INSTRUMENT_CHECKS

SUBJECT_VARIABLES = ("bench", "target", "stack", "clock", "profile", "branch")
"""Tags with a variable of the same name on every dashboard."""
RUN_VARIABLES = RUN_TAGS
"""Those of them that a run as a whole has."""
SYNC_VARIABLES = ("bench", "target", "clock", "profile", "branch")
EDGE_VARIABLES = ("bench", "target", "profile", "branch")
"""Those that clocks and edges have; a choice of others must not leave their panels empty."""

_CHECKS = f"/^({'|'.join(sorted(INSTRUMENT_CHECKS))})$/"
OF_CHECKS, NOT_OF_CHECKS = f'"quantity" =~ {_CHECKS}', f'"quantity" !~ {_CHECKS}'
"""The bench's checks of itself, and what is not one; by a tag: a field would be read of every point."""


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


def over_time(
    measurement: str, columns: Mapping[str, str], condition: str, group: tuple[str, ...] = ()
) -> str:
    """Return a query of one value an interval, none where there was no run."""
    tags = "".join(f', "{tag}"' for tag in group)
    return f"{select(measurement, columns, condition)} GROUP BY time($__interval){tags} fill(none)"


def tag_values(measurement: str, tag: str) -> str:
    """Return the query of a variable: the values that a tag has."""
    return f'SHOW TAG VALUES FROM "{measurement}" WITH KEY = "{tag}"'
