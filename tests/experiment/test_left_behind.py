# SPDX-License-Identifier: Apache-2.0
"""What a component changes on its node: undone by its own `reset`, or told, with exit code 5."""

from __future__ import annotations

from pathlib import Path

import pytest

from resources.experiment.toml_text import toml_text
from tests.experiment.lab import bench_file, left_soon, run
from tests.patience import STALL_S
from tests.turns import in_turn

pytestmark = pytest.mark.simulated

NAME = "leaves"
CHANGES = {
    "address": ("ip address add 10.99.0.1/24 dev lo", "ip address del 10.99.0.1/24 dev lo", "addresses: "),
    "route": (
        "ip route add 10.99.1.0/24 dev test0",
        "ip route del 10.99.1.0/24",
        "routes: 10.99.1.0/24 dev test0",
    ),
    "queue": ("tc qdisc add dev lo root pfifo", "tc qdisc del dev lo root", "qdiscs: qdisc pfifo"),
}


def _file(folder: Path, *, undone: bool) -> Path:
    components: dict[str, dict[str, object]] = {}
    for name, (does, undoes, _) in CHANGES.items():
        components[name] = {"node": "one", "command": ["sh", "-c", does]}
        if undone:
            components[name]["reset"] = ["sh", "-c", undoes]
    table = {
        "schema": "benchwright.experiment/1",
        "name": "leaves",
        "bench": str(bench_file(folder, NAME)),
        "axes": {"twice": [1, 2]},
        "nodes": {"one": {"node": "p01"}, "other": {"node": "p02"}},
        "components": components,
        "phases": [{"name": "all", "deadline_s": 60, "tasks": dict.fromkeys(components, "run")}],
    }
    file = folder / "leaves.toml"
    file.write_text(toml_text(table))
    return file


def test_changes_that_their_reset_undoes_are_none(tmp_path: Path) -> None:
    with in_turn(NAME):
        done = run("run", _file(tmp_path, undone=True), "--output", tmp_path / "output")
        assert done.returncode == 0, done.stdout + done.stderr
        assert left_soon(NAME, tmp_path / "output") == []


def test_changes_that_stay_are_told_and_end_it(tmp_path: Path) -> None:
    with in_turn(NAME):
        file = _file(tmp_path, undone=False)
        done = run("run", file, "--output", tmp_path / "output", settle_s=STALL_S)
        assert done.returncode == 5, done.stdout + done.stderr
        for _, _, said in CHANGES.values():
            assert f"node one (p01): {said}" in done.stderr
        assert "was not there" in done.stderr
        assert not (tmp_path / "output/points/0001").exists()
        assert left_soon(NAME, tmp_path / "output") == [], "the bench goes, and the change with it"
