# SPDX-License-Identifier: Apache-2.0
"""The script of build servers repeats what was inconclusive, and a few failed tests once.

No verdict is no pass; where the time that the simulated bench's machine took explains it, it stops no change.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

# `make qualify` ends with the next of the codes and leaves a run folder, as the real one does.
MAKEFILE = """
setup images:
	@exit $$(cat $@-code)
test:
	@mkdir -p .build/log; cp failed .build/log/test-failed.txt
	@echo "==== 7 passed in 0.1s ===="; exit $(TEST_CODE)
qualify:
	@code=$$(head -n 1 codes); sed -i 1d codes; mkdir -p "results/run-$$(wc -l <codes)"; \\
	echo "$(PROFILE)" >profile; echo "$$PWD/results/run-$$(wc -l <codes)" >"$$QUALIFY_RUN_FILE"; \\
	mkdir -p results/of-somebody-else; ln -sfn of-somebody-else results/latest; \\
	echo "$$code" >"$$QUALIFY_EXIT_FILE"; exit "$$code"
"""

# Stands for `python -m reports stalled RUN`: true of the runs that the file names; for `verify`, which
# refuses those that another one names; and for the clean root.
PYTHON = """#!/bin/sh
[ "$1 $2" != "-m tests.clean_root" ] || exit "$(cat clean-root-code)"
if [ "$1 $2 $3" = "-m reports verify" ]; then
    echo "$4" >>verified
    ! grep -qx "$(basename "$4")" refused || exit "$(cat refuse-code)"
    exit 0
fi
[ "$1 $2 $3" = "-m reports stalled" ] || exit 2
grep -qx "$(basename "$4")" stalled
"""
LINT = '#!/bin/sh\necho "$@" >linted\nexit "$(cat lint-code)"\n'
TESTS = (
    '#!/bin/sh\n[ "$1" = again ] || exit 2\ncp .build/log/test-failed.txt again\nexit "$(cat again-code)"\n'
)
CODES = ("setup", "images", "lint", "again", "clean-root")


class Project:
    """A folder with the script, whose steps end as a test says."""

    def __init__(self, repository: Path, folder: Path) -> None:
        """Make one in which everything is well."""
        self.folder = folder
        scripts = {".build/venv/bin/python": PYTHON, "tests/lint/run.sh": LINT, "tests/run.sh": TESTS}
        for name, text in scripts.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            path.chmod(0o755)
        (folder / ".ci").mkdir()
        shutil.copy(repository / ".ci" / "run", folder / ".ci" / "run")
        for step in CODES:
            self.end_with(step, 0)
        self.say("stalled")
        self.say("refused")
        self.end_with("refuse", 1)
        self.test_with(0)
        self.qualify_with(0)

    def say(self, name: str, *lines: str) -> None:
        """Write a file that a step reads."""
        (self.folder / name).write_text("".join(f"{line}\n" for line in lines))

    def end_with(self, step: str, code: int) -> None:
        """Let a step end with an exit code."""
        self.say(f"{step}-code", str(code))

    def test_with(self, code: int, *failed: str) -> None:
        """Let the tests end with an exit code and a list of what failed."""
        (self.folder / "Makefile").write_text(MAKEFILE.replace("$(TEST_CODE)", str(code)))
        self.say("failed", *failed)

    def qualify_with(self, *codes: int) -> None:
        """Let the qualifications end with these codes, one after the other."""
        self.say("codes", *map(str, codes))

    def run(self, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run the script."""
        script = str(self.folder / ".ci" / "run")
        return subprocess.run([script], capture_output=True, text=True, env={**os.environ, **environment})

    def lines(self, name: str) -> list[str]:
        """Return the lines of a file."""
        return (self.folder / name).read_text().splitlines()


@pytest.fixture
def project(repository: Path, tmp_path: Path) -> Project:
    """Give a project in which everything is well."""
    return Project(repository, tmp_path)


@pytest.mark.parametrize(
    ("test_code", "codes", "stalled", "attempts", "exit_code"),
    [
        (0, [0], "", 1, 0),
        (0, [4, 0], "", 2, 0),
        (0, [4, 4, 4, 0], "", 3, 4),
        (0, [4, 4, 4, 0], "run-3", 1, 0),
        (0, [4, 4, 4, 0], "run-2", 2, 0),
        (0, [4, 4, 4, 0], "run-1", 3, 0),
        (0, [1, 0], "", 1, 1),
        (0, [1, 0], "run-1", 1, 1),
        (0, [4, 1, 0], "run-0", 2, 1),
        (0, [3, 0], "", 1, 3),
        (0, [5, 0], "run-1", 1, 5),
        (1, [0], "", 1, 1),
        (1, [4, 4, 4], "run-1", 2, 1),
    ],
)
def test_attempts(
    project: Project, test_code: int, codes: list[int], stalled: str, attempts: int, exit_code: int
) -> None:
    project.test_with(test_code)
    project.qualify_with(*codes)
    project.say("stalled", stalled)
    done = project.run()
    kept = [json.loads(line) for line in project.lines("results/ci/attempts.ndjson")]
    assert done.returncode == exit_code
    assert ("NO VERDICT" in done.stdout) == (codes[attempts - 1] == 4 and bool(stalled))
    assert [entry["exit_code"] for entry in kept] == codes[:attempts]
    assert len({entry["run"] for entry in kept}) == attempts
    assert all((project.folder / "results" / entry["run"]).is_dir() for entry in kept)
    assert done.stdout.count("==== 7 passed in 0.1s ====") == 2, "at the end of the tests, and of all"
    assert project.lines("profile") == ["quick"]


@pytest.mark.parametrize(
    ("codes", "refused", "refuse_code", "attempts", "exit_code"),
    [
        ([0], "run-0", 1, 1, 1),
        ([0], "run-0", 2, 1, 1),
        ([4, 0], "run-1", 1, 1, 1),
        ([4, 0], "run-0", 1, 2, 1),
        ([4, 0], "", 1, 2, 0),
        ([5], "run-0", 1, 1, 5),
    ],
)
def test_each_run_is_verified(
    project: Project, codes: list[int], refused: str, refuse_code: int, attempts: int, exit_code: int
) -> None:
    project.qualify_with(*codes)
    project.say("refused", refused)
    project.end_with("refuse", refuse_code)
    project.say("stalled", "run-1" if refused == "run-1" else "")
    assert project.run().returncode == exit_code
    kept = [json.loads(line) for line in project.lines("results/ci/attempts.ndjson")]
    assert project.lines("verified") == [f"results/{entry['run']}" for entry in kept]
    assert len(kept) == attempts


def test_no_attempt_is_begun_that_would_not_end_in_time(project: Project) -> None:
    project.qualify_with(4, 0)
    done = project.run(CI_TOTAL_LIMIT_S="-1")
    assert done.returncode == 4
    assert "no time for another attempt" in done.stdout


def test_each_step_says_its_time_and_what_was_stolen(project: Project) -> None:
    done = project.run()
    assert [line.split()[0] for line in project.lines("results/ci/steps.txt")] == [
        "set-up", "images", "lint", "tests", "clean", "qualification", "verify",
    ]  # fmt: skip
    assert all(
        "min" in line and "s stolen, exit code 0" in line for line in project.lines("results/ci/steps.txt")
    )
    assert project.lines("linted") == [""], (
        "all checks: what a part leaves out is seen by nobody before the night"
    )
    assert project.lines("results/ci/steps.txt")[-1] in done.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    ("step", "exit_code", "qualified"),
    [("setup", 1, 0), ("images", 1, 0), ("lint", 1, 1), ("clean-root", 1, 1)],
)
def test_a_step_that_fails(project: Project, step: str, exit_code: int, qualified: int) -> None:
    project.end_with(step, 1)
    assert project.run().returncode == exit_code
    assert len(project.lines("results/ci/attempts.ndjson")) == qualified


FAILED = "tests/test_a.py::test_one[a b - c]"


@pytest.mark.parametrize(
    ("failed", "again_code", "exit_code"),
    [
        ([FAILED], 0, 0),
        ([FAILED] * 4 + ["C asan frame"], 0, 0),
        ([FAILED], 1, 1),
        ([FAILED] * 6, 0, 1),
        ([], 0, 1),
    ],
    ids=["one", "five", "again", "six", "none-named"],
)
def test_failed_tests_once_more(project: Project, failed: list[str], again_code: int, exit_code: int) -> None:
    project.test_with(1, *failed)
    project.end_with("again", again_code)
    done = project.run()
    assert done.returncode == exit_code
    unstable = failed if exit_code == 0 else []
    assert project.lines("results/ci/test-unstable.txt") == unstable
    assert done.stdout.count("ci        unstable, failed once and then passed: ") == len(unstable)
    assert not unstable or project.lines("again") == failed
