# SPDX-License-Identifier: Apache-2.0
"""A dashboard for each series of times, and one for the instrument's health: one row a panel."""

from __future__ import annotations

from dashboards.delivery.deliver import SPOOL
from dashboards.grafana.influxql import OF_CHECKS, Values, of, others, tag_values
from dashboards.grafana.model import Dashboard, Variable
from dashboards.grafana.panels import (
    LARGEST_U,
    LEAST_MARGIN,
    MARGIN_LOOK,
    OUTCOME,
    U_LOOK,
    Look,
    by_name,
    dashed,
    stat,
    state_timeline,
    table,
    time_series,
)
from dashboards.grafana.parts import dashboard
from dashboards.points import EDGES, EVENT, LATENCY, PHYSICAL, RUN, SYNC, VERDICT
from reports.quantities import SERIES

SPOOL_DEPTH = "Spool"
_STREAMS = ('"stream" =~ /^$stream$/',)
_ONE_WAY = (of("one_way_latency"), *_STREAMS)
_ONE_STREAM = (of("one_way_latency"), "\"stream\" = '$one'")
_BY_STREAM = "stream $tag_stream"
_OFFSET, _DELAY = (of("sync_offset"),), (of("edge_delay"),)
_STABILITY = ("te", "mtie", "tdev")
_OTHERS_OF_SYNC = others("sync", "sync_offset", "lock_time", "clock_read_latency", *_STABILITY)
_WORST = "The worst outcome of each interval."
_LARGEST = {"largest": 'max("value_ns")'}
_RANGE = {"highest": 'max("value_ns")', "lowest": 'min("value_ns")'}
_NEAREST = {"smallest margin": 'min("margin_share")', "worst outcome": 'max("outcome_code")'}

LATENCIES = dashboard(
    "latency",
    "latency",
    "Latency of each stream against its budget. Latency: received - scheduled.",
    time_series(
        "Share of its budget that each stream uses",
        "(largest latency + U) / budget: streams of different budgets can be compared. Above 100 %: no pass.",
        Values(LATENCY, {"used": '1 - min("margin_share")'}, _ONE_WAY, ("stream",), alias=_BY_STREAM),
        Look("(latency + U) / budget", limit=1, legend_right=True),
        size=(24, 11),
    ),
    time_series(
        "Distribution",
        "Quantiles of one stream's latency, chosen at the top; the worst of an interval.",
        Values(
            LATENCY,
            {name: f'max("{name}_ns")' for name in ("p50", "p90", "p99", "p999")}
            | {"max": 'max("value_ns")', "budget": 'min("limit_upper_ns")'},
            _ONE_STREAM,
        ),
        Look("latency", "log"),
        overrides=[dashed("budget"), by_name("max", {"custom.lineWidth": 2})],
    ),
    time_series(
        "Largest latency",
        "By stream.",
        Values(LATENCY, {"latency": 'max("value_ns")'}, _ONE_WAY, ("stream",), alias=_BY_STREAM),
        Look("latency", "log", legend_right=True),
    ),
    time_series(
        "Margin",
        "budget - largest latency - U, by stream. Below 0: no pass.",
        Values(LATENCY, {"margin": 'min("margin_ns")'}, _ONE_WAY, ("stream",), alias=_BY_STREAM),
        Look("margin", limit=0, legend=("lastNotNull", "min"), legend_right=True),
    ),
    time_series(
        "Messages lost, and over their budget",
        "Over: received - scheduled; as sent: received - sent, so without the generator's own lateness.",
        Values(
            LATENCY,
            {
                "lost": 'sum("lost")',
                "over budget": 'sum("misses")',
                "over budget as sent": 'sum("misses_sent")',
            },
            _ONE_WAY,
        ),
        Look("messages", bars=True, legend=("sum",)),
    ),
    table(
        "Streams, the nearest to their budgets first",
        "Over the chosen time.",
        Values(
            LATENCY,
            {
                "largest latency": 'max("value_ns")',
                "budget": 'last("limit_upper_ns")',
                "last U": 'last("u_ns")',
            }
            | _NEAREST,
            _ONE_WAY,
            ("stream",),
        ),
        size=(24, 12),
        sort="smallest margin",
    ),
    state_timeline(
        "Verdict of each stream", _WORST, Values(LATENCY, OUTCOME, _ONE_WAY, ("stream",)), size=(24, 22)
    ),
    time_series(
        "All latencies by quantity",
        "Round trips, loop delays, one-way latencies, and what was imported from RTC-Testbench.",
        Values(LATENCY, {"latency": 'max("value_ns")'}, _STREAMS, ("quantity", "statistic")),
        Look("latency", "log"),
        size=(24, 8),
    ),
    variables=(
        Variable("stream", "Stream", tag_values(LATENCY, "stream")),
        Variable("one", "Distribution of stream", tag_values(LATENCY, "stream"), several=False),
    ),
)

CLOCKS = dashboard(
    "clock-sync",
    "clock sync",
    "Offsets, time to lock, time error, time to read. Positive: the target is ahead.",
    time_series(
        "Offset",
        "The offset farthest from zero of each trial: highest and lowest of an interval, by clock. "
        "Positive: the target is ahead.",
        Values(SYNC, _RANGE, _OFFSET, ("clock",)),
        Look("offset", legend=("lastNotNull", "min", "max"), legend_right=True),
        size=(24, 10),
    ),
    time_series(
        "Margin",
        "Least margin of a clock's requirements as a share of the limit. Below 0: no pass.",
        Values(SYNC, LEAST_MARGIN, by=("clock",)),
        MARGIN_LOOK,
    ),
    time_series(
        "Time to lock",
        "From the start of the clock stack until the offset stays within its window; the longest, by clock.",
        Values(
            SYNC,
            {"lock time": 'max("value_ns")', "limit": 'min("limit_upper_ns")'},
            (of("lock_time"),),
            ("clock",),
        ),
        Look("time"),
    ),
    time_series(
        "Time error, MTIE, TDEV",
        "The largest of an interval, by clock.",
        Values(SYNC, _LARGEST, (of(*_STABILITY),), ("clock", "quantity")),
        Look("time error"),
    ),
    time_series(
        "U of offsets",
        "Expanded uncertainty, the largest of an interval: what the bench itself cannot tell.",
        Values(SYNC, LARGEST_U, _OFFSET, ("clock",)),
        U_LOOK,
    ),
    time_series(
        "Time to read a clock",
        "By clock and statistic.",
        Values(SYNC, {"latency": 'max("value_ns")'}, (of("clock_read_latency"),), ("clock", "statistic")),
        Look("time"),
    ),
    state_timeline("Verdicts", _WORST, Values(SYNC, OUTCOME, by=("requirement",)), size=(12, 9)),
    table(
        "Offsets by requirement, the nearest to their limits first",
        "Over the chosen time.",
        Values(
            SYNC,
            {
                "highest value": 'max("value_ns")',
                "lowest value": 'min("value_ns")',
                "limit": 'min("limit_upper_ns")',
                **LARGEST_U,
                **_NEAREST,
                "values": 'count("outcome_code")',
            },
            _OFFSET,
            ("requirement",),
        ),
        size=(24, 9),
        sort="smallest margin",
    ),
    time_series(
        "Other values of clocks",
        "Steps, differences between witnesses, and what else no panel above shows: highest and lowest of an "
        "interval, by clock.",
        Values(SYNC, _RANGE, (_OTHERS_OF_SYNC,), ("quantity", "clock")),
        Look("value", legend=("lastNotNull", "min", "max"), legend_right=True),
        size=(24, 8),
    ),
)

TIMED_EDGES = dashboard(
    "timed-edges",
    "timed edges",
    "Delays of timed edges by method.",
    time_series(
        "Delay of an edge",
        "Highest and lowest of an interval, by method and statistic. The standard deviation is what tells "
        "methods apart; a mean below 0: the edges came early.",
        Values(EDGES, _RANGE, _DELAY, ("method", "statistic")),
        Look("delay", "symlog", legend=("lastNotNull", "min", "max"), legend_right=True),
        size=(24, 10),
    ),
    time_series(
        "Margin",
        "Least margin of a method's requirements as a share of the limit. Below 0: no pass.",
        Values(EDGES, LEAST_MARGIN, _DELAY, ("method",)),
        MARGIN_LOOK,
    ),
    time_series(
        "U",
        "Expanded uncertainty, the largest of an interval.",
        Values(EDGES, LARGEST_U, _DELAY, ("method",)),
        U_LOOK,
    ),
    time_series(
        "Order of the methods, and the shift of a mistake",
        "Differences of two methods' standard deviations (above 0: in the expected order), and how far the "
        "mean moved otherwise than an error that was put in should have moved it.",
        Values(EDGES, {"value": 'min("value_ns")'}, (others("edges", "edge_delay"),), ("quantity", "method")),
        Look("time", legend=("lastNotNull", "min")),
    ),
    time_series(
        "Edges missing",
        "By method, sums of an interval.",
        Values(EDGES, {"missing": 'sum("lost")'}, _DELAY, ("method",)),
        Look("edges", bars=True, legend=("sum",)),
    ),
    state_timeline("Verdicts", _WORST, Values(EDGES, OUTCOME, by=("requirement",))),
    table(
        "Delays by requirement, the nearest to their limits first",
        "Over the chosen time.",
        Values(
            EDGES,
            {
                "largest value": 'max("value_ns")',
                "limit": 'min("limit_upper_ns")',
                **LARGEST_U,
                "smallest margin": 'min("margin_share")',
                "edges": 'sum("n")',
                "missing": 'sum("lost")',
                "worst outcome": 'max("outcome_code")',
                "values": 'count("outcome_code")',
            },
            _DELAY,
            ("requirement",),
        ),
        size=(24, 8),
        sort="smallest margin",
    ),
)


def of_series(name: str) -> Dashboard:
    """Return the dashboard of a series that has none of its own above: values, margins, U and verdicts."""
    measurement, row = PHYSICAL[name], SERIES[name]
    return dashboard(
        name,
        row.title.lower(),
        row.words,
        time_series(
            "Values",
            f"Highest and lowest of an interval, by {row.subject}.",
            Values(measurement, _RANGE, by=("quantity", row.subject)),
            Look("value", legend=("lastNotNull", "min", "max"), legend_right=True),
            size=(24, 10),
        ),
        time_series(
            "Margin",
            "Least margin as a share of the limit. Below 0: no pass.",
            Values(measurement, LEAST_MARGIN, by=("requirement",)),
            MARGIN_LOOK,
        ),
        time_series(
            "U",
            "Expanded uncertainty, the largest of an interval.",
            Values(measurement, LARGEST_U, by=("requirement",)),
            U_LOOK,
        ),
        state_timeline("Verdicts", _WORST, Values(measurement, OUTCOME, by=("requirement",))),
    )


OF_SERIES = {"latency": LATENCIES, "sync": CLOCKS, "edges": TIMED_EDGES}
SUBJECTS = tuple(OF_SERIES.get(name) or of_series(name) for name in SERIES)

INSTRUMENT = dashboard(
    "instrument",
    "instrument health",
    "The generator's lateness, uncertainties, the bench's checks of itself, the spool.",
    time_series(
        "Generator's lateness",
        "sent - scheduled: the largest, and the 99 % quantile of the worst stream.",
        Values(
            LATENCY, {"largest": 'max("lateness_max_ns")', "p99": 'max("lateness_p99_ns")'}, by=("bench",)
        ),
        Look("lateness", "log"),
    ),
    time_series(
        "Largest U of a latency",
        "Expanded uncertainty; most of it is the bound of the producers' clocks.",
        Values(RUN, {"U": 'max("u_max_ns")'}, by=("bench", "profile")),
        U_LOOK,
    ),
    time_series(
        "U of the clocks' offsets",
        "Bounds of the comparisons with the reference, by bench and clock.",
        Values(SYNC, LARGEST_U, _OFFSET, ("bench", "clock")),
        U_LOOK,
    ),
    time_series(
        "Checks failed, and problems of the runs",
        "The bench's checks of itself (known delay, witnesses), and what went wrong with runs.",
        Values(RUN, {"checks failed": 'sum("checks_failed")', "problems": 'sum("problems")'}),
        Look("number", bars=True, legend=("sum",)),
    ),
    time_series(
        "Margin of the bench's checks",
        "Below 0: the bench does not find what it has put in itself; its verdicts are worth nothing.",
        Values(VERDICT, LEAST_MARGIN, (OF_CHECKS,), ("requirement",)),
        MARGIN_LOOK,
    ),
    time_series(
        "Duration of a run",
        "From start to end, the longest of an interval.",
        Values(RUN, {"duration": 'max("duration_ns")'}, by=("bench", "profile")),
        Look("duration"),
    ),
    stat(
        SPOOL_DEPTH,
        "Points that wait, and rows that the server has refused, at the last delivery of each host.",
        Values(SPOOL, {"waiting": 'last("waiting")', "set aside": 'last("rejected")'}, by=("host",)),
        width=6,
    ),
    time_series(
        "Spool of each host",
        "The largest of an interval, as each delivery tells it: a server that is down shows afterwards.",
        Values(SPOOL, {"waiting": 'max("waiting")', "set aside": 'max("rejected")'}, by=("host",)),
        Look("points"),
        size=(18, 8),
    ),
    table(
        "Changes of the bench",
        "Kernels, processors, instruments: a change starts a new baseline instead of an alarm.",
        Values(
            EVENT,
            {"bench": '"bench"', "what": '"text"', "first run": '"run_id"', "run before": '"run_before"'},
            ("\"kind\" = 'bench-change'",),
            variables=("bench",),
        ),
        end="ORDER BY time DESC LIMIT 50",
        size=(24, 7),
        hide_time=False,
    ),
)
