# SPDX-License-Identifier: Apache-2.0
"""A finished run of timed edges: two methods on an oscilloscope, one captured, a mistake, witnesses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from reports.page.render import render_pages
from reports.record.context import Context
from reports.record.measurement import Conditions, Measurement, Subject
from reports.run.folder import RunFolder
from reports.run.outcome import outcome_of
from reports.timed_edges.capability import DEVIATION, MEAN, PEAK_TO_PEAK, QUANTITY
from reports.timed_edges.trial import CAPTURE, FOLDER, WITNESSES, Counts, EdgeTrial, write_witnesses
from reports.timed_edges.verdict import edge_limit, edge_measurement, shift_measurement, witness_measurements
from resources.timed_edges.software import PHC_TICK_NS, latched_delays, sampled_budgets
from resources.timed_edges.trials import PIN_TICKS, with_resolution
from tests.reports.rejudge.edge_trials import LATCH, of
from tests.reports.sample_edges import (
    add_trial,
    digitised,
    drawn_trial,
    latch_delays,
    measured_trial,
    sample_witnesses,
)
from tests.reports.sample_run import summary

ANSWER: dict[str, object] = {"valid": True, "complete": True, "method": LATCH, "period_ns": 2_000_000}
SOFTWARE = "gettime-software"
MISTAKE_NS = 40


def make_edge_run(results: Path, seed: int = 1) -> RunFolder:
    """Make a run whose trials are judged for each statistic."""
    run = RunFolder.create(results, "virtual", "ci", simulated=True, commit="0" * 40)
    run.update(tools={"bw-traffic": "0.1.0"})
    rng = np.random.default_rng(seed)
    plain, context = _on_oscilloscope(run, "tgpio-latch", rng, 0)
    wrong, other = _on_oscilloscope(run, "tgpio-latch-wrong", rng, MISTAKE_NS)
    captured, of_captured = _captured(run, rng)
    records: list[Measurement] = [
        edge_measurement(
            trial, QUANTITY, each, f"E-{each}", edge_limit(each, 5_000, "s"), 100, own, allowed_lost=4
        )
        for trial, own in ((plain, context), (captured, of_captured))
        for each in (MEAN, DEVIATION, PEAK_TO_PEAK)
    ]
    records.append(shift_measurement(plain, wrong, "BENCH-EDGE-ERROR", MISTAKE_NS, of(context, LATCH, other)))
    folder = run.evidence_folder(FOLDER, "witnesses")
    write_witnesses(folder, sample_witnesses())
    subject = Subject("virtual", "linux-rt", clock=sample_witnesses().clock)
    files = (run.evidence(folder / WITNESSES),)
    own = Context(run.run_id, "Witnesses", subject, Conditions("ci"), True, files)
    for record in (*records, *witness_measurements(sample_witnesses(), "BENCH-EDGE-WITNESSES", 100, own)):
        run.append(record)
    run.close()
    run.update(outcome=outcome_of(run, finalising=True).outcome)
    for name, page in render_pages(run.path).items():
        (run.path / name).write_text(page)
    return run


def _on_oscilloscope(
    run: RunFolder, name: str, rng: np.random.Generator, mistake_ns: int
) -> tuple[EdgeTrial, Context]:
    delays_ns = latch_delays(rng, 400) + mistake_ns
    trial = measured_trial(delays_ns, name, method=LATCH, correlation_error_ns=mistake_ns, correction_ns=1.5)
    trial = replace(trial, budgets=with_resolution(trial.budgets, PIN_TICKS[LATCH]))
    answer = ANSWER | {"fired": 500, "correlation_error_ns": mistake_ns}
    return add_trial(run, trial, digitised(delays_ns[:16]), answer)


def _captured(run: RunFolder, rng: np.random.Generator) -> tuple[EdgeTrial, Context]:
    values = np.rint(rng.normal(-300, 40, 2000)).astype(int)
    answer: dict[str, Any] = {"valid": True, "complete": True, "delay": summary(values.tolist())}
    answer["peak_to_peak_ns"] = {"100": int(values[:100].max() - values[:100].min())}
    answer["blocks"] = {"size": 2, "means_ns": values.reshape(-1, 2).mean(axis=1).tolist()}
    delays = latched_delays(answer)
    trial = drawn_trial(values.astype(float), "captured", SOFTWARE, seen_by=CAPTURE, oscilloscope="")
    counts = Counts(wanted=2000, pairs=2000)
    budgets = sampled_budgets(delays, PHC_TICK_NS)
    return add_trial(run, replace(trial, delays=delays, budgets=budgets, counts=counts), answer=answer)
