# SPDX-License-Identifier: Apache-2.0
"""The script of build servers repeats what was inconclusive, twice at most, and nothing else.

No verdict is no pass; where the simulated bench's machine stood still, it is no failure of the software.
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
	@echo "==== 7 passed in 0.1s ===="; exit $(TEST_CODE)
qualify:
	@code=$$(head -n 1 codes); sed -i 1d codes; mkdir -p "results/run-$$(wc -l <codes)"; \\
	ln -sfn "run-$$(wc -l <codes)" results/latest; \\
	echo "$$code" >"$$QUALIFY_EXIT_FILE"; exit "$$code"
"""

# Stands for `python -m reports standstill RUN`: true of the runs that the file names.
STANDSTILL = """#!/bin/sh
[ "$1 $2 $3" = "-m reports standstill" ] || exit 2
grep -qx "$(basename "$4")" stood-still
"""


@pytest.mark.parametrize(
    ("test_code", "codes", "stood_still", "attempts", "exit_code"),
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
    stood_still: str,
    attempts: int,
    exit_code: int,
) -> None:
    (tmp_path / ".ci").mkdir()
    shutil.copy(repository / ".ci" / "run", tmp_path / ".ci" / "run")
    (tmp_path / "Makefile").write_text(MAKEFILE.replace("$(TEST_CODE)", str(test_code)))
    (tmp_path / "codes").write_text("".join(f"{code}\n" for code in codes))
    (tmp_path / "stood-still").write_text(f"{stood_still}\n")
    python = tmp_path / ".build" / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(STANDSTILL)
    python.chmod(0o755)
    environment = {**os.environ, "CI_PAUSE_S": "0.25"}
    begin_s = time.monotonic()
    done = subprocess.run([str(tmp_path / ".ci" / "run")], capture_output=True, text=True, env=environment)
    took_s = time.monotonic() - begin_s
    listed = (tmp_path / "results" / "ci" / "attempts.ndjson").read_text().splitlines()
    kept = [json.loads(line) for line in listed]
    assert done.returncode == exit_code
    assert ("NO VERDICT" in done.stdout) == (4 in codes[attempts - 1 : attempts] and bool(stood_still))
    assert took_s >= 0.25 * (attempts - 1)
    assert done.stdout.count("inconclusive; the next attempt in 0.25 s") == attempts - 1
    assert [entry["exit_code"] for entry in kept] == codes[:attempts]
    assert len({entry["run"] for entry in kept}) == attempts
    assert all((tmp_path / "results" / entry["run"]).is_dir() for entry in kept)
    assert "7 passed" in "\n".join(done.stdout.splitlines()[-3:])
