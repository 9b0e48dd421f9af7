# SPDX-License-Identifier: Apache-2.0
"""The script of build servers repeats what was inconclusive, twice at most, and a few failed tests once.

No verdict is no pass; where the simulated bench's machine stalled, it is no failure of the software.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

# `make qualify` ends with the next of the codes and leaves a run folder, as the real one does.
MAKEFILE = """
test:
	@mkdir -p .build/log; sed -n 's/^FAILED //p' test-output >.build/log/test-failed.txt; \\
	cat test-output; echo "==== 7 passed in 0.1s ===="; exit $(TEST_CODE)
qualify:
	@code=$$(head -n 1 codes); sed -i 1d codes; mkdir -p "results/run-$$(wc -l <codes)"; \\
	ln -sfn "run-$$(wc -l <codes)" results/latest; \\
	echo "$$code" >"$$QUALIFY_EXIT_FILE"; exit "$$code"
"""

# Stands for `python -m pytest TESTS`, and for `python -m reports stalled RUN`:
# true of the runs that the file names.
PYTHON = """#!/bin/sh
if [ "$1 $2" = "-m pytest" ]; then shift 2; printf '%s\\n' "$@" >again; exit "$(cat again-code)"; fi
[ "$1 $2 $3" = "-m reports stalled" ] || exit 2
grep -qx "$(basename "$4")" stalled
"""


def _make_project(
    repository: Path, folder: Path, test_code: int, codes: list[int], *test_output: str
) -> None:
    (folder / ".ci").mkdir()
    shutil.copy(repository / ".ci" / "run", folder / ".ci" / "run")
    (folder / "Makefile").write_text(MAKEFILE.replace("$(TEST_CODE)", str(test_code)))
    (folder / "codes").write_text("".join(f"{code}\n" for code in codes))
    (folder / "test-output").write_text("".join(f"{line}\n" for line in test_output))
    python = folder / ".build" / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(PYTHON)
    python.chmod(0o755)


@pytest.mark.parametrize(
    ("test_code", "codes", "stalled", "attempts", "exit_code"),
    [
        (0, [0], "", 1, 0),
        (0, [4, 0], "", 2, 0),
        (0, [4, 4, 4, 0], "", 3, 4),
        (0, [4, 4, 4, 0], "run-2", 3, 0),
        (0, [1, 0], "", 1, 1),
        (0, [4, 1, 0], "run-2", 2, 1),
        (0, [3, 0], "", 1, 3),
        (0, [5, 0], "run-1", 1, 5),
        (1, [0], "", 1, 1),
        (1, [4, 4, 4], "run-2", 3, 1),
    ],
)
def test_attempts(
    repository: Path,
    tmp_path: Path,
    test_code: int,
    codes: list[int],
    stalled: str,
    attempts: int,
    exit_code: int,
) -> None:
    _make_project(repository, tmp_path, test_code, codes)
    (tmp_path / "stalled").write_text(f"{stalled}\n")
    environment = {**os.environ, "CI_PAUSE_S": "0.25"}
    begin_s = time.monotonic()
    done = subprocess.run([str(tmp_path / ".ci" / "run")], capture_output=True, text=True, env=environment)
    took_s = time.monotonic() - begin_s
    listed = (tmp_path / "results" / "ci" / "attempts.ndjson").read_text().splitlines()
    kept = [json.loads(line) for line in listed]
    assert done.returncode == exit_code
    assert ("NO VERDICT" in done.stdout) == (4 in codes[attempts - 1 : attempts] and bool(stalled))
    assert took_s >= 0.25 * (attempts - 1)
    assert done.stdout.count("inconclusive; the next attempt in 0.25 s") == attempts - 1
    assert [entry["exit_code"] for entry in kept] == codes[:attempts]
    assert len({entry["run"] for entry in kept}) == attempts
    assert all((tmp_path / "results" / entry["run"]).is_dir() for entry in kept)
    assert "7 passed" in "\n".join(done.stdout.splitlines()[-3:])


def test_no_attempt_is_begun_that_would_not_end_in_time(repository: Path, tmp_path: Path) -> None:
    _make_project(repository, tmp_path, 0, [4, 0])
    (tmp_path / "stalled").write_text("")
    environment = {**os.environ, "CI_PAUSE_S": "0.25", "CI_TOTAL_LIMIT_S": "-1"}
    done = subprocess.run([str(tmp_path / ".ci" / "run")], capture_output=True, text=True, env=environment)
    assert done.returncode == 4
    assert "no time for another attempt" in done.stdout


FAILED = "FAILED tests/test_a.py::test_one[a b - c]"
ONLY_PYTEST = "tests: failed: pytest"


@pytest.mark.parametrize(
    ("output", "again_code", "exit_code", "unstable"),
    [
        ([FAILED, ONLY_PYTEST], 0, 0, 1),
        ([FAILED] * 3 + [ONLY_PYTEST], 0, 0, 3),
        ([FAILED, ONLY_PYTEST], 1, 1, 0),
        ([FAILED] * 4 + [ONLY_PYTEST], 0, 1, 0),
        ([FAILED, "tests: failed: asan pytest"], 0, 1, 0),
        ([ONLY_PYTEST], 0, 1, 0),
    ],
)
def test_failed_tests_once_more(
    repository: Path, tmp_path: Path, output: list[str], again_code: int, exit_code: int, unstable: int
) -> None:
    _make_project(repository, tmp_path, 1, [0], *output)
    (tmp_path / "again-code").write_text(f"{again_code}\n")
    done = subprocess.run([str(tmp_path / ".ci" / "run")], capture_output=True, text=True)
    assert done.returncode == exit_code
    said = "unstable, failed once and then passed: tests/test_a.py::test_one[a b - c]"
    assert done.stdout.count(said) == unstable
    names = ["tests/test_a.py::test_one[a b - c]"] * unstable
    assert (tmp_path / "results" / "ci" / "test-unstable.txt").read_text().splitlines() == names
    assert not names or (tmp_path / "again").read_text().splitlines() == names
