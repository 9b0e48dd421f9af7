# SPDX-License-Identifier: Apache-2.0
"""A sweep that is killed at any instant goes on: every point is there once, in the order of the plan."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from resources.experiment.toml_text import toml_text
from tests.experiment.lab import ROOT, bench_file, command, left_soon, run
from tests.patience import HANG_S
from tests.turns import in_turn

pytestmark = pytest.mark.simulated

NAME = "resumes"
POINTS = 12


def sweep(folder: Path, bench: Path) -> Path:
    """Write an experiment of twelve points in a drawn order."""
    table = {
        "schema": "benchwright.experiment/1",
        "name": "sweep",
        "bench": str(bench),
        "axes": {"delay": [0, 1, 2, 3, 4, 5]},
        "repeats": 2,
        "order": "shuffled",
        "seed": 65,
        "nodes": {"one": {"node": "p01"}},
        "components": {
            "says": {
                "node": "one",
                "command": ["sh", "-c", "echo ${delay} ${repeat}; (sleep 10000 &); sleep 0.02"],
            }
        },
        "phases": [{"name": "all", "deadline_s": 60, "tasks": {"says": "run"}}],
    }
    file = folder / "sweep.toml"
    file.write_text(toml_text(table))
    return file


def killed(file: Path, output: Path, after_s: float) -> int:
    """Kill a sweep so long after its first point began; return how many points are complete."""
    process = subprocess.Popen(
        command("run", file, "--output", output),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(after_s)
    process.send_signal(signal.SIGKILL)
    process.wait(HANG_S)
    process.stdout.close()
    return len([each for each in (output / "points").iterdir() if each.name.isdecimal()])


def goes_on(tmp_path: Path, after_s: float) -> None:
    """Kill a sweep, resume it, and look at its points."""
    bench = bench_file(tmp_path, NAME)
    output = tmp_path / f"output-{after_s:g}"
    before = killed(sweep(tmp_path, bench), output, after_s)
    done = run("resume", output / "experiment.toml")
    assert done.returncode == 0, done.stdout + done.stderr
    measured = [line.split()[2] for line in done.stdout.splitlines() if " point " in line]
    assert measured == [str(number) for number in range(before + 1, POINTS + 1)]
    complete = sorted(each for each in (output / "points").iterdir() if each.name.isdecimal())
    assert [int(each.name) for each in complete] == list(range(1, POINTS + 1))
    said = [(each / "says.out").read_text().split() for each in complete]
    values = [json.loads((each / "point.json").read_text()) for each in complete]
    assert said == [[str(each["values"]["delay"]), str(each["repeat"])] for each in values]
    assert sorted(map(tuple, said)) == sorted((str(d), str(r)) for d in range(6) for r in (1, 2))
    planned = [
        line.split() for line in (output / "plan.txt").read_text().split("points, order")[1].splitlines()[1:]
    ]
    assert [[words[3].rstrip(","), words[5]] for words in planned] == said
    assert left_soon(NAME, output) == []


@pytest.mark.parametrize("share", [0.1, 0.8])
def test_a_sweep_that_was_killed_goes_on(tmp_path: Path, share: float) -> None:
    with in_turn(NAME):
        goes_on(tmp_path, share)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(30))
def test_a_sweep_that_was_killed_at_a_drawn_instant_goes_on(tmp_path: Path, seed: int) -> None:
    with in_turn(NAME):
        goes_on(tmp_path, random.Random(seed).uniform(0, 2.5))


def test_one_that_is_complete_has_nothing_to_do(tmp_path: Path) -> None:
    with in_turn(NAME):
        file = sweep(tmp_path, bench_file(tmp_path, NAME))
        output = tmp_path / "output"
        assert run("run", file, "--output", output).returncode == 0
        again = run("resume", output / "experiment.toml")
        assert (again.returncode, again.stdout) == (0, f"{output}: all 12 points are complete\n")
        assert run("run", file, "--output", output).returncode == 2
