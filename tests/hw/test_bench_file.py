# SPDX-License-Identifier: Apache-2.0
"""Bench files: what is wrong is refused by file, field and allowed range, and nothing wrong is overlooked."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hw.bench import NodeKind, load_bench
from hw.errors import ConfigError

VIRTUAL = Path(__file__).resolve().parents[2] / "hw" / "benches" / "virtual.yaml"
TABLES_OF_NAMES = ("nodes", "clocks", "targets", "producers", "oscilloscopes", "signals", "switches", "links")
"""Tables whose keys are names that the file's author chooses."""

KeyPath = tuple[str | int, ...]


def _document() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(VIRTUAL.read_text())
    return document


def _keys(table: dict[Any, Any], above: KeyPath = ()) -> Iterator[KeyPath]:
    """Yield the path of every key that the schema fixes."""
    for key, value in table.items():
        if len(above) < 2 or above[-1] not in TABLES_OF_NAMES:
            yield (*above, key)
        if isinstance(value, dict) and (*above, key) != ("targets",):
            yield from _keys(cast("dict[Any, Any]", value), (*above, key))


def _set(document: dict[Any, Any], path: KeyPath, value: object) -> None:
    for key in path[:-1]:
        document = document[key]
    document[path[-1]] = value


def _refusal(tmp_path: Path, document: dict[str, Any]) -> str:
    """Return the message with which a document is refused."""
    path = tmp_path / "bench.yaml"
    path.write_text(yaml.safe_dump(document))
    with pytest.raises(ConfigError) as refused:
        load_bench(path)
    message = str(refused.value)
    assert message.startswith(f"{path}: "), message
    return message.removeprefix(f"{path}: ")


KEYS = list(_keys(_document()))


def test_loads_the_virtual_bench() -> None:
    spec = load_bench(VIRTUAL)
    assert spec.simulated
    assert sorted(spec.producers) == list(range(1, 13))
    assert spec.nodes["p01"].kind is NodeKind.NAMESPACE
    assert spec.targets["linux-rt"].provisioning == "linux-rt"
    targets, others = {"linux-rt", "windows", "embedded", "linux"}, {"producer-12", "impair", "grandmaster"}
    assert set(spec.labgrid_targets) == targets | others
    assert set(spec.targets) == targets
    assert spec.time_server is not None
    assert spec.time_server.node == "grandmaster"
    timecard = spec.targets["linux-rt"].timecard
    assert timecard is not None
    assert timecard.clock == "card"


def test_knows_the_keys_of_the_file() -> None:
    assert ("benchwright", "nodes", "p01", "kind") in KEYS
    assert ("benchwright", "virtual", "rate_mbps") in KEYS
    assert len(KEYS) > 100


@given(st.sampled_from(KEYS), st.integers(0, 30), st.sampled_from("abcdefghijklmnopqrstuvwxyz_-"))
def test_refuses_every_misspelt_key(
    tmp_path_factory: pytest.TempPathFactory, path: KeyPath, position: int, letter: str
) -> None:
    key = str(path[-1])
    position %= len(key)
    misspelt = key[:position] + letter + key[position + 1 :]
    if misspelt == key:
        misspelt = key[:position] + key[position + 1 :]
    document = _document()
    table: dict[Any, Any] = document
    for step in path[:-1]:
        table = table[step]
    table[misspelt] = table.pop(path[-1])
    message = _refusal(tmp_path_factory.mktemp("bench"), document)
    assert misspelt in message or f"{key}: missing" in message


@pytest.mark.parametrize(
    ("path", "value", "field", "wanted"),
    [
        ("schema", "benchwright.bench/2", "schema", "one of benchwright.bench/1"),
        ("name", "../virtual", "name", "1..32 of a-z, 0-9 and hyphen"),
        ("name", "a" * 33, "name", "1..32 of a-z"),
        ("name", "", "name", "1..32 of a-z"),
        ("simulated", "yes", "simulated", "true or false"),
        ("simulated", False, "simulated", "true on a bench with a virtual section"),
        (
            "reference_clock",
            "gps",
            "reference_clock",
            "there are: embedded, grandmaster, host, linux, linux-rt, producer-12, windows",
        ),
        ("nodes.p01.kind", "ssh", "nodes.p01.kind", "one of local, namespace, labgrid"),
        ("nodes.p01.priority", 99, "nodes.p01.priority", "an integer in 0..97"),
        ("nodes.p01.priority", True, "nodes.p01.priority", "an integer in 0..97"),
        ("nodes.p01.cpus", 0, "nodes.p01.cpus", "a list of integers in 0..1023"),
        ("nodes.p01.cpus", [1024], "nodes.p01.cpus", "a list of integers in 0..1023"),
        (
            "nodes.p01.clock",
            "sundial",
            "nodes.p01.clock",
            "there are: embedded, grandmaster, host, linux, linux-rt",
        ),
        ("nodes.p01", None, "nodes.p01", "a table of keys"),
        ("nodes", [], "nodes", "a table of keys"),
        ("clocks.host.address", "10.78.0.256", "clocks.host.address", "an IPv4 address"),
        ("clocks.host.address", "10.77.0.254", "clocks.host.address", "in 10.78.0.0/24"),
        ("clocks.host.port", 65536, "clocks.host.port", "an integer in 1..65535"),
        (
            "clocks.host.node",
            "tower",
            "clocks.host.node",
            "there are: embedded, grandmaster, impair, linux, linux-rt",
        ),
        (
            "targets.linux-rt.node",
            "tower",
            "targets.linux-rt.node",
            "there are: embedded, grandmaster, impair",
        ),
        ("targets.linux-rt.test_address", "10.77.1.1", "targets.linux-rt.test_address", "10.77.0.0/24"),
        ("producers.1.address", "10.77.0.2", "producers.2.address", "its own"),
        ("producers.1.address", 10, "producers.1.address", "a string"),
        (
            "producers.1.node",
            "tower",
            "producers.1.node",
            "there are: embedded, grandmaster, impair, linux, linux-rt",
        ),
        ("producers.656", {"node": "p01", "address": "10.77.0.77"}, "producers.656", "in 1..655"),
        ("producers.\u00b2", {"node": "p01", "address": "10.77.0.77"}, "producers.\u00b2", "in 1..655"),
        (
            "producers.13",
            {"node": "p01", "address": "10.77.0.77"},
            "producers.13.node",
            "a node of its own on a virtual bench, found 'p01' as producers.1.node",
        ),
        (
            "nodes.switch.kind",
            "local",
            "nodes.switch.kind",
            "namespace on a virtual bench, which has its switch there, found 'local'",
        ),
        ("topology.router.links", ["p13"], "topology.router.links", "a list of embedded, grandmaster"),
        ("topology.router.links", [], "topology.router.links", "at least one link"),
        ("topology.router.interfaces", ["test0"], "topology.router.interfaces", "two different ones"),
        ("topology.router.interfaces", ["a", "a"], "topology.router.interfaces", "two different ones"),
        ("topology.links.p01.endpoints", ["switch", "p01"], "topology.links.p01.endpoints", "in this order"),
        ("impairment", {"node": "impair", "interface": "test1"}, "impairment", "is topology.router now"),
        (
            "topology.router.node",
            "tower",
            "topology.router.node",
            "there are: embedded, grandmaster, impair, linux, linux-rt",
        ),
        (
            "capture.node",
            "tower",
            "capture.node",
            "there are: embedded, grandmaster, impair, linux, linux-rt",
        ),
        ("capture.node", "linux-rt", "capture.node", "on this machine"),
        ("witness.cpus", [], "witness.cpus", "at least one CPU"),
        ("witness.cpus", [1024], "witness.cpus", "integers in 0..1023"),
        ("witness.threshold_us", 9, "witness.threshold_us", "an integer in 10..1000000"),
        ("virtual.test_subnet", "10.77.0.1/24", "virtual.test_subnet", "an IPv4 network"),
        ("virtual.rate_mbps", 0, "virtual.rate_mbps", "an integer in 1..100000"),
        ("virtual.mtu_bytes", 1499, "virtual.mtu_bytes", "an integer in 1500..9000"),
        ("virtual.rate_mbps", 1.5, "virtual.rate_mbps", "an integer in 1..100000"),
        ("virtual", None, "virtual", "a table of keys, found NoneType"),
    ],
)
def test_refuses_a_wrong_value(tmp_path: Path, path: str, value: object, field: str, wanted: str) -> None:
    document = _document()
    keys: list[str | int] = [int(key) if key.isdecimal() else key for key in path.split(".")]
    _set(document, ("benchwright", *keys), value)
    message = _refusal(tmp_path, document)
    assert message.startswith(f"benchwright.{field}: ")
    assert wanted in message


def test_refuses_a_virtual_bench_without_its_switch(tmp_path: Path) -> None:
    document = _document()
    del document["benchwright"]["nodes"]["switch"]
    text = yaml.safe_dump(document).replace("node: switch", "node: p01")
    message = _refusal(tmp_path, yaml.safe_load(text))
    assert (
        message == "benchwright.nodes.switch: missing; a virtual bench has its switch there, kind namespace"
    )


@pytest.mark.parametrize("number", ["01", "08", "0", "656", "+1"])
def test_refuses_a_producer_whose_number_is_not_written_as_it_is_read(tmp_path: Path, number: str) -> None:
    document = _document()
    document["benchwright"]["producers"][number] = {"node": "p08", "address": "10.77.0.77"}
    assert _refusal(tmp_path, document) == (
        f"benchwright.producers.{number}: a producer's number must be in 1..655, without leading zeros"
    )


def test_refuses_namespaces_on_a_bench_that_is_not_built_here(tmp_path: Path) -> None:
    document = _document()
    del document["benchwright"]["virtual"]
    del document["benchwright"]["topology"]
    message = _refusal(tmp_path, document)
    assert message == "benchwright.nodes.p01.kind: namespace needs a virtual section"


def test_refuses_a_labgrid_node_without_a_labgrid_target(tmp_path: Path) -> None:
    document = _document()
    del document["targets"]["linux-rt"]
    assert "nodes.linux-rt: no labgrid target 'linux-rt'" in _refusal(tmp_path, document)


def test_refuses_the_keys_of_labgrid_that_it_would_not_use(tmp_path: Path) -> None:
    for key in ("tools", "images", "paths", "options", "imports", "features"):
        document = _document()
        document[key] = {}
        assert _refusal(tmp_path, document).startswith(f"{key}: ")


def test_refuses_a_long_name_only_where_interfaces_are_named_after_it(tmp_path: Path) -> None:
    document = _document()
    nodes = document["benchwright"]["nodes"]
    nodes["a-name-that-is-long"] = copy.deepcopy(nodes["p01"])
    assert "nodes.a-name-that-is-long: must have at most 13 characters" in _refusal(tmp_path, document)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("targets: {}\nbenchwright:\n  name: a\n  name: b\n", ":4: name: the key stands twice"),
        ("benchwright: [\n", ":2: "),
        ("- one\n", ": must be a table of keys, found list"),
        ("", ": must be a table of keys, found NoneType"),
        ("on: {}\nbenchwright: {}\n", ": the top: key True must be a plain name (quote it)"),
        ("targets: {}\n", ": benchwright: missing"),
        ("benchwright:\n", ": benchwright: must be a table of keys, found NoneType"),
    ],
)
def test_refuses_what_is_no_table_of_distinct_keys(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bench.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as refused:
        load_bench(path)
    assert str(refused.value).startswith(f"{path}{message}")


def test_refuses_what_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "bench.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="not YAML"):
        load_bench(path)
    with pytest.raises(ConfigError, match="No such file"):
        load_bench(tmp_path / "absent.yaml")


def test_merges_anchors(tmp_path: Path) -> None:
    """A key of an anchor may be overridden: that is what anchors are for."""
    text = VIRTUAL.read_text().replace(
        "p01: {kind: namespace, clock: host, priority: 50, cpus: [0]}",
        "p01: &p {kind: namespace, clock: host, cpus: [1]}",
    )
    text = text.replace(
        "p02: {kind: namespace, clock: host, priority: 50, cpus: [0]}", "p02: {<<: *p, priority: 7}"
    )
    path = tmp_path / "bench.yaml"
    path.write_text(text)
    spec = load_bench(path)
    assert (spec.nodes["p01"].priority, spec.nodes["p02"].priority) == (50, 7)
    assert spec.nodes["p02"].cpus == (1,)


def test_a_bench_of_real_machines_names_its_mirror_port(tmp_path: Path) -> None:
    """Only a virtual bench knows which port of its switch a target has."""
    path = tmp_path / "bench.yaml"
    text = VIRTUAL.with_name("example-hardware.yaml").read_text()
    assert "{node: host, interface: mirror0}" in text
    path.write_text(text.replace("{node: host, interface: mirror0}", "{node: host}"))
    with pytest.raises(ConfigError, match=r"capture\.interface: must name the mirror port"):
        load_bench(path)
