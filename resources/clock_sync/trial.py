# SPDX-License-Identifier: Apache-2.0
"""One trial of a clock on a target: measure it against the timecard while two other witnesses watch.

The servo says what it believes, the timecard in the target says what is true, two-way time transfer over the
control network says so independently with a wider bound (DAQ paper, section 5; paper on distributed control
loops, 4.1.3).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from hw.bench import TargetSpec
from hw.errors import CapabilityError, MeasurementError
from hw.open_bench import Nodes
from hw.protocols import Job
from reports.clock_sync.trial import (
    FILTERED,
    SEQUENTIAL,
    WITNESS,
    ClockTrial,
    Timecard,
    TrialFacts,
    TwoWay,
    load_trial,
    phc_read_file,
    write_trial,
)
from reports.clock_sync.two_way_reference import TWO_WAY
from resources.clock_sync.command import clock_command
from resources.clock_sync.lines import measure_clock_lines, serve_clocks
from resources.clock_sync.settings import SYSTEM_CLOCK
from resources.clock_sync.two_way_trial import measure_by_two_way
from resources.tools.experiment import Experiment
from resources.tools.witness import add_witness

TWO_WAY_MS = 2500
PAUSE_MAX_US = 1000
"""The random pause between samples, as in the paper's program: samples fall on no period of the clock."""
FILTER_NS = 20_000
"""Brackets wider than this are of a program that was interrupted."""
SERIES_INTERVAL_MS = 100
PHC_READ_MS = 5000
NO_CAPABILITY = 3
ENDING_S = 30.0
"""What a tool may take beside its measurement."""
CLOCK_PRIORITY = 10
"""Of the comparing program on the target: above ordinary work, below everything that serves packets."""


@dataclass(frozen=True)
class TrialSettings:
    """How a trial is measured."""

    duration_s: int
    iterations: int = 0
    """It ends with so many, if they come before its time is over; 0: it lasts as long as that."""
    sequential: bool = True
    """Measure with the paper's sequential reading too."""
    two_way: bool = True
    phc_reads: tuple[str, ...] = ()
    """Of a PHC as reference: the ways in which it is read besides, in this order."""


def reference_of(target: TargetSpec) -> Timecard:
    """Return what a target's clock is held against: its timecard, or else two-way time transfer."""
    if target.timecard is None:
        return Timecard(TWO_WAY, 0, "the control network, by two-way transfer")
    return timecard_of(target)


def with_counter_timecard(target: TargetSpec) -> TargetSpec:
    """Return a target as it is for clocks that two-way transfer cannot ask."""
    return target if target.timecard is not None else replace(target, timecard=target.counter_timecard)


def timecard_of(target: TargetSpec) -> Timecard:
    """Return the timecard in a target.

    Raises:
        CapabilityError: It has none.
    """
    if target.timecard is None:
        raise CapabilityError(
            f"target {target.kind}: no timecard: its clock cannot be measured; add benchwright.targets."
            f"{target.kind}.timecard to the bench file"
        )
    card = target.timecard
    return Timecard(card.clock, card.bound_ns, card.synchronised_over)


def measure_trial(
    bench: Nodes,
    target: TargetSpec,
    facts: TrialFacts,
    settings: TrialSettings,
    folder: Path,
    during: Callable[[], None] | None = None,
) -> ClockTrial:
    """Measure a target's clock against its timecard, or by two-way transfer alone, and write the evidence.

    Args:
        bench: An open bench whose timecards are served.
        target: Whose clock is measured.
        facts: What is known of the trial beforehand; two-way transfer is filled in.
        settings: How long, and what else.
        folder: Evidence goes here.
        during: Called while it is measured: what disturbs the clock. It may take longer than the measurement.

    Raises:
        CapabilityError: Nothing on this target can tell how far off such a clock is.
        BenchError: A tool did not start or end.
        MeasurementError: A tool came to no result.
    """
    if facts.timecard.clock == TWO_WAY and facts.device != SYSTEM_CLOCK:
        raise CapabilityError(
            f"target {target.kind}: no timecard, and two-way transfer sees the system's clock alone, not"
            f" {facts.device!r}"
        )
    folder.mkdir(parents=True, exist_ok=True)
    if facts.timecard.clock == TWO_WAY:
        return measure_by_two_way(bench, target, facts, settings.duration_s, folder)
    command = clock_command(
        bench, target.node, "compare", device=facts.device, reference=facts.timecard.clock
    )
    reads = {FILTERED: ["--read", "filtered", "--filter-ns", str(FILTER_NS)]}
    if settings.sequential:
        reads[SEQUENTIAL] = ["--read", "sequential"]
    with Experiment(bench) as experiment:
        witness = add_witness(experiment, folder / Path(WITNESS).stem, settings.duration_s * 1000)
        jobs: list[Job] = []
        for file, options in reads.items():
            argv = [*command, *options, "--duration-ms", str(settings.duration_s * 1000)]
            argv += ["--iterations", str(settings.iterations)] if settings.iterations else []
            argv += ["--pause-max-us", str(PAUSE_MAX_US), "--series-interval-ms", str(SERIES_INTERVAL_MS)]
            argv += ["--priority", str(CLOCK_PRIORITY)]
            jobs.append(experiment.start(target.node, argv, folder / Path(file).stem))
        experiment.wait_ready(jobs)
        if settings.two_way:
            try:
                facts = replace(facts, two_way=_two_way(bench, target, folder))
            except MeasurementError as error:
                # The other two witnesses do not need the third; that it is missing is said.
                facts = replace(facts, remarks=(*facts.remarks, f"two-way transfer: {error}"))
        if during is not None:
            during()
        answers = [experiment.collect(job, settings.duration_s + ENDING_S) for job in jobs]
        for answer in answers:
            answer.require_done()
        if witness:
            witness.wait(ENDING_S)
    for way in settings.phc_reads:
        _read_phc(bench, target, facts, way, folder)
    write_trial(folder, facts)
    return load_trial(folder)


def _read_phc(bench: Nodes, target: TargetSpec, facts: TrialFacts, way: str, folder: Path) -> None:
    """Compare with a PHC that is read in one way; a way that it does not offer leaves no answer."""
    argv = clock_command(bench, target.node, "compare", device=facts.device, reference=facts.timecard.clock)
    argv += ["--phc-read", way, "--read", "bracketed", "--duration-ms", str(PHC_READ_MS)]
    argv += ["--pause-max-us", str(PAUSE_MAX_US), "--priority", str(CLOCK_PRIORITY)]
    stem = folder / phc_read_file(way).removesuffix(".ndjson")
    with Experiment(bench) as experiment:
        job = experiment.start(target.node, argv, stem)
        if job.wait(PHC_READ_MS / 1000 + ENDING_S) != NO_CAPABILITY:
            experiment.collect(job, ENDING_S).require_done()
            return
        job.fetch().unlink()


def _two_way(bench: Nodes, target: TargetSpec, folder: Path) -> TwoWay | None:
    """Return the target's offset to the time server by two-way transfer; None where a clock cannot be asked.

    Both are measured against the bench's reference clock at the same time; their difference counts.
    """
    spec = bench.spec
    if spec.time_server is None:
        return None
    own, server = spec.nodes[target.node].clock, spec.nodes[spec.time_server.node].clock
    if own not in spec.clocks or server not in spec.clocks:
        return None
    names = [own, server]
    with Experiment(bench) as experiment:
        for job in serve_clocks(bench, names, TWO_WAY_MS + 60_000, folder / "two-way"):
            experiment.add(job)
        lines = measure_clock_lines(bench, names, TWO_WAY_MS, folder / "two-way")
    mine, theirs = lines[own], lines[server]
    end_ns = max(mine.at_reference_tai_ns, theirs.at_reference_tai_ns)
    begin_ns = end_ns - TWO_WAY_MS * 1_000_000
    middle_ns = (begin_ns + end_ns) // 2
    offset_ns = mine.local_ns(middle_ns) - theirs.local_ns(middle_ns)
    return TwoWay(
        offset_ns=offset_ns,
        bound_ns=mine.bound_ns + theirs.bound_ns,
        from_tai_ns=theirs.local_ns(begin_ns),
        to_tai_ns=theirs.local_ns(end_ns),
    )
