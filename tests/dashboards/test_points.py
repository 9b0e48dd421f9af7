# SPDX-License-Identifier: Apache-2.0
"""From records to points: series that never collide, few of them, and fields that never change their type."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dashboards.bench_key import bench_facts, changes, key_of_facts
from dashboards.branch import branch_class
from dashboards.errors import PointError
from dashboards.line_protocol import Point
from dashboards.points import (
    EDGES,
    LATENCY,
    MEASUREMENT_OF_QUANTITY,
    RUN,
    RUN_TAGS,
    SERIES_TAGS,
    SYNC,
    VERDICT,
    RunPoints,
    event_point,
    run_points,
    unix_ns,
)
from hw.errors import ConfigError
from reports.quantities import INSTRUMENT_CHECKS
from reports.record.measurement import AxisValue, Subject, UncertaintyPart
from tests.dashboards.runs import make_run, record


def by_measurement(run: RunPoints, measurement: str) -> list[Point]:
    return [point for point in run.points if point.measurement == measurement]


def test_each_record_gives_a_verdict_and_its_physical_value(tmp_path: Path) -> None:
    run = make_run(tmp_path, [record(), record(quantity="lock_time", unit="s", value=2, upper=10)])
    points = run_points(run, "main")
    assert len(by_measurement(points, VERDICT)) == 2
    latency = by_measurement(points, LATENCY)[0]
    assert latency.fields["value_ns"] == 1_000_000.0
    assert latency.fields["margin_ns"] == 8_999_900.0
    assert latency.fields["u_ns"] == 100.0
    assert latency.tags["requirement"] == "DAQ-031"
    lock = by_measurement(points, SYNC)[0]
    assert (lock.fields["value_ns"], lock.fields["limit_upper_ns"]) == (2e9, 1e10)


def test_time_is_the_start_of_the_run(tmp_path: Path) -> None:
    run = make_run(tmp_path, [record()])
    points = run_points(run, "main")
    assert {point.time_ns for point in points.points} == {unix_ns(run.manifest.start_utc)}


def test_run_point_counts_outcomes_and_names_the_worst(tmp_path: Path) -> None:
    failed = record(requirement="DAQ-032", value=11_000_000, outcome="fail")
    unsound = record(quantity="known_delay_error", requirement="B", value=11_000_000, outcome="fail")
    points = run_points(make_run(tmp_path, [record(), failed, unsound]), "main")
    (run,) = by_measurement(points, RUN)
    assert (run.fields["count_pass"], run.fields["count_fail"], run.fields["checks_failed"]) == (1, 1, 1)
    assert run.fields["worst_requirement"] == "DAQ-032"
    assert run.fields["worst_margin_share"] == pytest.approx(-0.10001)
    assert (run.fields["outcome"], run.fields["outcome_code"]) == ("fail", 4)
    assert run.fields["complete"] is False  # nobody has closed this one


def test_only_the_attempt_that_counts(tmp_path: Path) -> None:
    late = record(value=9_999_950, outcome="inconclusive")
    points = run_points(make_run(tmp_path, [late, record()]), "main")
    assert [p.fields["outcome"] for p in by_measurement(points, VERDICT)] == ["pass"]


def test_two_requirements_on_one_value_are_two_series(tmp_path: Path) -> None:
    points = run_points(make_run(tmp_path, [record(), record(requirement="DAQ-099")]), "main")
    assert len({point.series for point in points.points}) == len(points.points) == 5


def test_two_points_of_one_series_are_refused() -> None:
    point = Point(LATENCY, {"bench": "b"}, {"v": 1.0}, 1)
    with pytest.raises(PointError, match="two points of the series"):
        RunPoints("r", 1, "b", "ci", "main", None, False, "pass", (point, point))


def test_what_differs_from_run_to_run_makes_no_series(tmp_path: Path) -> None:
    """A hundred runs have as many series as one."""
    names: set[str] = set()
    for number in range(3):
        run = make_run(tmp_path / str(number), [record(value=1000 + number)])
        run.update(commit=f"{number:040}", target={"linux-rt": {"hostname": f"host-{number}"}})
        names |= {point.series for point in run_points(run, "main").points}
    assert len(names) == 3


def test_tags_are_those_that_are_documented(tmp_path: Path) -> None:
    subject = Subject(
        "b",
        "linux-rt",
        stack="kernel",
        clock="chrony",
        stream="1",
        method="tgpio-latch",
        axes=(
            AxisValue("device", "board"),
            AxisValue("leg", "to the target"),
            AxisValue("stretch", "whole"),
            AxisValue("size", "64 B"),
            AxisValue("beside", "idle"),
            AxisValue("under", "lossy"),
            AxisValue("pair", "user less kernel"),
            AxisValue("message_type", "type 0"),
        ),
    )
    run = make_run(tmp_path, [record(subject=subject)])
    run.update(target={"linux-rt": {"hypervisor": {"product": "Q35"}}})
    for point in run_points(run, "main").points:
        allowed = RUN_TAGS if point.measurement == RUN else SERIES_TAGS
        assert set(point.tags) == set(allowed)


def test_fields_never_change_their_type(tmp_path: Path) -> None:
    """Values are floats and counts integers, whatever the record has; a server refuses a mixture."""
    whole = record()
    broken = record(value=1000000.5, upper=1e7, parts=(UncertaintyPart("a", "bound", 0.5),))
    types: dict[tuple[str, str], set[type]] = {}
    for number, one in enumerate((whole, broken)):
        for point in run_points(make_run(tmp_path / str(number), [one]), "main").points:
            for name, value in point.fields.items():
                types.setdefault((point.measurement, name), set()).add(type(value))
    assert {key: found for key, found in types.items() if len(found) > 1} == {}


def test_unset_value_is_no_field(tmp_path: Path) -> None:
    points = run_points(make_run(tmp_path, [record(value=None, outcome="unset", n=0)]), "main")
    latency = by_measurement(points, LATENCY)[0]
    assert "value_ns" not in latency.fields
    assert latency.fields["outcome"] == "unset"


def test_quantity_without_a_place_is_kept_as_a_verdict(tmp_path: Path) -> None:
    points = run_points(make_run(tmp_path, [record(quantity="throughput", unit="bit/s")]), "main")
    assert [point.measurement for point in points.points] == [VERDICT, RUN]
    assert points.points[0].fields["value"] == 1e6


def test_every_check_of_the_bench_in_time_units_has_a_place() -> None:
    dimensionless = {"edge_witness_en", "software_latency_en", "timeline_contradictions"}
    dimensionless |= {"places_beyond_u", "places_outside", "loop_contradictions", "loop_unaccounted"}
    dimensionless |= {"loop_whole_beyond_u", "loop_whole_outside", "loop_witnesses_en", "loop_slope_error"}
    outside = {"known_delay_error", "software_latency_closure"}  # of the whole bench: a verdict is enough
    assert INSTRUMENT_CHECKS - dimensionless - outside <= set(MEASUREMENT_OF_QUANTITY)
    assert EDGES in MEASUREMENT_OF_QUANTITY.values()


def test_event_has_the_tags_of_its_series() -> None:
    series = Point(LATENCY, {"bench": "b", "stream": "31"}, {"value_ns": 2.0, "run_id": "r2"}, 7)
    event = event_point(
        "regression", series, "31 got slower", "more", {"before_ns": 1, "after_ns": 2}, ["c1"]
    )
    assert event.line() == (
        "hil_event,bench=b,kind=regression,measurement=hil_latency,stream=31 "
        'after_ns=2.0,before_ns=1.0,commits="c1",run_id="r2",text="more",title="31 got slower" 7'
    )
    with pytest.raises(PointError, match="kind"):
        event_point("oddity", series, "", "", {})


def test_bench_key_follows_the_bench_and_not_the_run(tmp_path: Path) -> None:
    def facts_of(folder: str, release: str, hostname: str) -> dict[str, str]:
        run = make_run(tmp_path / folder, [])
        run.update(host={"system": "Linux 6.12", "hostname": hostname})
        run.update(target={"linux-rt": {"kernel": {"release": release}, "hostname": hostname}})
        return bench_facts(run.manifest)

    first, same = facts_of("1", "6.12-rt", "a"), facts_of("2", "6.12-rt", "b")
    other = facts_of("3", "6.13-rt", "a")
    assert key_of_facts(first) == key_of_facts(same) != key_of_facts(other)
    assert changes(first, other) == ["linux-rt.kernel.release: 6.12-rt -> 6.13-rt"]
    assert changes(first, {"host.system": "Linux 6.12"}) == []
    assert key_of_facts(first, "windows") == key_of_facts(other, "windows")


INSTRUMENT = {"kind": "oscilloscope", "identity": None, "serial": None, "limits": {"skew_ps": 150}}


def test_bench_key_follows_wiring_and_the_instruments_that_took_part(tmp_path: Path) -> None:
    def facts_of(folder: str, wiring: dict[str, str] | None = None, **changes: Any) -> dict[str, str]:
        run = make_run(tmp_path / folder, [])
        instruments: dict[str, Any] = {"scope-a": {**INSTRUMENT, **changes}}
        instruments["timecard-linux-rt"] = {"kind": "timecard", "limits": {"bound_ns": 100}}
        run.update(host={"instruments": instruments, "wiring": wiring or {}})
        return bench_facts(run.manifest)

    def keys(facts: dict[str, str]) -> tuple[str, str, str]:
        edges = key_of_facts(facts, "linux-rt", of_edges=True)
        return key_of_facts(facts, "linux-rt"), edges, key_of_facts(facts, "windows")

    plain = keys(facts_of("1"))
    assert len(set(plain)) == 3
    opened = keys(facts_of("2", identity="A,B,C1,D", serial="C1"))
    assert (opened[0], opened[2]) == (plain[0], plain[2])  # a latency does not depend on what was opened
    assert opened[1] != plain[1]
    due = {"certificate": "no. 7", "date": "2026-01-31", "due": "2027-01-31"}
    calibrated = keys(facts_of("3", identity="A,B,C1,D", serial="C1", calibration=due))
    assert calibrated[1] not in (opened[1], plain[1])
    wired = keys(facts_of("4", wiring={"edge": "RG-316, 1.00 m"}))
    assert not set(wired) & set(plain)
    before = facts_of("5", wiring={"edge": "RG-316, 1.00 m"}, calibration=due)
    after = facts_of("6", wiring={"edge": "RG-316, 2.00 m"}, calibration={**due, "due": "2028-01-31"})
    assert [text.split(":")[0] for text in changes(before, after)] == [
        "host.instruments.scope-a.calibration",
        "host.wiring.edge",
    ]


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, "adhoc"),
        ({"BENCHWRIGHT_BRANCH_CLASS": "release", "GITHUB_ACTIONS": "true"}, "release"),
        ({"GITHUB_ACTIONS": "true", "GITHUB_REF_NAME": "main"}, "main"),
        ({"GITHUB_ACTIONS": "true", "GITHUB_REF_NAME": "7/merge", "GITHUB_EVENT_NAME": "pull_request"}, "pr"),
        ({"GITHUB_ACTIONS": "true", "GITHUB_REF_NAME": "v1.2", "GITHUB_REF_TYPE": "tag"}, "release"),
        ({"GITLAB_CI": "true", "CI_COMMIT_BRANCH": "trunk", "CI_DEFAULT_BRANCH": "trunk"}, "main"),
        ({"GITLAB_CI": "true", "CI_MERGE_REQUEST_IID": "3"}, "pr"),
        ({"JENKINS_URL": "x", "BRANCH_NAME": "release/2.1"}, "release"),
        ({"JENKINS_URL": "x", "BRANCH_NAME": "PR-4", "CHANGE_ID": "4"}, "pr"),
        ({"JENKINS_URL": "x", "BRANCH_NAME": "feature/x"}, "adhoc"),
    ],
)
def test_branch_class(environment: dict[str, str], expected: str) -> None:
    assert branch_class(environment) == expected


def test_unknown_branch_class() -> None:
    with pytest.raises(ConfigError, match="main, release, pr, adhoc"):
        branch_class({"BENCHWRIGHT_BRANCH_CLASS": "master"})
