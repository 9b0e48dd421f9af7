# SPDX-License-Identifier: Apache-2.0
"""Keywords that measure the real-time baseline of a target, and judge it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from hw.errors import BenchwrightError, CapabilityError, ConfigError, MeasurementError
from hw.toml_file import read_toml
from reports import Conditions, Measurement, Subject, current_run
from reports.errors import ReportError
from reports.record.context import Context
from reports.record.measurement import AxisValue, NumberedCondition
from reports.requirements import Requirement
from reports.rt_baseline.capability import BESIDE, MAX, NOTHING, P9999, WAKEUP_LATENCY
from reports.rt_baseline.evidence import FOLDER, Wakeups, beside_of, evidence_files, folder_of, load_wakeups
from reports.rt_baseline.verdict import wakeup_measurement, worst_value
from reports.run.current import judges
from reports.run.robot_variable import robot_variable
from reports.units import format_value
from resources.keywords.bench import bench_library, say
from resources.keywords.judged import keep_judged, running_test
from resources.keywords.requirement_scope import RequirementScope
from resources.keywords.robot_api import keyword, library
from resources.moved import present
from resources.names import Profile
from resources.profiles import times_of
from resources.requirements_file import load_requirements_file
from resources.rt_baseline.settings import TIMES, baseline_times, checked_interval_us
from resources.rt_baseline.wakeup_trial import AskedWakeups, measure_wakeups

IDLE = "idle"
"""What records call no load."""
ALONE, LOADED = (
    "Wake Ups Should Be Within Their Limits",
    "Wake Ups Beside Loads Should Be Within Their Limits",
)


@library(scope="SUITE", version="1", listener="SELF")
class RtBaselineLibrary(RequirementScope):
    """Measure how late threads of a target wake up, idle and beside loads, and judge it.

    By cyclictest of rt-tests: a thread a CPU, of high priority, with its memory locked.
    """

    def __init__(self, requirements: Path) -> None:
        """Name the requirements.

        Args:
            requirements: File such as `robot/rt_baseline/requirements/rt_baseline_virtual.toml`.
        """
        self._path = present(requirements)
        self._profile = ""
        self._folder = Path()
        self._found: dict[str, Wakeups] = {}
        self._missing: dict[str, BenchwrightError] = {}

    def selected(self, named: Collection[str]) -> Iterable[tuple[Path, Collection[str]]]:
        """Say that a suite that judges wake-ups asks what its profile measures, of what its tests name."""
        asked, _ = self._asked(robot_variable("PROFILE"))
        names = [each.id for each in asked if (ALONE if each.of == NOTHING else LOADED) in named]
        yield self._path, names

    @keyword
    def measure_wake_ups(self, target: str, profile: Profile, interval_us: str) -> None:
        """Run cyclictest on the target while it is idle, and beside each load of the profile.

        A case that has no figure (cyclictest was killed, its histogram overflows) costs the others nothing.

        Args:
            target: Name of the target under `benchwright.targets` of the bench file.
            profile: `ci`, `nightly`, …: how many wake-ups, and beside which loads.
            interval_us: From one wake-up of a thread to the next.
        """
        library = bench_library()
        spec = library.target(target)
        times, interval = times_of(profile, TIMES, baseline_times), checked_interval_us(interval_us)
        self._profile, self._folder = profile, current_run().evidence_folder(FOLDER, target)
        _, others = self._asked(profile)
        if others:
            say(f"not of profile {profile}: {', '.join(others)}")
        for load in times.cases:
            asked = AskedWakeups(interval, times.cycles, times.histogram_us, load)
            say(f"{times.cycles} wake-ups a CPU of {target} beside {beside_of(load)}: {asked.within_s:.0f} s")
            folder = self._folder / folder_of(load)
            try:
                measure_wakeups(library.bench, spec, asked, folder)
                self._found[beside_of(load)] = _read(folder)
            except (CapabilityError, MeasurementError) as error:
                if not load and isinstance(error, CapabilityError):
                    raise
                self._missing[beside_of(load)] = error
                say(f"beside {beside_of(load)}: no figure: {error}")
                continue
            self._say(self._found[beside_of(load)])

    def _say(self, found: Wakeups) -> None:
        if found.load:
            say(f"{found.load.kind} load on {found.load.node}: {found.load.words}")
        p9999, most = (format_value(worst_value(found, each).value_ns, "ns") for each in (P9999, MAX))
        stolen = f"{found.stolen_ppm / 10_000:.2f} % stolen"
        say(f"beside {found.beside}: p99.99 {p9999}, max {most} of {len(found.run.cpus)} CPUs, {stolen}")

    @keyword
    def wake_ups_should_be_within_their_limits(self) -> None:
        """Judge the wake-ups of the idle target by every requirement of the file beside `nothing`.

        Fails unless all outcomes are `pass`; the message begins with `FAIL:`, `INCONCLUSIVE:` or `UNSET:`.
        """
        self._judge(lambda each: each.of == NOTHING)

    @keyword
    def wake_ups_beside_loads_should_be_within_their_limits(self) -> None:
        """Judge the wake-ups beside loads by every requirement of the file beside one that the profile has.

        Fails unless all outcomes are `pass`; the message begins with `FAIL:`, `INCONCLUSIVE:` or `UNSET:`.
        """
        self._judge(lambda each: each.of != NOTHING)

    def _judge(self, is_asked: Callable[[Requirement], bool]) -> None:
        requirements = [each for each in self._asked(self._profile)[0] if is_asked(each)]
        if not self._found and not self._missing:
            raise MeasurementError("nothing was measured: call `Measure Wake Ups` first")
        judges(*(each.id for each in requirements))
        lacking = [self._missing.get(each.of) for each in requirements]
        if lacking and all(isinstance(each, CapabilityError) for each in lacking):
            raise CapabilityError("; ".join(dict.fromkeys(map(str, lacking))))
        keep_judged([self._judged(each) for each in requirements], self._profile)

    def _judged(self, requirement: Requirement) -> Measurement | str:
        """Return the record of a requirement, or why there is none."""
        if requirement.of not in self._found:
            return f"{requirement.id}: {self._missing[requirement.of]}"
        found = self._found[requirement.of]
        return wakeup_measurement(found, requirement, self._context(found, requirement.statistic))

    def _context(self, found: Wakeups, statistic: str) -> Context:
        run, bench, facts = current_run(), bench_library().bench.spec, found.facts
        numbers = {
            "interval_us": facts.interval_us,
            "priority": facts.priority,
            "cpus": len(found.run.cpus),
            "stolen_ppm": found.stolen_ppm,
            "overflow": sum(each.overflow for each in found.run.cpus),
            **({} if statistic == MAX else {"above_value": worst_value(found, statistic).rests_on}),
            **(found.load.numbers if found.load else {}),
        }
        return Context(
            run_id=run.run_id,
            test=running_test(),
            subject=Subject(bench.name, facts.target, axes=(AxisValue(BESIDE, found.beside),)),
            conditions=Conditions(
                self._profile,
                load=found.load.kind if found.load else IDLE,
                numbers=tuple(NumberedCondition(*each) for each in numbers.items()),
            ),
            simulated=bench.simulated,
            evidence=tuple(
                run.evidence(file)
                for file in evidence_files(self._folder / folder_of(facts.load.kind if facts.load else ""))
            ),
        )

    def _asked(self, profile: str) -> tuple[list[Requirement], list[str]]:
        """Return the requirements that a profile measures, and the ids of the others.

        Raises:
            ConfigError: One is beside what no profile has.
        """
        there = {beside_of(load) for name in read_toml(TIMES) for load in _cases(name)}
        own = {beside_of(load) for load in _cases(profile)}
        every = load_requirements_file(self._path, WAKEUP_LATENCY).requirements
        for each in every:
            if each.of not in there:
                allowed = ", ".join(sorted(there))
                raise ConfigError(f"{self._path}: {each.id}.{BESIDE}: {each.of!r}; allowed: {allowed}")
        asked = [each for each in every if each.of in own]
        return asked, [each.id for each in every if each.of not in own]


def _cases(profile: str) -> tuple[str, ...]:
    return times_of(profile, TIMES, baseline_times).cases


def _read(folder: Path) -> Wakeups:
    try:
        return load_wakeups(folder)
    except ReportError as error:
        raise MeasurementError(str(error)) from error
