# SPDX-License-Identifier: Apache-2.0
"""The example of a bench of real machines is one that the project and labgrid would open."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from hw.bench import NodeKind, load_bench
from hw.journal import Journal
from hw.session import Bench
from resources.replay.pattern import load_pattern

EXAMPLE = "hw/benches/example-hardware.yaml"


def test_the_example_plays_the_whole_pattern(repository: Path) -> None:
    spec = load_bench(repository / EXAMPLE)
    assert not spec.simulated
    assert spec.virtual is None
    assert tuple(spec.producers) == load_pattern(repository / "traffic-gen/patterns/daq12.toml").producers
    assert {producer.node for producer in spec.producers.values()} == {"producers-a", "producers-b"}
    assert spec.impairment is not None
    assert spec.capture is not None
    assert spec.witness is not None
    assert set(spec.oscilloscopes["scope-a"].signals) == {"reference", "edge"}


def test_the_example_shows_every_field_that_a_hardware_bench_can_have(repository: Path) -> None:
    """The virtual bench's own section apart, each field of its file has its place in the example."""
    virtual = yaml.safe_load((repository / "hw/benches/virtual.yaml").read_text())["benchwright"]
    example = yaml.safe_load((repository / EXAMPLE).read_text())["benchwright"]
    assert set(virtual) - set(example) == {"virtual"}


@pytest.mark.simulated
@pytest.mark.slow
def test_labgrid_accepts_the_example(repository: Path, tmp_path: Path) -> None:
    """Its targets are made, with unknown attributes as errors; nothing is powered or reached."""
    spec = load_bench(repository / EXAMPLE)
    bench = Bench(spec, Journal(spec.name, {}, tmp_path))
    try:
        remote = {node.name for node in spec.nodes.values() if node.kind is NodeKind.LABGRID}
        assert remote == set(spec.labgrid_targets)
        assert bench.node("host").run(["true"]).exit_code == 0
    finally:
        bench.close()
