# SPDX-License-Identifier: Apache-2.0
"""Names with numbers in them stand in the order that people expect."""

from __future__ import annotations

from reports.natural_order import natural


def test_numbers_are_sorted_as_numbers() -> None:
    long = f"B-{'1' * 5000}"
    names = ["A-10", long, "B-1", "A-009a", "A", "A-9", "A-0"]
    assert sorted(names, key=natural) == ["A", "A-0", "A-9", "A-009a", "A-10", "B-1", long]
