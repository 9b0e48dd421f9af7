# SPDX-License-Identifier: Apache-2.0
"""The plan of an experiment, and of the file that its folder keeps: the same."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from hw.errors import ConfigError
from resources.experiment.experiment_file import read_experiment_file
from resources.experiment.folder import ExperimentFolder
from resources.experiment.plan import plan_text
from resources.experiment.toml_text import line_of, toml_text
from tests.experiment.lab import bench_file, experiment_file
from tests.resources.experiment.made_up import made_up_file

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("seed", range(50))
def test_the_resolved_file_has_the_same_plan(tmp_path: Path, seed: int) -> None:
    experiment = read_experiment_file(made_up_file(tmp_path, seed))
    folder = ExperimentFolder.create(tmp_path / "output", experiment)
    again = read_experiment_file(folder.path / "experiment.toml")
    assert (
        plan_text(again).encode() == plan_text(experiment).encode() == (folder.path / "plan.txt").read_bytes()
    )
    assert again.text() == experiment.text()
    assert [again.at(point) for point in again.points] == [
        experiment.at(point) for point in experiment.points
    ]


@pytest.mark.parametrize("seed", range(50))
def test_a_table_reads_as_it_was_written(tmp_path: Path, seed: int) -> None:
    table = tomllib.loads(made_up_file(tmp_path, seed).read_text())
    assert tomllib.loads(toml_text(table)) == table


def test_a_plan_says_who_does_what_when(tmp_path: Path) -> None:
    file = experiment_file(tmp_path, bench_file(tmp_path, "said"), None)
    said = plan_text(read_experiment_file(file)).splitlines()
    assert said[:2] == [
        "experiment broken: 1 point, at most 4 min 0 s, besides boots and collection",
        "bench said",
    ]
    assert "  1 start, at most 1 min 0 s" in said
    assert any(line.startswith("      plain on other: start: sh -c ") for line in said)
    assert "      second on other: work with phase = 'work'" in said
    assert "  5 collect" in said


def test_names_of_axes_stand_in_one_plan_for_all_points(tmp_path: Path) -> None:
    bench_file(tmp_path, "axes")
    (tmp_path / "x.toml").write_text(
        f"""
schema = "benchwright.experiment/1"
name = "axes"
bench = "{tmp_path}/bench.yaml"
axes = {{delay_ms = [0, 5], wait_s = [1, 2]}}
[nodes]
one = {{node = "p01"}}
[components]
c = {{node = "one", command = ["prog", "--delay", "${{delay_ms}}"]}}
[[phases]]
name = "all"
deadline_s = "${{wait_s}}"
tasks = {{c = "run"}}
"""
    )
    said = plan_text(read_experiment_file(tmp_path / "x.toml"))
    assert said.startswith("experiment axes: 4 points, at most 6 s")
    assert said.count("c on one: run: prog --delay '${delay_ms}'") == 2, "one for each deadline"
    assert "phases of point 1, 3" in said


def test_one_that_was_changed_goes_not_on(tmp_path: Path) -> None:
    experiment = read_experiment_file(made_up_file(tmp_path, 1))
    folder = ExperimentFolder.create(tmp_path / "output", experiment)
    kept = folder.path / "experiment.toml"
    kept.write_text(kept.read_text().replace("deadline_s = ", "deadline_s = 1", 1))
    with pytest.raises(ConfigError, match=r"its plan must be that of plan\.txt"):
        ExperimentFolder.reopen(folder.path)


def test_versions_that_changed_are_named(tmp_path: Path) -> None:
    experiment = read_experiment_file(made_up_file(tmp_path, 1))
    folder = ExperimentFolder.create(tmp_path / "output", experiment)
    assert folder.keep_versions({"one kernel": "6.1", "tool": "1"}) == []
    assert folder.keep_versions({"one kernel": "6.12", "tool": "1"}) == ["one kernel: 6.1 before, 6.12 now"]


def test_the_example_is_sound(tmp_path: Path) -> None:
    found = read_experiment_file(
        ROOT / "resources/experiment/example/client_server.toml", bench_file(tmp_path, "e")
    )
    names = [phase.name for phase in found.as_written().phases]
    assert names == ["start", "clocks", "record", "listen", "send", "end"]


def test_lines_of_keys_are_found() -> None:
    text = 'a = 1\n[t."u v"]\nb = 2\n[[p]]\nname = 1\n[[p]]\n[p.tasks]\nx = 1\n'
    paths = ("a", "t.u v.b", "p[1].name", "p[2].tasks.x", "p[2].other", "z")
    assert [line_of(text, path) for path in paths] == [1, 3, 5, 8, 6, None]
