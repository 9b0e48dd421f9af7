# SPDX-License-Identifier: Apache-2.0
"""Keywords that provision a target again and again, cut its power, and count what differs then."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from pathlib import Path
from random import Random

from hw.errors import CapabilityError, ConfigError, MeasurementError
from reports import Conditions, Subject, current_run
from reports.provisioning.capability import QUANTITY, Event
from reports.provisioning.verdict import difference_measurement
from reports.record.context import Context
from reports.requirements import Requirement
from reports.run.current import judges
from resources.keywords.bench import bench_library, say
from resources.keywords.judged import keep, require_passed, running_test
from resources.keywords.requirement_scope import RequirementScope, of_subjects
from resources.keywords.robot_api import keyword, library
from resources.moved import present
from resources.names import Profile
from resources.profiles import times_of
from resources.provisioning.procedure import ProvisioningTrials, Round, differences_of
from resources.provisioning.settings import TIMES, ProvisioningTimes, provisioning_times
from resources.requirements_file import load_requirements_file

FOLDER = "provisioning"


@library(scope="SUITE", version="1", listener="SELF")
class ProvisioningLibrary(RequirementScope):
    """Try what provisioning promises: the same result each time, and a target as it was before.

    Differences are counted in facts and settings; a requirements file says how many there may be.
    """

    def __init__(self, requirements: Path) -> None:
        """Name the requirements.

        Args:
            requirements: File such as `robot/provisioning/requirements/provisioning.toml`.
        """
        self._path = present(requirements)
        self._trials: ProvisioningTrials | None = None
        self._rounds: dict[Event, list[Round]] = {}
        self._by_event: dict[Event, Requirement] = {}
        self._profile = self._target = ""

    def selected(self, named: Collection[str]) -> Iterable[tuple[Path, Collection[str]]]:
        """Say that the suite asks the requirements on events that its tests name; of none, none."""
        if events := {event.value for event in Event} & {*named}:
            subjects = {each.id: event.value for event, each in self._loaded().items()}
            yield self._path, of_subjects(subjects, events)

    @keyword
    def begin_provisioning_trials(self, target: str, profile: Profile) -> None:
        """Power a target on, undo what a killed run has left there, and read its facts.

        Args:
            target: Its name under `benchwright.targets` of the bench file.
            profile: How often it is tried.
        """
        self._by_event = self._loaded()
        self._profile, self._target = profile, target
        self._rounds = {}
        library = bench_library()
        spec = library.target(target)
        library.power_on([spec.node])
        library.restore_target(spec.kind)
        folder = current_run().evidence_folder(FOLDER, target)
        self._trials = ProvisioningTrials(library.bench, spec, folder, say)

    @keyword
    def provision_and_restore_repeatedly(self) -> None:
        """Provision the target, provision it again and restore it, as often as the profile says."""
        twice, restored = self._begun.provision_and_restore(self._times.repeats)
        self._rounds |= {Event.TWICE: twice, Event.RESTORE: restored}

    @keyword
    def cut_the_power_repeatedly(self) -> None:
        """Cut the power of the provisioned target and start it anew, as often as the profile says.

        Skips where the target's power cannot be switched, or the profile has no power cuts.
        """
        count = self._wanted(Event.POWER_CUT, "power_cuts", self._times.power_cuts)
        random = Random(self._times.seed)  # noqa: S311 - instants, no secrets
        rounds = self._rounds.setdefault(Event.POWER_CUT, [])
        for number in range(1, count + 1):
            rounds.append(self._begun.cut_power(number, random))

    @keyword
    def restart_repeatedly(self) -> None:
        """Have the provisioned target restart, as often as the profile says.

        Skips where it cannot restart, or the profile has no restarts.
        """
        count = self._wanted(Event.RESTART, "restarts", self._times.restarts)
        rounds = self._rounds.setdefault(Event.RESTART, [])
        for number in range(1, count + 1):
            rounds.append(self._begun.restart(number))

    @keyword
    def nothing_should_differ_after(self, event: Event) -> None:
        """Judge what differed after an event by its requirement, and record it.

        Fails unless the outcome is `pass`; the message begins with `FAIL:`, `INCONCLUSIVE:` or `UNSET:`.

        Args:
            event: After what: `twice`, `restore`, `power-cut`, `restart`.
        """
        requirement = self._requirement(event)
        rounds = self._rounds.get(event, [])
        times = self._times
        needed = {Event.POWER_CUT: times.power_cuts, Event.RESTART: times.restarts}.get(event, times.repeats)
        record = difference_measurement(
            differences_of(rounds), requirement.id, requirement.limit, needed, self._context(event, rounds)
        )
        keep([record], "nothing differs")
        require_passed([record])

    @keyword
    def end_provisioning_trials(self) -> None:
        """Keep the target's facts in the manifest, and give it back; harmless when no trial was begun."""
        if self._trials is None:
            return
        trials, self._trials = self._trials, None
        facts = json.loads(trials.untouched_facts)
        facts.pop("type", None)
        if self._target not in (current_run().manifest.target or {}):
            current_run().update(target={self._target: facts})
        trials.end()

    def _context(self, event: Event, rounds: list[Round]) -> Context:
        run, bench = current_run(), bench_library().bench.spec
        files = dict.fromkeys(path for each in rounds for path in each.evidence)
        return Context(
            run_id=run.run_id,
            test=running_test(),
            subject=Subject(bench.name, self._target, method=event.value),
            conditions=Conditions(self._profile),
            simulated=bench.simulated,
            evidence=tuple(run.evidence(path) for path in files),
        )

    def _loaded(self) -> dict[Event, Requirement]:
        found = load_requirements_file(self._path, QUANTITY).requirements
        return {Event(each.of): each for each in found}

    def _requirement(self, event: Event) -> Requirement:
        """Return the requirement on an event, which the running test judges; raises ConfigError."""
        if event not in self._by_event:
            raise ConfigError(f"{self._path}: there is no requirement with method {event.value!r}")
        judges(self._by_event[event].id)
        return self._by_event[event]

    def _wanted(self, event: Event, name: str, count: int) -> int:
        self._requirement(event)
        if not count:
            raise CapabilityError(f"profile {self._profile}: provisioning.{name} is 0")
        return count

    @property
    def _times(self) -> ProvisioningTimes:
        return times_of(self._profile, TIMES, provisioning_times)

    @property
    def _begun(self) -> ProvisioningTrials:
        if self._trials is None:
            raise MeasurementError("no trial was begun: call `Begin Provisioning Trials` first")
        return self._trials
