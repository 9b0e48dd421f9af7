# SPDX-License-Identifier: Apache-2.0
"""A keyword that measures a clock while the data-acquisition pattern is replayed."""

from __future__ import annotations

from pathlib import Path

from robot.api import SkipExecution

from resources.clock_sync.keywords import clock_library
from resources.daq_replay.clock_networks import network_trials
from resources.keywords.converters import Phase
from resources.keywords.robot_api import keyword, library
from resources.names import ClockStack


@library(scope="SUITE", version="1")
class ClockBesidePatternLibrary:
    """Measure a clock beside the pattern. Needs `ClockSyncLibrary`, whose references have been started."""

    @keyword
    def clock_should_stay_within_its_limit_beside_the_pattern(
        self, clock: ClockStack, pattern: Path, phase: Phase = "aligned-12"
    ) -> None:
        """Measure a clock while the data-acquisition pattern is replayed into the target.

        Once its packets go over the pattern's network, once over the control network, as the profile says;
        skipped where it names none.

        Args:
            clock: A stack whose packets can take either network: `chrony`, `ntp-user`.
            pattern: The pattern file, such as `traffic-gen/patterns/daq12.toml`.
            phase: How its streams begin.
        """
        clocks = clock_library()
        requirement, lab = clocks.requirement(clock), clocks.lab
        if not lab.times.networks:
            raise SkipExecution(f"profile {lab.profile.name} measures no clock beside the pattern")
        with clocks.judge.unset_on_error(requirement, "pattern"):
            trials = network_trials(lab, requirement, pattern, phase)
        clocks.judge.judge(trials, requirement)
