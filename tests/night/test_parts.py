# SPDX-License-Identifier: Apache-2.0
"""The real table of the night names only what there is, and finds every benchmark."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path

import pytest

from bench.lab.catalogue import benchmark_files
from tests.night.parts import Part, Step, parts
from tests.night.result import read
from tests.night.test_night import LONG_S, Tree

ROOT = Path(__file__).resolve().parents[2]
TABLE = parts(600, "hw/benches/virtual.yaml")


def test_names_are_unique_and_every_part_says_what_it_does() -> None:
    names = [part.name for part in TABLE]
    assert len(names) == len(set(names))
    assert {
        "lint",
        "test-all",
        "pdfa",
        "influxdb2",
        "mutants",
        "qualify-ci",
        "qualify-nightly-daq-replay",
        "qualify-nightly-clock-sync",
        "fuzz",
    } <= set(names)
    assert {"bench-verdicts", "bench-restore", "bench-time-truth"} <= set(names)
    assert all(part.about and part.steps and part.limit_s > 0 for part in TABLE)


@pytest.mark.parametrize("part", TABLE, ids=lambda part: part.name)
def test_what_a_part_runs_exists(part: Part) -> None:
    for step in part.steps:
        program, *arguments = step.argv
        if program == sys.executable:
            module = arguments[arguments.index("-m") + 1]
            assert importlib.util.find_spec(module), module
            if module == "bench":
                assert benchmark_files(ROOT)[arguments[-1]].is_file()
        else:
            assert os.access(ROOT / program, os.X_OK), program
        for argument in arguments:
            if "/" in argument and "{own}" not in argument:
                assert (ROOT / argument).exists(), argument


def test_every_suite_has_its_part_by_night_and_all_are_one_by_ci() -> None:
    profiles = (ROOT / "resources" / "profiles.toml").read_text()
    asked: dict[str, list[str]] = {}
    for part in TABLE:
        if part.name.startswith("qualify-"):
            ((argv),) = (step.argv for step in part.steps)
            assert argv[2] == "tests.night.qualify"
            profile, suite = (argv[argv.index(option) + 1] for option in ("--profile", "--suite"))
            assert f"[{profile}]" in profiles
            asked.setdefault(profile, []).append(suite)
    by_night = {str(file.parent.relative_to(ROOT)) for file in (ROOT / "robot").rglob("*.robot")}
    assert asked == {"ci": ["robot/"], "nightly": sorted(by_night)}


def test_fuzzing_has_time_for_what_it_is_asked() -> None:
    (short,) = (part for part in parts(1, "b.yaml") if part.name == "fuzz")
    (long,) = (part for part in parts(7 * 86_400, "b.yaml") if part.name == "fuzz")
    assert long.limit_s - short.limit_s > 50 * 6.9 * 86_400
    assert long.commands == (f"python -m tests.night.fuzz {7 * 86_400}",)


def test_a_new_benchmark_is_found_by_itself(tmp_path: Path) -> None:
    folder = tmp_path / "bench" / "folder"
    folder.mkdir(parents=True)
    (folder / "bench_one_more.py").write_text('"""How much more?\n\nMuch.\n"""\n')
    (folder / "pair.py").write_text("")
    (found,) = (part for part in parts(1, "b.yaml", tmp_path) if part.name.startswith("bench-"))
    assert (found.name, found.about) == ("bench-one-more", "How much more?")
    assert found.commands == ("python -m bench one-more",)


PUBLISHES = """
import sys
from pathlib import Path
from bench.lab.report import Bar, publish
print("bench     a turn", file=sys.stderr)
sys.exit(publish("x", {"ratio": 0.5}, {"ratio": Bar(0.4)}, folder=Path(sys.argv[1])))
"""


def test_faults_that_nothing_found_are_named(tmp_path: Path) -> None:
    (tmp_path / "mutants.log").write_text(
        "undo         undo-not-written                tests/hw/test_journal.py::test_a\n"
        "C sender     latest-slot-first               NOT FOUND\n"
        "clocks       offset-sign                     NOT FOUND: tests/a.py::test_b fails without it, too\n"
        "C sender                 4 of 5 found; not latest-slot-first\n"
    )
    (mutants,) = (part for part in TABLE if part.name == "mutants")
    assert mutants.names(tmp_path / "mutants") == ["latest-slot-first", "offset-sign"]


def test_figures_of_a_benchmark_are_kept(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    tree = Tree(tmp_path / "tree")
    program = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{PUBLISHES}"
    step = Step((sys.executable, "-c", program, str(tmp_path / "bench")))
    assert tree.run([Part("bench-x", "", (step,), LONG_S)]) == 0
    kept = read(tree.folder() / "bench-x.json")
    assert kept is not None
    assert (kept.figures, kept.bars, kept.verdict) == ({"ratio": 0.5}, {"ratio": 0.4}, "passed")
    assert "bench-x, bars not met" in (tree.folder() / "summary.html").read_text()
    assert json.loads((tmp_path / "bench" / "x.json").read_text())["met"] is False
