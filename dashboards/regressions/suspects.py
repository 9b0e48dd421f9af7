# SPDX-License-Identifier: Apache-2.0
"""Runs after which a series may have changed, found for many runs at once.

A history of 2,000 runs has as many windows, and hardly one of them holds a change. Here the same z as in
`split.splits` is computed for all of them together, but for the mean of the scores, which is 0 where no two
values are equal, and near it elsewhere. What comes close to the threshold is left to `split` to decide.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dashboards.regressions.settings import Settings
from dashboards.regressions.split import score_table, score_variance

CLOSE = 0.4
"""How far below the threshold a z is looked at once more: more than equal values can take away from it."""
_BLOCK_RUNS = 256


def suspects(values: NDArray[np.float64], start: int, seen: int, settings: Settings) -> Iterator[int]:
    """Yield the runs from `seen` on after which a change may be visible.

    Args:
        values: The series, all finite.
        start: Where the baseline begins at the earliest.
        seen: The first run to look at.
        settings: How changes are looked for.
    """
    seen = max(seen, start + settings.baseline_min + settings.runs_after_min - 1)
    while seen < len(values):
        end = min(len(values), seen + _BLOCK_RUNS)
        close = _largest_z(values, start, seen, end, settings) >= settings.z_min - CLOSE
        yield from (seen + np.flatnonzero(close)).tolist()
        seen = end


def _largest_z(
    values: NDArray[np.float64], start: int, seen: int, end: int, settings: Settings
) -> NDArray[np.float64]:
    """Return the largest |z| of the splits after each run from `seen` to before `end`."""
    width = settings.runs_after_max + settings.baseline_max
    first = max(start, seen + 1 - width)
    missing = np.full(max(0, width - (seen + 1 - first)), np.nan)
    padded = np.concatenate([missing, values[first:end]])
    windows = np.lib.stride_tricks.sliding_window_view(padded, width)  # NaN is neither less nor equal
    last = windows[:, : -settings.runs_after_max - 1 : -1]  # the newest first
    less = (windows[:, None, :] < last[:, :, None]).sum(axis=2, dtype=np.int16)
    equal_or_less = (windows[:, None, :] <= last[:, :, None]).sum(axis=2, dtype=np.int16)
    doubled_rank = less + equal_or_less + 1
    runs = np.minimum(np.arange(seen, end) + 1 - start, width)
    if runs[0] == width:
        scores, variance = score_table(width)[doubled_rank], np.array([[score_variance(width)]])
    else:
        scores = np.array([score_table(n)[row] for n, row in zip(runs.tolist(), doubled_rank, strict=True)])
        variance = np.array([score_variance(n) for n in runs.tolist()])[:, None]
    count = np.arange(1, settings.runs_after_max + 1)
    longest = (runs - settings.baseline_min)[:, None]
    used = (count >= settings.runs_after_min) & (count <= longest)
    before = np.maximum(runs[:, None] - count, 1)
    z = np.cumsum(scores, axis=1) * np.sqrt((1 / count + 1 / before) / variance)
    return np.where(used, np.abs(z), 0.0).max(axis=1)
