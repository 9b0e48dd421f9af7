# SPDX-License-Identifier: Apache-2.0
"""Events that were drawn from a seed, and a plain list of them, for filters to be held against."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from reports.timeline.processing.data import Data, Events, of_timeline
from reports.timeline.processing.filters import Context
from reports.timeline.processing.known_filters import filters_here
from tests.reports.timeline.placed_sample import drawn_timeline

Row = Mapping[str, Any]
SEEDS = range(6)


def drawn(seed: int, n: int = 120) -> Events:
    """Return events of four lanes, with few tags, so that several are alike."""
    events = of_timeline(drawn_timeline(n, seed=seed))
    events.numbers["tag"][:] = np.random.default_rng(seed).integers(0, 12, len(events))
    return events


def rows_of(events: Events) -> list[Row]:
    """Return a dictionary an event."""
    found = events.rows()
    return [dict(zip(found, row, strict=True)) for row in zip(*found.values(), strict=True)]


def context_of(folder: Path, *inputs: str) -> Context:
    """Return what a writer stands in."""
    return Context("step", inputs, folder, folder, folder)


def call(called: str, /, *inputs: Any, **parameters: Any) -> Any:
    """Call a filter by the name that a file has for it."""
    found: Data | None = filters_here()[called].call(*inputs, **parameters)
    return found
