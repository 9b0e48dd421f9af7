# SPDX-License-Identifier: Apache-2.0
"""What an oscilloscope saw of edges, as documents of evidence: seconds become ns, budgets named parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import date
from pathlib import Path

from hw.oscilloscopes import OscilloscopeSpec
from reports.timed_edges.trial import BudgetPart, Budgets, Counts, DelayBlocks, Delays
from reports.timed_edges.waveforms import SEGMENTS_MAX, Segment, Trace, trace_of, write_waveforms
from resources.timed_edges.acquisition import Observation, signals_of
from scope import budget as scope_budget
from scope.calibration import Correction
from scope.delay import DelayResult
from scope.jitter import DelaySummary
from scope.levels import volts
from scope.waveform import Frame

NS_PER_S = 1e9
NO_LIMITS = "the bench file has no limits of this oscilloscope: what its time base adds is not known"


def delays_of(summary: DelaySummary) -> Delays:
    """Return the statistics of delays in ns."""
    return Delays(
        count=summary.count,
        mean_ns=summary.mean_s * NS_PER_S,
        deviation_ns=summary.deviation_s * NS_PER_S,
        minimum_ns=summary.minimum_s * NS_PER_S,
        maximum_ns=summary.maximum_s * NS_PER_S,
        peak_to_peak_ns={str(n): value * NS_PER_S for n, value in summary.peak_to_peak_s.items()},
        buckets=tuple((low * NS_PER_S, width * NS_PER_S, n) for low, width, n in summary.buckets),
        kurtosis=summary.kurtosis,
        blocks=DelayBlocks(summary.block_size, tuple((summary.block_means_s * NS_PER_S).tolist())),
    )


def counts_of(watched: Observation) -> Counts:
    """Return what became of all segments and edges."""
    return Counts(**asdict(watched.counts))


def correction_of(spec: OscilloscopeSpec, today: date, serial: str) -> Correction:
    """Return what delays are corrected by, from the calibration records of the bench file.

    Args:
        spec: The oscilloscope.
        today: Day of the measurement, UTC.
        serial: Serial number of the instrument in use.
    """
    reference, edge = signals_of(spec)
    return spec.calibration.correction(reference.calibrated_by, edge.calibrated_by, today, serial)


def budgets_of(spec: OscilloscopeSpec, result: DelayResult | None, correction: Correction) -> Budgets:
    """Return what mean, deviation and peak to peak are uncertain by; None of each: nothing says."""
    limits = spec.limits
    if result is None or limits is None:
        return Budgets()
    edges = (result.reference.quality, result.other.quality)
    lock = (result.reference.phase_lock, result.other.phase_lock)
    mean = scope_budget.mean_budget(
        result.delays, edges, limits, phase_lock=lock, calibration=correction.parts
    )
    deviation = scope_budget.deviation_budget(result.delays, edges, limits)
    return Budgets(
        mean=_parts(mean),
        deviation=_parts(deviation),
        peak_to_peak=_parts(scope_budget.peak_to_peak_budget(result.delays, edges, limits)),
    )


def _parts(budget: scope_budget.Budget | None) -> tuple[BudgetPart, ...] | None:
    if budget is None:
        return None
    return tuple(BudgetPart(part.name, part.kind, part.value_s * NS_PER_S) for part in budget.parts)


def keep_waveforms(spec: OscilloscopeSpec, frames: Sequence[Frame], folder: Path) -> str:
    """Write some segments of both channels; return the file's name, empty where there are none."""
    reference, edge = (signal.channel.number for signal in signals_of(spec))
    by_place = {(frame.index, frame.channel): frame for frame in frames}
    segments = [
        Segment(_trace(by_place[index, reference]), _trace(by_place[index, edge]))
        for index, channel in sorted(by_place)
        if channel == reference and (index, edge) in by_place
    ]
    return write_waveforms(folder, segments[:SEGMENTS_MAX]).name if segments else ""


def _trace(frame: Frame) -> Trace:
    scaling = frame.scaling
    return trace_of(
        volts(frame.codes, scaling), scaling.first_sample_s * NS_PER_S, scaling.sample_interval_s * NS_PER_S
    )
