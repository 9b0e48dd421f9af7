# SPDX-License-Identifier: Apache-2.0
"""A curve beside its mask: the taus that both have, and that at which least is left.

Verdict and figure stand on the same taus: U is the same at each of them, so all others have kept their limit
where the one with the least left has.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from reports.clock_sync.mask import CurveQuantity, Mask
from reports.clock_sync.series import ClockSeries
from reports.clock_sync.stability import Curve, mtie, tdev
from reports.clock_sync.time_error import low_passed, separable
from reports.units import NS_PER_S

MTIES = frozenset({"mtie", "dte_l_mtie"})
TDEV_PERIODS_MIN = 12
"""TDEV at tau needs a series of 12 tau (ITU-T O.172; from memory, its text was not at hand)."""


@dataclass(frozen=True, slots=True)
class MaskPoint:
    """A curve and its mask at one tau.

    Attributes:
        tau_ns: The tau.
        value_ns: Of the curve.
        limit_ns: Of the mask.
        windows: That the value rests on.
    """

    tau_ns: int
    value_ns: float
    limit_ns: float
    windows: int

    @property
    def left_ns(self) -> float:
        """What is left to the limit; of a value that is no number less than of any other."""
        return -math.inf if math.isnan(self.value_ns) else self.limit_ns - self.value_ns


def limited_series(series: ClockSeries, quantity: CurveQuantity) -> ClockSeries | None:
    """Return the series whose curve is limited; None: too few samples a second for the low-pass of dTE_L."""
    if not quantity.startswith("dte_l_"):
        return series
    return low_passed(series) if separable(series) else None


def curve_of(series: ClockSeries, quantity: CurveQuantity) -> Curve | None:
    """Return MTIE or TDEV of a limited series in ns; None where no tau has two windows."""
    return mtie(series) if quantity in MTIES else tdev(series)


def mask_points(
    series: ClockSeries, curve: Curve | None, mask: Mask, quantity: CurveQuantity
) -> tuple[MaskPoint, ...]:
    """Return the octaves of tau that are judged: those of the mask for which the series is long enough.

    Args:
        series: The limited series.
        curve: Of that series; None: it has none, and no points.
        mask: May limit the quantity at any tau.
        quantity: What the curve is.
    """
    if curve is None:
        return ()
    longest_ns = max(len(stretch) for stretch in series.stretches) * series.tau0_ns
    points: list[MaskPoint] = []
    for tau_ns, value_ns, windows in zip(
        curve.tau_ns.tolist(), curve.value.tolist(), curve.n.tolist(), strict=True
    ):
        limit_ns = mask.limit_at(quantity, tau_ns / NS_PER_S)
        if limit_ns is not None and (quantity in MTIES or TDEV_PERIODS_MIN * tau_ns <= longest_ns):
            points.append(MaskPoint(tau_ns, value_ns, limit_ns, windows))
    return tuple(points)


def worst_point(points: Iterable[MaskPoint]) -> MaskPoint | None:
    """Return the point at which least is left to the mask; None of no points."""
    return min(points, key=lambda point: point.left_ns, default=None)
