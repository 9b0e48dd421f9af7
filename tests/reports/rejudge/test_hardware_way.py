# SPDX-License-Identifier: Apache-2.0
"""What cables and switches took of round trips is held against the wiring that the run has kept."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any

import pytest

from hw.hardware_latency import round_trip
from hw.topology import Forwarding, LinkSpec, SwitchSpec, TopologySpec
from reports.rejudge.hardware_way import hardware_discrepancies, round_trip_ns, wiring_of
from reports.run.folder import RunFolder
from reports.software_latency.evidence import ROUND_TRIPS
from tests.reports.software_latency.test_evidence import lab_network, taken_off, write_folder

Json = dict[str, Any]


def made(tmp_path: Path, topology: TopologySpec | None) -> tuple[Path, Path, list[Json]]:
    """Return a run, its document of round trips, and a record that names it."""
    run = RunFolder.create(tmp_path, "hall", "ci", simulated=False, commit="0" * 40)
    folder = run.evidence_folder("software_latency", "linux-rt")
    write_folder(folder, taken_off=None if topology is None else taken_off(topology))
    path = folder / ROUND_TRIPS
    return run.path, path, [{"evidence": [{"path": path.relative_to(run.path).as_posix()}]}]


def manifest(topology: TopologySpec | None) -> Json:
    words = {"oscilloscope, channel 1": "pps"} | (topology.words() if topology else {})
    return {"simulated": False, "host": {"wiring": words}}


@pytest.mark.parametrize("topology", [lab_network(), None], ids=["topology", "none"])
def test_what_was_taken_off_stands(tmp_path: Path, topology: TopologySpec | None) -> None:
    run, _, records = made(tmp_path, topology)
    assert list(hardware_discrepancies(run, manifest(topology), records)) == []


@pytest.mark.parametrize("taken_ns", [3376, 6752 * 2, -6752, 0])
def test_another_amount_is_named(tmp_path: Path, taken_ns: int) -> None:
    run, path, records = made(tmp_path, lab_network())
    path.write_text(path.read_text().replace('"hardware_ns": 6752', f'"hardware_ns": {taken_ns}'))
    found = list(hardware_discrepancies(run, manifest(lab_network()), records))
    assert len(found) == 6
    assert all(each.endswith(f"hardware_ns is {taken_ns}, the wiring takes 6752") for each in found)


def test_an_amount_of_a_bench_without_topology_is_named(tmp_path: Path) -> None:
    run, path, records = made(tmp_path, None)
    facts = json.loads(path.read_text())
    facts["exchanges"][0]["hardware_ns"] = 50_000
    path.write_text(json.dumps(facts))
    (found,) = hardware_discrepancies(run, manifest(None), records)
    assert found.endswith("hardware_ns is 50000, of a bench without a topology")


def test_wiring_that_was_removed_is_named(tmp_path: Path) -> None:
    run, _, records = made(tmp_path, lab_network())
    found = list(hardware_discrepancies(run, manifest(None), records))
    assert len(found) == 6
    assert all("run.json has no wiring between" in each for each in found)


@pytest.mark.parametrize("seed", range(20))
def test_ways_of_all_kinds_are_worked_out_alike(seed: int) -> None:
    """Two switches in a row, of any kind and speed, and datagrams of one frame or several."""
    rng = random.Random(seed)
    ends = [("a", "s"), ("b", "s"), ("s", "t"), ("c", "t")]
    links = {
        "".join(pair): LinkSpec(
            "".join(pair),
            pair,
            rng.choice([100, 1000, 10_000]),
            rng.randrange(100),
            5.0,
            rng.randrange(500),
            1,
        )
        for pair in ends
    }
    switches = {
        name: SwitchSpec(name, rng.choice(list(Forwarding)), rng.randrange(5_000), 10) for name in "st"
    }
    topology = TopologySpec(switches, links)
    wiring = wiring_of(topology.words())
    for one, other in itertools.permutations("abc", 2):
        for size in (1, 64, 1472, 1473, 4_000):
            found_ns = round_trip_ns(wiring, one, other, size)
            assert found_ns is not None
            assert abs(found_ns - round_trip(topology, one, other, size).ns) <= 1
