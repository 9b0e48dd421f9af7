# SPDX-License-Identifier: Apache-2.0
"""Evidence of round trips: what is read, what is left out, and the verdicts that rest on it."""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hw.hardware_latency import HardwareLatency, round_trip
from hw.topology import Forwarding, LinkSpec, SwitchSpec, TopologySpec
from reports.errors import RecordError, ReportError
from reports.page.render import render_pages
from reports.record.context import Context
from reports.record.document import read_document
from reports.record.measurement import AxisValue, Conditions, Limit, Subject
from reports.run.folder import RunFolder
from reports.software_latency.closure import Closure
from reports.software_latency.evidence import (
    COLUMNS,
    COLUMNS_OF_BEFORE,
    ROUND_TRIPS,
    SCHEMA,
    WITNESS,
    DeviceClock,
    Exchange,
    HardwareBound,
    InjectedDelay,
    LabDevice,
    RoundTrips,
    Turns,
    load_software_latencies,
    read_trips,
    write_round_trips,
)
from reports.software_latency.icmp import IcmpEchoes
from reports.software_latency.verdict import closure_measurement, software_measurement
from tests.reports.pages import page_with, words_of
from tests.reports.sample_run import summary

START_NS = 1_790_000_000_000_000_000
S_NS = {"a": 400_000, "b": 30_000, "c": 120_000}
AHEAD_NS = 5_000_000_000
"""The clock of `a` is that much ahead of the reference."""
INTERVAL_NS = 2_000_000
RESIDENCE_NS = 7_000
TRIPS = 600
LIMIT = Limit(500_000, None, "a test")
CLOSE = Limit(30_000, None, "a test")


def hardware_bounds(hardware: HardwareLatency) -> tuple[HardwareBound, ...]:
    return tuple(HardwareBound(name, ns) for name, ns in hardware.bounds_ns.items())


def lab_network(switch_uncertainty_ns: int = 400, link_uncertainty_ns: int = 50) -> TopologySpec:
    """Return three devices around one switch: 3376 ns of one way of 64 bytes, 6.8 us of a round trip."""
    links = {name: LinkSpec(name, (name, "lab"), 1000, 10.0, 5.0, 0, link_uncertainty_ns) for name in S_NS}
    switch = SwitchSpec("lab", Forwarding.STORE_AND_FORWARD, 1388, switch_uncertainty_ns)
    return TopologySpec({"lab": switch}, links)


def taken_off(topology: TopologySpec) -> dict[frozenset[str], HardwareLatency]:
    """Return what is taken off a round trip of each pair."""
    pairs = itertools.combinations(S_NS, 2)
    return {frozenset(pair): round_trip(topology, *pair, 64) for pair in pairs}


def write_folder(
    folder: Path,
    extra_ns: Mapping[tuple[str, str], int] | None = None,
    pauses: tuple[tuple[int, int], ...] = (),
    turns: Turns | None = None,
    taken_off: Mapping[frozenset[str], HardwareLatency] | None = None,
    s_ns: Mapping[str, int] = S_NS,
    silent: str = "",
    size_bytes: int = 64,
    icmp: tuple[IcmpEchoes, ...] | None = None,
    injected: tuple[InjectedDelay, ...] = (),
) -> None:
    """Write round trips between devices in both roles; `extra_ns` is put into a direction.

    One device may be silent. Of each pair of devices the hardware takes what is taken off; None: not known.

    With turns each direction has its own, else one direction follows the other.
    """
    rng = np.random.default_rng(3)
    devices = tuple(LabDevice(name, name, f"hardware of {name}", "tool", 50) for name in s_ns)
    exchanges: list[Exchange] = []
    for place, (asker, reflector) in enumerate([(x, y) for x in s_ns for y in s_ns if x != y]):
        stem = f"{asker}-{reflector}"
        begin_ns = START_NS + (AHEAD_NS if asker == "a" else 0)
        begin_ns += place * (TRIPS if turns is None else turns.trips) * INTERVAL_NS
        rows = [",".join(COLUMNS)]
        whole: list[int] = []
        hardware = taken_off[frozenset((asker, reflector))] if taken_off is not None else None
        hardware_ns, bounds = (0, None) if hardware is None else (hardware.ns, hardware_bounds(hardware))
        for number in range(TRIPS):
            own_ns = sum(round(s_ns[name] * rng.gamma(20) / 20) for name in (asker, reflector))
            whole_ns = own_ns + RESIDENCE_NS + hardware_ns + (extra_ns or {}).get((asker, reflector), 0)
            sent_ns = begin_ns + number * INTERVAL_NS
            if turns is not None:
                turn, of_turn = divmod(number, turns.trips)
                sent_ns = begin_ns + turn * turns.every_us * 1000 + of_turn * INTERVAL_NS
            if any(start < sent_ns - AHEAD_NS * (asker == "a") < end for start, end in pauses):
                whole_ns += 50_000_000
            is_silent = silent in (asker, reflector)
            reply = "," if is_silent else f"{whole_ns},{RESIDENCE_NS}"
            whole += [] if is_silent else [whole_ns]
            rows.append(f"{number},{sent_ns},{reply},,,")
        (folder / f"{stem}.csv").write_text("\n".join(rows) + "\n")
        answer = {
            "type": "result", "sent": len(whole) + 1, "received": len(whole), "lost": 1, "invalid": 0,
            "round_trip": summary(whole), "residence": summary([RESIDENCE_NS] * len(whole)),
            "round_trip_without_residence": summary([each - RESIDENCE_NS for each in whole]),
        }  # fmt: skip
        (folder / f"{stem}.ndjson").write_text(json.dumps(answer) + "\n")
        why = f"{reflector} answered 0 of {TRIPS} requests of {asker}" if silent in (asker, reflector) else ""
        exchanges.append(
            Exchange(asker, reflector, f"{stem}.ndjson", f"{stem}.csv", hardware_ns, bounds, why or None)
        )
    clocks = [DeviceClock(name, START_NS, AHEAD_NS if name == "a" else 0, 0, 50_000) for name in s_ns]
    windows = [[start, end, 0] for start, end in pauses]
    witness = {
        "type": "result", "complete": True, "stalled_fraction": 0.0, "windows": windows, "windows_dropped": 0,
        "cpus": [], "period_ns": 250_000, "threshold_ns": 100_000,
    }  # fmt: skip
    (folder / WITNESS).write_text(json.dumps(witness) + "\n")
    facts = RoundTrips(
        "linux-rt", size_bytes, 2000, devices, tuple(clocks), tuple(exchanges), injected, turns, icmp
    )
    write_round_trips(folder, facts)


def context(device: str = "") -> Context:
    axes = (AxisValue("device", device),) if device else None
    subject = Subject("virtual", "linux-rt", axes=axes)
    return Context("run", "test", subject, Conditions("ci"), simulated=True, evidence=())


def test_each_device_is_found_and_passes(tmp_path: Path) -> None:
    write_folder(tmp_path)
    found = load_software_latencies(tmp_path)
    for latency in found.estimate.latencies:
        (name,) = latency.devices
        assert abs(latency.mean_ns - S_NS[name]) < 2 * latency.mean_expanded_ns
    assert found.lost == 6
    assert found.estimate.doubts == ()
    record = software_measurement(found, "a", "SW-A", LIMIT, 100, context("a"))
    assert (record.outcome, record.subject.on("device"), record.n) == ("pass", "a", TRIPS)
    assert closure_measurement(found, "BENCH", CLOSE, 100, context()).outcome == "pass"


def test_evidence_of_before_is_read(tmp_path: Path) -> None:
    """It knew nothing of echoes, of hardware's bounds and of directions that are silent."""
    write_folder(tmp_path)
    facts = json.loads((tmp_path / ROUND_TRIPS).read_text())
    later = {"hardware_bounds", "silent"}
    assert not any(later & set(each) for each in facts["exchanges"])
    assert "icmp" not in facts
    for each in facts["exchanges"]:
        each |= {"hardware_bounds": None, "silent": ""}  # as the version between wrote them
    (tmp_path / ROUND_TRIPS).write_text(json.dumps(facts))
    assert load_software_latencies(tmp_path).silent == {}


def test_each_trip_has_its_known_delay_where_all_replies_say_it(tmp_path: Path) -> None:
    write_folder(tmp_path)
    facts, path = read_document(RoundTrips, tmp_path / ROUND_TRIPS, SCHEMA), tmp_path / "a-b.csv"
    (exchange,) = (each for each in facts.exchanges if each.series == path.name)
    _, *rows = path.read_text().splitlines()
    said = "\n".join([",".join(COLUMNS), *(f"{row}{number}" for number, row in enumerate(rows))])
    for text, known in [
        (said, list(range(TRIPS))),
        (said.removesuffix(str(TRIPS - 1)), None),
        ("\n".join([",".join(COLUMNS_OF_BEFORE), *(row.removesuffix(",") for row in rows)]), None),
    ]:
        path.write_text(text + "\n")
        trips = read_trips(tmp_path, exchange, None, None)
        assert len(trips.rtt_ns) == TRIPS
        assert (None if trips.known_delay_ns is None else trips.known_delay_ns.tolist()) == known
    path.write_text(said + "\n1,2,3,4,,,x\n")
    with pytest.raises(RecordError, match=r"a-b\.csv: "):
        read_trips(tmp_path, exchange, None, None)


def test_a_device_over_its_limit_fails_and_an_unknown_one_is_unset(tmp_path: Path) -> None:
    write_folder(tmp_path)
    found = load_software_latencies(tmp_path)
    strict = Limit(350_000, None, "a test")
    assert software_measurement(found, "a", "SW-A", strict, 100, context("a")).outcome == "fail"
    unknown = software_measurement(found, "d", "SW-D", LIMIT, 100, context("d"))
    assert (unknown.outcome, unknown.reason) == ("unset", "no device d was measured")


def test_a_silent_device_has_no_verdict_and_takes_none_from_the_others(tmp_path: Path) -> None:
    write_folder(tmp_path, s_ns={**S_NS, "d": 60_000}, silent="d")
    found = load_software_latencies(tmp_path)
    assert {name for each in found.estimate.latencies for name in each.devices} == set(S_NS)
    assert software_measurement(found, "a", "SW-A", LIMIT, 100, context("a")).outcome == "pass"
    record = software_measurement(found, "d", "SW-D", LIMIT, 100, context("d"))
    assert (record.outcome, record.value) == ("inconclusive", None)
    assert "d was not heard: d answered 0 of 600 requests of a" in str(record.reason)


def test_of_three_devices_one_that_is_silent_leaves_none(tmp_path: Path) -> None:
    write_folder(tmp_path, silent="b")
    with pytest.raises(ReportError, match=r"no device's latency is told: .*b answered 0 of 600"):
        load_software_latencies(tmp_path)


def test_trips_in_the_machines_pauses_do_not_count(tmp_path: Path) -> None:
    """They took 50 ms more; of the device whose clock is seconds ahead, too."""
    pauses = tuple(
        (
            START_NS + place * TRIPS * INTERVAL_NS + 100_000_000,
            START_NS + place * TRIPS * INTERVAL_NS + 140_000_000,
        )
        for place in range(6)
    )
    write_folder(tmp_path, pauses=pauses)
    found = load_software_latencies(tmp_path)
    assert all(19 <= each.n_excluded <= 23 for each in found.estimate.measured)
    assert all(each.maximum_ns < 5_000_000 for each in found.estimate.measured)


def test_a_request_without_a_reply_is_no_trip(tmp_path: Path) -> None:
    """Its row has the moment of sending alone."""
    write_folder(tmp_path)
    path = tmp_path / "a-b.csv"
    head, first, *rows = path.read_text().splitlines()
    number, sent_ns, *_others = first.split(",")
    path.write_text("\n".join([head, f"{number},{sent_ns},,,,", *rows]) + "\n")
    measured = load_software_latencies(tmp_path).estimate.measured
    assert [each.n for each in measured] == [TRIPS - 1, *[TRIPS] * 5]


def test_roles_that_do_not_agree_are_told(tmp_path: Path) -> None:
    """50 us in one device's echo."""
    write_folder(tmp_path, {("a", "b"): 50_000})
    found = load_software_latencies(tmp_path)
    check = closure_measurement(found, "BENCH", CLOSE, 100, context())
    assert check.outcome == "fail"
    assert "a/b, b/a" in check.reason
    assert any("contradict each other" in doubt for doubt in found.estimate.doubts)


@pytest.mark.parametrize(
    ("wide", "value", "outcome"),
    [
        ((0, 10_000), 20_000, "pass"),
        ((19_000, 80_000), 19_000, "inconclusive"),
        ((90_000, 5_000), 90_000, "fail"),
        ((5_000, 24_900), 5_000, "pass"),
    ],
)
def test_of_sums_the_one_that_is_worst_off_speaks(
    tmp_path: Path, wide: tuple[int, int], value: int, outcome: str
) -> None:
    """The largest difference is well known, another one nearly as large is not: it has a U of its own."""
    write_folder(tmp_path)
    found = load_software_latencies(tmp_path)
    near = Closure("swapped roles", 1, "a/b", "b/a", 20_000.0, 0.0, 1_000.0, 0.0, 20.0)
    far = replace(near, one_name="a/c", other_name="c/a", one=float(wide[0]), expanded=float(wide[1]))
    record = closure_measurement(replace(found, closures=(near, far)), "BENCH", CLOSE, 100, context())
    assert (record.value, record.outcome) == (value, outcome)
    if outcome != "pass":
        assert "a/c, c/a" in record.reason


@pytest.mark.parametrize(("limit_us", "outcome"), [(500, "pass"), (430, "inconclusive"), (350, "fail")])
def test_where_pairs_contradict_each_other_what_every_choice_says_stands(
    tmp_path: Path, limit_us: int, outcome: str
) -> None:
    """50 us in one direction: a's own is 400 or 425 us by who its partner is."""
    write_folder(tmp_path, {("a", "b"): 50_000})
    found = load_software_latencies(tmp_path)
    record = software_measurement(
        found, "a", "SW-A", Limit(limit_us * 1000, None, "a test"), 100, context("a")
    )
    assert record.outcome == outcome
    (partners,) = [part for part in record.uncertainty.parts if part.name == "device_dependence"]
    assert 15_000 < partners.value < 60_000


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        ("", r"a-b\.csv:1: expected sequence,"),
        (",".join(COLUMNS) + "\n1,x,3,4,,\n", r"a-b\.csv: "),
        (None, r"a-b\.csv: .*No such file"),
    ],
)
def test_a_damaged_series_is_named(tmp_path: Path, damage: str | None, told: str) -> None:
    write_folder(tmp_path)
    path = tmp_path / "a-b.csv"
    path.unlink() if damage is None else path.write_text(damage)
    with pytest.raises(RecordError, match=told):
        load_software_latencies(tmp_path)


def test_what_hardware_takes_is_taken_off_and_its_bounds_are_a_part_of_u(tmp_path: Path) -> None:
    """U of a device: of its own link there and back, of the switch once; those of its partners cancel."""
    hardware = taken_off(lab_network())
    assert {each.ns for each in hardware.values()} == {6752}
    (tmp_path / "plain").mkdir()
    write_folder(tmp_path / "plain")
    write_folder(tmp_path, taken_off=hardware)
    plain, found = load_software_latencies(tmp_path / "plain"), load_software_latencies(tmp_path)
    assert found.hardware == (6752, 6752)
    assert plain.hardware is None
    for before, after in zip(plain.estimate.latencies, found.estimate.latencies, strict=True):
        assert after.mean_ns == pytest.approx(before.mean_ns)
        assert after.mean_u_ns == pytest.approx(before.mean_u_ns + 2 * 50 + 800 / 2)
    record = software_measurement(found, "a", "SW-A", LIMIT, 100, context("a"))
    (part,) = [part for part in record.uncertainty.parts if part.name == "hardware"]
    assert (part.kind, part.value) == ("bound", 500)
    swapped = closure_measurement(found, "BENCH", CLOSE, 100, context())
    assert [part.name for part in swapped.uncertainty.parts] == ["round_trips"], "both roles have one way"


def test_hardware_that_is_known_badly_leaves_a_device_undecided(tmp_path: Path) -> None:
    """The limit is 100 us above S; the switch may be off by 250 us, both ways together."""
    write_folder(tmp_path, taken_off=taken_off(lab_network(switch_uncertainty_ns=125_000)))
    found = load_software_latencies(tmp_path)
    assert software_measurement(found, "a", "SW-A", LIMIT, 100, context("a")).outcome == "inconclusive"


def test_hardware_without_uncertainty_adds_no_part(tmp_path: Path) -> None:
    write_folder(tmp_path, taken_off=taken_off(lab_network(0, 0)))
    record = software_measurement(load_software_latencies(tmp_path), "a", "SW-A", LIMIT, 100, context("a"))
    assert [part.name for part in record.uncertainty.parts] == ["round_trips"]


@pytest.mark.parametrize(
    ("topology", "said"),
    [
        (None, "nothing is taken off, and it is part of S"),
        (lab_network(), "Cables and switches take 6.752 µs"),
    ],
)
def test_the_page_says_what_is_known_of_the_hardware(
    tmp_path: Path, topology: TopologySpec | None, said: str
) -> None:
    run = RunFolder.create(tmp_path / "results", "virtual", "ci", simulated=True, commit="0" * 40)
    folder = run.evidence_folder("software_latency", "linux-rt")
    write_folder(folder, taken_off=None if topology is None else taken_off(topology))
    record = software_measurement(load_software_latencies(folder), "a", "SW-A", LIMIT, 100, context("a"))
    evidence = (run.evidence(folder / "round_trips.json"),)
    run.append(dataclasses.replace(record, run_id=run.run_id, evidence=evidence))
    run.update(target={"linux-rt": {"hostname": "linux-rt"}})
    run.close()
    page = page_with(run.path, "software-latency")
    assert said in re.sub(r"\s+", " ", page)


def test_the_page_shows_devices_round_trips_and_sums(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path / "results", "virtual", "ci", simulated=True, commit="0" * 40)
    folder = run.evidence_folder("software_latency", "linux-rt")
    write_folder(folder)
    found = load_software_latencies(folder)
    evidence = (run.evidence(folder / "round_trips.json"),)
    for record in (
        software_measurement(found, "a", "SW-A", LIMIT, 100, context("a")),
        closure_measurement(found, "BENCH-ROUND-TRIPS", CLOSE, 100, context()),
    ):
        run.append(dataclasses.replace(record, run_id=run.run_id, evidence=evidence))
    run.update(target={"linux-rt": {"hostname": "linux-rt"}})
    run.close()
    words = words_of(page_with(run.path, "software-latency"))
    assert "hardware of a, tool" in words
    means = {(each.asker, each.reflector): each.cumulants[0] for each in found.estimate.measured}
    cells = re.findall(r"Asks a b c a \u2013 (\S+) µs (\S+) µs b (\S+) µs \u2013 (\S+) µs c ", words)
    directions = ("a", "b"), ("a", "c"), ("b", "a"), ("b", "c")
    assert [float(each) for each in cells[0]] == pytest.approx(
        [means[each] / 1000 for each in directions], abs=1
    )
    assert "a/b b/a" in words, "roles swapped"
    assert "6 requests had no reply" in words
    assert "BENCH-ROUND-TRIPS" in words


def test_a_page_says_what_cannot_be_read(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path / "results", "virtual", "ci", simulated=True, commit="0" * 40)
    folder = run.evidence_folder("software_latency", "linux-rt")
    write_folder(folder)
    evidence = (run.evidence(folder / "round_trips.json"),)
    record = software_measurement(load_software_latencies(folder), "a", "SW-A", LIMIT, 100, context("a"))
    run.append(dataclasses.replace(record, run_id=run.run_id, evidence=evidence))
    run.update(target={"linux-rt": {"hostname": "linux-rt"}})
    run.close()
    (folder / "a-b.csv").unlink()
    assert any("a-b.csv: " in text for text in render_pages(run.path).values())
