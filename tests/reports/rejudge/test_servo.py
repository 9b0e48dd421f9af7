# SPDX-License-Identifier: Apache-2.0
"""A servo's summary is held against its log, whose stamps may be whole seconds: a line at an end is open."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from reports.rejudge.servo import servo_discrepancies

BEGIN_UTC_S, TAI_UTC_S = 1_796_003_580, 37
OFFSETS_NS = [-12_000, 40_000, -56_000, 3000, 9000, -70_000, 1000, 5000, -8000, 2000]


def _made(folder: Path, first: int, last: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Write ten lines, one a second; return facts that have those from `first` to `last`, and the answer."""
    lines: list[str] = []
    for number, offset_ns in enumerate(OFFSETS_NS):
        at = datetime.fromtimestamp(BEGIN_UTC_S + number, UTC).strftime("%Y-%m-%d %H:%M:%S")
        words = ["10.78.0.50", "1.0e-05", f"{offset_ns / 1e9:.9f}", *["0.0"] * 8]
        lines.append(" ".join([at, *words]))
    (folder / "statistics.log").write_text("\n".join(lines) + "\n")
    kept = OFFSETS_NS[first:last]
    servo = {
        "observations": len(kept),
        "mean_ns": fmean(kept),
        "max_abs_ns": max(map(abs, kept)),
        "mean_path_delay_ns": None,
    }
    # From within the second line's second to within the ninth's.
    answer = {
        "start_tai_ns": (BEGIN_UTC_S + TAI_UTC_S) * 10**9 + 600_000_000,
        "elapsed_ns": 8 * 10**9,
        "device": {"tai_utc_s": TAI_UTC_S},
    }
    facts = {"servo": servo, "servo_format": "chrony-statistics", "servo_log": "statistics.log"}
    return facts, answer


@pytest.mark.parametrize(("first", "last"), [(1, 9), (0, 9), (1, 8), (2, 9), (2, 10), (0, 10)])
def test_summary_of_one_line_more_or_less_at_an_end_is_honest(tmp_path: Path, first: int, last: int) -> None:
    facts, answer = _made(tmp_path, first, last)
    assert list(servo_discrepancies(facts, answer, tmp_path)) == []


@pytest.mark.parametrize(("first", "last"), [(3, 9), (1, 7)])
def test_summary_of_other_lines_is_named(tmp_path: Path, first: int, last: int) -> None:
    facts, answer = _made(tmp_path, first, last)
    found = list(servo_discrepancies(facts, answer, tmp_path))
    assert any(each.startswith("servo.observations is 6, its log has 8") for each in found)


def test_mean_of_no_lines_is_named(tmp_path: Path) -> None:
    facts, answer = _made(tmp_path, 1, 9)
    facts["servo"]["mean_ns"] += 2
    assert [each.partition(",")[0] for each in servo_discrepancies(facts, answer, tmp_path)] == [
        f"servo.mean_ns is {facts['servo']['mean_ns']}"
    ]
