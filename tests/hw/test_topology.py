# SPDX-License-Identifier: Apache-2.0
"""The test network as data: what is wrong is refused, and hardware latency is what a hand works out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from hw.bench import load_bench
from hw.errors import ConfigError
from hw.fields import Fields
from hw.hardware_latency import frames_of, one_way_ns, round_trip
from hw.instrument_facts import wiring_facts
from hw.probes.bench import judge_topology
from hw.topology import TopologySpec, read_topology

BENCHES = Path(__file__).resolve().parents[2] / "hw" / "benches"
NODES = ("a", "b", "c", "d")


def switch(
    forwarding: str = "store-and-forward", latency_ns: object = 0, uncertainty_ns: object = 0
) -> dict[str, Any]:
    return {"forwarding": forwarding, "latency_ns": latency_ns, "uncertainty_ns": uncertainty_ns}


def link(
    one: str, other: str, rate_mbps: object = 1000, length_m: object = 0, **more: object
) -> dict[str, Any]:
    return {"endpoints": [one, other], "rate_mbps": rate_mbps, "length_m": length_m, **more}


def read(switches: Mapping[str, Any], links: Mapping[str, Any], is_virtual: bool = False) -> TopologySpec:
    table = Fields({"switches": switches, "links": links}, "bench.yaml", "benchwright.topology")
    topology = read_topology(table, NODES, is_virtual)
    assert topology is not None
    return topology


STAR = {"a": link("a", "s"), "b": link("b", "s")}


@pytest.mark.parametrize(
    ("switches", "links", "told"),
    [
        (
            {"s": switch()},
            {"a": link("a", "moon")},
            r"links\.a\.endpoints: must be a list of a, b, c, d, s, found 'moon'",
        ),
        ({}, {"a": link("a", "a")}, r"links\.a\.endpoints: must be two different ones, found \['a', 'a'\]"),
        (
            {},
            {"a": {**link("a", "b"), "endpoints": ["a"]}},
            r"links\.a\.endpoints: must be two different ones",
        ),
        (
            {"s": switch()},
            {**STAR, "again": link("s", "a")},
            r"links\.again\.endpoints: must be others than those of link 'a'",
        ),
        (
            {"s": switch(), "t": switch(), "u": switch()},
            {"1": link("s", "t"), "2": link("t", "u"), "3": link("u", "s")},
            r"links\.3\.endpoints: must not close a loop: 'u' and 's' are connected",
        ),
        (
            {},
            {"1": link("a", "b"), "2": link("b", "c")},
            r"links\.2\.endpoints: 'b' has link '1' already; only a switch can have more than one",
        ),
        ({"s": switch(), "t": switch()}, STAR, r"switches\.t: must have a link"),
        (
            {"s": switch("magic")},
            STAR,
            r"switches\.s\.forwarding: must be one of store-and-forward, cut-through",
        ),
        (
            {"s": switch(latency_ns=-1)},
            STAR,
            r"switches\.s\.latency_ns: must be an integer in 0\.\.1000000000",
        ),
        (
            {"s": {"forwarding": "cut-through", "latency_ns": 1}},
            STAR,
            r"switches\.s\.uncertainty_ns: missing",
        ),
        (
            {"s": switch()},
            {"a": link("a", "s", 0)},
            r"links\.a\.rate_mbps: must be an integer in 1\.\.1000000",
        ),
        ({"s": switch()}, {"a": link("a", "s", None)}, r"links\.a\.rate_mbps: must be an integer in 1"),
        ({"s": switch()}, {"a": {"endpoints": ["a", "s"], "rate_mbps": 10}}, r"links\.a\.length_m: missing"),
        (
            {"s": switch()},
            {"a": link("a", "s", length_m=-1)},
            r"links\.a\.length_m: must be a number in 0\.\.100000",
        ),
        (
            {"s": switch()},
            {"a": link("a", "s", medium="air")},
            r"links\.a\.medium: must be one of copper, fibre",
        ),
        (
            {"s": switch()},
            {"a": link("a", "s", ns_per_m=3)},
            r"links\.a\.ns_per_m: must be a number in 3\.3\.\.10",
        ),
        (
            {"s": switch()},
            {"a": link("a", "s", phy_latency_ns=-1)},
            r"links\.a\.phy_latency_ns: must be an integer",
        ),
        ({"s": switch()}, {"a": link("a", "s", colour="red")}, r"links\.a\.colour: unknown key"),
    ],
)
def test_refuses_what_is_no_tree_of_known_ends(
    switches: Mapping[str, Any], links: Mapping[str, Any], told: str
) -> None:
    with pytest.raises(ConfigError, match=r"^bench\.yaml: benchwright\.topology\." + told):
        read(switches, links)


def test_a_link_of_version_0_2_1_has_ends() -> None:
    older = {"ends" if key == "endpoints" else key: value for key, value in link("a", "s").items()}
    assert read({"s": switch()}, {"a": older}) == read({"s": switch()}, {"a": link("a", "s")})


@pytest.mark.parametrize("key", ["rate_mbps", "length_m"])
def test_a_virtual_link_has_no_cable(key: str) -> None:
    with pytest.raises(ConfigError, match=rf"links\.a\.{key}: must be left out on a bench with a virtual"):
        read({"s": switch()}, {"a": {"endpoints": ["a", "s"], key: 1}}, is_virtual=True)


@pytest.mark.parametrize(
    ("links", "told"),
    [
        (
            {"a": ["producers-a", "lab"], "b": ["producers-b", "lab"]},
            "node 'linux-rt' .*; no link has it as an end",
        ),
        (
            {"a": ["producers-a", "lab"], "b": ["producers-b", "lab"], "t": ["linux-rt", "far"]},
            "with 'linux-rt'; there is no way between them",
        ),
    ],
)
def test_every_node_of_the_test_network_has_to_be_connected(
    tmp_path: Path, links: Mapping[str, list[str]], told: str
) -> None:
    document = yaml.safe_load((BENCHES / "example-hardware.yaml").read_text())
    ends = {end for pair in links.values() for end in pair}
    document["benchwright"]["topology"] = {
        "switches": {name: switch() for name in ("lab", "far") if name in ends},
        "links": {name: link(*pair) for name, pair in links.items()},
    }
    path = tmp_path / "bench.yaml"
    path.write_text(yaml.safe_dump(document))
    with pytest.raises(ConfigError, match=rf"^{path}: benchwright\.topology\.links: .*{told}"):
        load_bench(path)


@pytest.mark.parametrize(
    ("payload_bytes", "frames"),
    [
        (0, (72,)),  # the shortest frame
        (18, (72,)),
        (19, (73,)),
        (64, (118,)),  # 8 + 14 + 20 + 8 + 64 + 4
        (1472, (1526,)),
        (1473, (1526, 72)),  # one byte in a second frame
        (2952, (1526, 1526)),
    ],
)
def test_a_datagram_is_so_many_bytes_on_a_link(payload_bytes: int, frames: tuple[int, ...]) -> None:
    assert frames_of(payload_bytes) == frames


def test_a_switch_that_stores_puts_the_frame_on_each_link_anew() -> None:
    """118 bytes at 1 Gbit/s: 944 ns, at 100 Mbit/s: 9440 ns."""
    topology = read(
        {"s": switch(latency_ns=2000)},
        {"a": link("a", "s", 1000, 10), "b": link("b", "s", 100, 20, medium="fibre", phy_latency_ns=300)},
    )
    by_hand = 944 + 10 * 5.0 + 2000 + 9440 + 20 * 4.9 + 300
    assert one_way_ns(topology, "a", "b", 64) == pytest.approx(by_hand)
    assert one_way_ns(topology, "b", "a", 64) == pytest.approx(by_hand)


def test_a_switch_that_cuts_through_only_adds_its_latency() -> None:
    star = read({"s": switch("cut-through", 500)}, {"a": link("a", "s"), "b": link("b", "s")})
    assert one_way_ns(star, "a", "b", 64) == pytest.approx(944 + 500)


def test_a_switch_that_cuts_through_stores_for_a_faster_link() -> None:
    """To the slower one it does not: the frame's first bit has gone on before its last has come."""
    star = read({"s": switch("cut-through", 500)}, {"a": link("a", "s", 1000), "b": link("b", "s", 100)})
    assert one_way_ns(star, "a", "b", 64) == pytest.approx(500 + 9440)
    assert one_way_ns(star, "b", "a", 64) == pytest.approx(9440 + 500 + 944)
    assert round_trip(star, "a", "b", 64).ns == 500 + 9440 + 9440 + 500 + 944


def test_frames_of_one_datagram_follow_each_other() -> None:
    """While the second is on the first link the first is on the second; the gap between them is 12 bytes."""
    star = read({"s": switch(latency_ns=1000)}, STAR)
    frame, gap = 1526 * 8, 12 * 8
    assert one_way_ns(star, "a", "b", 2952) == pytest.approx(frame + gap + frame + 1000 + frame)


def test_bounds_of_a_round_trip_are_twice_those_of_one_way_and_by_name() -> None:
    topology = read(
        {"s": switch(uncertainty_ns=400)},
        {
            "a": link("a", "s", length_m=10, uncertainty_ns=50),  # 10 m x 0.7 ns/m
            "b": link("b", "s", length_m=100, ns_per_m=4.9),  # measured: no more is open
            "c": link("c", "s"),
        },
    )
    assert round_trip(topology, "a", "b", 64).bounds_ns == {"link a": 114, "switch s": 800, "link b": 0}


def test_the_papers_own_figures() -> None:
    """A layer 2 switch of 30 us: half of it in each latency, (15), where it is not taken off."""
    star = read({"s": switch(latency_ns=30_000)}, {name: link(name, "s", 1_000_000) for name in "abc"})
    ab, ac, bc = (round_trip(star, one, other, 64).ns for one, other in ("ab", "ac", "bc"))
    send_and_receive_ns = (ab + ac - bc) / 2
    assert send_and_receive_ns / 2 == pytest.approx(15_000, abs=2)


@pytest.mark.parametrize(("name", "links"), [("virtual", 17), ("native", 13)])
def test_what_a_virtual_bench_builds_takes_no_time_that_is_hardwares(name: str, links: int) -> None:
    spec = load_bench(BENCHES / f"{name}.yaml")
    assert spec.topology is not None
    assert len(spec.topology.links) == links
    found = round_trip(spec.topology, "p01", "linux", 1400)
    assert found.ns == 0
    assert not any(found.bounds_ns.values())
    assert wiring_facts(spec) == spec.wiring


def test_the_example_leads_through_its_impairment() -> None:
    spec = load_bench(BENCHES / "example-hardware.yaml")
    assert spec.topology is not None
    assert [each.name for each in spec.topology.way("producers-a", "linux-rt")] == ["a", "impaired", "target"]
    assert wiring_facts(spec)["switch lab"] == "store-and-forward, 2300 ± 400 ns"
    assert wiring_facts(spec)["edge"] == spec.wiring["edge"]
    assert "link a: producers-a to impair: 1000 Mbit/s, 2 m" in judge_topology(spec).found


def test_without_a_topology_doctor_says_what_that_means() -> None:
    missing = judge_topology(load_bench(BENCHES / "example-board.yaml"))
    assert "counts as the devices' software latency" in missing.found
    assert missing.remedy == "add benchwright.topology to the bench file"
