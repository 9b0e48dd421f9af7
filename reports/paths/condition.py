# SPDX-License-Identifier: Apache-2.0
"""A condition of a path: what was asked for, and what was achieved, with its interval."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Condition:
    """A figure of a path, as it was asked for and as a capture saw it.

    Attributes:
        name: Such as `loss`.
        unit: Of all four figures.
        asked: What the path was set to.
        achieved: What it did.
        low, high: Interval of what was achieved.
    """

    name: str
    unit: str
    asked: float
    achieved: float
    low: float
    high: float

    @property
    def is_off(self) -> bool:
        """Tell whether what was asked for lies outside the interval: a mark."""
        return self.is_beyond(0)

    def is_beyond(self, allowed: float) -> bool:
        """Tell whether what was asked for lies outside the interval by more than so much."""
        return not self.low - allowed <= self.asked <= self.high + allowed

    def __str__(self) -> str:
        """Return a sentence; where it is off it says so."""
        interval = f"{self.low:.6g} to {self.high:.6g}"
        mark = ": not as asked" if self.is_off else ""
        asked = f"asked {self.asked:.6g} {self.unit}"
        return f"{self.name}: {asked}, achieved {self.achieved:.6g} ({interval}){mark}"
