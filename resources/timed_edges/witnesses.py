# SPDX-License-Identifier: Apache-2.0
"""Three views of one clock against the PHC: cross-timestamps, captured edges, and edges on the oscilloscope.

Offsets are clock - PHC, in ns: positive, the clock is ahead, so its edges come earlier.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from hw.edges import CapturedEdges
from reports.clock_sync.answers import SeriesPoint
from reports.clock_sync.trial import ClockTrial
from reports.clock_sync.verdict import sync_uncertainty
from reports.timed_edges.trial import (
    CAPTURED_EDGE,
    CROSS_TIMESTAMPS,
    OSCILLOSCOPE,
    BudgetPart,
    Witness,
    Witnesses,
)
from resources.timed_edges.software import ART_TICK_NS, PHC_TICK_NS
from resources.timed_edges.trials import EdgeRun

NOTHING_CAPTURED = "no edge was captured"
NS_PER_S = 1e9
SAMPLES_MIN = 4


def clock_witnesses(run: EdgeRun, compared: ClockTrial) -> Witnesses:
    """Return what three witnesses say of a clock at the same time, with what each is uncertain by.

    Cross-timestamps and captures go on all the time that counts. The oscilloscope is blind while it is read,
    and the clock wanders meanwhile: so much is part of its uncertainty.

    Args:
        run: The clock's own edges on the oscilloscope, captured by the network card as well.
        compared: `bw-clock compare` of the clock with the PHC, meanwhile.
    """
    captured = run.captured or CapturedEdges((), 0)
    instants = [instant for _, instant in captured.edges]
    series = compared.filtered.series
    if instants:
        shared = [point for point in series if instants[0] <= point.time_tai_ns <= instants[-1]]
        values: Sequence[float] = captured_offsets_ns(instants, run.trial.period_ns)
        times_ns = instants
    else:  # what cross-timestamps scatter by is more than the clock's wander
        shared = list(series)
        values = [point.mean_ns for point in shared]
        times_ns = [point.time_tai_ns for point in shared]
    wander = BudgetPart("wander", "standard", wander_ns(times_ns, values))
    return Witnesses(
        run.trial.clock,
        (
            _cross_timestamps(compared, shared),
            _captured(captured, run.trial.period_ns),
            _seen(run, wander),
        ),
    )


def wander_ns(times_ns: Sequence[int], offsets_ns: Sequence[float]) -> float:
    """Return how far a mean over other moments of the same time may be off: a standard deviation.

    A servo changes the clock once a second, so that moments of one second are alike.
    """
    if len(offsets_ns) < 2:
        return 0.0
    duration_s = (times_ns[-1] - times_ns[0]) / NS_PER_S
    return float(np.std(offsets_ns, ddof=1)) / math.sqrt(max(1.0, duration_s))


def captured_offsets_ns(instants: Sequence[int], period_ns: int) -> list[int]:
    """Return the offset of a clock by each edge that it made at a full period of its own."""
    half_ns = period_ns // 2
    return [half_ns - (instant + half_ns) % period_ns for instant in instants]


def _cross_timestamps(compared: ClockTrial, points: Sequence[SeriesPoint]) -> Witness:
    n = sum(point.n for point in points)
    invalid = tuple(compared.filtered.invalid())
    if not n:
        return Witness(CROSS_TIMESTAMPS, None, (), 0, invalid, "no sample while the edges were captured")
    mean_ns = sum(point.mean_ns * point.n for point in points) / n
    parts = [BudgetPart(part.name, part.kind, part.value) for part in sync_uncertainty(compared).parts]
    return Witness(CROSS_TIMESTAMPS, mean_ns, tuple(parts), n, invalid)


def _captured(captured: CapturedEdges, period_ns: int) -> Witness:
    offsets = captured_offsets_ns([instant for _, instant in captured.edges], period_ns)
    n = len(offsets)
    if n < SAMPLES_MIN:
        return Witness(CAPTURED_EDGE, None, (), n, (), f"{n} edges were captured" if n else NOTHING_CAPTURED)
    values = np.array(offsets, np.float64)
    parts = (
        BudgetPart("jitter", "standard", float(values.std(ddof=1)) / math.sqrt(n)),
        BudgetPart("resolution", "bound", PHC_TICK_NS),
        BudgetPart("pin_resolution", "bound", ART_TICK_NS / 2),
    )
    return Witness(CAPTURED_EDGE, float(values.mean()), parts, n)


def _seen(run: EdgeRun, wander: BudgetPart) -> Witness:
    trial = run.trial
    delays, parts = trial.delays, trial.budgets.mean
    doubts = (*trial.doubts, *([trial.failed] if trial.failed else []))
    if delays is None or parts is None:
        n = 0 if delays is None else delays.count
        return Witness(OSCILLOSCOPE, None, (), n, doubts, trial.failed or f"{n} pairs of edges")
    offset_ns = trial.correction_ns - delays.mean_ns
    return Witness(OSCILLOSCOPE, offset_ns, (*parts, wander), delays.count, doubts)
