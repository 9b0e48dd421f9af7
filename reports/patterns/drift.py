# SPDX-License-Identifier: Apache-2.0
"""Whether ramps are those of a grid that drifts: as high as a poll's interval, as steep as two clocks differ.

A message waits for the next poll. Is its source's clock slow, each comes later within the interval and waits
for less: latency falls, and jumps up by the interval; is it fast, latency rises and jumps down. So the slope
is the rate of the source's clock less that of the poll's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from reports.latencies import PolledAt
from reports.patterns.finding import Finding, Parameter
from reports.units import NS_PER_MS, NS_PER_S

PPM = 1e-6


class Rates(NamedTuple):
    """What is known of both clocks.

    Attributes:
        grid: The poll's interval, in the unit of the values; None: unknown.
        rate_ppm: Rate of the source's clock less that of the poll's; None: unknown.
        unit_s: Of the values.
        rate_u_ppm: U of the rate.
        source: Whose clock paces what is sent.
        poll: Whose clock has the grid.
    """

    grid: float | None
    rate_ppm: float | None
    unit_s: float
    rate_u_ppm: float = 0.0
    source: str = "the source"
    poll: str = "the poll"


def known_rates(polled: PolledAt) -> Rates:
    """Return what a run knows of a grid and of both clocks, for values in ms."""
    return Rates(
        polled.grid_ns / NS_PER_MS,
        polled.rate_ppm,
        NS_PER_MS / NS_PER_S,
        polled.rate_u_ppm,
        polled.source,
        polled.poll,
    )


def tested_for_drift(finding: Finding, rates: Rates) -> Finding:
    """Return a finding that says whether its ramps are those of a grid that drifts.

    One that agrees with height and slope, both known, is a drifting grid.
    """
    if finding.kind not in ("ramp", "drifting_grid"):
        return finding
    height = finding.parameters["height" if finding.kind == "ramp" else "width"]
    slope = finding.parameters["slope"]
    to_ppm = rates.unit_s / PPM
    ppm = Parameter(slope.value * to_ppm, slope.low * to_ppm, slope.high * to_ppm, "ppm")
    source = f"{rates.source}'s clock"
    beside = f"{'faster' if slope.value > 0 else 'slower'} than {rates.poll}'s by {abs(ppm.value):.4g} ppm"
    words = [finding.says] if finding.says else []
    agrees: list[bool] = []
    if rates.grid is not None:
        agrees.append(height.low <= rates.grid <= height.high)
        words.append(f"height {'is' if agrees[-1] else 'is not'} the grid of {rates.grid:g}")
    if rates.rate_ppm is not None:
        agrees.append(ppm.low - rates.rate_u_ppm <= rates.rate_ppm <= ppm.high + rates.rate_u_ppm)
        words.append(
            f"slope {'is' if agrees[-1] else 'is not'} the difference of rates, {rates.rate_ppm:g} ppm"
        )
    is_drift = finding.kind == "drifting_grid" or (len(agrees) == 2 and all(agrees))
    if is_drift:
        words.append(f"{source} is {beside}")
    else:
        words.append(f"were it a grid that drifts, {source} would be {beside}")
    says = "; ".join(words)
    if not is_drift or finding.kind == "drifting_grid":
        return replace(finding, says=says)
    rest = {name: each for name, each in finding.parameters.items() if name != "height"}
    return replace(finding, kind="drifting_grid", parameters={"width": height, **rest}, says=says)
