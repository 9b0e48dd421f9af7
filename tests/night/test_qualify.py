# SPDX-License-Identifier: Apache-2.0
"""The run of each qualification of the night is judged again, whatever it came to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.night.qualify import qualify


@pytest.mark.parametrize(
    ("qualified", "verified", "exit_code"),
    [(0, 0, 0), (0, 1, 1), (0, 2, 1), (0, -15, 1), (4, 0, 4), (4, 1, 1), (1, 0, 1), (1, 1, 1), (5, 1, 5)],
)
def test_a_run_that_is_refused_is_red(tmp_path: Path, qualified: int, verified: int, exit_code: int) -> None:
    ran: list[Sequence[str]] = []

    def run(module: Sequence[str]) -> int:
        ran.append(module)
        if module[0] == "reports":
            return verified
        Path(module[2]).write_text("results/a-run\n")
        return qualified

    assert qualify(tmp_path / "run.txt", ("--profile", "ci"), run) == exit_code
    assert ran == [
        ("resources.qualify", "--run-file", str(tmp_path / "run.txt"), "--profile", "ci"),
        ("reports", "verify", "results/a-run"),
    ]


@pytest.mark.parametrize("code", [3, 5])
def test_without_a_run_there_is_nothing_to_judge(tmp_path: Path, code: int) -> None:
    ran: list[str] = []

    def run(module: Sequence[str]) -> int:
        ran.append(module[0])
        return code

    assert qualify(tmp_path / "run.txt", (), run) == code
    assert ran == ["resources.qualify"]
