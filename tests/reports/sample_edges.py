# SPDX-License-Identifier: Apache-2.0
"""Timed edges with numbers that are known: digitised by the tests' own front end, timed by `scope`."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reports.record.context import Context
from reports.record.measurement import Conditions, Measurement, Subject
from reports.run.folder import RunFolder
from reports.timed_edges.capability import OFFSET_QUANTITY, PEAK_TO_PEAK, QUANTITY
from reports.timed_edges.trial import (
    CAPTURE,
    CAPTURED_EDGE,
    CLOCK_EDGE,
    CROSS_TIMESTAMPS,
    FOLDER,
    OSCILLOSCOPE,
    TRIAL,
    WITNESSES,
    BudgetPart,
    Budgets,
    Counts,
    DelayBlocks,
    Delays,
    EdgeTrial,
    OtherView,
    Witness,
    Witnesses,
    write_edge_trial,
    write_witnesses,
)
from reports.timed_edges.verdict import (
    edge_limit,
    edge_measurement,
    order_measurement,
    shift_measurement,
    witness_measurements,
)
from reports.timed_edges.waveforms import WAVEFORMS, Segment, Trace, trace_of, write_waveforms
from scope.budget import Budget, InstrumentLimits, deviation_budget, mean_budget, peak_to_peak_budget
from scope.delay import DelayMeter
from scope.jitter import DelaySummary, DelayTally
from scope.waveform import Acquisition, Frame
from tests.scope.model import FrontEnd, acquisition

Floats = NDArray[np.float64]
FRONT = FrontEnd(noise_v=0.02, rise_s=2e-9)
LIMITS = InstrumentLimits(time_base_error=2e-6, clock_jitter_s=1e-12, skew_s=100e-12)
IDENTITY = "KEYSIGHT TECHNOLOGIES,MSO-X 4104A,VIRTUAL0001,07.50"


def delays_of(summary: DelaySummary) -> Delays:
    """Return a summary of `scope` in the evidence's units."""
    return Delays(
        count=summary.count,
        mean_ns=summary.mean_s * 1e9,
        deviation_ns=summary.deviation_s * 1e9,
        minimum_ns=summary.minimum_s * 1e9,
        maximum_ns=summary.maximum_s * 1e9,
        peak_to_peak_ns={str(count): value * 1e9 for count, value in summary.peak_to_peak_s.items()},
        buckets=tuple((low * 1e9, width * 1e9, count) for low, width, count in summary.buckets),
        kurtosis=summary.kurtosis,
        blocks=DelayBlocks(summary.block_size, tuple((summary.block_means_s * 1e9).tolist())),
    )


def parts_of(budget: Budget | None) -> tuple[BudgetPart, ...] | None:
    """Return a budget of `scope` in the evidence's units."""
    if budget is None:
        return None
    return tuple(BudgetPart(part.name, part.kind, part.value_s * 1e9) for part in budget.parts)


def digitised(
    delays_ns: Floats, seed: int = 1, *, interval_ns: float = 1.0, samples: int = 200
) -> Acquisition:
    """Return an acquisition whose other edges come so much later; a delay that is NaN has no edge."""
    rng = np.random.default_rng(seed)
    starts_s = rng.uniform(-0.5, 0.5, len(delays_ns)) * interval_ns * 1e-9
    edges = [
        [] if np.isnan(delay) else [start + delay * 1e-9]
        for start, delay in zip(starts_s, delays_ns, strict=True)
    ]
    interval_s = interval_ns * 1e-9
    return acquisition(
        FRONT.frames([[s] for s in starts_s], rng, interval_s=interval_s, samples=samples, channel=1),
        FRONT.frames(edges, rng, interval_s=interval_s, samples=samples, channel=2),
    )


def segments_of(found: Acquisition, count: int = 16) -> list[Segment]:
    """Return the first segments of an acquisition as waveforms."""
    by_channel: dict[tuple[int, int], Frame] = {(f.channel, f.index): f for f in found.frames}
    indices = sorted({frame.index for frame in found.frames})[:count]
    return [Segment(_trace(by_channel[1, index]), _trace(by_channel[2, index])) for index in indices]


def _trace(frame: Frame) -> Trace:
    scaling = frame.scaling
    volts = (frame.codes - scaling.code_reference) * scaling.volts_per_code + scaling.offset_v
    return trace_of(volts, scaling.first_sample_s * 1e9, scaling.sample_interval_s * 1e9)


def measured_trial(delays_ns: Floats, name: str = "tgpio-latch", **changes: Any) -> EdgeTrial:
    """Return a trial whose delays an oscilloscope of the model digitised and `scope` timed."""
    meter = DelayMeter(1, 2)
    meter.add(digitised(delays_ns))
    found = meter.result()
    assert found is not None
    quality = (found.reference.quality, found.other.quality)
    lock = (found.reference.phase_lock, found.other.phase_lock)
    budgets = Budgets(
        parts_of(mean_budget(found.delays, quality, LIMITS, phase_lock=lock)),
        parts_of(deviation_budget(found.delays, quality, LIMITS)),
        parts_of(peak_to_peak_budget(found.delays, quality, LIMITS)),
    )
    counts = Counts(**asdict(found.counts))
    return _trial(name, delays_of(found.delays), budgets, counts, **changes)


def drawn_trial(
    delays_ns: Floats, name: str, method: str = "", *, lost: int = 0, **changes: Any
) -> EdgeTrial:
    """Return a trial with such delays, without an oscilloscope: with the budget of a good one."""
    tally = DelayTally()
    tally.add(delays_ns * 1e-9)
    summary = tally.summary()
    assert summary is not None
    n, deviation_ns = summary.count, summary.deviation_s * 1e9
    budgets = Budgets(
        (
            BudgetPart("noise", "standard", 0.08 / n**0.5),
            BudgetPart("sample_interval", "standard", 0.03),
            BudgetPart("jitter", "standard", deviation_ns / n**0.5),
            BudgetPart("trigger", "standard", 0.0),
            BudgetPart("threshold", "standard", 0.01),
            BudgetPart("time_base", "bound", abs(summary.mean_s) * 2e3),
            BudgetPart("skew", "bound", 0.1),
        ),
        (
            BudgetPart("repeatability", "standard", deviation_ns / (2 * n) ** 0.5),
            BudgetPart("noise", "bound", 0.004),
        ),
        (BudgetPart("noise", "bound", 0.6), BudgetPart("sample_interval", "bound", 0.2)),
    )
    counts = Counts(wanted=n + lost, segments=n + lost, pairs=n, missing=lost)
    return _trial(name, delays_of(summary), budgets, counts, **{"method": method or name, **changes})


def _trial(name: str, delays: Delays, budgets: Budgets, counts: Counts, **changes: Any) -> EdgeTrial:
    members: dict[str, object] = {
        "name": name, "method": name, "clock": "", "reference": "phc", "seen_by": OSCILLOSCOPE,
        "oscilloscope": IDENTITY, "period_ns": 2_000_000, "correlation_error_ns": 0,
        "wanted": counts.wanted, "delays": delays, "budgets": budgets, "counts": counts,
        "settings": {"sample interval": "1 ns", "bandwidth": "200 MHz"},
    }  # fmt: skip
    return EdgeTrial(**{**members, **changes})  # type: ignore[arg-type]


def software_delays(rng: np.random.Generator, n: int, spread_ns: float, tail_ns: float) -> Floats:
    """Return delays of an edge that software makes: a narrow heap, and a few that came much later."""
    delays = 900.0 + rng.gamma(2.0, spread_ns, n)
    late = rng.random(n) < 0.01
    return delays + np.where(late, rng.exponential(tail_ns, n), 0.0)


def latch_delays(rng: np.random.Generator, n: int) -> Floats:
    """Return delays of TGPIO edges: one ART tick of 26.04 ns wide, and the PHC's 8 ns."""
    return rng.uniform(0.0, 26.04, n) - 13.0 + rng.uniform(-4.0, 4.0, n)


def add_trial(
    run: RunFolder, trial: EdgeTrial, seen: Acquisition | None = None, answer: dict[str, object] | None = None
) -> tuple[EdgeTrial, Context]:
    """Write a trial's evidence into a run; return it as written, and the context of its records."""
    folder = run.evidence_folder(FOLDER, trial.name)
    members = dict(vars(trial))
    if seen is not None:
        write_waveforms(folder, segments_of(seen))
        members["waveforms_file"] = WAVEFORMS
    if answer is not None:
        (folder / "software.ndjson").write_text(json.dumps({"type": "result", **answer}) + "\n")
        members["software_file"] = "software.ndjson"
    written = EdgeTrial(**members)
    write_edge_trial(folder, written)
    subject = Subject("virtual", "linux-rt", clock=trial.clock or None, method=trial.method)
    files = (run.evidence(folder / TRIAL),)
    return written, Context(run.run_id, "Timed Edges", subject, Conditions("ci"), True, files)


def add_edges(run: RunFolder, n: int = 2000) -> list[Measurement]:
    """Write a whole run of timed edges, judge it, append the records and return them."""
    rng = np.random.default_rng(4)
    records: list[Measurement] = []
    methods = {
        "gettime-software": (software_delays(rng, n, 800.0, 15_000.0), 20.0, 15_000),
        "rdtsc-software": (software_delays(rng, n, 700.0, 15_000.0), 20.0, 15_000),
        "tgpio-filtered-read": (latch_delays(rng, n) + rng.normal(35.0, 30.0, n), 1.0, 800),
        "tgpio-latch": (latch_delays(rng, n), 1.0, 200),
    }
    trials: dict[str, EdgeTrial] = {}
    contexts: dict[str, Context] = {}
    for method, (delays_ns, interval_ns, samples) in methods.items():
        lost = 3 if method == "gettime-software" else 0
        shown = delays_ns[:16].copy()
        if lost:
            shown[5] = np.nan
        seen = digitised(shown, interval_ns=interval_ns, samples=samples)
        answer: dict[str, object] = {"programmed": n, "late": lost, "reads": 3 * n, "reads_discarded": n // 2}
        trial, context = add_trial(run, drawn_trial(delays_ns, method, lost=lost), seen, answer)
        trials[method], contexts[method] = trial, context
        limit = edge_limit(PEAK_TO_PEAK, 200 if method.startswith("tgpio") else 1_000_000, "a source")
        records.append(
            edge_measurement(
                trial, QUANTITY, PEAK_TO_PEAK, f"EDGE-{method.upper()}", limit, 1000, context, allowed_lost=5
            )
        )
    for method in ("gettime-software", "rdtsc-software"):
        values = software_delays(rng, n, 60.0, 4_000.0) - 1000.0
        trial = drawn_trial(
            values, f"{method}-latched", method, seen_by=CAPTURE, oscilloscope="", settings={}
        )
        add_trial(run, trial)
    for better, worse in (
        ("tgpio-latch", "tgpio-filtered-read"),
        ("tgpio-filtered-read", "gettime-software"),
    ):
        subject = Subject("virtual", "linux-rt", method=f"{better} < {worse}")
        context = Context(run.run_id, "Order", subject, Conditions("ci"), True, contexts[better].evidence)
        records.append(
            order_measurement(trials[better], trials[worse], "EDGE-ORDER", "paper, Table II", 1000, context)
        )
    wrong, context = add_trial(
        run,
        drawn_trial(latch_delays(rng, n) + 200.0, "tgpio-latch-200", "tgpio-latch", correlation_error_ns=200),
    )
    records.append(shift_measurement(trials["tgpio-latch"], wrong, "BENCH-EDGE-SHIFT", 200, context))
    for clock, spread_ns, offset_ns in (("chrony", 900.0, 4_000.0), ("ptp-software", 2_500.0, -1_500.0)):
        values = rng.normal(-offset_ns, spread_ns, n // 2)
        beside = (OtherView("bw-clock compare", offset_ns + 120.0, 450.0, 3000),)
        seen = digitised(values[:16], interval_ns=20.0, samples=2_000)
        trial, context = add_trial(
            run,
            drawn_trial(
                values, f"clock-{clock}", CLOCK_EDGE, clock=clock, reference="timecard", beside=beside
            ),
            seen,
        )
        limit = edge_limit("max_abs", 40_000, "paper on control loops, 4.5.1")
        records.append(
            edge_measurement(trial, OFFSET_QUANTITY, "max_abs", f"EDGE-{clock.upper()}", limit, 500, context)
        )
    folder = run.evidence_folder(FOLDER, "witnesses")
    write_witnesses(folder, sample_witnesses())
    subject = Subject("virtual", "linux-rt", clock="ptp-hardware")
    files = (run.evidence(folder / WITNESSES),)
    context = Context(run.run_id, "Witnesses", subject, Conditions("ci"), True, files)
    records += witness_measurements(sample_witnesses(), "BENCH-EDGE-WITNESSES", 100, context)
    for record in records:
        run.append(record)
    return records


def sample_witnesses() -> Witnesses:
    """Return three views of which the first two agree, and the third does not agree with the second."""

    def view(name: str, offset_ns: float, u_ns: float) -> Witness:
        return Witness(name, offset_ns, (BudgetPart("all", "bound", u_ns),), 1000)

    return Witnesses(
        "ptp-hardware",
        (
            view(CROSS_TIMESTAMPS, 310.0, 400.0),
            view(CAPTURED_EDGE, 120.0, 30.0),
            view(OSCILLOSCOPE, 190.0, 15.0),
        ),
    )
