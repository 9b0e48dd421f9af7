# SPDX-License-Identifier: Apache-2.0
"""A clock while the data-acquisition pattern is replayed: over the pattern's network, and over another.

Whether time should share the network of the data is a decision of every facility (DAQ paper, section 5); here
both are measured under the same traffic.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hw.errors import CapabilityError, MeasurementError
from reports.clock_sync.trial import ClockTrial
from reports.requirements import Requirement
from resources.clock_sync.lab import ClockLab
from resources.clock_sync.settings import ClockSettings
from resources.clock_sync.stack import ClockStack
from resources.clock_sync.trial import TrialSettings
from resources.daq_replay.pattern import load_pattern
from resources.daq_replay.plan import ReplaySettings
from resources.daq_replay.replay import Replay

NETWORKS = {
    "same": "pattern, time on the same network",
    "separate": "pattern, time on a separate network",
}
"""Conditions as records name them, by the word of the profile."""
BESIDE_MS = 15_000
"""The pattern lasts so much longer than the trial: its tools have to start and end."""


def network_trials(lab: ClockLab, requirement: Requirement, pattern: Path, phase: str) -> list[ClockTrial]:
    """Measure one stack under the pattern on each network of the profile.

    Args:
        lab: An open lab.
        requirement: Names the stack, and the deadline of its lock.
        pattern: The pattern file.
        phase: As in a replay: `aligned-12` is the worst case.

    Raises:
        CapabilityError: The stack's packets cannot take another network than the target's test interface.
        MeasurementError: It did not lock, or the trial did not come to its end.
    """
    settings = ReplaySettings(
        pattern=pattern, phase=phase, duration_ms=lab.times.measure_s * 1000 + BESIDE_MS
    )
    trials: list[ClockTrial] = []
    for network in lab.times.networks:
        lab.progress(f"{requirement.of}: {NETWORKS[network]}")
        folder = lab.folder / f"{requirement.of}-pattern-{network}-network"
        replay = Replay(
            lab.bench, lab.target, load_pattern(pattern, phase), settings, folder / "replay", _say_nothing
        )
        trials.append(_trial_beside(lab, requirement, network, replay, folder))
    return trials


def _trial_beside(
    lab: ClockLab, requirement: Requirement, network: str, replay: Replay, folder: Path
) -> ClockTrial:
    """Measure while a replay counts; it has the responders of two-way transfer for itself meanwhile."""
    settings = ClockSettings(server_address=server_address(lab, requirement.of, network))
    with ClockStack(lab.bench, lab.target, requirement.of, settings, folder, lab.progress) as stack:
        lock = stack.wait_locked(requirement.lock_within_s)
        facts = replace(lab.facts(stack, "pattern", lock), load=NETWORKS[network])
        trials: list[ClockTrial] = []

        def measure(_counting_s: float) -> None:
            settings = TrialSettings(lab.times.measure_s, sequential=False, two_way=False)
            trials.append(lab.measured(stack, facts, settings, folder))

        replay.during = measure
        replay.run()
    if not trials:
        raise MeasurementError(f"{requirement.of}: nothing was measured beside the pattern")
    return trials[0]


def _say_nothing(_line: str) -> None:
    """Take a replay's progress: of a load nobody wants to hear."""


def server_address(lab: ClockLab, clock: str, network: str) -> str:
    """Return the time server's address on a network; empty: that of the bench file.

    Raises:
        CapabilityError: The stack or the bench knows no other network.
    """
    if network == "same":
        return ""
    stack = lab.stack_spec(clock)
    if stack.multicast or stack.needs_phc:
        raise CapabilityError(f"clock {clock}: its packets go over the target's test interface only")
    spec = lab.bench.spec
    name = spec.nodes[lab.server.node].clock
    if name not in spec.clocks:
        raise CapabilityError(
            f"bench {spec.name}: the time server's clock {name!r} has no address on the control network;"
            f" add it to benchwright.clocks of {spec.path}"
        )
    return spec.clocks[name].address
