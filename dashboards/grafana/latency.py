# SPDX-License-Identifier: Apache-2.0
"""Latency: each stream against its budget, its distribution and margin."""

from __future__ import annotations

from dashboards.grafana.influxql import over_time, select, where
from dashboards.grafana.model import Dashboard, Panel, Query
from dashboards.grafana.panels import (
    COUNT,
    NS,
    SHARE,
    Look,
    by_name,
    dashed,
    margin_column,
    outcome_column,
    state_timeline,
    table,
    time_series,
    units,
)
from dashboards.grafana.parts import (
    event_annotations,
    one_stream_variable,
    stream_variable,
    subject_variables,
)
from dashboards.points import LATENCY

UID = "bw-latency"
_STREAM = '"stream" =~ /^$stream$/'
_THIS_STREAM = "\"stream\" = '$one'"
_ONE_WAY = "\"quantity\" = 'one_way_latency'"


def dashboard() -> Dashboard:
    """Return the dashboard."""
    return Dashboard(
        uid=UID,
        title="Benchwright: latency",
        description="Latency of each stream against its budget. Latency: received - scheduled.",
        panels=(
            budget_used(),
            distribution(),
            largest(),
            margin(),
            losses(),
            streams(),
            verdicts(),
            other_latencies(),
        ),
        variables=(*subject_variables(), stream_variable(), one_stream_variable()),
        annotations=event_annotations(),
    )


def budget_used() -> Panel:
    """Return each stream's largest latency and U as a share of its budget."""
    query = over_time(LATENCY, {"used": '1 - min("margin_share")'}, where(_ONE_WAY, _STREAM), ("stream",))
    return time_series(
        "Share of its budget that each stream uses",
        "(largest latency + U) / budget: streams of different budgets can be compared. Above 100 %: no pass.",
        [Query(query, "stream $tag_stream")],
        unit=SHARE,
        size=(24, 11),
        look=Look("(latency + U) / budget", limits=True, legend_right=True),
        steps=((None, "transparent"), (1, "red")),
    )


def distribution() -> Panel:
    """Return quantiles of one stream, and its budget."""
    columns = {name: f'max("{name}_ns")' for name in ("p50", "p90", "p99", "p999")}
    columns |= {"max": 'max("value_ns")', "budget": 'min("limit_upper_ns")'}
    return time_series(
        "Distribution",
        "Quantiles of one stream's latency, chosen at the top; the worst of an interval.",
        [Query(over_time(LATENCY, columns, where(_ONE_WAY, _THIS_STREAM)), "$col")],
        unit=NS,
        look=Look("latency", log=True),
        overrides=[dashed("budget"), by_name("max", {"custom.lineWidth": 2})],
    )


def largest() -> Panel:
    """Return each stream's largest latency."""
    query = over_time(LATENCY, {"latency": 'max("value_ns")'}, where(_ONE_WAY, _STREAM), ("stream",))
    return time_series(
        "Largest latency",
        "By stream.",
        [Query(query, "stream $tag_stream")],
        unit=NS,
        look=Look("latency", log=True, legend_right=True),
    )


def margin() -> Panel:
    """Return each stream's margin in time."""
    query = over_time(LATENCY, {"margin": 'min("margin_ns")'}, where(_ONE_WAY, _STREAM), ("stream",))
    return time_series(
        "Margin",
        "budget - largest latency - U, by stream. Below 0: no pass.",
        [Query(query, "stream $tag_stream")],
        unit=NS,
        look=Look("margin", limits=True, legend=("lastNotNull", "min"), legend_right=True),
        steps=((None, "transparent"), (0, "red")),
    )


def losses() -> Panel:
    """Return messages lost, and messages over their budget."""
    columns = {
        "lost": 'sum("lost")',
        "over budget": 'sum("misses")',
        "over budget as sent": 'sum("misses_sent")',
    }
    return time_series(
        "Messages lost, and over their budget",
        "Over: received - scheduled; as sent: received - sent, so without the generator's own lateness.",
        [Query(over_time(LATENCY, columns, where(_ONE_WAY, _STREAM)), "$col")],
        unit=COUNT,
        look=Look("messages", bars=True, legend=("sum",)),
    )


def streams() -> Panel:
    """Return the streams with their budgets."""
    columns = {
        "largest latency": 'max("value_ns")',
        "budget": 'last("limit_upper_ns")',
        "last U": 'last("u_ns")',
        "smallest margin": 'min("margin_share")',
        "gravest outcome": 'max("outcome_code")',
    }
    query = select(LATENCY, columns, where(_ONE_WAY, _STREAM), group=("stream",))
    return table(
        "Streams, the nearest to their budgets first",
        "Over the chosen time.",
        Query(query, table=True),
        size=(24, 12),
        overrides=[
            *units(NS, "largest latency", "budget", "last U"),
            margin_column("smallest margin"),
            outcome_column("gravest outcome"),
        ],
        sort="smallest margin",
    )


def verdicts() -> Panel:
    """Return each stream's verdict over time."""
    query = over_time(LATENCY, {"outcome": 'max("outcome_code")'}, where(_ONE_WAY, _STREAM), ("stream",))
    return state_timeline(
        "Verdict of each stream",
        "The gravest outcome of each interval.",
        Query(query, "$tag_stream"),
        size=(24, 22),
    )


def other_latencies() -> Panel:
    """Return latencies that are not of a stream's messages: round trips, loops, RTC-Testbench's."""
    columns = {"latency": 'max("value_ns")'}
    query = over_time(LATENCY, columns, where(_STREAM), ("quantity", "statistic"))
    return time_series(
        "All latencies by quantity",
        "Round trips, loop delays, one-way latencies, and what was imported from RTC-Testbench.",
        [Query(query, "$tag_quantity $tag_statistic")],
        unit=NS,
        size=(24, 8),
        look=Look("latency", log=True),
    )
