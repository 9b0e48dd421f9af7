# SPDX-License-Identifier: Apache-2.0
"""Keyword of the largest pattern: how many producers the target takes within their budgets."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from robot.libraries.BuiltIn import BuiltIn

from reports import current_run
from reports.largest_pattern.capability import QUANTITY
from reports.largest_pattern.search import LargestPattern, largest_pattern_measurement
from reports.run.current import judges
from reports.units import format_value
from resources.daq_replay.keywords import DaqReplayLibrary
from resources.daq_replay.largest_pattern import LargestPatternSearch
from resources.daq_replay.pattern import load_pattern
from resources.daq_replay.plan import ReplaySettings
from resources.daq_replay.requirements import load_requirements
from resources.keywords.bench import say
from resources.keywords.judged import keep, require_passed, running_test
from resources.keywords.requirement_scope import RequirementScope
from resources.keywords.robot_api import keyword, library
from resources.moved import present
from resources.requirements_file import load_requirements_file

NAMES = frozenset({"largest-pattern", "Find Largest Pattern"})
"""A test that looks for it has this tag, or this keyword."""


@library(scope="SUITE", version="1", listener="SELF")
class LargestPatternLibrary(RequirementScope):
    """Find how many producers of a pattern a target takes, after `DaqReplayLibrary` has replayed it once."""

    def __init__(self, requirements: Path, budgets: Path) -> None:
        """Remember the files.

        Args:
            requirements: How many producers there have to be at least, such as
                `robot/daq_replay/requirements/largest_pattern.toml`.
            budgets: Requirements file with the streams' budgets that trials are judged by; of producers
                without a stream in it none takes part.
        """
        self._requirements_path = present(requirements)
        self._budgets_path = present(budgets)

    def selected(self, named: Collection[str]) -> Iterable[tuple[Path, Collection[str]]]:
        """Say that the suite asks for a number of producers where one of its tests looks for it."""
        if NAMES & {*named}:
            [requirement] = load_requirements_file(self._requirements_path, QUANTITY).requirements
            yield self._requirements_path, [requirement.id]

    @keyword
    def find_largest_pattern(self, pattern: Path) -> None:
        """Find the largest number of producers that the target takes within their budgets, by bisection.

        The replay before is the first trial. Writes the record, fails unless the outcome is `pass`; the
        message begins with `FAIL:`, `INCONCLUSIVE:` or `UNSET:`.

        Args:
            pattern: Pattern file, that of the replay before.
        """
        [requirement] = load_requirements_file(self._requirements_path, QUANTITY).requirements
        judges(requirement.id)
        replayed: Any = BuiltIn().get_library_instance("resources.daq_replay.keywords.DaqReplayLibrary")
        evidence = replayed.evidence if isinstance(replayed, DaqReplayLibrary) else None
        assert evidence is not None
        budgets = load_requirements(self._budgets_path)
        run = current_run()
        phase = evidence.attempts[-1].judged.recv.phase if evidence.attempts else "aligned-12"
        loaded = load_pattern(pattern, phase)
        budgets.check_pattern(loaded)
        search = LargestPatternSearch(evidence, loaded, ReplaySettings(pattern, phase), budgets, run, say)
        found = search.run()
        _say_trials(found)
        context = search.context(running_test())
        record = largest_pattern_measurement(found, requirement.id, requirement.limit, context)
        keep([record])
        require_passed([record])


def _say_trials(found: LargestPattern) -> None:
    for trial in found.trials:
        worst = trial.worst
        margin = (
            "" if worst is None else f", worst margin {format_value(worst.margin_ns, 'ns')} of {worst.id}"
        )
        say(f"{trial.size} producers: {trial.outcome}, {trial.over_budget} of {trial.messages} over{margin}")
    say(f"largest pattern within the budgets: {found.confidence}")
