# SPDX-License-Identifier: Apache-2.0
"""Instrument health: what the bench says of itself. A latency is worth no more than this."""

from __future__ import annotations

from dashboards.delivery.deliver import SPOOL
from dashboards.grafana.influxql import OF_CHECKS, RUN_VARIABLES, SYNC_VARIABLES, over_time, select, where
from dashboards.grafana.model import Dashboard, Panel, Query
from dashboards.grafana.panels import COUNT, NS, SHARE, Look, stat, table, time_series
from dashboards.grafana.parts import event_annotations, subject_variables
from dashboards.points import EVENT, LATENCY, RUN, SYNC, VERDICT

UID = "bw-instrument"
SPOOL_DEPTH = "Spool"


def dashboard() -> Dashboard:
    """Return the dashboard."""
    return Dashboard(
        uid=UID,
        title="Benchwright: instrument health",
        description="The generator's lateness, uncertainties, the bench's checks of itself, the spool.",
        panels=(
            lateness(),
            latency_uncertainty(),
            clock_uncertainty(),
            checks_failed(),
            check_margins(),
            durations(),
            spool_now(),
            spool(),
            bench_changes(),
        ),
        variables=subject_variables(),
        annotations=event_annotations(),
    )


def lateness() -> Panel:
    """Return how late the generator sent."""
    largest = over_time(LATENCY, {"largest": 'max("lateness_max_ns")'}, where(), ("bench",))
    usual = over_time(LATENCY, {"p99": 'max("lateness_p99_ns")'}, where(), ("bench",))
    return time_series(
        "Generator's lateness",
        "sent - scheduled: the largest, and the 99 % quantile of the worst stream.",
        [Query(largest, "$tag_bench $col"), Query(usual, "$tag_bench $col")],
        unit=NS,
        look=Look("lateness", log=True),
    )


def latency_uncertainty() -> Panel:
    """Return the largest U of a latency."""
    query = over_time(RUN, {"U": 'max("u_max_ns")'}, where(variables=RUN_VARIABLES), ("bench", "profile"))
    return time_series(
        "Largest U of a latency",
        "Expanded uncertainty; most of it is the bound of the producers' clocks.",
        [Query(query, "$tag_bench / $tag_profile")],
        unit=NS,
        look=Look("U", log=True),
    )


def clock_uncertainty() -> Panel:
    """Return the bounds of the clocks' comparisons."""
    query = over_time(
        SYNC,
        {"U": 'max("u_ns")'},
        where("\"quantity\" = 'sync_offset'", variables=SYNC_VARIABLES),
        ("bench", "clock"),
    )
    return time_series(
        "U of the clocks' offsets",
        "Bounds of the comparisons with the reference, by bench and clock.",
        [Query(query, "$tag_bench $tag_clock")],
        unit=NS,
        look=Look("U", log=True),
    )


def checks_failed() -> Panel:
    """Return the bench's failed checks of itself and its problems."""
    columns = {"checks failed": 'sum("checks_failed")', "problems": 'sum("problems")'}
    return time_series(
        "Checks failed, and problems of the runs",
        "The bench's checks of itself (known delay, witnesses), and what went wrong with runs.",
        [Query(over_time(RUN, columns, where(variables=RUN_VARIABLES)), "$col")],
        unit=COUNT,
        look=Look("number", bars=True, legend=("sum",)),
    )


def check_margins() -> Panel:
    """Return the margins of the bench's checks of itself."""
    query = over_time(VERDICT, {"margin": 'min("margin_share")'}, where(OF_CHECKS), ("requirement",))
    return time_series(
        "Margin of the bench's checks",
        "Below 0: the bench does not find what it has put in itself; its verdicts are worth nothing.",
        [Query(query, "$tag_requirement")],
        unit=SHARE,
        look=Look("margin / limit", limits=True, legend=("lastNotNull", "min")),
        steps=((None, "transparent"), (0, "red")),
    )


def durations() -> Panel:
    """Return how long runs take."""
    condition = where(variables=RUN_VARIABLES)
    query = over_time(RUN, {"duration": 'max("duration_ns")'}, condition, ("bench", "profile"))
    return time_series(
        "Duration of a run",
        "From start to end, the longest of an interval.",
        [Query(query, "$tag_bench / $tag_profile")],
        unit=NS,
        look=Look("duration"),
    )


def spool_now() -> Panel:
    """Return how the spool stood at the last delivery."""
    columns = {"waiting": 'last("waiting")', "set aside": 'last("rejected")'}
    query = select(SPOOL, columns, "$timeFilter", group=("host",))
    return stat(
        SPOOL_DEPTH,
        "Points that wait, and rows that the server has refused, at the last delivery of each host.",
        [Query(query, "$tag_host $col")],
        unit=COUNT,
        width=6,
    )


def spool() -> Panel:
    """Return the depth of the spool over time."""
    columns = {"waiting": 'max("waiting")', "set aside": 'max("rejected")'}
    return time_series(
        "Spool of each host",
        "The largest of an interval, as each delivery tells it: a server that is down shows afterwards.",
        [Query(over_time(SPOOL, columns, "$timeFilter", ("host",)), "$tag_host $col")],
        unit=COUNT,
        size=(18, 8),
        look=Look("points"),
    )


def bench_changes() -> Panel:
    """Return the changes of the bench."""
    columns = {"bench": '"bench"', "what": '"text"', "first run": '"run_id"', "run before": '"run_before"'}
    condition = where("\"kind\" = 'bench-change'", variables=("bench",))
    return table(
        "Changes of the bench",
        "Kernels, processors, instruments: a change starts a new baseline instead of an alarm.",
        Query(select(EVENT, columns, condition, end="ORDER BY time DESC LIMIT 50"), table=True),
        size=(24, 7),
        hide_time=False,
    )
