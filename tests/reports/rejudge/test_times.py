# SPDX-License-Identifier: Apache-2.0
"""A run that is dated otherwise than it was made is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from reports.rejudge.times import time_discrepancies
from reports.run.folder import RunFolder

RUN_ID = "20260301T120000Z-0123abcd"


def _discrepancies(run: Path, start_utc: str, run_id: str = RUN_ID) -> list[str]:
    return list(time_discrepancies(run, {"run_id": run_id, "start_utc": start_utc}))


def test_a_run_as_it_is_made_has_no_discrepancy(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path, "virtual", "ci", simulated=True, commit=None)
    assert _discrepancies(run.path, run.manifest.start_utc, run.run_id) == []


@pytest.mark.parametrize(
    "start_utc", ["2025-03-01T12:00:00.5Z", "2026-03-01T11:59:57Z", "2026-03-02T12:00:00Z"]
)
def test_a_beginning_that_is_not_the_name_s_is_named(tmp_path: Path, start_utc: str) -> None:
    (told,) = _discrepancies(tmp_path, start_utc)
    assert "20260301T120000Z" in told


@pytest.mark.parametrize(
    ("generated", "is_named"),
    [
        ("2026-03-01T12:00:00.123456", False),
        ("2026-03-02T02:00:00.123456", False),
        ("2026-02-28T23:59:59.123456", False),
        ("2027-03-01T12:00:00.123456", True),
        ("2026-02-28T08:00:00.123456", True),
    ],
)
def test_the_beginning_is_held_against_robot_s_file(
    tmp_path: Path, generated: str, *, is_named: bool
) -> None:
    (tmp_path / "output.xml").write_text(f'<robot generator="Robot 7.5" generated="{generated}">')
    assert bool(_discrepancies(tmp_path, "2026-03-01T12:00:00.500000Z")) == is_named
