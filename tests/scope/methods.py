# SPDX-License-Identifier: Apache-2.0
"""Compare ways to find a crossing between samples: prints a table.

Run as `python -m tests.scope.methods`: root of mean squares of the error in sample intervals,
at 40 dB (noise of a hundredth of the amplitude, white).
"""

from __future__ import annotations

import numpy as np

from scope.crossing import find_crossings, fit_samples
from scope.edges import EdgeSettings, find_edges, rise_samples
from scope.levels import code_of, estimate_levels
from scope.schmitt import find_transits
from tests.scope.model import FrontEnd

INTERVAL_S = 1e-10
RISES = (0.9, 1.25, 1.75, 2.5, 3.5, 5.0, 7.0, 10.0, 14.0, 20.0)
FITS = (4, 8, 16)
FRAMES, SAMPLES = 4000, 160


def row(shape: str, rise: float) -> dict[str, tuple[float, float]]:
    """Return root of mean squares and median magnitude of the error, by method."""
    rng = np.random.default_rng(40)
    truth = rng.uniform(-5, 5, FRAMES) * INTERVAL_S
    front = FrontEnd(noise_v=0.033, rise_s=rise * INTERVAL_S, shape=shape)
    frames = front.frames(truth[:, None], rng, interval_s=INTERVAL_S, samples=SAMPLES)
    levels = estimate_levels(frames[:400])
    codes = np.concatenate([one.codes for one in frames])
    low, middle, high = (code_of(levels.at(part), frames[0].scaling) for part in (0.3, 0.5, 0.7))
    found = find_transits(codes, SAMPLES, int(np.floor(low)), int(np.ceil(high)), 1e9)
    frame = found.before // SAMPLES
    expected = truth[frame] / INTERVAL_S + SAMPLES // 2 + frame * SAMPLES
    errors = {
        f"cubic, {fit} samples": find_crossings(
            codes, SAMPLES, found.before, found.after, middle, fit
        ).position
        - expected
        for fit in FITS
    }
    # The straight line between the two samples around the (first) crossing.
    place = found.before.copy()
    for _ in range(64):
        beyond = codes[place + 1] < middle
        place += beyond & (place + 1 < found.after)
    here, there = codes[place].astype(float), codes[place + 1].astype(float)
    errors["straight line"] = place + (middle - here) / (there - here) - expected
    fit = fit_samples(rise_samples(frames[:64], levels))
    chosen = find_edges(frames, EdgeSettings(levels, fit))
    errors["chosen"] = (chosen.time_s - truth[chosen.frame]) / INTERVAL_S
    return {name: (float(np.sqrt(np.mean(e**2))), float(np.median(np.abs(e)))) for name, e in errors.items()}


def main() -> None:
    """Print the table."""
    names = ["straight line", *(f"cubic, {fit} samples" for fit in FITS), "chosen"]
    for shape in ("gaussian", "poles"):
        print(f"\n| rise, samples ({shape}) | {' | '.join(names)} | chosen, median |")
        print("|---" * (len(names) + 2) + "|")
        for rise in RISES:
            found = row(shape, rise)
            cells = " | ".join(f"{found[name][0]:.3f}" for name in names)
            print(f"| {rise:g} | {cells} | {found['chosen'][1]:.3f} |")


if __name__ == "__main__":
    main()
