# SPDX-License-Identifier: Apache-2.0
"""Keywords that measure the real-time baseline of a target, and judge it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from hw.errors import BenchwrightError, CapabilityError, ConfigError, MeasurementError
from hw.toml_file import read_toml
from reports import Conditions, Measurement, Subject, current_run
from reports.errors import ReportError
from reports.record.context import Context
from reports.record.measurement import AxisValue, NumberedCondition
from reports.requirements import Requirement
from reports.rt_baseline.capability import BESIDE, HARDWARE_NOISE, MAX, NOTHING, P9999, WAKEUP_LATENCY
from reports.rt_baseline.evidence import FOLDER, Wakeups, beside_of, evidence_files, folder_of, load_wakeups
from reports.rt_baseline.noise import FOLDER as NOISE_FOLDER
from reports.rt_baseline.noise import Noises, load_noise, noise_files, noise_measurement
from reports.rt_baseline.timerlat import FOLDER as TIMERLAT_FOLDER
from reports.rt_baseline.timerlat import LATE_NS, TimerlatFacts, timerlat_files
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
from resources.rt_baseline.traced_trial import AskedTraces, measure_traces
from resources.rt_baseline.wakeup_trial import AskedWakeups, measure_wakeups

T = TypeVar("T")
IDLE = "idle"
"""What records call no load."""
ALONE, LOADED, NOISE = (
    "Wake Ups Should Be Within Their Limits",
    "Wake Ups Beside Loads Should Be Within Their Limits",
    "Hardware Noise Should Be Within Its Limits",
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
        self._noises: dict[str, Noises] = {}
        self._no_noise: dict[str, BenchwrightError] = {}

    def selected(self, named: Collection[str]) -> Iterable[tuple[Path, Collection[str]]]:
        """Say that a suite that judges wake-ups asks what its profile measures, of what its tests name."""
        asked, _ = self._asked(robot_variable("PROFILE"))
        names = [each.id for each in asked if _judged_by(each) in named]
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
                self._found[beside_of(load)] = _read(folder, load_wakeups)
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
    def trace_hardware_noise_and_late_wake_ups(self, target: str, profile: Profile) -> None:
        """Run rtla's hwnoise and timerlat on the target, idle and beside each load that the profile traces.

        A kernel without the tracer, or a target without rtla, costs nothing else.

        Args:
            target: Name of the target under `benchwright.targets` of the bench file.
            profile: `ci`, `nightly`, …: how long, and beside which loads.
        """
        library = bench_library()
        spec, times = library.target(target), times_of(profile, TIMES, baseline_times)
        for load in times.traced_cases:
            beside, folder = beside_of(load), self._folder / folder_of(load)
            asked = AskedTraces(times.noise_s, times.timerlat_s, load)
            traces = measure_traces(library.bench, spec, asked, folder)
            try:
                if traces.noise_failed is not None:
                    raise traces.noise_failed
                self._noises[beside] = _read(folder / NOISE_FOLDER, load_noise)
                self._say_noise(self._noises[beside])
            except (CapabilityError, MeasurementError) as error:
                self._no_noise[beside] = error
                say(f"hardware noise beside {beside}: no figure: {error}")
            if isinstance(traces.split, TimerlatFacts):
                self._say_split(traces.split)
            else:
                say(f"late wake-ups beside {beside}: no split: {traces.split}")

    def _say_noise(self, found: Noises) -> None:
        most, share = format_value(found.largest[1], "ns"), found.share_ppm / 10_000
        many = f"{found.count} of {found.facts.threshold_us} µs and more"
        said = f"longest {most}, {many}, {share:.2f} % of the time"
        say(f"hardware noise beside {found.beside}: {said}")

    def _say_split(self, found: TimerlatFacts) -> None:
        late = f"{found.late} of {found.samples} wake-ups later than {format_value(LATE_NS, 'ns')}"
        for each in found.sums:
            parts = ("interrupts", each.irq_ns), ("softirqs", each.softirq_ns), ("threads", each.thread_ns)
            shares = [
                f"{name} {ns / each.late_ns:.0%}" for name, ns in (*parts, ("outside", each.outside_ns))
            ]
            if each.taken_ns is not None:
                shares.append(f"of which the machine took {each.taken_ns / each.late_ns:.0%}")
            late += f"; CPU {each.cpu}: {', '.join(shares)}"
        say(f"timerlat beside {found.beside}: {late}")

    @keyword
    def wake_ups_should_be_within_their_limits(self) -> None:
        """Judge the wake-ups of the idle target by every requirement of the file beside `nothing`.

        Fails unless all outcomes are `pass`; the message begins with `FAIL:`, `INCONCLUSIVE:` or `UNSET:`.
        """
        self._judge(lambda each: _judged_by(each) == ALONE)

    @keyword
    def wake_ups_beside_loads_should_be_within_their_limits(self) -> None:
        """Judge the wake-ups beside loads by every requirement of the file beside one that the profile has.

        Fails unless all outcomes are `pass`; the message begins with `FAIL:`, `INCONCLUSIVE:` or `UNSET:`.
        """
        self._judge(lambda each: _judged_by(each) == LOADED)

    @keyword
    def hardware_noise_should_be_within_its_limits(self) -> None:
        """Judge the hardware noise, idle and beside each load that the profile traces.

        Fails unless all outcomes are `pass`; the message begins with `FAIL:`, `INCONCLUSIVE:` or `UNSET:`.
        """
        self._judge(lambda each: _judged_by(each) == NOISE)

    def _judge(self, is_asked: Callable[[Requirement], bool]) -> None:
        requirements = [each for each in self._asked(self._profile)[0] if is_asked(each)]
        if not any((self._found, self._missing, self._noises, self._no_noise)):
            raise MeasurementError("nothing was measured: call `Measure Wake Ups` first")
        judges(*(each.id for each in requirements))
        lacking = [
            (self._no_noise if each.quantity == HARDWARE_NOISE else self._missing).get(each.of)
            for each in requirements
        ]
        if lacking and all(isinstance(each, CapabilityError) for each in lacking):
            raise CapabilityError("; ".join(dict.fromkeys(map(str, lacking))))
        keep_judged([self._judged(each) for each in requirements], self._profile)

    def _judged(self, requirement: Requirement) -> Measurement | str:
        """Return the record of a requirement, or why there is none."""
        of = requirement.of
        if requirement.quantity == HARDWARE_NOISE:
            if of not in self._noises:
                return f"{requirement.id}: {self._no_noise[of]}"
            noises = self._noises[of]
            return noise_measurement(noises, requirement, self._noise_context(noises))
        if of not in self._found:
            return f"{requirement.id}: {self._missing[of]}"
        found = self._found[of]
        return wakeup_measurement(found, requirement, self._wakeup_context(found, requirement.statistic))

    def _wakeup_context(self, found: Wakeups, statistic: str) -> Context:
        facts = found.facts
        numbers = {
            "interval_us": facts.interval_us,
            "priority": facts.priority,
            "cpus": len(found.run.cpus),
            "stolen_ppm": found.stolen_ppm,
            "overflow": sum(each.overflow for each in found.run.cpus),
            **({} if statistic == MAX else {"above_value": worst_value(found, statistic).rests_on}),
        }
        folder = self._folder / folder_of(facts.load.kind if facts.load else "")
        files = [*evidence_files(folder), *timerlat_files(folder / TIMERLAT_FOLDER)]
        return self._context(found, numbers, files)

    def _noise_context(self, found: Noises) -> Context:
        facts = found.facts
        numbers = {
            "threshold_us": facts.threshold_us,
            "runtime_us": facts.runtime_us,
            "cpus": len(found.table),
            "noises": found.count,
            "noise_ppm": found.share_ppm,
        }
        folder = self._folder / folder_of(facts.load.kind if facts.load else "") / NOISE_FOLDER
        return self._context(found, numbers, noise_files(folder))

    def _context(self, found: Wakeups | Noises, numbers: Mapping[str, int], files: Iterable[Path]) -> Context:
        run, bench = current_run(), bench_library().bench.spec
        every = {**numbers, **(found.load.numbers if found.load else {})}
        return Context(
            run_id=run.run_id,
            test=running_test(),
            subject=Subject(bench.name, found.facts.target, axes=(AxisValue(BESIDE, found.beside),)),
            conditions=Conditions(
                self._profile,
                load=found.load.kind if found.load else IDLE,
                numbers=tuple(NumberedCondition(*each) for each in every.items()),
            ),
            simulated=bench.simulated,
            evidence=tuple(run.evidence(file) for file in files),
        )

    def _asked(self, profile: str) -> tuple[list[Requirement], list[str]]:
        """Return the requirements that a profile measures, and the ids of the others.

        Raises:
            ConfigError: One is beside what no profile has.
        """
        there = {beside_of(load) for name in read_toml(TIMES) for load in _cases(name, WAKEUP_LATENCY)}
        every = load_requirements_file(self._path, WAKEUP_LATENCY, HARDWARE_NOISE).requirements
        for each in every:
            if each.of not in there:
                allowed = ", ".join(sorted(there))
                raise ConfigError(f"{self._path}: {each.id}.{BESIDE}: {each.of!r}; allowed: {allowed}")
        own = {each: set(map(beside_of, _cases(profile, each))) for each in (WAKEUP_LATENCY, HARDWARE_NOISE)}
        asked = [each for each in every if each.of in own[each.quantity]]
        return asked, [each.id for each in every if each.of not in own[each.quantity]]


def _judged_by(requirement: Requirement) -> str:
    """Return the keyword that judges a requirement."""
    if requirement.quantity == HARDWARE_NOISE:
        return NOISE
    return ALONE if requirement.of == NOTHING else LOADED


def _cases(profile: str, quantity: str) -> tuple[str, ...]:
    times = times_of(profile, TIMES, baseline_times)
    return times.traced_cases if quantity == HARDWARE_NOISE else times.cases


def _read(folder: Path, read: Callable[[Path], T]) -> T:
    try:
        return read(folder)
    except ReportError as error:
        raise MeasurementError(str(error)) from error
