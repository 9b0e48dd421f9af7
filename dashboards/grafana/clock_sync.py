# SPDX-License-Identifier: Apache-2.0
"""Clock sync: how far clocks are off, how soon they lock, and what a reading of them costs."""

from __future__ import annotations

from dashboards.grafana.influxql import SYNC_VARIABLES, over_time, select, where
from dashboards.grafana.model import Dashboard, Panel, Query
from dashboards.grafana.panels import (
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
from dashboards.points import SYNC

UID = "bw-clock-sync"
_OFFSET = "\"quantity\" = 'sync_offset'"


def dashboard() -> Dashboard:
    """Return the dashboard."""
    return Dashboard(
        uid=UID,
        title="Benchwright: clock sync",
        description="Offsets, time to lock, time error, time to read. Positive: the target is ahead.",
        panels=(
            offsets(),
            margins(),
            lock_times(),
            stability(),
            uncertainty(),
            read_latency(),
            verdicts(),
            requirements(),
        ),
        variables=subject_variables(),
        annotations=event_annotations(),
    )


def offsets() -> Panel:
    """Return the offsets that were farthest from zero, either way."""
    columns = {"highest": 'max("value_ns")', "lowest": 'min("value_ns")'}
    return time_series(
        "Offset",
        "The offset farthest from zero of each trial: highest and lowest of an interval, by clock. "
        "Positive: the target is ahead.",
        [Query(over_time(SYNC, columns, _where(_OFFSET), ("clock",)), "$tag_clock $col")],
        unit=NS,
        size=(24, 10),
        look=Look("offset", legend=("lastNotNull", "min", "max"), legend_right=True),
    )


def margins() -> Panel:
    """Return the least margin of each clock."""
    query = over_time(SYNC, {"margin": 'min("margin_share")'}, _where(), ("clock",))
    return time_series(
        "Margin",
        "Least margin of a clock's requirements as a share of the limit. Below 0: no pass.",
        [Query(query, "$tag_clock")],
        unit=SHARE,
        look=Look("margin / limit", limits=True, legend=("lastNotNull", "min")),
        steps=((None, "transparent"), (0, "red")),
    )


def lock_times() -> Panel:
    """Return how long clocks take to lock."""
    condition = _where("\"quantity\" = 'lock_time'")
    columns = {"lock time": 'max("value_ns")', "limit": 'min("limit_upper_ns")'}
    return time_series(
        "Time to lock",
        "From the start of the clock stack until the offset stays within its window; the longest, by clock.",
        [Query(over_time(SYNC, columns, condition, ("clock",)), "$tag_clock $col")],
        unit=NS,
        look=Look("time"),
    )


def stability() -> Panel:
    """Return time error, MTIE and TDEV."""
    condition = _where('"quantity" =~ /^(te|mtie|tdev)$/')
    columns = {"largest": 'max("value_ns")'}
    return time_series(
        "Time error, MTIE, TDEV",
        "The largest of an interval, by clock.",
        [Query(over_time(SYNC, columns, condition, ("clock", "quantity")), "$tag_clock $tag_quantity")],
        unit=NS,
        look=Look("time error"),
    )


def uncertainty() -> Panel:
    """Return the expanded uncertainty of offsets."""
    query = over_time(SYNC, {"U": 'max("u_ns")'}, _where(_OFFSET), ("clock",))
    return time_series(
        "U of offsets",
        "Expanded uncertainty, the largest of an interval: what the bench itself cannot tell.",
        [Query(query, "$tag_clock")],
        unit=NS,
        look=Look("U", log=True),
    )


def read_latency() -> Panel:
    """Return what a reading of each clock takes."""
    columns = {"latency": 'max("value_ns")'}
    condition = _where("\"quantity\" = 'clock_read_latency'")
    return time_series(
        "Time to read a clock",
        "By clock and statistic.",
        [Query(over_time(SYNC, columns, condition, ("clock", "statistic")), "$tag_clock $tag_statistic")],
        unit=NS,
        look=Look("time"),
    )


def verdicts() -> Panel:
    """Return the verdict of each requirement on clocks over time."""
    query = over_time(SYNC, {"outcome": 'max("outcome_code")'}, _where(), ("requirement",))
    return state_timeline(
        "Verdicts", "The gravest outcome of each interval.", Query(query, "$tag_requirement"), size=(12, 9)
    )


def requirements() -> Panel:
    """Return the requirements on clocks, the nearest to their limits first."""
    columns = {
        "highest value": 'max("value_ns")',
        "lowest value": 'min("value_ns")',
        "limit": 'min("limit_upper_ns")',
        "U": 'max("u_ns")',
        "smallest margin": 'min("margin_share")',
        "gravest outcome": 'max("outcome_code")',
        "values": 'count("outcome_code")',
    }
    return table(
        "Offsets by requirement, the nearest to their limits first",
        "Over the chosen time.",
        Query(select(SYNC, columns, _where(_OFFSET), group=("requirement",)), table=True),
        size=(24, 9),
        overrides=[
            *units(NS, "highest value", "lowest value", "limit", "U"),
            margin_column("smallest margin"),
            outcome_column("gravest outcome"),
        ],
        sort="smallest margin",
    )


def _where(*conditions: str) -> str:
    return where(*conditions, variables=SYNC_VARIABLES)
