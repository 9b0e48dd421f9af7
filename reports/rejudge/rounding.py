# SPDX-License-Identifier: Apache-2.0
"""Whether two figures are the same, where they were worked out in different order."""

from __future__ import annotations

SLACK = 1e-6
"""Relative, and as an amount in the figure's unit."""


def alike(said: float | None, found: float | None, least: float = SLACK) -> bool:
    """Say whether two figures are the same: whole numbers exactly, others but for rounding.

    Args:
        said: What is written.
        found: What was worked out.
        least: By how much they may differ, however small they are.
    """
    if said is None or found is None or (isinstance(said, int) and isinstance(found, int)):
        return said == found
    return abs(said - found) <= slack_of(found, least)


def slack_of(value: float, least: float = SLACK) -> float:
    """Return by how much a figure may differ from itself, worked out in another order."""
    return max(least, SLACK * abs(value))
