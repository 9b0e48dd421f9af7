# SPDX-License-Identifier: Apache-2.0
"""Edges as an oscilloscope would digitise them, with a truth that is known: shares no code with scope/.

The front end is a step response of known 10-90 % rise time, shifted so that its 50 % crossing lies at the
true time; noise is white or limited to the front end's band; codes are rounded and limited.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scope.waveform import Acquisition, Frame, Scaling

Floats = NDArray[np.float64]
RISE_TIMES_BANDWIDTH = 0.35
GRID = np.linspace(-8.0, 8.0, 16001)  # in units of the 10-90 % rise time


def _gaussian() -> Floats:
    return np.array([0.5 * (1 + math.erf(x * 2.5631 / math.sqrt(2))) for x in GRID])


def _poles(count: int) -> Floats:
    """Return the step response of so many equal poles, on the grid, by its series."""
    time = np.maximum(GRID + 4.0, 0.0) * 6.0
    term, total = np.ones_like(time), np.zeros_like(time)
    for k in range(count):
        total = total + term
        term = term * time / (k + 1)
    return 1.0 - np.exp(-time) * total


def _normalised(values: Floats) -> Floats:
    """Shift and stretch a step response: 50 % at 0, and 1 from 10 to 90 %."""
    at = [float(np.interp(level, values, GRID)) for level in (0.1, 0.5, 0.9)]
    return np.asarray(np.interp(at[1] + GRID * (at[2] - at[0]), GRID, values))


SHAPES = {
    "gaussian": _normalised(_gaussian()),
    "pole": _normalised(_poles(1)),
    "poles": _normalised(_poles(4)),
}


@dataclass(frozen=True)
class FrontEnd:
    """One channel: levels in V, noise in V (standard deviation), digitiser, rise time in s."""

    base_v: float = 0.0
    top_v: float = 3.3
    noise_v: float = 0.0
    rise_s: float = 1e-9
    shape: str = "gaussian"
    bits: int = 12
    full_scale_v: float = 8.0
    correlated: bool = False

    @property
    def volts_per_code(self) -> float:
        """Codes are int16, the lowest bits 0: as instruments send them."""
        return self.full_scale_v / 65536

    def frames(
        self,
        edges_s: Sequence[Sequence[float]] | Floats,
        rng: np.random.Generator,
        *,
        interval_s: float,
        samples: int,
        channel: int = 1,
        first_s: Floats | None = None,
        starts_high: bool = False,
        clock_error: float = 0.0,
    ) -> list[Frame]:
        """Digitise frames, each with edges at the given times, which alternate in direction.

        `first_s` is where each frame's sample 0 is said to lie; a clock error stretches what is sampled.
        """
        origin = np.full(len(edges_s), -samples // 2 * interval_s) if first_s is None else first_s
        times = (origin[:, None] + np.arange(samples) * interval_s) * (1.0 + clock_error)
        share = np.full(times.shape, 1.0 if starts_high else 0.0)
        for row, moments in enumerate(edges_s):
            sign = -1.0 if starts_high else 1.0
            for moment in moments:
                share[row] += sign * np.interp((times[row] - moment) / self.rise_s, GRID, SHAPES[self.shape])
                sign = -sign
        signal = self.base_v + (self.top_v - self.base_v) * share + self._noise(times.shape, rng, interval_s)
        middle = (self.base_v + self.top_v) / 2
        return [
            Frame(
                channel,
                index,
                self.codes(signal[index], middle),
                Scaling(self.volts_per_code, 0.0, middle, interval_s, float(origin[index]), None, None),
                index * 1e-3,
            )
            for index in range(len(edges_s))
        ]

    def codes(self, signal_v: Floats, middle_v: float) -> NDArray[np.int16]:
        """Round to the digitiser's bits."""
        step = 1 << (16 - self.bits)
        codes = np.rint((signal_v - middle_v) / (self.volts_per_code * step)) * step
        return np.clip(codes, -32768, 32767).astype(np.int16)

    def _noise(self, shape: tuple[int, ...], rng: np.random.Generator, interval_s: float) -> Floats:
        noise = rng.normal(0.0, 1.0, shape)
        width = self.rise_s / 2.5631 / interval_s
        if self.correlated and width > 0.3:
            reach = np.arange(-math.ceil(4 * width), math.ceil(4 * width) + 1)
            kernel = np.exp(-0.5 * (reach / width) ** 2)
            noise = np.array([np.convolve(row, kernel, "same") for row in noise]) / math.sqrt(
                float(kernel @ kernel)
            )
        return noise * self.noise_v


def acquisition(*channels: list[Frame], wanted: int | None = None) -> Acquisition:
    """Put frames of several channels together."""
    frames: tuple[Any, ...] = tuple(frame for channel in channels for frame in channel)
    return Acquisition("MODEL,1,2,3", frames, len(channels[0]) if wanted is None else wanted)
