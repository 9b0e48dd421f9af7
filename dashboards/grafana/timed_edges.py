# SPDX-License-Identifier: Apache-2.0
"""Timed edges: how exactly each method makes or stamps an edge."""

from __future__ import annotations

from dashboards.grafana.influxql import EDGE_VARIABLES, over_time, select, where
from dashboards.grafana.model import Dashboard, Panel, Query
from dashboards.grafana.panels import (
    COUNT,
    NS,
    SHARE,
    Look,
    margin_column,
    outcome_column,
    state_timeline,
    table,
    time_series,
    units,
)
from dashboards.grafana.parts import event_annotations, subject_variables
from dashboards.points import EDGES

UID = "bw-timed-edges"
_DELAY = "\"quantity\" = 'edge_delay'"


def dashboard() -> Dashboard:
    """Return the dashboard."""
    return Dashboard(
        uid=UID,
        title="Benchwright: timed edges",
        description="Delays of timed edges by method.",
        panels=(delays(), margins(), uncertainty(), checks(), missing(), verdicts(), requirements()),
        variables=subject_variables(),
        annotations=event_annotations(),
    )


def delays() -> Panel:
    """Return the delay's statistics by method."""
    query = over_time(EDGES, {"delay": 'max("value_ns")'}, _where(_DELAY), ("method", "statistic"))
    return time_series(
        "Delay of an edge",
        "By method and statistic. The standard deviation is what tells methods apart.",
        [Query(query, "$tag_method $tag_statistic")],
        unit=NS,
        size=(24, 10),
        look=Look("delay", log=True, legend_right=True),
    )


def margins() -> Panel:
    """Return the least margin of each method."""
    query = over_time(EDGES, {"margin": 'min("margin_share")'}, _where(_DELAY), ("method",))
    return time_series(
        "Margin",
        "Least margin of a method's requirements as a share of the limit. Below 0: no pass.",
        [Query(query, "$tag_method")],
        unit=SHARE,
        look=Look("margin / limit", limits=True, legend=("lastNotNull", "min")),
        steps=((None, "transparent"), (0, "red")),
    )


def uncertainty() -> Panel:
    """Return the expanded uncertainty by method."""
    query = over_time(EDGES, {"U": 'max("u_ns")'}, _where(_DELAY), ("method",))
    return time_series(
        "U",
        "Expanded uncertainty, the largest of an interval.",
        [Query(query, "$tag_method")],
        unit=NS,
        look=Look("U", log=True),
    )


def checks() -> Panel:
    """Return the order of the methods, and the mistake that has to show."""
    condition = _where('"quantity" =~ /^(edge_deviation_difference|edge_error_shift)$/')
    columns = {"value": 'min("value_ns")'}
    return time_series(
        "Order of the methods, and the shift of a mistake",
        "Differences of two methods' standard deviations (above 0: in the expected order), and how far the "
        "mean moved otherwise than an error that was put in should have moved it.",
        [Query(over_time(EDGES, columns, condition, ("quantity", "method")), "$tag_quantity $tag_method")],
        unit=NS,
        look=Look("time", legend=("lastNotNull", "min")),
    )


def missing() -> Panel:
    """Return edges that did not come."""
    query = over_time(EDGES, {"missing": 'sum("lost")'}, _where(_DELAY), ("method",))
    return time_series(
        "Edges missing",
        "By method, sums of an interval.",
        [Query(query, "$tag_method")],
        unit=COUNT,
        look=Look("edges", bars=True, legend=("sum",)),
    )


def verdicts() -> Panel:
    """Return the verdict of each requirement on edges over time."""
    query = over_time(EDGES, {"outcome": 'max("outcome_code")'}, _where(), ("requirement",))
    return state_timeline(
        "Verdicts", "The gravest outcome of each interval.", Query(query, "$tag_requirement"), size=(24, 8)
    )


def requirements() -> Panel:
    """Return the requirements on edges, the nearest to their limits first."""
    columns = {
        "largest value": 'max("value_ns")',
        "limit": 'min("limit_upper_ns")',
        "U": 'max("u_ns")',
        "smallest margin": 'min("margin_share")',
        "edges": 'sum("n")',
        "missing": 'sum("lost")',
        "gravest outcome": 'max("outcome_code")',
        "values": 'count("outcome_code")',
    }
    return table(
        "Delays by requirement, the nearest to their limits first",
        "Over the chosen time.",
        Query(select(EDGES, columns, _where(_DELAY), group=("requirement",)), table=True),
        size=(24, 8),
        overrides=[
            *units(NS, "largest value", "limit", "U"),
            margin_column("smallest margin"),
            outcome_column("gravest outcome"),
        ],
        sort="smallest margin",
    )


def _where(*conditions: str) -> str:
    return where(*conditions, variables=EDGE_VARIABLES)
