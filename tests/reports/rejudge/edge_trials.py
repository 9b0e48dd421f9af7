# SPDX-License-Identifier: Apache-2.0
"""Trials of timed edges in a run that is judged a second time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from reports.record.context import Context
from reports.record.measurement import Measurement
from reports.rejudge.edges import edge_discrepancies
from reports.run.folder import MANIFEST, MEASUREMENTS, RunFolder
from reports.timed_edges.trial import CLOCK_EDGE, TRIAL, Budgets, EdgeTrial
from resources.timed_edges.trials import PIN_TICKS, with_resolution
from scope.budget import (
    EdgeQuality,
    InstrumentLimits,
    Part,
    deviation_budget,
    mean_budget,
    peak_to_peak_budget,
)
from scope.jitter import DelayTally
from tests.reports.sample_edges import Floats, delays_of, drawn_trial, parts_of

RNG = np.random.Generator
Change = Callable[[dict[str, Any]], object]
"""Changes a document in its place."""
FOLDER = Path("evidence", "timed_edges")
LATCH = "tgpio-latch"


@dataclass
class JudgedRun:
    """A run, and its records as they lie there."""

    path: Path
    records: list[dict[str, Any]]

    def discrepancies(self, *records: dict[str, Any]) -> tuple[list[str], int]:
        """Judge records again; without any, all."""
        return edge_discrepancies(self.path, records or self.records)

    def rewrite(self, trial: str, change: Change, name: str = TRIAL) -> None:
        """Change a file of a trial."""
        path = self.path / FOLDER / trial / name
        document = json.loads(path.read_text().splitlines()[-1] if name != TRIAL else path.read_text())
        change(document)
        path.write_text(json.dumps(document) + "\n")


def folder_of(results: Path) -> RunFolder:
    """Return an empty run of this version."""
    run = RunFolder.create(results, "virtual", "ci", simulated=True, commit="0" * 40)
    manifest = json.loads((run.path / MANIFEST).read_text())
    (run.path / MANIFEST).write_text(json.dumps(manifest | {"outcome": "pass"}))
    return run


def judged(run: RunFolder, records: Iterable[Measurement]) -> JudgedRun:
    for record in records:
        run.append(record)
    lines = (run.path / MEASUREMENTS).read_text().splitlines()
    return JudgedRun(run.path, [json.loads(line) for line in lines])


def of(context: Context, method: str | None, *others: Context) -> Context:
    """Return a context of several trials."""
    files = (*context.evidence, *(file for other in others for file in other.evidence))
    return replace(context, subject=replace(context.subject, method=method), evidence=files)


def drawn_budgets(
    rng: RNG, delays_ns: Floats, method: str, *, of_earlier: bool = False
) -> tuple[Budgets, EdgeTrial]:
    """Return the budgets that `scope` makes of delays on some oscilloscope, and a trial of these delays.

    `of_earlier`: as an earlier version has written them, for which all delays were normal and independent.
    """
    tally = DelayTally()
    for part in np.array_split(delays_ns * 1e-9, 3):
        tally.add(part)
    delays = tally.summary()
    assert delays is not None
    if of_earlier:
        delays = replace(delays, kurtosis=1.0, block_means_s=np.zeros(8))
    scale = float(rng.choice([0.0, 1e-12, 1e-9]))
    sizes = rng.uniform(0, scale, 8)
    edges = (EdgeQuality(*sizes[:4].tolist()), EdgeQuality(*sizes[4:].tolist()))
    time_base_error, clock_jitter_s = (float(rng.choice(some)) for some in ([0.0, 2e-6], [0.0, 1e-12, 2e-9]))
    limits = InstrumentLimits(time_base_error, clock_jitter_s, skew_s=1e-10)
    skew = [Part("channel_skew:ch2", "standard", 3e-12)] if rng.random() < 0.3 else []
    lock = (float(rng.choice([0.0, 0.4, 1.0])), float(rng.random()))
    budgets = Budgets(
        parts_of(mean_budget(delays, edges, limits, phase_lock=lock, calibration=skew)),
        parts_of(deviation_budget(delays, edges, limits)),
        parts_of(peak_to_peak_budget(delays, edges, limits)),
    )
    trial = drawn_trial(delays_ns, method, method, clock="chrony" if method == CLOCK_EDGE else "")
    noted = delays_of(delays)
    trial = replace(trial, delays=replace(noted, kurtosis=None, blocks=None) if of_earlier else noted)
    return with_resolution(budgets, PIN_TICKS.get(method, 0.0)), trial
