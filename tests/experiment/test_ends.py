# SPDX-License-Identifier: Apache-2.0
"""Ends that are no sound ones: nothing that was lost, failed late, or stays is called complete."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from resources.experiment.toml_text import toml_text
from tests.experiment.lab import ROOT, bench_file, command, left_soon, run
from tests.patience import HANG_S, STALL_S
from tests.turns import in_turn

pytestmark = pytest.mark.simulated

NAME = "ends"
SPEAKS = """
echo '{"type":"ready","schema":"benchwright.phase/1","phases":["go"]}'
while read line; do echo '{"type":"done","phase":"other","values":{}}'; done
"""


def experiment(
    folder: Path, component: dict[str, Any], tasks: dict[str, Any] | None = None, points: int = 1
) -> Path:
    """Write an experiment of one component."""
    table = {
        "schema": "benchwright.experiment/1",
        "name": "ends",
        "bench": str(bench_file(folder, NAME)),
        "axes": {"point": [*range(points)]},
        "nodes": {"one": {"node": "p01"}},
        "components": {"x": {"node": "one", **component}},
        "phases": [{"name": "all", "deadline_s": 60, "tasks": tasks or {"x": "run"}}],
    }
    file = folder / "ends.toml"
    file.write_text(toml_text(table))
    return file


def shell(script: str, **more: object) -> dict[str, Any]:
    """Return a component that is a script."""
    return {"command": ["sh", "-c", script], **more}


LATE = "trap 'exit 9' TERM; echo on; while :; do sleep 0.01; done"
RESET = ["sh", "-c", "echo no >&2; exit 7"]
Case = tuple[dict[str, Any], dict[str, Any] | None, int, str]
CASES: dict[str, Case] = {
    "no-file": (shell("true", files=["nothing.txt"]), None, 4, "x: nothing.txt: it has written no such file"),
    "odd-name": (shell("touch 'a b' c", files=["*"]), None, 4, "x: 'a b': its name must be of letters"),
    "no-folder": (shell('rm -rf "$PWD"; echo gone'), None, 4, "x: out: it has removed it"),
    "late": (
        shell(LATE, ready="line:on"),
        {"x": "start"},
        4,
        "x on p01, phase collect: ended with exit code 9 when it was asked to end",
    ),
    "other-phase": (
        shell(SPEAKS, ready="phases"),
        {"x": ["start", "go"]},
        4,
        "x on p01, phase all: answered 'other' in phase go",
    ),
    "not-registered": (
        shell(SPEAKS, ready="phases"),
        {"x": ["start", "go", "send"]},
        2,
        "x on p01, phase all: has registered no phase send; it has go",
    ),
    "mtu": (shell("ip link set test0 mtu 1300"), None, 5, "node one (p01): links: "),
    "failed-and-left": (
        shell("ip rule add from 10.9.9.9 table 9; exit 3"),
        None,
        5,
        "node one (p01): rules: ",
    ),
    "bad-reset": (
        shell("true", reset=RESET),
        None,
        5,
        "x: reset: sh -c 'echo no >&2; exit 7': exit code 7: no",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_an_end_that_is_not_sound_is_told(tmp_path: Path, case: str) -> None:
    component, tasks, code, said = CASES[case]
    with in_turn(NAME):
        file = experiment(tmp_path, component, tasks)
        settle_s = STALL_S if code == 5 else None
        done = run("run", file, "--output", tmp_path / "output", settle_s=settle_s)
        assert done.returncode == code, done.stdout + done.stderr
        assert "experiment: point 1: " in done.stderr
        assert said in done.stderr
        assert not (tmp_path / "output/points/0001").exists()
        assert left_soon(NAME, tmp_path / "output") == []


def test_each_start_of_a_component_is_kept(tmp_path: Path) -> None:
    component = shell("echo started $$; exec sleep 10000", ready="line:started")
    tasks = {"x": ["start", "stop", "start", "stop"]}
    with in_turn(NAME):
        done = run("run", experiment(tmp_path, component, tasks), "--output", tmp_path / "output")
    assert done.returncode == 0, done.stdout + done.stderr
    said = {(tmp_path / f"output/points/0001/{name}").read_text() for name in ("x.out", "x.2.out")}
    assert len(said) == 2


def test_a_script_that_was_changed_goes_not_on(tmp_path: Path) -> None:
    (tmp_path / "s.sh").write_text("echo $1; exit $1\n")
    component = {"command": ["sh", "@s.sh", "${point}"]}
    with in_turn(NAME):
        assert (
            run("run", experiment(tmp_path, component, points=2), "--output", tmp_path / "o").returncode == 4
        )
        (tmp_path / "o/files/s.sh").write_text("exit 0\n")
        again = run("resume", tmp_path / "o/experiment.toml")
    assert again.returncode == 2
    assert "files/s.sh: must be as when the experiment began" in again.stderr


def test_a_reader_that_has_seen_enough_changes_nothing(tmp_path: Path) -> None:
    with in_turn(NAME):
        words = command("run", experiment(tmp_path, shell("true"), points=3), "--output", tmp_path / "output")
        process = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read()
        assert (process.wait(HANG_S), said) == (0, b"")
    assert len([*(tmp_path / "output/points").iterdir()]) == 3


def test_an_output_that_cannot_be_written_is_the_benchs_fault(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = run("run", experiment(tmp_path, shell("true")), "--output", tmp_path / "file/output")
    assert done.returncode == 5
    assert done.stderr.endswith("Not a directory\n")
    assert "Traceback" not in done.stderr


def test_files_of_an_included_file_lie_beside_it_and_names_can_be_escaped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "none"))  # as of a tree that was exported
    parts = tmp_path / "parts"
    parts.mkdir()
    (parts / "s.sh").write_text("echo $1\n")
    (parts / "c.toml").write_text(
        toml_text({"components": {"x": {"node": "one", "command": ["sh", "@s.sh", "$${HOME}"]}}})
    )
    file = experiment(tmp_path, shell("true"))
    text = file.read_text()
    begin, end = text.index("[components]"), text.index("[[phases]]")
    file.write_text('include = ["parts/c.toml"]\n' + text[:begin] + text[end:])
    with in_turn(NAME):
        done = run("run", file, "--output", tmp_path / "output")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "output/points/0001/x.out").read_text() == "${HOME}\n"
    versions = json.loads((tmp_path / "output/versions.json").read_text())
    assert "one kernel" in versions
    assert re.fullmatch(r"\S+, files of SHA-256 [0-9a-f]{64}", versions["benchwright"])
