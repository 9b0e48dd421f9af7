# SPDX-License-Identifier: Apache-2.0
"""What a caller gives to `make` is text: nothing in it is run, by make or by the shell."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
GIVEN = (
    "PROFILE", "BENCH", "TARGETS", "STACKS", "SUITE", "REQUIRE_ALL", "EARLIER", "ROBOT_OPTIONS", "RUN",
    "TEST", "PARTS", "FUZZ_S", "TRENDS_OPTIONS",
)  # fmt: skip
COMMANDS = {
    "qualify": ("PROFILE", "BENCH", "TARGETS", "STACKS", "SUITE", "REQUIRE_ALL", "EARLIER", "ROBOT_OPTIONS"),
    "show": ("RUN",),
    "verify": ("RUN",),
    "dossier": ("RUN",),
    "test": ("TEST",),
    "nightly": ("PARTS", "FUZZ_S", "BENCH"),
    "trends": ("TRENDS_OPTIONS",),
    "doctor": ("BENCH",),
}
PYTHON = """#!/usr/bin/python3
import json, sys
print(json.dumps(sys.argv[1:]))
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Give a folder with the Makefile, whose programs say only what they were called with."""
    folder = tmp_path / "project"
    for name, text in ((".build/venv/bin/python", PYTHON), ("hw/host/setup.sh", "#!/bin/sh\n")):
        path = folder / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
        path.chmod(0o755)
    shutil.copy(ROOT / "Makefile", folder)
    return folder


def made(project: Path, command: str, given: dict[str, str], *, by_environment: bool = False) -> list[str]:
    """Run a command of the Makefile; return the arguments of the program that it starts."""
    clean = {name: value for name, value in os.environ.items() if name not in (*GIVEN, "MAKEFLAGS")}
    words = [] if by_environment else [f"{name}={value}" for name, value in given.items()]
    environment = clean | given if by_environment else clean
    done = subprocess.run(
        ["make", "-s", command, *words], cwd=project, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("by_environment", [False, True])
@pytest.mark.parametrize(
    "text", ['x"; touch {0}; "', "$(touch {0})", "`touch {0}`", "$(shell touch {0})", "x; touch {0}"]
)
@pytest.mark.parametrize(("command", "name"), [(c, n) for c, names in COMMANDS.items() for n in names])
def test_nothing_that_is_given_is_run(
    project: Path, tmp_path: Path, command: str, name: str, text: str, by_environment: bool
) -> None:
    mark = tmp_path / "run"
    found = made(project, command, {name: text.format(mark)}, by_environment=by_environment)
    assert str(mark) in " ".join(found)
    assert not mark.exists()


def test_lists_are_split_with_quotes_as_a_shell_understands_them(project: Path) -> None:
    given = {
        "TARGETS": "linux-rt  windows",
        "STACKS": " kernel other",
        "SUITE": "robot/my suite",
        "ROBOT_OPTIONS": "--test 'My Test' --variable \"A:b c\" *",
    }
    found = made(project, "qualify", given)
    assert found[found.index("--suite") + 1] == "robot/my suite"
    at = found.index("--targets")
    assert found[at + 1 : found.index("--stacks")] == ["linux-rt", "windows"]
    assert found[found.index("--stacks") + 1 : found.index("--earlier")] == ["kernel", "other"]
    assert found[found.index("--") + 1 :] == ["--test", "My Test", "--variable", "A:b c", "*"]


def test_what_is_left_out_is_the_default(project: Path) -> None:
    found = made(project, "qualify", {})
    chosen = ["--profile", "quick", "--bench", "hw/benches/virtual.yaml", "--suite", "robot/"]
    named = ["--targets", "--stacks", "--earlier", "--require-all", "no", "--"]
    assert found == ["-m", "resources.qualify", *chosen, *named]


@pytest.mark.parametrize("by_environment", [False, True])
def test_the_cache_is_a_path(project: Path, tmp_path: Path, by_environment: bool) -> None:
    given = {"BENCHWRIGHT_CACHE": f"$(shell touch {tmp_path}-run)"}
    made(project, "doctor", given, by_environment=by_environment)
    assert not Path(f"{tmp_path}-run").exists()


def test_the_name_of_a_benchmark_is_a_name(project: Path, tmp_path: Path) -> None:
    found = made(project, f"bench-x$$(touch {tmp_path}-run)", {})
    assert found[0] == "-m"
    assert not Path(f"{tmp_path}-run").exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_misspelt_variable_is_refused(project: Path, command: str) -> None:
    argv = ["make", "-s", command, "PROFIL=ci"]
    done = subprocess.run(argv, cwd=project, capture_output=True, text=True)
    assert done.returncode == 2
    assert "no such variable: PROFIL; there are PROFILE BENCH" in done.stderr
    assert done.stdout == ""


def test_every_documented_variable_is_known(project: Path) -> None:
    given: dict[str, str] = dict.fromkeys((*GIVEN, "HOURS", "BENCHWRIGHT_CACHE"), "x")
    assert made(project, "qualify", given)
