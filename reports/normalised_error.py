# SPDX-License-Identifier: Apache-2.0
"""Whether two values agree within their uncertainties (ISO 13528)."""

from __future__ import annotations

import math


def normalised_error(one: float, other: float, one_expanded: float, other_expanded: float) -> float:
    """Return E_n = |x1 - x2| / sqrt(U1² + U2²): both agree where it is at most 1.

    Values and their expanded U have one unit. Without any U it is 0 where they are equal, else infinite.
    """
    difference, both = abs(one - other), math.hypot(one_expanded, other_expanded)
    return difference / both if both else (math.inf if difference else 0.0)
