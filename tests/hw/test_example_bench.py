# SPDX-License-Identifier: Apache-2.0
"""The examples of benches of real machines are ones that the project and labgrid would open."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from hw.bench import NodeKind, load_bench
from hw.errors import ConfigError
from hw.journal import Journal
from hw.session import Bench
from resources.daq_replay.pattern import load_pattern

BENCHES = "hw/benches"
VIRTUAL = "virtual.yaml"
HARDWARE, BOARD, WINDOWS = EXAMPLES = ("example-hardware.yaml", "example-board.yaml", "example-windows.yaml")


@pytest.mark.parametrize(
    ("file", "target"),
    [
        (HARDWARE, "linux-rt"),
        (BOARD, "embedded"),
        (WINDOWS, "windows"),
        (VIRTUAL, "embedded"),
        (VIRTUAL, "windows"),
    ],
)
def test_a_bench_plays_the_whole_pattern_into_its_target(repository: Path, file: str, target: str) -> None:
    spec = load_bench(repository / BENCHES / file)
    assert target in spec.targets
    assert target in spec.clocks
    assert spec.simulated == (spec.virtual is not None) == (file == VIRTUAL)
    assert tuple(spec.producers) == load_pattern(repository / "traffic-gen/patterns/daq12.toml").producers


def test_the_example_shows_every_field_that_a_hardware_bench_can_have(repository: Path) -> None:
    """Each field of the virtual bench's file, its own section apart, has its place in the example."""
    virtual, example = (
        yaml.safe_load((repository / BENCHES / file).read_text())["benchwright"]
        for file in (VIRTUAL, HARDWARE)
    )
    assert set(virtual) - set(example) == {"virtual"}
    spec = load_bench(repository / BENCHES / HARDWARE)
    assert {producer.node for producer in spec.producers.values()} == {"producers-a", "producers-b"}
    assert spec.capture is not None
    assert spec.witness is not None
    assert set(spec.oscilloscopes["scope-a"].signals) == {"reference", "edge"}


def test_a_real_board_and_its_virtual_counterpart_differ_in_resources_and_drivers_only(
    repository: Path,
) -> None:
    real, virtual = (
        list(yaml.safe_load((repository / BENCHES / file).read_text())["targets"]["embedded"]["drivers"])
        for file in (BOARD, VIRTUAL)
    )
    assert set(real) & set(virtual) == {"BoardStrategy"}
    for drivers in (real, virtual):
        assert drivers.index("BoardStrategy") > 1, "it binds what stands before it"


@pytest.mark.simulated
@pytest.mark.slow
@pytest.mark.parametrize("file", EXAMPLES)
def test_labgrid_accepts_the_example(repository: Path, tmp_path: Path, file: str) -> None:
    """Its targets are made, with unknown attributes as errors; nothing is powered or reached."""
    spec = load_bench(repository / BENCHES / file)
    bench = Bench(spec, Journal(spec.name, {}, tmp_path))
    try:
        remote = {node.name for node in spec.nodes.values() if node.kind is NodeKind.LABGRID}
        assert remote == set(spec.labgrid_targets)
        assert bench.node("host").run(["true"]).exit_code == 0
    finally:
        bench.close()


@pytest.mark.simulated
@pytest.mark.slow
def test_an_unknown_attribute_of_a_windows_machine_is_refused(repository: Path, tmp_path: Path) -> None:
    document = yaml.safe_load((repository / BENCHES / WINDOWS).read_text())
    document["targets"]["windows"]["drivers"]["WindowsSSHDriver"]["shell"] = "powershell"
    file = tmp_path / "bench.yaml"
    file.write_text(yaml.safe_dump(document, sort_keys=False))
    with pytest.raises(ConfigError, match="shell"):
        Bench(load_bench(file), Journal("example-windows", {}, tmp_path))
