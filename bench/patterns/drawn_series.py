# SPDX-License-Identifier: Apache-2.0
"""Series of latency whose patterns are known, each drawn from its seed.

No code is shared with what finds them.

Sizes are those of *Distributed Control Loops* (4.1.2, 4.1.3, 4.3.2, 4.4.1, 4.4.3): ramps and steps of 5 ms,
about 30 s long, gaps about every 8 s, outliers of 1100 ms, a change of 5 ms within 20 s, a first half minute.
Values are in ms, at about 10 a second for 400 s, one in a hundred is missing, and times jitter by a fifth of
their distance. Noise of every colour deviates by 0.5 ms (root of the mean square about its mean).

One more noise is as that of a ring that was measured (its first hop, polled each 5 ms): heavy tails beside a
wobble of seconds, both together. There a grid that drifts shows its lines one at a time, and what is sent
scatters by 0.2 ms against the poll: within a second or two of each wrap values lie on both lines, by turns.

Two kinds have a second form, as was measured: outliers that are bursts of late values, each falling to 0 as
behind a retransmission timer, the first off the beat and one in ten missing; and a warm-up whose level is
off, falling and rising as in TCP's slow start.

At k times the noise the height is k times 0.5 ms; of a gap, k values are missing in a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

KINDS = (
    "ramp",
    "grid",
    "drifting_grid",
    "gap",
    "recovery",
    "periodic_outlier",
    "level_change",
    "two_levels",
    "warm_up",
)
FORMS = {"burst": "periodic_outlier", "late_first": "warm_up"}
"""Other forms of kinds, and of which."""
NOISES = ("white", "ar1", "heavy_tailed", "random_walk")
LIVE = "live"
"""As was measured; it is none of NOISES, whose seeds draw what they always have."""
LIVE_WOBBLE_SHARE = 0.3
"""Of its variance."""
LIVE_WOBBLE_S = 2.0
"""Of the wobble's memory."""
LIVE_SCATTER_MS = 0.2
"""Of what is sent, against the poll."""
PAPER = 0.0
"""The size of the paper; else a size is the height by the noise."""
LENGTH_S = 400.0
STEP_S = 0.1
NOISE_MS = 0.5
BASE_MS = 12.0
MISSING_SHARE = 0.01
SAME_SHAPE = (
    {"ramp", "drifting_grid"},
    {"grid", "drifting_grid"},
    {"level_change", "two_levels"},
    {"gap", "recovery"},
    {"periodic_outlier", "burst"},
    {"warm_up", "late_first"},
)
"""Pairs that are not drawn: two sawteeth, two grids, two changes, two forms; a recovery has a gap."""
BURST_MS, LATE_FIRST_MS = 219.0, 30.0
BURST_MISSING_SHARE = 0.1
OFF_BEAT = 0.1
"""Of a period: how far the first burst is off."""


@dataclass
class Drawn:
    """A series and what is in it.

    Attributes:
        times_s: Shape (n,), rising.
        values_ms: Shape (n,).
        truth: Of each kind that is in it, parameters by name, in ms, s and ms/s.
    """

    times_s: Floats
    values_ms: Floats
    noise: str
    size: float
    truth: dict[str, dict[str, float]] = field(default_factory=dict[str, dict[str, float]])


def pairs() -> list[tuple[str, ...]]:
    """Return all pairs of kinds and forms that are two."""
    every = (*KINDS, *FORMS)
    return [
        (one, other)
        for i, one in enumerate(every)
        for other in every[i + 1 :]
        if {one, other} not in SAME_SHAPE
    ]


def draw(kinds: Sequence[str], noise: str, size: float, seed: int) -> Drawn:
    """Draw a series; without kinds it is noise alone."""
    rng = np.random.default_rng(seed)
    count = round(LENGTH_S / STEP_S)
    times = STEP_S * (np.arange(count) + rng.uniform(-0.1, 0.1, count))
    made = Drawn(times, BASE_MS + draw_noise(noise, count, rng), noise, size)
    kept = rng.random(count) >= MISSING_SHARE
    order = sorted(kinds, key=("gap", "recovery").__contains__)
    for kind in order:
        kept &= _ADD[kind](made, tuple(kinds), rng)
    made.times_s, made.values_ms = made.times_s[kept], made.values_ms[kept]
    for truth in made.truth.values():  # instants count from the first value, which may be a later one
        truth |= {key: truth[key] - float(made.times_s[0]) for key in ("start_s", "end_s") if key in truth}
    return made


def draw_noise(noise: str, count: int, rng: np.random.Generator) -> Floats:
    """Return noise of NOISE_MS, shape (count,)."""
    if noise == "heavy_tailed":
        values = rng.standard_t(3, count) / np.sqrt(3)
    elif noise == "ar1":
        values = _ar1(rng.uniform(0.3, 0.9), count, rng)
    elif noise == LIVE:
        wobble = _ar1(float(np.exp(-STEP_S / LIVE_WOBBLE_S)), count, rng)
        tails = rng.standard_t(3, count) / np.sqrt(3)
        values = np.sqrt(LIVE_WOBBLE_SHARE) * wobble + np.sqrt(1 - LIVE_WOBBLE_SHARE) * tails
    else:
        values = rng.standard_normal(count)
        if noise == "random_walk":
            values = np.cumsum(values)
            values = (values - values.mean()) / values.std()
    return NOISE_MS * values


def _ar1(memory: float, count: int, rng: np.random.Generator) -> Floats:
    values = np.empty(count)
    last = rng.standard_normal()
    for index, news in enumerate(rng.standard_normal(count) * np.sqrt(1 - memory**2)):
        values[index] = last = memory * last + news
    return values


def _height(made: Drawn, paper_ms: float) -> float:
    return made.size * NOISE_MS if made.size else paper_ms


def _everything(made: Drawn) -> NDArray[np.bool_]:
    return np.ones(len(made.times_s), np.bool_)


def _ramp(made: Drawn, kinds: tuple[str, ...], rng: np.random.Generator) -> NDArray[np.bool_]:
    # As high as a grid beside it the ramp would be a grid that drifts.
    height = _height(made, 7.0 if "grid" in kinds else 5.0) * rng.choice([-1.0, 1.0])
    period = rng.uniform(20, 40)
    turns = (made.times_s + rng.uniform(0, period)) / period
    made.values_ms += height * (turns - np.floor(turns))
    made.truth["ramp"] = {
        "period_s": period,
        "height_ms": abs(height),
        "slope_ms_per_s": height / period,
    }
    return _everything(made)


def _grid(made: Drawn, kinds: tuple[str, ...], rng: np.random.Generator) -> NDArray[np.bool_]:
    width = _height(made, 5.0)
    first = rng.uniform(0, width)
    made.values_ms += first + width * np.ceil(np.abs(rng.normal(0, 1.5, len(made.times_s))))
    made.truth["grid"] = {"width_ms": width, "offset_ms": (BASE_MS + first) % width}
    return _everything(made)


def _drifting_grid(made: Drawn, kinds: tuple[str, ...], rng: np.random.Generator) -> NDArray[np.bool_]:
    """A message of a source whose clock is off waits for the next poll, sometimes for one after that.

    In live noise none waits longer.
    """
    poll = _height(made, 5.0)
    off = rng.uniform(130, 210) * 1e-6 * rng.choice([-1.0, 1.0]) * poll / 5.0  # positive: the source is slow
    nominal_ms = made.times_s * 1e3
    arrived = nominal_ms * off + rng.uniform(0, poll)  # beyond whole polls
    if made.noise == LIVE:
        meets = arrived + rng.normal(0, LIVE_SCATTER_MS, len(arrived))
        made.values_ms += np.ceil(meets / poll) * poll - arrived
    else:
        waited = np.ceil(arrived / poll) * poll - arrived
        made.values_ms += waited + poll * rng.choice(3, len(waited), p=(0.7, 0.2, 0.1))
    made.truth["drifting_grid"] = {
        "width_ms": poll,
        "period_s": poll / abs(off) * 1e-3,
        "slope_ms_per_s": -off * 1e3,
    }
    return _everything(made)


def _gap(made: Drawn, kinds: tuple[str, ...], rng: np.random.Generator) -> NDArray[np.bool_]:
    period = rng.uniform(6, 10)
    length = made.size * STEP_S if made.size else rng.uniform(0.5, 1.0)
    since = np.mod(made.times_s - rng.uniform(0, period), period)
    made.truth["gap"] = {"period_s": period, "length_s": length}
    return since >= length


def _recovery(made: Drawn, kinds: tuple[str, ...], rng: np.random.Generator) -> NDArray[np.bool_]:
    """A gap of the paper's size, and what follows it is late and settles."""
    period, length = rng.uniform(6, 10), rng.uniform(0.5, 1.0)
    height, decay = _height(made, 5.0), rng.uniform(0.3, 0.8)
    since = np.mod(made.times_s - rng.uniform(0, period), period)
    made.values_ms += np.where(since >= length, height * np.exp(-(since - length) / decay), 0.0)
    made.truth["gap"] = {"period_s": period, "length_s": length}
    made.truth["recovery"] = {"height_ms": height, "decay_s": decay}
    return since >= length


def _periodic_outlier(made: Drawn, kinds: tuple[str, ...], rng: np.random.Generator) -> NDArray[np.bool_]:
    period, height = rng.uniform(8, 15), _height(made, 1100.0)
    due = np.arange(rng.uniform(0, period), LENGTH_S - STEP_S, period)
    made.values_ms[np.rint(due / STEP_S).astype(int)] += height
    made.truth["periodic_outlier"] = {"period_s": period, "height_ms": height}
    return _everything(made)


def _burst(made: Drawn, kinds: tuple[str, ...], rng: np.random.Generator) -> NDArray[np.bool_]:
    period, height, count = rng.uniform(8, 15), _height(made, BURST_MS), int(rng.integers(4, 21))
    due = np.arange(rng.uniform(period * OFF_BEAT, period), LENGTH_S - (count + 1) * STEP_S, period)
    due[0] -= OFF_BEAT * period
    there = rng.random(len(due)) >= BURST_MISSING_SHARE
    there[0] = True
    for begin in np.rint(due[there] / STEP_S).astype(int):
        made.values_ms[begin : begin + count] += height * (1 - np.arange(count) / count)
    made.truth["periodic_outlier"] = {
        "period_s": period,
        "height_ms": height,
        "length_s": count * STEP_S,
    }
    return _everything(made)


def _level_change(made: Drawn, kinds: tuple[str, ...], rng: np.random.Generator) -> NDArray[np.bool_]:
    start, course = rng.uniform(80, 250), rng.uniform(10, 30)
    height = _height(made, 5.0) * rng.choice([-1.0, 1.0])
    made.values_ms += height * np.clip((made.times_s - start) / course, 0, 1)
    made.truth["level_change"] = {"start_s": start, "end_s": start + course, "height_ms": height}
    return _everything(made)


def _two_levels(made: Drawn, kinds: tuple[str, ...], rng: np.random.Generator) -> NDArray[np.bool_]:
    start, course = rng.uniform(80, 250), rng.uniform(15, 30)
    height = _height(made, 5.0) * rng.choice([-1.0, 1.0])
    share = np.clip((made.times_s - start) / course, 0, 1)
    made.values_ms += height * (rng.random(len(share)) < share)
    made.truth["two_levels"] = {"start_s": start, "end_s": start + course, "height_ms": height}
    return _everything(made)


def _warm_up(made: Drawn, kinds: tuple[str, ...], rng: np.random.Generator) -> NDArray[np.bool_]:
    end = rng.uniform(20, 40)
    early = made.times_s < end
    made.values_ms[early] += _height(made, 5.0) * np.abs(rng.standard_normal(int(early.sum())))
    made.truth["warm_up"] = {"end_s": end}
    return _everything(made)


def _late_first(made: Drawn, kinds: tuple[str, ...], rng: np.random.Generator) -> NDArray[np.bool_]:
    end, tooth = rng.uniform(20, 40), rng.uniform(3, 8)
    early = made.times_s < end
    made.values_ms[early] += _height(made, LATE_FIRST_MS) * (1 - 0.7 * np.mod(made.times_s[early] / tooth, 1))
    made.truth["warm_up"] = {"end_s": end}
    return _everything(made)


_ADD = {
    "ramp": _ramp,
    "grid": _grid,
    "drifting_grid": _drifting_grid,
    "gap": _gap,
    "recovery": _recovery,
    "periodic_outlier": _periodic_outlier,
    "level_change": _level_change,
    "two_levels": _two_levels,
    "warm_up": _warm_up,
    "burst": _burst,
    "late_first": _late_first,
}
