# SPDX-License-Identifier: Apache-2.0
"""A sweep of delays: mean and variance of the loop and of the pictures' way, and which curve they need.

After the paper, 4.4.2: means grow as a line; of variances the loop's alone grows faster than that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reports.control_loops.camera_loop import CameraLoop
from reports.control_loops.fits import (
    SAMPLES_MIN,
    NeededDegree,
    Points,
    mean_points,
    needed_degree,
    variance_points,
)
from reports.dependence import Floats
from reports.errors import ReportError

DELAYS_MIN = 4
"""Of a parabola and what it is tested by."""
NS_PER_MS = 1_000_000


@dataclass(frozen=True, eq=False)
class SweepRow:
    """Mean or variance of a level against the measured delay.

    Attributes:
        of: Such as `whole, mean`.
        unit: `ms` or `ms²`.
        needed: Which degree, and the fits; the delay is in ms.
    """

    of: str
    unit: str
    needed: NeededDegree

    @property
    def degree(self) -> str:
        """Return the curve in a word."""
        return ("constant", "line", "parabola")[self.needed.degree]

    @property
    def terms(self) -> tuple[str, ...]:
        """Return the coefficients of the needed degree, each with its 95 % interval."""
        fit = self.needed.fit
        return tuple(
            f"{value:.4g} ({low:.4g} to {high:.4g})"
            for value, low, high in zip(fit.coefficients, fit.low, fit.high, strict=True)
        )


def sweep_rows(loops: Sequence[CameraLoop]) -> list[SweepRow]:
    """Return mean and variance of whole and pictures' way; empty: too few delays, or too few pictures."""
    measured = [each for each in loops if each.facts.delay and len(each.whole) >= SAMPLES_MIN]
    if len(measured) < DELAYS_MIN:
        return []
    delays = [each.facts.delay for each in measured]
    delay_ms = np.array([(each.there_us + each.back_us) / 2000 for each in delays if each])
    u_ms = np.array([each.u_us / 2000 for each in delays if each])
    found: list[SweepRow] = []
    for of, series in (
        ("whole", [_ms(each.whole.time_ns) for each in measured]),
        ("camera to tracker", [_ms(each.pictures.time_ns) for each in measured]),
    ):
        try:
            rows: list[tuple[str, str, Points]] = [
                ("mean", "ms", mean_points(delay_ms, u_ms, series)),
                ("variance", "ms²", variance_points(delay_ms, u_ms, series)),
            ]
            load = f" under {measured[0].load.kind} load" if measured[0].load else ""
            found += [
                SweepRow(f"{of}{load}, {name}", unit, needed_degree(points)) for name, unit, points in rows
            ]
        except ReportError:
            continue
    return found


def _ms(times_ns: np.ndarray[tuple[int], np.dtype[np.int64]] | Floats) -> Floats:
    return np.asarray(times_ns, np.float64) / NS_PER_MS
