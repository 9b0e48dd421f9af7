# SPDX-License-Identifier: Apache-2.0
"""A bench with a real board and its virtual counterpart differ in resources and drivers only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from hw.bench import NodeKind, load_bench
from hw.journal import Journal
from hw.session import Bench
from resources.replay.pattern import load_pattern

EXAMPLE = "hw/benches/example-board.yaml"
VIRTUAL = "hw/benches/virtual.yaml"
TARGET = "embedded"


@pytest.mark.parametrize("file", [EXAMPLE, VIRTUAL])
def test_bench_plays_the_whole_pattern_into_the_board(repository: Path, file: str) -> None:
    spec = load_bench(repository / file)
    assert tuple(spec.producers) == load_pattern(repository / "traffic-gen/patterns/daq12.toml").producers
    assert TARGET in spec.targets
    assert spec.simulated == (spec.virtual is not None) == (file == VIRTUAL)
    assert spec.witness is not None


def part(repository: Path, file: str, name: str) -> dict[str, Any]:
    """Return resources or drivers of the board."""
    return yaml.safe_load((repository / file).read_text())["targets"][TARGET][name]


def test_strategy_is_the_same_for_both(repository: Path) -> None:
    real, virtual = (list(part(repository, file, "drivers")) for file in (EXAMPLE, VIRTUAL))
    assert set(real) & set(virtual) == {"BoardStrategy"}
    for drivers in (real, virtual):
        assert drivers.index("BoardStrategy") > 1, "it binds what stands before it"


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
