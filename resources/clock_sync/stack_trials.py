# SPDX-License-Identifier: Apache-2.0
"""Trials of a clock stack: synchronised, at several intervals, under load, in holdover, after a step."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from hw.errors import CapabilityError
from reports.clock_sync.disturbance import Disturbance, Event, write_disturbance
from reports.clock_sync.trial import PHC_READS, ClockTrial
from reports.requirements import Requirement
from reports.units import NS_PER_S
from resources.clock_sync.lab import ClockLab, lock_deadline_s, trial_facts
from resources.clock_sync.trial import TrialSettings, measure_trial, reference_of
from resources.clock_sync.two_way_trial import measure_by_two_way
from resources.loads.kinds import LoadKind, NetworkLoad, load_of
from resources.loads.load import Load
from resources.tools.experiment import Experiment

WRONG_CLOCK_S = 3
NETWORK_LOAD_MBIT = 200
"""A fifth of the link: load, not a test of what the target can take."""
LOAD_MORE_S = 60
"""By how much a load is longer than what is measured, where nobody ends it."""


def as_found_trial(lab: ClockLab, requirement: Requirement) -> ClockTrial:
    """Measure the clock as the machine itself keeps it; nothing is put on it.

    Without a timecard it is held against the bench's reference clock.
    """
    lab.end_kept()
    lab.progress(f"{requirement.of}: measuring")
    facts = trial_facts(requirement.of, "sync", lab.timecard)
    settings = TrialSettings(lab.times.measure_s, sequential=False)
    return measure_trial(lab.bench, lab.target, facts, settings, lab.folder / requirement.of)


def wrong_clock_trial(lab: ClockLab, node: str) -> ClockTrial:
    """Measure another node's clock, known to be wrong, as that of a target without timecard.

    Raises:
        CapabilityError: The bench has no such node.
    """
    spec = lab.bench.spec
    if node not in spec.nodes:
        raise CapabilityError(f"bench {spec.name}: no node {node!r}, whose clock would be wrong")
    lab.bench.power_on([node])
    other = replace(lab.target, node=node, timecard=None)
    facts = trial_facts(spec.nodes[node].clock, "known error", reference_of(other))
    folder = lab.folder / "known-error"
    return measure_by_two_way(lab.bench, other, facts, WRONG_CLOCK_S, folder, witness=False)


def locked_trial(
    lab: ClockLab,
    requirement: Requirement,
    interval_s: float | None = None,
    settings: TrialSettings | None = None,
    during: Callable[[], None] | None = None,
) -> ClockTrial:
    """Put a stack on the target, wait for its lock, and measure; it stays until another one is put on.

    Args:
        lab: Where.
        requirement: Names the stack, and by when it has to lock.
        interval_s: Between synchronisations; None: the stack's own.
        settings: How it is measured; None: for as long as the profile says.
        during: Called while it is measured.

    Raises:
        MeasurementError: It did not lock in time, or a daemon died; the text names the cause.
    """
    folder = lab.folder / requirement.of
    with ExitStack() as own:
        stack = own.enter_context(lab.running(requirement.of, folder, interval_s))
        lock = stack.wait_locked(lock_deadline_s(requirement, stack))
        locked_s = time.monotonic()
        lab.progress(f"{requirement.of}: locked after {lock.after_s:.1f} s; measuring")
        facts = lab.facts(stack, "sync", lock)
        settings = settings or TrialSettings(lab.times.measure_s)
        # It follows the PHC, of which two-way transfer with the server knows nothing.
        if stack.spec.follows_phc:
            settings = replace(settings, two_way=False, phc_reads=PHC_READS)
        trial = lab.measured(stack, facts, settings, folder, during)
        lab.keep(stack, lock, locked_s, own.pop_all())
        return trial


def load_trials(lab: ClockLab, requirement: Requirement) -> list[ClockTrial]:
    """Measure one stack under each load of the profile (paper on control loops, 4.3.2.2)."""
    trials: list[ClockTrial] = []
    for load in lab.times.loads:
        folder = lab.folder / f"{requirement.of}-under-{load}-load"
        with lab.running(requirement.of, folder) as stack:
            lock = stack.wait_locked(requirement.lock_within_s)
            with Experiment(lab.bench) as experiment:
                running = Load(lab.bench, load_on_target(lab, load), folder)
                running.start(experiment)
                lab.progress(f"{requirement.of}: locked; measuring under {load} load")
                facts = replace(lab.facts(stack, "load", lock), load=load)
                trials.append(lab.measured(stack, facts, TrialSettings(lab.times.measure_s), folder))
                running.end()
    return trials


def load_on_target(lab: ClockLab, kind: str) -> LoadKind:
    """Return a load of the profile on the target: every processor busy, writes, TCP from producer 1.

    Raises:
        ConfigError: No such load.
        CapabilityError: The bench has no producer that could send.
    """
    parameters: dict[str, int | str] = {}
    if kind == NetworkLoad.kind:
        spec = lab.bench.spec
        if 1 not in spec.producers:
            raise CapabilityError(f"bench {spec.name}: no producer 1 that could load the network")
        parameters = {
            "sender": spec.producers[1].node,
            "address": lab.target.test_address,
            "rate_mbit": NETWORK_LOAD_MBIT,
        }
    return load_of(kind, lab.target.node, lab.times.measure_s + LOAD_MORE_S, parameters)


def interval_trials(lab: ClockLab, requirement: Requirement) -> list[ClockTrial]:
    """Measure one stack at each synchronisation interval of the profile (DAQ paper, Table 2)."""
    trials: list[ClockTrial] = []
    for interval_s in lab.times.intervals_s:
        folder = lab.folder / f"{requirement.of}-every-{interval_s}-s"
        with lab.running(requirement.of, folder, interval_s) as stack:
            lock = stack.wait_locked(lock_deadline_s(requirement, stack))
            real_s = stack.settings.sync_interval_s
            lab.progress(f"{requirement.of}: locked, synchronising every {real_s:g} s; measuring")
            facts = lab.facts(stack, "interval", lock)
            settings = TrialSettings(lab.times.interval_measure_s, two_way=False)
            trials.append(lab.measured(stack, facts, settings, folder))
    return trials


def holdover_trial(
    lab: ClockLab,
    requirement: Requirement,
    synchronised_s: int = 0,
    settings: TrialSettings | None = None,
    interval_s: float | None = None,
) -> ClockTrial:
    """Synchronise for a while, cut the target off from its server, and measure (Table 2, `No sync`).

    Args:
        lab: Where.
        requirement: Names the stack, and by when it has to lock.
        synchronised_s: How long it is synchronised; 0: as the profile says.
        settings: How it is measured then; None: for as long as the profile says.
        interval_s: Between synchronisations; None: the stack's own.
    """
    folder = lab.folder / f"{requirement.of}-holdover"
    settings = settings or TrialSettings(lab.times.holdover_s)
    synchronised_s = synchronised_s or lab.times.synchronised_s
    with lab.locked(requirement, folder, interval_s) as (stack, lock, locked_s):
        lab.progress(f"{requirement.of}: locked; synchronised for {synchronised_s} s")
        stack.keep_running(max(0.0, locked_s + synchronised_s - time.monotonic()))
        stack.cut_off()
        lab.progress(f"{requirement.of}: cut off; holdover for {settings.duration_s} s")
        facts = replace(lab.facts(stack, "holdover", lock), interval_s=None)
        return lab.measured(stack, facts, replace(settings, two_way=False), folder)


def relock(lab: ClockLab, requirement: Requirement, step_ns: int) -> Path:
    """Step the target's clock, start the stack and wait for its lock, as often as the profile says.

    Returns:
        The folder with the times to lock (`disturbance.json`).

    Raises:
        MeasurementError: It did not lock again in time.
    """
    lab.end_kept()
    folder = lab.folder / f"{requirement.of}-relock"
    node = lab.bench.node(lab.target.node)
    events: list[Event] = []
    for number in range(lab.times.relocks):
        size_ns = step_ns if number % 2 else -step_ns
        node.run(["bw-setclock", "--step-ns", str(size_ns)])
        with lab.running(requirement.of, folder) as stack:
            lock = stack.wait_locked(requirement.lock_within_s)
        events.append(Event(f"clock put off by {size_ns / NS_PER_S:+g} s, stack started", 0, lock, ""))
    write_disturbance(folder, Disturbance(requirement.of, "relock", tuple(events)))
    return folder
