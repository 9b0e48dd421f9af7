# SPDX-License-Identifier: Apache-2.0
"""Series of clock error: each trial's clock against what it was measured by."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from reports.clock_sync.answers import series_of
from reports.clock_sync.trial import TRIAL, load_trial
from reports.latencies import Latencies, latencies_by_folder

FOLDER = "clock_sync"


def latencies_of(run: Path) -> tuple[list[Latencies], list[str]]:
    """Return the series of a run, and in words what cannot be read."""
    return latencies_by_folder(run, FOLDER, TRIAL, _of_trial)


def _of_trial(place: str, folder: Path) -> Iterator[Latencies]:
    measured = series_of(load_trial(folder).filtered)
    if measured is not None:
        at_ns = np.concatenate([each.time_ns for each in measured.stretches])
        yield Latencies(place, "clock error", at_ns, measured.offsets().astype(np.float64))
