# SPDX-License-Identifier: Apache-2.0
"""Other ways to find a change, to compare the adviser's with; each returns the run of its first alarm.

Thresholds of CUSUM and EWMA give 4 % false alarms in 60 runs of normal noise, as the adviser's does; they
were chosen on other series than those that are judged.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np

from bench.dashboards.change_series import BASELINE_RUNS, Values
from dashboards.regressions.changes import find_changes

_groups: Any = import_module("jumpavg.bit_counting_group_list")  # has no types

Detector = Callable[[Values], int | None]

BASELINE_MIN = 15
CUSUM_K = 0.75
MAD_TO_SIGMA = 1.4826


def adviser(values: Values) -> int | None:
    """Find with this project."""
    found = find_changes(values)
    return found[0].seen if found else None


def jumpavg_alarm(values: Values, unit: float | None, persistence: int) -> int | None:
    """Return the first run after which jumpavg's last group and the one before it have so many runs."""
    for seen, sizes in enumerate(_group_sizes(values.tobytes(), unit)):
        if len(sizes) > 1 and min(sizes[-2:]) >= persistence:
            return seen
    return None


@functools.lru_cache(maxsize=4)
def _group_sizes(data: bytes, unit: float | None) -> list[list[int]]:
    """Return the sizes of jumpavg's groups after each run.

    The loop of `jumpavg.classify`, whose best grouping so far is what it would return for the runs so far.
    """
    values = [float(value) for value in np.frombuffer(data)]
    largest = max(values)
    scale = {
        "max_value": largest,
        "unit": unit or largest / (2**13 - 1),
    }  # its own choice where none is given
    best: Any = _groups.BitCountingGroupList(**scale)
    open_lists: list[Any] = []
    sizes: list[list[int]] = []
    for value in values:
        newest = best.copy_fast().append_group_of_runs([value])
        best = newest
        for other in open_lists:
            other.append_run_to_to_last_group(value)
            if other.bits < best.bits:
                best = other
        open_lists.append(newest)
        sizes.append([len(group) for group in best])
    return sizes


def standardised(values: Values) -> Values:
    """Return the logarithms over the noise that the baseline's steps from run to run show, around 8."""
    logs = np.log(values)
    base = logs[:BASELINE_RUNS]
    sigma = MAD_TO_SIGMA * float(np.median(np.abs(np.diff(base)))) / math.sqrt(2)
    return 8 + (logs - np.median(base)) / sigma


def scores_of_moments(values: Values, clip: float = math.inf) -> Iterator[float]:
    """Yield for each value its normal score against mean and deviation of all before it (self-starting).

    Args:
        values: On the scale on which the noise is normal.
        clip: Scores are limited to this; so is what the value adds to mean and deviation (Winsor).
    """
    mean, squares = 0.0, 0.0
    for count, value in enumerate(map(float, values)):
        score, kept = 0.0, value
        if count >= BASELINE_MIN:
            deviation = math.sqrt(squares / (count - 1) * (1 + 1 / count))
            score = _normal_of_t((value - mean) / deviation, count - 1)
            if abs(score) > clip:
                kept = mean + (value - mean) * clip / abs(score)
                score = math.copysign(clip, score)
        step = kept - mean
        mean += step / (count + 1)
        squares += step * (kept - mean)
        yield score


def scores_of_median(values: Values, clip: float) -> Iterator[float]:
    """Yield for each value its score against median and MAD of all before it, limited to `clip`."""
    for place, value in enumerate(values):
        if place < BASELINE_MIN:
            yield 0.0
            continue
        base = values[:place]
        median = float(np.median(base))
        sigma = MAD_TO_SIGMA * float(np.median(np.abs(base - median))) * (1 + 1 / place)
        score = (float(value) - median) / (sigma * math.sqrt(1 + 1 / place))
        yield max(-clip, min(clip, _normal_of_t(score, place - 1)))


def cusum(scores: Iterator[float], limit: float, k: float = CUSUM_K) -> int | None:
    """Return where the two-sided CUSUM of scores passes its limit."""
    up = down = 0.0
    for place, score in enumerate(scores):
        up, down = max(0.0, up + score - k), max(0.0, down - score - k)
        if max(up, down) > limit:
            return place
    return None


def ewma(scores: Iterator[float], limit: float, share: float = 0.3) -> int | None:
    """Return where the exponentially weighted mean of scores passes `limit` of its standard deviations."""
    mean = 0.0
    for place, score in enumerate(scores):
        mean += share * (score - mean)
        counted = place - BASELINE_MIN + 1
        if counted > 0:
            deviation = math.sqrt(share / (2 - share) * (1 - (1 - share) ** (2 * counted)))
            if abs(mean) > limit * deviation:
                return place
    return None


def first_of(*places: int | None) -> int | None:
    """Return the earliest alarm."""
    return min((place for place in places if place is not None), default=None)


def _normal_of_t(t: float, freedom: int) -> float:
    """Return the normal deviate of a value of Student's t (Wallace 1959, within 0.02)."""
    scale = (8 * freedom + 1) / (8 * freedom + 3)
    return math.copysign(scale * math.sqrt(freedom * math.log1p(t * t / freedom)), t)


DETECTORS: dict[str, Detector] = {
    "normal scores, splits (adviser)": adviser,
    "jumpavg": lambda v: jumpavg_alarm(v, None, 1),
    "jumpavg, log": lambda v: jumpavg_alarm(np.log(v), None, 1),
    "jumpavg, log, persistence 4": lambda v: jumpavg_alarm(np.log(v), None, 4),
    "jumpavg, log over robust sigma, unit 0.3, persistence 4": lambda v: jumpavg_alarm(
        standardised(v), 0.3, 4
    ),
    "EWMA, log": lambda v: ewma(scores_of_moments(np.log(v)), 3.31),
    "CUSUM, log": lambda v: cusum(scores_of_moments(np.log(v)), 4.12),
    "CUSUM, log, limited to 2 sigma": lambda v: cusum(scores_of_moments(np.log(v), 2.0), 3.63),
    "CUSUM, log, median and MAD": lambda v: cusum(scores_of_median(np.log(v), 2.0), 4.12),
    "CUSUM, log, or jumpavg, log, persistence 4": lambda v: first_of(
        cusum(scores_of_moments(np.log(v)), 4.12), jumpavg_alarm(np.log(v), None, 4)
    ),
}
ADVISER = "normal scores, splits (adviser)"
