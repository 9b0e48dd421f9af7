# SPDX-License-Identifier: Apache-2.0
"""Table 2 side by side: the paper's figures with our sign, and which row stands beside which."""

from __future__ import annotations

from pathlib import Path

import pytest

from reports.clock_sync.table import SyncRow, paper_rows, side_by_side
from reports.errors import RecordError

PRINTED_US = [
    (30, 8_000_000, -5.23, 3.80, -1.52),
    (30, 32_000_000, -6.65, 4.11, -2.25),
    (60, 4_000_000, -9.33, 5.75, -2.06),
    (120, 4_000_000, -8.54, 1.86, -3.34),
    (240, 4_000_000, -8.95, 12.21, -2.87),
    (480, 4_000_000, -34.88, 27.88, -5.58),
    (960, 4_000_000, -3.86, 39.39, 11.16),
    (None, 32_000_000, -4.37, 1700.99, 596.03),
]
"""As the paper prints it: rate, iterations, min, max, avg."""


def row(interval_s: float | None, n: int = 1000, reading: str = "bracketed") -> SyncRow:
    return SyncRow(interval_s, reading, n, -1000, 2000, 10.0)


def test_the_rows_are_the_papers_with_the_sign_turned() -> None:
    assert [(r.interval_s, r.n, r.min_ns, r.max_ns, r.mean_ns) for r in paper_rows()] == [
        (rate, n, round(-1000 * high), round(-1000 * low), round(-1000 * mean))
        for rate, n, low, high, mean in PRINTED_US
    ]


def test_rows_stand_beside_those_of_their_interval() -> None:
    measured = [row(60, reading="sequential"), row(60), row(None), row(5), row(30, 20_000_000), row(2)]
    found = side_by_side(measured, paper_rows())
    pairs = [(c.paper and (c.paper.interval_s, c.paper.n), c.measured) for c in found]
    assert pairs[0] == ((30, 8_000_000), None)
    assert pairs[1] == ((30, 32_000_000), measured[4])
    assert pairs[2:4] == [((60, 4_000_000), measured[0]), ((60, 4_000_000), measured[1])]
    assert pairs[-3:] == [((None, 32_000_000), measured[2]), (None, measured[5]), (None, measured[3])]
    assert len(found) == 8 + 1 + 2


def test_no_measurement_leaves_the_paper_alone() -> None:
    found = side_by_side([], paper_rows())
    assert [c.measured for c in found] == [None] * 8
    assert side_by_side([row(30)], [])[0].paper is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("30,8,1,0,0", ":2: need interval_s"),
        ("0,8,-1,1,0", ":2: need interval_s"),
        ("30,0,-1,1,0", ":2: need interval_s"),
        ("30,8,-1,1", ":2: 4 fields"),
        ("30,8,-1.5,1,0", ":2: .*whole numbers"),
    ],
)
def test_bad_tables_are_refused(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "table.csv"
    file.write_text(f"interval_s,n,min_ns,max_ns,mean_ns\n{text}\n")
    with pytest.raises(RecordError, match=said):
        paper_rows(file)
    file.write_text("interval,n\n")
    with pytest.raises(RecordError, match="header"):
        paper_rows(file)
