# SPDX-License-Identifier: Apache-2.0
"""Keywords that let network stacks carry the pattern by turns, and judge their differences."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from hw.errors import CapabilityError, ConfigError, MeasurementError
from reports import Conditions, Measurement, Subject, current_run
from reports.errors import RecordError
from reports.record.context import Context
from reports.record.measurement import NumberedCondition
from reports.requirements import Requirement
from reports.run.current import judges
from reports.run.robot_variable import robot_variable
from reports.stacks.capability import QUANTITIES
from reports.stacks.compare import Compared, Comparison
from reports.stacks.evidence import FOLDER, STACKS, StackTurns
from reports.stacks.verdict import asked, axes_of, difference_measurement, load_comparison
from resources.daq_replay.pattern import load_pattern
from resources.daq_replay.plan import ReplaySettings
from resources.keywords.bench import bench_library, say
from resources.keywords.converters import Phase
from resources.keywords.judged import keep_judged, running_test
from resources.keywords.requirement_scope import RequirementScope
from resources.keywords.robot_api import keyword, library
from resources.names import Profile
from resources.network_stack import network_stack_of
from resources.profiles import times_of
from resources.requirements_file import load_requirements_file
from resources.stacks.conditions import CONDITIONS, why_not
from resources.stacks.settings import (
    SEED_MAX,
    TIMES,
    StackTimes,
    checked_seed,
    compared_names,
    stack_times,
)
from resources.stacks.turns import AskedTurns, TurnMaker, common_pattern

DRAWN = "drawn"
"""In the place of a seed: one that is drawn now."""


@library(scope="SUITE", version="1", listener="SELF")
class StacksLibrary(RequirementScope):
    """Let network stacks carry short replays of a pattern by turns, and judge how they differ.

    By how much the second stack of a pair may be worse than the first: docs/stacks.md.
    """

    def __init__(self, requirements: Path, pattern: Path) -> None:
        """Name the requirements and the pattern.

        Args:
            requirements: File such as `robot/stacks/requirements/stacks_native.toml`.
            pattern: Pattern file, such as `traffic-gen/patterns/daq12.toml`.
        """
        self._path = requirements
        self._pattern_path = pattern
        self._profile = ""
        self._left_out: dict[str, str] = {}
        self._folder = Path()
        self._kept: StackTurns | None = None
        self._found: Comparison | None = None

    def selected(self, named: Collection[str]) -> Iterable[tuple[Path, Collection[str]]]:
        """Say that a suite asks what its profile measures, of the conditions that its tests name."""
        asked_for, _ = self._asked(robot_variable("PROFILE"))
        yield self._path, [each.id for each in asked_for if each.of in named]

    @keyword
    def compare_stacks(
        self,
        target: str,
        stacks: str,
        profile: Profile,
        phase: Phase = "aligned-12",
        seed: str = DRAWN,
    ) -> None:
        """Let each stack carry short replays of the pattern, by turns, as often as the profile says.

        Streams that one of the stacks does not carry are left out of every turn. A stack that this machine
        cannot have is left out by name; of fewer than two the suite is skipped.

        Args:
            target: Name of the target under `benchwright.targets` of the bench file.
            stacks: Names of at least two, with blanks between; the first is the first of each pair.
            profile: `ci`, `nightly`, …: how many rounds, how long, under which conditions.
            phase: How streams begin: the largest of each producer at once, all, one after the other.
            seed: By which the order of turns is drawn; `drawn`: another one each time. Evidence has it.
        """
        library = bench_library()
        spec = library.target(target)
        times = times_of(profile, TIMES, stack_times)
        drawn = secrets.randbelow(SEED_MAX) if seed == DRAWN else checked_seed(seed)
        named = [network_stack_of(spec, name) for name in compared_names(stacks)]
        self._profile, self._folder = profile, current_run().evidence_folder(FOLDER, target)
        if others := self._asked(profile)[1]:
            say(f"not of profile {profile}: {', '.join(others)}")
        producers = {each.node for each in library.bench.spec.producers.values()}
        library.power_on({spec.node, *producers})
        nodes = [spec.node, *sorted(producers)]
        whys = {each: why_not(each, library.bench, nodes) for each in times.conditions}
        self._left_out = {each: why for each, why in whys.items() if why}
        for each, why in self._left_out.items():
            say(f"{each} is left out: {why}")
        if len(self._left_out) == len(whys):
            raise CapabilityError("; ".join(self._left_out.values()))
        times = replace(times, conditions=tuple(each for each, why in whys.items() if not why))
        maker = TurnMaker(library.bench, spec, self._folder, say)
        possible = maker.possible(named)
        pattern, refused = common_pattern(load_pattern(self._pattern_path, phase), possible)
        for why in dict.fromkeys(refused.values()):
            say(f"left out of every turn: {why}")
        settings = ReplaySettings(
            pattern=self._pattern_path,
            phase=phase,
            warmup_ms=times.warmup_ms,
            duration_ms=times.duration_ms,
            grace_ms=times.grace_ms,
        )
        self._kept = maker.run(AskedTurns(possible, pattern, settings, times, drawn))
        self._found = self._read()
        for each in self._found.compared:
            say(f"{each.condition}, {each.pair}, {each.stream_type}, {each.statistic}: {each.words}")

    def _read(self) -> Comparison:
        try:
            return load_comparison(self._folder)
        except RecordError as error:
            raise MeasurementError(str(error)) from error

    @keyword
    def differences_should_be_within_their_limits(self, condition: str) -> None:
        """Judge every pair of stacks and type of streams by each requirement of the file under a condition.

        Fails unless all outcomes are `pass`; the message begins with `FAIL:`, `INCONCLUSIVE:` or `UNSET:`.

        Args:
            condition: Such as `idle`.
        """
        requirements = [each for each in self._asked(self._profile)[0] if each.of == condition]
        if self._found is None:
            raise MeasurementError("nothing was compared: call `Compare Stacks` first")
        judges(*(each.id for each in requirements))
        if condition in self._left_out:
            raise CapabilityError(f"{condition}: {self._left_out[condition]}")
        if not requirements:
            raise CapabilityError(f"profile {self._profile} has no requirement under {condition}")
        keep_judged([each for one in requirements for each in self._judged(one)], self._profile)

    def _judged(self, requirement: Requirement) -> Sequence[Measurement | str]:
        """Return the records of a requirement, one for each pair and type, or why there is none."""
        assert self._found is not None
        compared = asked(self._found, requirement.quantity, requirement.statistic, requirement.of)
        if not compared:
            return [f"{requirement.id}: no turn under {requirement.of} counts"]
        return [
            difference_measurement(
                each, requirement.id, requirement.limit, requirement.samples, self._context(each)
            )
            for each in compared
        ]

    def _context(self, compared: Compared) -> Context:
        assert self._kept is not None
        run, bench = current_run(), bench_library().bench.spec
        files = [self._folder / STACKS, *(self._folder / each.file for each in self._kept.turns)]
        numbers = {"rounds": compared.rounds, "taken": compared.taken, "lost_in_turns": compared.lost}
        return Context(
            run_id=run.run_id,
            test=running_test(),
            subject=Subject(bench.name, self._kept.target, axes=axes_of(compared)),
            conditions=Conditions(
                self._profile,
                load=compared.condition,
                numbers=tuple(NumberedCondition(*each) for each in numbers.items()),
            ),
            simulated=bench.simulated,
            evidence=tuple(run.evidence(file) for file in files),
        )

    def _asked(self, profile: str) -> tuple[list[Requirement], list[str]]:
        """Return the requirements under conditions of a profile, and the ids of the others.

        Raises:
            ConfigError: One is under what is no condition.
        """
        every = load_requirements_file(self._path, *QUANTITIES).requirements
        for each in every:
            if each.of not in CONDITIONS:
                allowed = ", ".join(CONDITIONS)
                raise ConfigError(f"{self._path}: {each.id}.under: {each.of!r}; allowed: {allowed}")
        times: StackTimes = times_of(profile, TIMES, stack_times)
        own = [each for each in every if each.of in times.conditions]
        return own, [each.id for each in every if each not in own]
