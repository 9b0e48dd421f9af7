# SPDX-License-Identifier: Apache-2.0
"""Series of stimulus and response: each leg, by when its message was sent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from reports.latencies import Latencies, latencies_by_folder
from reports.timeline.legs import load_stimulus_response
from reports.timeline.legs_evidence import FOLDER, LEGS_FILE


def latencies_of(run: Path) -> tuple[list[Latencies], list[str]]:
    """Return the series of a run, and in words what cannot be read."""
    return latencies_by_folder(run, FOLDER, LEGS_FILE, _of_legs)


def _of_legs(place: str, folder: Path) -> Iterator[Latencies]:
    for leg in load_stimulus_response(folder).legs:
        yield Latencies(place, leg.name, leg.sent.tai_ns, leg.time_ns.astype(np.float64))
