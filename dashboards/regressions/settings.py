# SPDX-License-Identifier: Apache-2.0
"""How changes are looked for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """How changes are looked for; the defaults are those whose figures docs/regressions.md gives.

    Attributes:
        z_min: A split as strong as this, or stronger, is a change.
        runs_after_min: Persistence: so many runs have to lie behind a change.
        runs_after_max: So many runs are looked back.
        baseline_min: So many runs a baseline needs; until then nothing is said.
        baseline_max: A baseline forgets older runs than this many before the `runs_after_max` last ones.
    """

    z_min: float = 3.24
    runs_after_min: int = 4
    runs_after_max: int = 9
    baseline_min: int = 15
    baseline_max: int = 200

    def __post_init__(self) -> None:
        """Raise ValueError for settings that find nothing, or everything."""
        if not self.z_min > 0:
            raise ValueError(f"z_min: {self.z_min}; has to be above 0")
        if not 1 <= self.runs_after_min <= self.runs_after_max <= self.baseline_min:
            raise ValueError(
                f"runs_after_min, runs_after_max, baseline_min: {self.runs_after_min}, "
                f"{self.runs_after_max}, {self.baseline_min}; have to be 1 or more and not to fall"
            )
        if self.baseline_max < self.baseline_min:
            raise ValueError(f"baseline_max: {self.baseline_max}; baseline_min is {self.baseline_min}")


DEFAULTS = Settings()
