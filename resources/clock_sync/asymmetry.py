# SPDX-License-Identifier: Apache-2.0
"""Trials over a path that is asymmetric by a known delay, by turns with trials over the path as it is."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from hw.path_settings import PathSettings
from hw.paths import time_server_path
from reports.clock_sync.trial import ClockTrial, Lock, write_trial
from reports.requirements import Requirement
from resources.clock_sync.lab import ClockLab
from resources.clock_sync.stack import ClockStack
from resources.clock_sync.trial import TrialSettings
from resources.tools.capture import both_ways_ns, capture_file, start_capture
from resources.tools.jobs import end_job

ASYMMETRY_INTERVAL_S = 0.125
"""Between synchronisations over an asymmetric path: often, so that a trial's mean holds little noise.

chrony only does so where a round trip takes less than 10 ms (chrony.conf(5), minpoll).
"""
ASYMMETRY_SETTLING_S = 10


def asymmetry_trials(
    lab: ClockLab, requirement: Requirement, asymmetry_us: int
) -> list[tuple[ClockTrial, ClockTrial]]:
    """Measure by turns without and with a delay on the way from the time server alone.

    The stack starts anew for each turn: a servo that knows its path rejects answers that suddenly take
    longer (chrony.conf(5), maxdelaydevratio).

    Returns:
        Pairs of trials, without and with it.
    """
    lab.end_kept()
    router = lab.bench.router()
    path = time_server_path(lab.bench.spec, lab.target.node)
    folder = lab.folder / f"{requirement.of}-asymmetry"
    delays_us = (0, asymmetry_us)
    trials: dict[tuple[int, int], ClockTrial] = {}
    turns = [(number, delay_us) for number in range(lab.times.alternations) for delay_us in delays_us]
    try:
        for number, delay_us in turns:
            router.configure([path], PathSettings(delay_us=delay_us))
            place = folder / f"pair-{number + 1}-{delay_us}-us"
            with lab.running(requirement.of, place, ASYMMETRY_INTERVAL_S) as stack:
                lock = stack.wait_locked(requirement.lock_within_s)
                stack.keep_running(ASYMMETRY_SETTLING_S)
                trials[number, delay_us] = _asymmetric(lab, stack, lock, delay_us, place)
    finally:
        router.clear()
    return [(trials[n, 0], trials[n, asymmetry_us]) for n in range(lab.times.alternations)]


def _asymmetric(lab: ClockLab, stack: ClockStack, lock: Lock, delay_us: int, place: Path) -> ClockTrial:
    """Measure one turn; see what the delay really is, where both ends of the impairment node are seen."""
    lab.progress(f"{stack.name}: path asymmetric by {delay_us} us; measuring")
    place.mkdir(parents=True, exist_ok=True)
    facts = replace(lab.facts(stack, "asymmetry", lock), impairment=f"{delay_us} us one way")
    settings = TrialSettings(lab.times.measure_s, sequential=False)
    ends = lab.bench.virtual.capture_ends(lab.server.node, lab.target)
    with ExitStack() as captures:
        for interface in ends:
            captures.callback(end_job, start_capture(lab.bench, interface, place))
        trial = lab.measured(stack, facts, settings, place)
    if not ends:
        return trial
    transit_ns, asymmetry_ns = both_ways_ns(*(capture_file(place, interface) for interface in ends))
    facts = replace(trial.facts, server_to_target_ns=transit_ns, asymmetry_ns=asymmetry_ns)
    write_trial(trial.folder, facts)
    return replace(trial, facts=facts)
