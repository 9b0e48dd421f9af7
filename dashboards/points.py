# SPDX-License-Identifier: Apache-2.0
"""From the records of a run to points of series: what the store keeps and InfluxDB gets.

Every point of a run carries the run's start as its time. Its tags name the subject so closely that two
subjects of one run never share a series; what differs from run to run (run id, commit, reason, kernel) is a
field. Measured values are floats in every point, counts are integers: a field never changes its type. The
margin is computed by the record, before anything is stored. Tables of all tags and fields: docs/store.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, cast

from dashboards.bench_key import bench_facts, key_of_facts
from dashboards.errors import PointError
from dashboards.line_protocol import Field, Point, field_text, tag_text
from dashboards.pattern_points import pattern_points
from reports.daq_replay.record_replays import RecordReplays
from reports.quantities import AXES, INSTRUMENT_CHECKS, QUANTITIES, SERIES
from reports.record.histogram import Summary
from reports.record.measurement import Measurement, Outcome, parse_utc
from reports.run.folder import EVIDENCE, Records, RunFolder
from reports.run.manifest import Manifest
from reports.run.outcome import RunOutcome, outcome_of
from reports.run.selected import SKIPPED, UNTESTED
from reports.run.tally import effective, relative_margin, worst
from reports.timed_edges.trial import FOLDER as EDGES_FOLDER
from reports.tools.answers import StreamResult
from reports.units import NS_PER_S

PHYSICAL = {name: f"hil_{name}" for name in SERIES}
"""Measurements of times by the names of their series."""
LATENCY, SYNC, EDGES = PHYSICAL["latency"], PHYSICAL["sync"], PHYSICAL["edges"]
VERDICT, RUN, EVENT = "hil_verdict", "hil_run", "hil_event"
MEASUREMENTS = (*PHYSICAL.values(), VERDICT, RUN, EVENT)
MEASUREMENT_OF_QUANTITY = {
    name: PHYSICAL[row.series] for name, row in QUANTITIES.items() if row.series in PHYSICAL
}
"""Where a quantity goes besides `hil_verdict`, which gets every record."""

OUTCOME_CODE: dict[Outcome, int] = {"pass": 0, "unset": 1, "inconclusive": 2, "error": 3, "fail": 4}
"""Outcomes as numbers, the worst highest, for panels that map states to colours."""

SUBJECT_TAGS = ("bench", "target", "model", "stack", *sorted(AXES))
SERIES_TAGS = (*SUBJECT_TAGS, "quantity", "statistic", "requirement", "condition", "profile", "branch")
RUN_TAGS = ("bench", "profile", "branch")
EVENT_KINDS = ("regression", "improvement", "bench-change")

_EDGE_EVIDENCE = f"{EVIDENCE}/{EDGES_FOLDER}/"
_NS = {"ns": 1, "s": NS_PER_S}
_EPOCH = parse_utc("1970-01-01T00:00:00Z")


@dataclass(frozen=True)
class RunPoints:
    """A run as the store keeps it.

    Attributes:
        time_ns: Start of the run, the time of all its points.
        branch: Its class, see `branch_class`.
        facts: What the bench key is made of.
        source: Where it comes from: `run`, or `rtc-testbench`.
    """

    run_id: str
    time_ns: int
    bench: str
    profile: str
    branch: str
    commit: str | None
    simulated: bool
    outcome: Outcome
    points: tuple[Point, ...]
    facts: dict[str, str] = field(default_factory=dict[str, str])
    source: str = "run"

    def __post_init__(self) -> None:
        """Refuse two points of one series: the second would overwrite the first."""
        seen: set[tuple[str, int]] = set()
        for point in self.points:
            key = (point.series, point.time_ns)
            if key in seen:
                raise PointError(f"run {self.run_id}: two points of the series {point.series}")
            seen.add(key)


def run_points(folder: RunFolder, branch: str) -> RunPoints:
    """Return the points of a run folder, finished or not.

    Raises:
        RunFolderError: A whole line of its measurements is no record.
        PointError: A record cannot be a point.
    """
    manifest, records = folder.manifest, folder.records()
    time_ns = unix_ns(manifest.start_utc)
    counting = effective(records.measurements)
    facts = bench_facts(manifest)
    replays = RecordReplays(folder.path)
    common = _Common(manifest, branch, time_ns, facts)
    points: list[Point] = []
    for record in counting:
        points.append(_verdict_point(record, common))
        if (physical := _physical_point(record, common, replays)) is not None:
            points.append(physical)
    came_out = outcome_of(folder)
    points.append(_run_point(records, came_out, common, replays))
    points += pattern_points(folder, branch, time_ns, common.fields_of)
    return RunPoints(
        run_id=manifest.run_id,
        time_ns=time_ns,
        bench=manifest.bench,
        profile=manifest.profile,
        branch=branch,
        commit=manifest.commit,
        simulated=common.simulated or any(m.simulated for m in counting),
        outcome=came_out.outcome,
        points=tuple(points),
        facts=facts,
    )


def event_point(
    kind: str, series: Point, title: str, text: str, figures: dict[str, float], commits: Sequence[str] = ()
) -> Point:
    """Return an event of a series: a regression, an improvement, or a change of the bench.

    Args:
        kind: One of EVENT_KINDS.
        series: The first point after the change; its tags and time become the event's.
        title: Short, for a mark on a panel.
        text: What a reader wants to know.
        figures: Values before and after and the like, each with its unit in its name.
        commits: Those between the last run before the change and the first after it.

    Raises:
        PointError: The kind is unknown, the figures are not fit for fields, or the point is of no run.
    """
    if kind not in EVENT_KINDS:
        raise PointError(f"event: kind {kind!r} is not one of {', '.join(EVENT_KINDS)}")
    fields: dict[str, Field] = {name: float(value) for name, value in figures.items()}
    fields |= {"title": field_text(title), "text": field_text(text)}
    if "run_id" not in series.fields:
        raise PointError(f"event: {series.series}: no field run_id")
    fields["run_id"] = series.fields["run_id"]
    if commits:
        fields["commits"] = field_text(" ".join(commits))
    return Point(
        EVENT, {**series.tags, "kind": kind, "measurement": series.measurement}, fields, series.time_ns
    )


def unix_ns(time_utc: str) -> int:
    """Return an RFC 3339 time in UTC as nanoseconds since 1970; raises RecordError."""
    return (parse_utc(time_utc) - _EPOCH) // timedelta(microseconds=1) * 1000


def utc_text(time_ns: int) -> str:
    """Return nanoseconds since 1970 as an RFC 3339 time in UTC, to the microsecond."""
    time = _EPOCH + timedelta(microseconds=time_ns // 1000)
    return time.isoformat(timespec="microseconds").replace("+00:00", "Z")


@dataclass(frozen=True)
class _Common:
    """What all points of a run have in common."""

    manifest: Manifest
    branch: str
    time_ns: int
    facts: dict[str, str]

    @property
    def simulated(self) -> bool:
        return bool(self.manifest.simulated)

    def fields(self, record: Measurement | None) -> dict[str, Field]:
        """Return the fields that say where a point comes from; None: that of the whole run."""
        of_edges = record is not None and any(e.path.startswith(_EDGE_EVIDENCE) for e in record.evidence)
        return self.fields_of(None if record is None else record.subject.target, of_edges=of_edges)

    def fields_of(self, target: str | None, *, of_edges: bool = False) -> dict[str, Field]:
        """Return those of a target; None: of the whole run."""
        return {
            "run_id": self.manifest.run_id,
            "commit": self.manifest.commit or "",
            "bench_key": key_of_facts(self.facts, target, of_edges=of_edges),
        }

    def model(self, target: str) -> str:
        """Return the model of a target as it was read from it, '' where it was not."""
        facts = self.manifest.target.get(target)
        if not isinstance(facts, dict):
            return ""
        known = cast("dict[str, Any]", facts)
        hypervisor = known.get("hypervisor")
        product = cast("dict[str, Any]", hypervisor).get("product") if isinstance(hypervisor, dict) else None
        return str(known.get("model") or product or "")


def _lateness(record: Measurement, replays: RecordReplays) -> Summary | None:
    """Return how late the generator sent a record's stream; None where the target itself sent it."""
    replay, stream = replays.of(record), replays.stream_of(record)
    if replay is None or stream is None or (replay.role and replay.role.producer == stream.producer):
        return None
    return stream.sent_minus_scheduled


def _tags(record: Measurement, common: _Common) -> dict[str, str]:
    s, c = record.subject, record.conditions
    tags = {
        "bench": s.bench,
        "target": s.target,
        "model": common.model(s.target),
        "stack": s.stack,
        **dict(s.of),
        "quantity": record.quantity,
        "statistic": record.statistic,
        "requirement": record.requirement,
        "condition": "/".join(filter(None, (c.phase or "-", c.load, c.impairment, c.numbers_text))),
        "profile": c.profile,
        "branch": common.branch,
    }
    return {name: tag_text(value) for name, value in tags.items() if value and value.strip()}


def _counts(record: Measurement) -> dict[str, Field]:
    return {
        "n": record.n,
        "n_required": record.n_required,
        "lost": record.lost,
        "outcome": record.outcome,
        "outcome_code": OUTCOME_CODE[record.outcome],
        "simulated": record.simulated,
    }


def _verdict_point(record: Measurement, common: _Common) -> Point:
    fields: dict[str, Field] = {**common.fields(record), **_counts(record)}
    fields |= {"unit": record.unit, "u": float(record.uncertainty.expanded)}
    fields |= {"check": record.quantity in INSTRUMENT_CHECKS, "reason": field_text(record.reason)}
    share = relative_margin(record)
    _put(fields, {"value": record.value, "margin": record.margin, "margin_share": share})
    return Point(VERDICT, _tags(record, common), fields, common.time_ns)


def _physical_point(record: Measurement, common: _Common, replays: RecordReplays) -> Point | None:
    """Return the point with the values in ns; None for a quantity that is no time."""
    measurement, factor = MEASUREMENT_OF_QUANTITY.get(record.quantity), _NS.get(record.unit)
    if measurement is None or factor is None:
        return None
    fields: dict[str, Field] = {**common.fields(record), **_counts(record)}
    values = {
        "value_ns": record.value,
        "margin_ns": record.margin,
        "u_ns": record.uncertainty.expanded,
        "limit_upper_ns": record.limit.upper,
        "limit_lower_ns": record.limit.lower,
    }
    _put(fields, {name: None if value is None else value * factor for name, value in values.items()})
    _put(fields, {"margin_share": relative_margin(record)})
    stream = replays.stream_of(record) if record.quantity == "one_way_latency" else None
    if stream is not None:
        _put(fields, _distribution(stream, _lateness(record, replays)))
        fields |= {"misses": stream.misses, "misses_sent": stream.misses_sent}
    return Point(measurement, _tags(record, common), fields, common.time_ns)


def _distribution(stream: StreamResult, lateness: Summary | None) -> dict[str, float | int | None]:
    """Return the quantiles of received - scheduled, and of the generator's own lateness."""
    latency = stream.received_minus_scheduled
    quantiles = {"p50_ns": 0.5, "p90_ns": 0.9, "p99_ns": 0.99, "p999_ns": 0.999}
    found: dict[str, float | int | None] = {"mean_ns": latency.mean_ns}
    for name, share in quantiles.items():
        quantile = latency.quantile(share)
        found[name] = quantile.value_ns if quantile and (name != "p999_ns" or latency.tells(share)) else None
    late = lateness.quantile(0.99) if lateness else None
    found["lateness_max_ns"] = lateness.max_ns if lateness else None
    found["lateness_p99_ns"] = late.value_ns if late else None
    return found


def _run_point(records: Records, came_out: RunOutcome, common: _Common, replays: RecordReplays) -> Point:
    m = common.manifest
    tags = {"bench": tag_text(m.bench), "profile": tag_text(m.profile), "branch": common.branch}
    judged = came_out.judged
    fields: dict[str, Field] = {
        **common.fields(None),
        "outcome": came_out.outcome,
        "outcome_code": OUTCOME_CODE[came_out.outcome],
        "simulated": common.simulated or any(r.simulated for r in (*judged, *came_out.checks)),
        "complete": m.end_utc is not None and records.torn is None,
        **{f"count_{name}": came_out.counts[name] for name in OUTCOME_CODE},
        "checks_failed": sum(r.outcome != "pass" for r in came_out.checks),
        "requirements_skipped": came_out.states.get(SKIPPED, 0),
        "requirements_untested": came_out.states.get(UNTESTED, 0),
        "requirements": sum(came_out.states.values()),
        "attempts": len(records.measurements),
        "lost": sum(record.lost for record in judged),
        "tests_passed": m.tests.passed,
        "tests_failed": m.tests.failed,
        "tests_skipped": m.tests.skipped,
        "problems": len(m.problems),
    }
    if m.end_utc is not None:
        fields["duration_ns"] = float(unix_ns(m.end_utc) - common.time_ns)
    poorest = worst(judged)
    if poorest is not None:
        fields["worst_requirement"] = poorest.requirement
        _put(fields, {"worst_margin_share": relative_margin(poorest)})
    _put(fields, _instrument(judged, replays))
    return Point(RUN, tags, fields, common.time_ns)


def _instrument(judged: Iterable[Measurement], replays: RecordReplays) -> dict[str, float | int | None]:
    """Return what the bench says of itself: the generator's worst lateness, the largest U of a latency."""
    latencies = [record for record in judged if record.quantity == "one_way_latency"]
    late = [s.max_ns for r in latencies if (s := _lateness(r, replays)) is not None]
    return {
        "lateness_max_ns": max((value for value in late if value is not None), default=None),
        "u_max_ns": max((record.uncertainty.expanded for record in latencies), default=None),
    }


def _put(fields: dict[str, Field], values: dict[str, float | int | None]) -> None:
    """Add those values that there are, as floats."""
    fields.update({name: float(value) for name, value in values.items() if value is not None})
