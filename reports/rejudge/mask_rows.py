# SPDX-License-Identifier: Apache-2.0
"""The copy of a mask that lies with a trial; docs/clock-analysis.md, *Masks*."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Row:
    """One row of a mask: limit + slope x tau for above < tau <= to; of a single value the limit."""

    above_s: float
    to_s: float
    limit_ns: float
    slope_ns_per_s: float

    @property
    def end_s(self) -> float:
        """The last tau; of a row without end that from which on it does not change."""
        return self.above_s if math.isinf(self.to_s) else self.to_s

    def limit_at(self, tau_s: float) -> float:
        """Return the limit at a tau."""
        return self.limit_ns + (self.slope_ns_per_s * tau_s if self.slope_ns_per_s else 0.0)


def read_mask(path: Path, quantity: str) -> tuple[str, list[Row]]:
    """Return a mask's name and its rows of a quantity; raises ValueError."""
    lines = path.read_text("utf-8").splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("# name:")]
    table = csv.DictReader(line for line in lines if line.strip() and not line.startswith("#"))
    rows = [
        Row(
            float(row["tau_above_s"].strip() or 0),
            float(row["tau_to_s"].strip() or math.inf),
            float(row["limit_ns"]),
            float(row["slope_ns_per_s"]),
        )
        for row in table
        if row["quantity"].strip() == quantity
    ]
    if not names or not rows:
        raise ValueError(f"{path.name}: no {quantity if names else 'name'}")
    return names[0], rows
