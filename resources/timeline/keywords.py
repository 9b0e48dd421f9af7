# SPDX-License-Identifier: Apache-2.0
"""Keywords that put two machines on one timeline, and judge what messages between them take."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import TypeVar

import numpy as np

from hw.errors import MeasurementError
from reports import Conditions, Subject, current_run
from reports.errors import ReportError
from reports.record.context import Context
from reports.record.measurement import AxisValue, Measurement, NumberedCondition
from reports.requirements import Requirement
from reports.run.current import judges
from reports.timeline.bulk_verdict import BULK_QUANTITIES
from reports.timeline.capability import LEG_TIME
from reports.timeline.delayed_legs import DELAY_FOLDERS, found_delay
from reports.timeline.legs import Legs, load_stimulus_response
from reports.timeline.legs_evidence import FOLDER, LEGS_FILE, KnownDelay, load_legs
from reports.timeline.place_errors import BESIDE_CARD, load_place_errors
from reports.timeline.verdict import (
    BOUND_CHECK,
    CHECK,
    DELAY_CHECKS,
    U_CHECK,
    contradiction_measurement,
    delay_measurement,
    leg_measurement,
    leg_uncertainty,
    place_measurements,
)
from reports.units import format_value
from resources.keywords.bench import bench_library, say
from resources.keywords.judged import keep, require_passed, running_test
from resources.keywords.requirement_scope import RequirementScope
from resources.keywords.robot_api import keyword, library
from resources.moved import present
from resources.names import Profile
from resources.profiles import times_of
from resources.requirements_file import load_requirements_file
from resources.timeline.settings import TIMES, timeline_times
from resources.timeline.stimulus_trial import Stimuli, measure_legs

Found = TypeVar("Found")
JUDGING = "Legs Should Be Within Their Limits"


@library(scope="SUITE", version="1", listener="SELF")
class TimelineLibrary(RequirementScope):
    """Send stimuli to a target that answers each, on one timeline of both machines.

    After the paper on distributed control loops: messages of 48 bytes over TCP, each leg by itself. Both
    programs record when they sent and received; exchanges between the machines' clocks say where on the
    timeline that was, and how sure it is.
    """

    def __init__(self, requirements: Path) -> None:
        """Name the requirements.

        Args:
            requirements: File such as `robot/timeline/requirements/timeline_virtual.toml`.
        """
        self._path = present(requirements)
        self._profile = ""
        self._folder = Path()
        self._legs: Legs | None = None

    def selected(self, named: Collection[str]) -> Iterable[tuple[Path, Collection[str]]]:
        """Say that a suite that judges legs asks every requirement on one of the file."""
        if JUDGING in named:
            yield self._path, [each.id for each in self._requirements()]

    @keyword
    def send_stimuli_to_the_target(self, target: str, profile: Profile, delay_us: int = 0) -> None:
        """Send stimuli from a producer's node to the target, which answers each, and record both ends.

        Then, for each leg, some more, of which a part is delayed by a known time in that leg.

        Args:
            target: Name of the target under `benchwright.targets` of the bench file.
            profile: `ci`, `nightly`, …: how many.
            delay_us: The known delay, a quarter of the interval at most; 0: as the profile says.
        """
        library = bench_library()
        bench, spec = library.bench, library.target(target)
        times = times_of(profile, TIMES, timeline_times).delayed_by(delay_us)
        self._profile, self._folder = profile, current_run().evidence_folder(FOLDER, target)
        say(f"{times.count} stimuli to {target}")
        measure_legs(bench, spec, Stimuli(times.count, times.interval_us, times.size_bytes), self._folder)
        for name, leg in DELAY_FOLDERS.items():
            say(f"{times.delay_count} stimuli, by turns delayed {leg} by {times.delay_us} us")
            delay = KnownDelay(leg, times.delay_us, times.delay_turn)
            stimuli = Stimuli(times.delay_count, times.interval_us, times.size_bytes, delay)
            measure_legs(bench, spec, stimuli, self._folder / name)
        self._legs = self._read(load_stimulus_response, self._folder)
        for each in self._legs.legs:
            if len(each):
                median, u = (
                    format_value(ns, "ns")
                    for ns in (int(np.median(each.time_ns)), leg_uncertainty(each, "median").expanded)
                )
                say(f"{each.name}: median {median}, U = {u}, of {len(each)} messages")

    @keyword
    def send_stimuli_beside_the_card(self, target: str, profile: Profile) -> None:
        """Send stimuli to the target while its timecard is read, which takes no part in the timeline.

        Args:
            target: Name of the target under `benchwright.targets` of the bench file; it has a timecard.
            profile: `ci`, `nightly`, …: how many.
        """
        library = bench_library()
        times = times_of(profile, TIMES, timeline_times)
        self._profile, folder = profile, current_run().evidence_folder(FOLDER, target)
        self._folder = folder / BESIDE_CARD
        say(f"{times.count} stimuli to {target}, beside its card")
        stimuli = Stimuli(times.count, times.interval_us, times.size_bytes)
        measure_legs(library.bench, library.target(target), stimuli, self._folder, beside_card=True)

    @keyword
    def events_should_lie_where_the_card_says(self) -> None:
        """Check the bench: by the card no event lies outside its hard interval, and at most 5 % beyond U."""
        judges(BOUND_CHECK, U_CHECK)
        errors = self._read(load_place_errors, self._folder)
        if len(errors):
            every = np.abs(errors.error_ns), errors.places.u_ns, errors.places.bound_ns
            error, u, bound = (format_value(int(np.median(each)), "ns", 3) for each in every)
            say(f"medians of {len(errors)} events: error {error}, U {u}, bound {bound}")
        records = list(place_measurements(errors, self._context("")))
        keep(records, "they lie where the card says")
        require_passed(records)

    @keyword
    def legs_should_be_within_their_limits(self) -> None:
        """Judge each leg by every requirement of the file.

        Fails unless all outcomes are `pass`; the message begins with `FAIL:`, `INCONCLUSIVE:` or `UNSET:`.
        """
        requirements = self._requirements()
        judges(*(each.id for each in requirements))
        records = [leg_measurement(self._found, each, self._context(each.of)) for each in requirements]
        keep(records)
        require_passed(records)

    @keyword
    def nothing_should_come_before_it_was_sent(self) -> None:
        """Check the bench: no message may have come before it was sent, beyond the clocks' bounds."""
        judges(CHECK)
        record = contradiction_measurement(self._found, self._context(""))
        keep([record], "none")
        require_passed([record])

    @keyword
    def known_delay_should_appear_in_its_leg_alone(self) -> None:
        """Check the bench: a delay that a leg had by turns has to appear there, and not in the other.

        Each within half of the delay.
        """
        judges(*DELAY_CHECKS.values())
        records: list[Measurement] = []
        for name, leg in DELAY_FOLDERS.items():
            found = self._read(found_delay, self._folder / name)
            for each in found:
                put, later, u = (format_value(ns, "ns", 3) for ns in (each.put_ns, each.found_ns, each.u_ns))
                say(f"delayed {each.delayed} by {put}: {each.leg} {later} later, U = {u}")
            records.append(delay_measurement(found, self._context(leg, name)))
        keep(records, "they appear where they were put")
        require_passed(records)

    def _requirements(self) -> tuple[Requirement, ...]:
        every = load_requirements_file(self._path, LEG_TIME, *BULK_QUANTITIES).requirements
        return tuple(each for each in every if each.quantity == LEG_TIME)

    @property
    def _found(self) -> Legs:
        if self._legs is None:
            raise MeasurementError("nothing was sent: call `Send Stimuli To The Target` first")
        return self._legs

    @staticmethod
    def _read(read: Callable[[Path], Found], folder: Path) -> Found:
        try:
            return read(folder)
        except ReportError as error:
            raise MeasurementError(str(error)) from error

    def _context(self, leg: str, part: str = "") -> Context:
        run, bench, folder = current_run(), bench_library().bench.spec, self._folder / part
        facts = load_legs(folder)
        return Context(
            run_id=run.run_id,
            test=running_test(),
            subject=Subject(bench.name, facts.target, axes=(AxisValue("leg", leg),) if leg else None),
            conditions=Conditions(
                self._profile, numbers=(NumberedCondition("size_bytes", facts.size_bytes),)
            ),
            simulated=bench.simulated,
            evidence=tuple(run.evidence(folder / name) for name in (LEGS_FILE, *facts.files)),
        )
