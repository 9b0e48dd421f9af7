# SPDX-License-Identifier: Apache-2.0
"""What a cubic through samples leaves of an edge that is sampled coarsely, by rise time and shape.

The shape is told from the samples themselves: the curvature at the crossing, in amplitudes per rise squared,
is 0 of a symmetric edge and -2 of a single pole. The figures were measured without noise, with edges spread
evenly between samples: tests/scope/test_interpolation.py.
"""

from __future__ import annotations

import math

import numpy as np

GAUSSIAN = (
    (1.38, 0.0, 0.071, 0.0),
    (1.69, 0.0, 0.037, 0.0),
    (2.16, 0.0, 0.016, 0.0),
    (2.82, 0.0, 0.0054, 0.0),
    (3.73, 0.0, 0.0017, 0.0),
    (5.2, 0.0, 0.0005, 0.0),
    (7.2, 0.0, 0.0002, 0.0),
)
"""Rise time in samples, as `rise_samples` finds it; bend; scatter and lean of the error, in intervals."""
FOUR_POLES = (
    (1.38, 0.043, 0.082, 0.033),
    (1.66, 0.086, 0.046, 0.037),
    (2.14, 0.183, 0.023, 0.031),
    (2.76, 0.36, 0.010, 0.0187),
    (3.67, 0.55, 0.0041, 0.0086),
    (5.15, 0.69, 0.0015, 0.0032),
    (7.2, 0.77, 0.0006, 0.0012),
)
ONE_POLE = (
    (1.37, 0.087, 0.114, 0.068),
    (1.64, 0.153, 0.084, 0.0775),
    (2.08, 0.285, 0.056, 0.077),
    (2.52, 0.565, 0.033, 0.059),
    (3.39, 1.1, 0.020, 0.029),
    (4.81, 1.83, 0.0055, 0.003),
    (6.75, 2.02, 0.0003, 0.0005),
)
SHAPES = (GAUSSIAN, FOUR_POLES, ONE_POLE)


def bend(slope_v_s: float, curvature_v_s2: float, amplitude_v: float) -> float:
    """Return how an edge is bent at its crossing: positive where it slows down, as a pole's response does.

    Args:
        slope_v_s: Mean magnitude of the slew rate.
        curvature_v_s2: Mean second derivative, its sign turned where an edge falls.
        amplitude_v: Distance of the levels.
    """
    return -curvature_v_s2 * amplitude_v / slope_v_s**2


def interpolation(rise: float, bent: float) -> tuple[float, float]:
    """Return scatter (standard deviation) and lean (mean) of the error, in sample intervals.

    Between and beyond the shapes that were measured the nearest of them, by their bend, are taken.
    """
    found: list[tuple[float, float, float]] = []
    for shape in SHAPES:
        rises, bends, scatters, leans = zip(*shape, strict=True)
        found.append(
            (
                float(np.interp(rise, rises, bends)),
                float(np.interp(rise, rises, scatters)),
                float(np.interp(rise, rises, leans)),
            )
        )
    bends, scatters, leans = zip(*found, strict=True)
    scatter = float(np.interp(abs(bent), bends, scatters))
    return scatter, math.copysign(float(np.interp(abs(bent), bends, leans)), bent)
