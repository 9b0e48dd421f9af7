# SPDX-License-Identifier: Apache-2.0
"""Of a stream's latency each device's software part, by numbers made by hand, and the table on the page."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import pytest

from reports.daq_replay.section import LatencySection, gather_latency
from reports.daq_replay.software_parts import SoftwareParts, software_parts
from reports.daq_replay.stream_groups import StreamRow
from reports.page.render import render_pages
from reports.record.histogram import Summary
from reports.record.measurement import Measurement, Uncertainty, UncertaintyPart, margin_of
from reports.run.folder import RunFolder
from reports.section import TargetData
from reports.software_latency.bounds import Bound
from reports.software_latency.estimate import Estimate, Interval, OneWayAlike, SoftwareLatency
from reports.software_latency.evidence import (
    FOLDER,
    ROUND_TRIPS,
    HardwareBound,
    LabDevice,
    LabProducer,
    RoundTrips,
    SoftwareLatencies,
    load_software_latencies,
)
from reports.units import format_measured
from tests.reports.pages import words_of
from tests.reports.sample_run import Disturbance, add_attempt
from tests.reports.software_latency.test_evidence import write_folder

SOFTWARE = "bw-traffic, SCHED_FIFO 50"
TARGET, NAMESPACE, GUEST = (
    ("linux-rt", SOFTWARE),
    ("namespace of host", SOFTWARE),
    ("producer-12", SOFTWARE),
)
US = 1000
KNOWN = (HardwareBound("switch", 4 * US), HardwareBound("link", 2 * US))


def latency(name: str, kind: tuple[str, str], mean_us: float, u_us: float = 10) -> SoftwareLatency:
    """Return S of a device, with a part of U besides that of the trips' scatter."""
    mean, scatter = mean_us * US, (u_us - 4) * US
    nothing = Interval(0.0, mean)
    alike = OneWayAlike(mean / 2, scatter / 2, mean / 2, 0.0, 0.0, mean)
    partners = (Bound("device_dependence", 4.0 * US, "the pairs contradict each other"),)
    return SoftwareLatency(
        kind, (name,), mean, scatter, partners, 0, 0, 0, 0, nothing, nothing, alike, nothing
    )


def round_trips(
    latencies: Sequence[SoftwareLatency],
    size_bytes: int = 64,
    kinds: Mapping[int, tuple[str, str]] | None = None,
    bounds: tuple[HardwareBound, ...] | None = KNOWN,
) -> SoftwareLatencies:
    """Return what round trips told of the target and the others; cables and switches take 20 us of each."""
    devices = (LabDevice("target", "linux-rt", *TARGET, 50),)
    kinds = kinds or {1: NAMESPACE, 2: NAMESPACE, 12: GUEST}
    producers = tuple(LabProducer(number, *kind, 20 * US, bounds) for number, kind in kinds.items())
    facts = RoundTrips("linux-rt", size_bytes, 1000, devices, (), (), producers=producers)
    found = Estimate(tuple(latencies), (), cast("object", None), (), (), (), ())  # type: ignore[arg-type]
    return SoftwareLatencies(facts, (), 0, found, ())


BOTH = (latency("target", TARGET, 100), latency("p01", NAMESPACE, 40))


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> tuple[StreamRow, ...]:
    """Return the streams of a sample run."""
    shown = shown_of(run_of(tmp_path_factory.mktemp("run")))
    return shown.groups[0].rows


def run_of(results: Path, *, stack: str = "") -> RunFolder:
    run = RunFolder.create(results, "virtual", "ci", simulated=True, commit="0" * 40)
    add_attempt(run, 1, Disturbance(), 1, simulated=True, target="linux-rt", stack=stack)
    return run


def shown_of(run: RunFolder) -> LatencySection:
    records: tuple[Measurement, ...] = run.records().measurements
    shown = gather_latency(TargetData(run.path, records, records, "linux-rt", ("linux-rt",)))
    assert shown is not None
    return shown


def at(row: StreamRow, *latencies_us: int) -> StreamRow:
    """Return a stream with other latencies from its sending on; U is 2 us."""
    ns = sorted(each * US for each in latencies_us)
    found = Summary(len(ns), ns[0], ns[-1], sum(ns) / len(ns), None, 0, tuple((each, 1, 1) for each in ns))
    assert row.stream is not None
    unsure = Uncertainty.from_parts([UncertaintyPart("clock_offset", "bound", 2 * US)])
    return dataclasses.replace(
        row,
        record=dataclasses.replace(
            row.record, uncertainty=unsure, margin=margin_of(row.record.value, row.record.limit, unsure)
        ),
        stream=dataclasses.replace(row.stream, received_minus_sent=found),
    )


def stream(rows: Sequence[StreamRow], number: int, *latencies_us: int) -> StreamRow:
    found = next(row for row in rows if row.record.subject.stream == str(number))
    return at(found, *(latencies_us or (200, 200, 200)))


def parts(rows: Sequence[StreamRow], *measured: SoftwareLatencies) -> SoftwareParts:
    found = software_parts(rows, measured)
    assert found is not None
    return found


def test_half_of_each_s_is_taken_off_the_median_and_the_hardware(rows: tuple[StreamRow, ...]) -> None:
    (found,) = parts([stream(rows, 12, 150, 200, 290)], round_trips(BOTH)).rows
    assert (found.median_ns, found.p99_ns) == (200 * US, None), "of three the quantile is the maximum"
    assert (found.sending.mean_ns, found.sending.most_ns) == (20 * US, 40 * US)
    assert (found.receiving.mean_ns, found.receiving.most_ns) == (50 * US, 100 * US)
    assert found.sending.expanded_ns == found.receiving.expanded_ns == 5 * US, "half of U with all its parts"
    assert (found.hardware_ns, found.hardware_bound_ns) == (10 * US, 3 * US)
    assert found.left_ns == (200 - 20 - 50 - 10) * US
    assert found.left_between_ns == ((200 - 40 - 100 - 10) * US, (200 - 10) * US)
    assert found.left_expanded_ns == (2 + 5 + 5 + 3) * US
    assert found.exceeds_ns == 0


def test_hardware_that_is_not_known_is_not_taken_off(rows: tuple[StreamRow, ...]) -> None:
    (found,) = parts([stream(rows, 12)], round_trips(BOTH, bounds=None)).rows
    assert found.hardware_ns is None
    assert found.left_ns == (200 - 20 - 50) * US
    assert found.left_expanded_ns == (2 + 5 + 5) * US


def test_parts_above_the_median_leave_nothing_and_say_by_how_much(rows: tuple[StreamRow, ...]) -> None:
    (found,) = parts([stream(rows, 12, 60, 60, 60)], round_trips(BOTH)).rows
    assert found.left_ns is None
    assert found.exceeds_ns == (20 + 50 + 10 - 60) * US
    assert found.left_between_ns == (0, 50 * US)
    (tiny,) = parts([stream(rows, 12, 5, 5, 5)], round_trips(BOTH)).rows
    assert tiny.left_between_ns == (0, 0)
    below = (latency("target", TARGET, -8), BOTH[1])
    (low,) = parts([stream(rows, 12)], round_trips(below)).rows
    assert (low.receiving.mean_ns, low.receiving.most_ns) == (0, 0), "no software takes less than nothing"
    assert low.left_ns == (200 - 20 - 10) * US


def test_streams_stand_together_by_machine_transport_and_size(rows: tuple[StreamRow, ...]) -> None:
    chosen = [stream(rows, number) for number in (10, 11, 12, 13, 20, 22, 120)]
    both = (*BOTH, latency("producer-12", GUEST, 80))
    large = round_trips((latency("target", TARGET, 160), *both[1:]), 1400)
    found = parts(chosen, round_trips(both), large)
    assert [(each.streams, each.trips_bytes) for each in found.rows] == [
        ((10, 11), 64),  # 500 B
        ((12, 22), 1400),  # 1 and 4 KB
        ((13,), 64),
        ((20,), 1400),  # 320 KB
        ((120,), 1400),
    ]
    assert [each.kind for each in found.rows] == [NAMESPACE] * 4 + [GUEST]
    assert [each.receiving.mean_ns / US for each in found.rows] == [50, 80, 50, 80, 80]
    udp = found.rows[1]
    assert (udp.transport, udp.sizes_bytes, udp.producers) == ("UDP", (1000, 4000), (1, 2))
    assert udp.latency.n == 6
    assert found.has_more_than_udp
    assert not parts([stream(rows, 12)], large).has_more_than_udp


def test_a_machine_that_was_not_measured_is_named_and_not_guessed(rows: tuple[StreamRow, ...]) -> None:
    found = parts([stream(rows, 12), stream(rows, 30), stream(rows, 120)], round_trips(BOTH))
    assert [each.streams for each in found.rows] == [(12,)]
    assert [(each.streams, each.producers, each.kind) for each in found.untold] == [
        ((30,), (3,), None),
        ((120,), (12,), GUEST),
    ]


def test_without_the_target_or_without_producers_nothing_is_told(rows: tuple[StreamRow, ...]) -> None:
    chosen = [stream(rows, 12)]
    assert software_parts(chosen, ()) is None
    without_target = parts(chosen, round_trips(BOTH[1:]))
    assert (without_target.rows, [each.streams for each in without_target.untold]) == ((), [(12,)])
    told = round_trips(BOTH)
    older = dataclasses.replace(told, facts=dataclasses.replace(told.facts, producers=None))
    assert software_parts(chosen, [older]) is None
    nobody = dataclasses.replace(told, facts=dataclasses.replace(told.facts, devices=()))
    assert parts(chosen, nobody).rows == ()


def with_round_trips(run: RunFolder, *, listed: bool = True) -> None:
    """Add round trips of 64 bytes in which `a` is the target (S 0.4 ms), `b` a namespace (30 us)."""
    folder = run.evidence_folder(FOLDER, "linux-rt")
    write_folder(folder)
    facts = json.loads((folder / ROUND_TRIPS).read_text())
    own: dict[str, object] = {
        "hardware": "hardware of b",
        "software": "tool",
        "hardware_ns": 0,
        "hardware_bounds": [],
    }
    other = {**own, "hardware": "hardware of z"}
    if listed:
        facts["producers"] = [
            {"number": number, **(own if number < 12 else other)} for number in range(1, 13)
        ]
    (folder / ROUND_TRIPS).write_text(json.dumps(facts))


def latency_part(page: str) -> str:
    return page[page.index('id="streams"') : page.index('id="distributions"')]


def test_the_page_has_the_table_in_the_section_on_latency_and_only_with_both_suites(tmp_path: Path) -> None:
    run = run_of(tmp_path / "one")
    before = render_pages(run.path)
    with_round_trips(run, listed=False)
    (older,) = (text for text in render_pages(run.path).values() if 'id="streams"' in text)
    assert latency_part(older) == latency_part(next(iter(before.values()))), (
        "nobody said which machine is whose"
    )
    with_round_trips(run)
    pages = render_pages(run.path)
    assert pages == render_pages(run.path), "the same bytes again"
    (page,) = (text for text in pages.values() if 'id="streams"' in text)
    assert page.count("of which software") == latency_part(page).count("of which software") == 1
    words = words_of(latency_part(page))
    assert "Not told: streams 120, 121, 122, 123 of producer 12 (hardware of z, tool)" in words
    told = load_software_latencies(run.path / "evidence" / FOLDER / "linux-rt").estimate.latencies
    target = next(each for each in told if each.devices == ("a",))
    assert (
        f"{format_measured(target.mean_ns / 2, 'ns', 3)} [0, {format_measured(target.mean_ns, 'ns', 3)}]"
        in words
    )
    assert "hardware of b, tool" in words


def test_another_stack_than_the_kernels_has_no_table(tmp_path: Path) -> None:
    run = run_of(tmp_path, stack="user")
    with_round_trips(run)
    assert all("of which software" not in text for text in render_pages(run.path).values())
