# SPDX-License-Identifier: Apache-2.0
"""The analogue front end and the converter: edges in, codes out.

The path from the input to the converter is a Gaussian low-pass, the common model of an oscilloscope whose
step response does not ring: |H(f)| = 2^(-(f/B)²/2), so the step response is the normal distribution with
sigma = sqrt(ln 2) / (2 pi B), and the rise time from 10 to 90 % is 0.34 / B. The source's own rise time is
taken as Gaussian too, so that the squares of both add.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from hw.virtual.oscilloscope.timeline import Arrivals

PS_PER_S = 1e12
REACH_SIGMAS = 8.0
"""Distance from an edge at which its step is complete: 6e-16 of the amplitude is left."""

RISE_TIME_SIGMAS = 2.5631031310892007
"""Time from 10 to 90 % of a Gaussian step, in sigmas."""

NOISE_TAPS_MAX = 4096


@dataclass(frozen=True)
class InputSignal:
    """What arrives at one input.

    Attributes:
        low_v: Level after a falling edge, and before the first edge.
        high_v: Level after a rising edge.
        rise_time_s: From 10 to 90 %, of the source alone.
        skew_ps: How much later than the true time the edge arrives at the converter: cable, pin, channel.
        noise_v: Standard deviation of the noise at the converter, referred to the input.
    """

    low_v: float = 0.0
    high_v: float = 3.3
    rise_time_s: float = 0.0
    skew_ps: float = 0.0
    noise_v: float = 0.0


@dataclass(frozen=True)
class Hardware:
    """What the instrument is made of, whatever the dialect that it speaks.

    Attributes:
        signals: One an input; their number is the number of channels.
        bandwidth_hz: -3 dB.
        adc_bits: Bits of the converter, 6 to 16.
        sample_rate_max_hz: Highest sample rate.
        memory_samples: For all segments of all channels together; bounds the memory of the process.
        timebase_error_ppm: Error of the sample clock; positive: fast, intervals are measured too long.
        trigger_jitter_ps: Standard deviation of the error of the trigger's place among the samples.
        rearm_s: Time after a record in which the instrument is blind.
        seed: Of noise, jitter and sample phase: equal seeds and edges give equal records.
    """

    signals: tuple[InputSignal, ...] = field(default_factory=lambda: (InputSignal(),) * 4)
    bandwidth_hz: float = 1e9
    adc_bits: int = 8
    sample_rate_max_hz: float = 5e9
    memory_samples: int = 8_000_000
    timebase_error_ppm: float = 0.0
    trigger_jitter_ps: float = 0.0
    rearm_s: float = 1e-6
    seed: int = 1


@dataclass(frozen=True)
class ChannelSetup:
    """How a channel looks at its input.

    Attributes:
        centre_v: Voltage of code 0.
        step_v: Volts from code to code.
        probe_ratio: Factor of all voltages of this channel.
        bandwidth_hz: Of the instrument with its filters.
        early_ps: How much earlier than it was taken the record is shown: the correction of skew.
        inverted: Voltages are shown with the other sign; the trigger sees them as they are.
    """

    centre_v: float
    step_v: float
    probe_ratio: float
    bandwidth_hz: float
    early_ps: float
    inverted: bool = False


def sigma_ps(signal: InputSignal, bandwidth_hz: float) -> float:
    """Return the standard deviation of the Gaussian edge that the converter sees."""
    path_s = math.sqrt(math.log(2)) / (2 * math.pi * bandwidth_hz)
    return math.hypot(path_s, signal.rise_time_s / RISE_TIME_SIGMAS) * PS_PER_S


def waveform_v(
    times_ps: NDArray[np.float64], arrivals: Arrivals, signal: InputSignal, sigma: float
) -> NDArray[np.float64]:
    """Return the voltage at ascending times, without noise.

    Args:
        times_ps: When, relative to any zero.
        arrivals: Edges, from the same zero.
        signal: Levels.
        sigma: Width of the edges in picoseconds.
    """
    before = np.concatenate(([arrivals.high_before], arrivals.rising[:-1]))
    changes = np.flatnonzero(arrivals.rising != before[: arrivals.rising.size])
    edges_ps = arrivals.times_ps[changes]
    signs = np.where(arrivals.rising[changes], 1.0, -1.0)
    begins = np.searchsorted(times_ps, edges_ps - REACH_SIGMAS * sigma)
    ends = np.searchsorted(times_ps, edges_ps + REACH_SIGMAS * sigma)
    steps = np.bincount(ends, weights=signs, minlength=times_ps.size + 1)[: times_ps.size]
    share = float(arrivals.high_before) + np.cumsum(steps)
    for place in np.flatnonzero(ends > begins):
        near = slice(begins[place], ends[place])
        share[near] += signs[place] * np.asarray(ndtr((times_ps[near] - edges_ps[place]) / sigma))
    voltages: NDArray[np.float64] = (share * (signal.high_v - signal.low_v) + signal.low_v).astype(np.float64)
    return voltages


def noise_v(
    count: int, interval_ps: float, deviation_v: float, bandwidth_hz: float, generator: np.random.Generator
) -> NDArray[np.float64]:
    """Return noise with the spectrum of the front end and the standard deviation asked for."""
    if deviation_v == 0:
        return np.zeros(count)
    sigma_samples = math.sqrt(math.log(2)) / (2 * math.pi * bandwidth_hz) * PS_PER_S / interval_ps
    reach = min(math.ceil(4 * sigma_samples), NOISE_TAPS_MAX // 2)
    taps = np.exp(-0.5 * (np.arange(-reach, reach + 1) / max(sigma_samples, 1e-3)) ** 2)
    taps *= deviation_v / math.sqrt(float(np.sum(taps**2)))
    white = generator.standard_normal(count + 2 * reach)
    return np.convolve(white, taps, mode="valid")


def convert(voltages: NDArray[np.float64], setup: ChannelSetup, adc_bits: int) -> NDArray[np.int16]:
    """Return the codes of voltages at the input; the lowest and the highest code stand for clipped."""
    half = 1 << (adc_bits - 1)
    codes = np.rint((voltages * setup.probe_ratio - setup.centre_v) / setup.step_v)
    return np.clip(codes, -half, half - 1).astype(np.int16)
