# SPDX-License-Identifier: Apache-2.0
"""The software under test: how `bw-edge` is told to make edges, and what it says of them at its end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from hw.bench import TargetSpec
from hw.edges import EdgeRole
from hw.errors import CapabilityError, MeasurementError
from reports.dependence import mean_variance
from reports.errors import RecordError
from reports.record.histogram import Summary
from reports.timed_edges.trial import CLOCK_EDGE, BudgetPart, Budgets, DelayBlocks, Delays
from reports.tools.answers import Reader, last_result
from resources.clock_sync.settings import SYSTEM_CLOCK
from scope.budget import relative_repeatability
from scope.jitter import kurtosis_of

SOFTWARE_METHODS = ("gettime-software", "rdtsc-software")
"""Methods that set a line themselves."""
LATCH_METHOD = "tgpio-latch"
READ_CLOCKS = {"gettime-software": "gettime", "rdtsc-software": "rdtsc"}
"""By method, the clock of Listing 1."""
PRIORITY = 20
"""SCHED_FIFO: above the comparing program and ordinary work, below what serves packets."""
ART_TICK_NS = 1e9 / 38.4e6
"""Resolution of TGPIO: a tick of the Always Running Timer (paper, IV.A)."""
PHC_TICK_NS = 8.0
"""Resolution of what captures edges in a network card: a cycle at 125 MHz (data sheet of Intel's i210)."""
MEAN_MIN = 4


@dataclass(frozen=True)
class EdgeCommand:
    """What the software is to do.

    Attributes:
        method: One of METHODS, or CLOCK_EDGE.
        period_ns: From one edge to the next.
        start_ns: Instant of some reference edge.
        correlation_error_ns: A mistake that is put in on purpose.
        clock: Whose edges CLOCK_EDGE makes, as `bw-clock` names it; no other method asks for one.
    """

    method: str
    period_ns: int
    start_ns: int
    correlation_error_ns: int = 0
    clock: str = SYSTEM_CLOCK


def pin_of(target: TargetSpec, role: EdgeRole) -> str:
    """Return a pin of a target; raises CapabilityError where the bench file names none."""
    pin = None if target.edges is None else target.edges.pin(role)
    if pin is None:
        raise CapabilityError(
            f"target {target.kind}: no pin {role.value}: add benchwright.targets.{target.kind}.edges."
            f"{role.value} to the bench file"
        )
    return pin


def run_options(target: TargetSpec, command: EdgeCommand) -> list[str]:
    """Return the options of `bw-edge run`, which makes edges until it is ended."""
    by_software = command.method in SOFTWARE_METHODS
    output = pin_of(target, EdgeRole.SOFTWARE if by_software else EdgeRole.TIMED)
    options = ["--method", command.method, "--count", "0", "--period-ns", str(command.period_ns)]
    options += ["--phc", target.ptp_clock, "--output", output, "--priority", str(PRIORITY)]
    if command.method != CLOCK_EDGE:  # whose edges are at full periods of the clock
        options += ["--start-phc-ns", str(command.start_ns)]
    if command.method == LATCH_METHOD:
        options += ["--latch", pin_of(target, EdgeRole.LATCH)]
    if command.method == CLOCK_EDGE:
        options += ["--clock", command.clock]
    if command.correlation_error_ns:
        options += ["--correlation-error-ns", str(command.correlation_error_ns)]
    return options


def latch_options(target: TargetSpec, method: str, count: int) -> list[str]:
    """Return the options of `bw-edge latch`: Listing 1 of the paper, fenced."""
    options = ["--clock", READ_CLOCKS[method], "--count", str(count), "--phc", target.ptp_clock]
    options += ["--output", pin_of(target, EdgeRole.SOFTWARE)]
    options += ["--capture", pin_of(target, EdgeRole.CAPTURE), "--priority", str(PRIORITY)]
    return options


def software_result(answer: Path) -> dict[str, Any]:
    """Return the result of the software; raises MeasurementError: there is none."""
    try:
        return cast("dict[str, Any]", last_result(answer))
    except (OSError, RecordError) as error:
        raise MeasurementError(f"{answer.name}: {error}") from error


def doubts_of(result: dict[str, Any]) -> list[str]:
    """Return why nothing may pass on what the software did; empty: it may."""
    if result.get("valid") is True:
        return []
    reasons: Sequence[Any] = result.get("invalid_reasons") or ["invalid result"]
    return [f"the software: {reason}" for reason in reasons]


def latched_delays(result: dict[str, Any]) -> Delays | None:
    """Return what `bw-edge latch` found: virtual now less latched time; None: nothing.

    Raises:
        MeasurementError: A key is missing or contradicts itself.
    """
    try:
        summary = Summary.from_json(result.get("delay"), "latch.delay")
    except RecordError as error:
        raise MeasurementError(str(error)) from error
    if not summary.n or summary.min_ns is None or summary.max_ns is None or summary.mean_ns is None:
        return None
    if summary.overflow:
        raise MeasurementError(f"latch.delay: {summary.overflow} delays are beyond the histogram")
    try:
        kurtosis = kurtosis_of(summary.buckets)
    except OverflowError as error:
        raise MeasurementError(f"latch.delay.buckets: {error}") from error
    try:
        blocks = Reader(result, "latch").blocks("blocks", summary.n)
    except RecordError as error:
        raise MeasurementError(str(error)) from error
    peaks: dict[str, Any] = result.get("peak_to_peak_ns") or {}
    return Delays(
        count=summary.n,
        mean_ns=summary.mean_ns,
        deviation_ns=summary.stddev_ns or 0.0,
        minimum_ns=summary.min_ns,
        maximum_ns=summary.max_ns,
        peak_to_peak_ns={**peaks, str(summary.n): summary.max_ns - summary.min_ns},
        buckets=summary.buckets,
        kurtosis=kurtosis,
        blocks=None if blocks is None else DelayBlocks(*blocks),
    )


def sampled_budgets(delays: Delays | None, resolution_ns: float) -> Budgets:
    """Return what statistics of delays are uncertain by that a counter of a resolution has captured.

    A mean is so by what blocks of delays show; those of a tool of before have none, and count as independent.
    """
    if delays is None or delays.count < MEAN_MIN:
        return Budgets()
    n = delays.count
    if delays.blocks is None:
        variance_ns2 = delays.deviation_ns**2 / n * (n - 1) / (n - 3)
    else:
        variance_ns2 = mean_variance(np.array(delays.blocks.means_ns), n, delays.deviation_ns)
    relative = relative_repeatability(n, kurtosis_of(delays.buckets))
    step = BudgetPart("resolution", "bound", resolution_ns)
    return Budgets(
        mean=(BudgetPart("jitter", "standard", math.sqrt(variance_ns2)), step),
        deviation=(
            BudgetPart("repeatability", "standard", delays.deviation_ns * relative),
            BudgetPart("resolution", "bound", resolution_ns / math.sqrt(12)),
        ),
        peak_to_peak=(step,),
    )
