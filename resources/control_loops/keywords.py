# SPDX-License-Identifier: Apache-2.0
"""Keywords that send messages round a ring of machines, and judge what each stretch of it takes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import ExitStack
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import numpy as np

from hw.errors import CapabilityError, MeasurementError
from reports import Conditions, Subject, current_run
from reports.control_loops.capability import LOOP_DELAY, LOOP_WIRE_DELAY, STRETCH, WHOLE
from reports.control_loops.case import Case, case_of_stretch
from reports.control_loops.load import read_load
from reports.control_loops.ring import Ring, load_ring
from reports.control_loops.ring_evidence import (
    FOLDER,
    HOLD_FOLDER,
    NAGLE_FOLDER,
    RING_FILE,
    KnownHold,
    load_ring_facts,
)
from reports.control_loops.ring_verdict import (
    ACCOUNT_CHECK,
    HOLD_CHECK,
    ORDER_CHECK,
    OUTSIDE_CHECK,
    U_CHECK,
    account_measurement,
    found_hold,
    hold_measurement,
    order_measurement,
    whole_measurements,
)
from reports.control_loops.stretch_verdict import stretch_measurement, stretch_uncertainty
from reports.errors import ReportError
from reports.record.context import Context
from reports.record.measurement import AxisValue, Measurement, NumberedCondition
from reports.requirements import Requirement
from reports.run.current import judges
from reports.run.robot_variable import robot_variable
from reports.units import format_value
from resources.control_loops.asked import asked_requirements
from resources.control_loops.clocks import corrected_clock
from resources.control_loops.loads import IDLE
from resources.control_loops.ring_trial import NODES, RingMessages, measure_ring
from resources.control_loops.settings import TIMES, ring_times
from resources.keywords.bench import bench_library, say
from resources.keywords.judged import keep, keep_judged, require_passed, running_test
from resources.keywords.requirement_scope import RequirementScope
from resources.keywords.robot_api import keyword, library
from resources.moved import present
from resources.names import Profile
from resources.profiles import times_of

JUDGING = "Stretches Should Be Within Their Limits"
HOPS = tuple(f"hop {number}" for number in range(1, NODES + 2))
STRETCHES = {
    LOOP_DELAY: (WHOLE, *HOPS, *(f"node {number}" for number in range(1, NODES + 1))),
    LOOP_WIRE_DELAY: (WHOLE, *HOPS),
}
CLOCK_LOGS = "clock"
HOLDING_NODE = 2
"""The middle one of three: neither source nor sink is its neighbour."""


@library(scope="SUITE", version="1", listener="SELF")
class ControlLoopsLibrary(RequirementScope):
    """Send messages round a ring of machines, source and sink on the target, on one timeline of all.

    After the paper on distributed control loops: messages of 4 and 6 bytes over TCP. Every program records
    when it read and wrote each message, every kernel when the message's last frame came and left.
    """

    def __init__(self, requirements: Path) -> None:
        """Name the requirements.

        Args:
            requirements: File such as `robot/control_loops/requirements/control_loops_virtual.toml`.
        """
        self._path = present(requirements)
        self._profile = ""
        self._folder = Path()
        self._rings: dict[Case, Ring] = {}

    def selected(self, named: Collection[str]) -> Iterable[tuple[Path, Collection[str]]]:
        """Say that a suite that judges stretches asks every requirement on one of the file."""
        if JUDGING in named:
            profile = robot_variable("PROFILE")
            yield self._path, [each.id for each in self._requirements(profile)]

    @keyword
    def send_messages_round_the_ring(self, target: str, profile: Profile) -> None:
        """Send messages from the target over three producers and back to it, and record every program.

        Then some more, of which one node holds those of each second turn; where the profile asks for
        it some whose small writes wait for what was written before, and some beside each of its loads
        and while each of its daemons corrects the target's clock.

        Args:
            target: Name of the target under `benchwright.targets` of the bench file.
            profile: `ci`, `nightly`, …: how many.
        """
        library = bench_library()
        bench, spec = library.bench, library.target(target)
        times = times_of(profile, TIMES, ring_times)
        self._profile, self._folder = profile, current_run().evidence_folder(FOLDER, target)
        self._requirements(profile)  # a mistake in the file is told before anything is measured
        messages = RingMessages(times.count, times.interval_us, times.size_bytes, times.writes)
        say(f"{times.count} messages round the ring from {target}")
        measure_ring(bench, spec, messages, self._folder)
        hold = KnownHold(HOLDING_NODE, times.hold_us, times.hold_turn)
        said = f"node {hold.node} holds those of each second turn for {hold.hold_us} us"
        say(f"{times.hold_count} messages, of which {said}")
        held = replace(messages, count=times.hold_count, interval_us=times.hold_interval_us, hold=hold)
        measure_ring(bench, spec, held, self._folder / HOLD_FOLDER)
        if times.nagle_count:
            say(f"{times.nagle_count} messages whose small writes wait for what was written before")
            slow = replace(messages, count=times.nagle_count, nagle=True)
            measure_ring(bench, spec, slow, self._folder / NAGLE_FOLDER)
        self._add(Case())
        beside = replace(messages, count=times.load_count, load_mbit=times.load_mbit)
        for clock, cases in groupby(times.cases, lambda case: case.clock):
            logs = self._folder / Case(clock=clock).folder / CLOCK_LOGS
            with ExitStack() as ending:
                try:
                    ending.enter_context(corrected_clock(bench, spec, clock, logs))
                except CapabilityError as error:
                    say(f"no clock is corrected: {error}")
                    continue
                for case in cases:
                    if case == Case():
                        continue
                    say(f"{times.load_count} messages {case.words}")
                    one = replace(beside, load=case.load, clock=case.clock)
                    measure_ring(bench, spec, one, self._folder / case.folder)
                    self._add(case)

    def _add(self, case: Case) -> None:
        self._rings[case] = self._read(self._folder / case.folder)
        self._say(case)

    def _say(self, case: Case) -> None:
        ring = self._rings[case]
        if ring.load:
            say(f"{ring.load.kind} load on {ring.load.node}: {ring.load.words}")
        for each in ring.stretches:
            if len(each):
                median, u = (
                    format_value(ns, "ns")
                    for ns in (int(np.median(each.time_ns)), stretch_uncertainty(each, "median").expanded)
                )
                say(f"{case.stretch(each.name)}: median {median}, U = {u}, of {len(each)} messages")

    @keyword
    def stretches_should_be_within_their_limits(self) -> None:
        """Judge each stretch by every requirement of the file.

        A requirement beside a load names it, as in `stretch = "whole under network load"`; one of a load that
        the profile does not have is not selected. Fails unless all outcomes are `pass`; the message begins
        with `FAIL:`, `INCONCLUSIVE:` or `UNSET:`.
        """
        self._require_sent()
        requirements = self._requirements(self._profile)
        judges(*(each.id for each in requirements))
        keep_judged([self._judged(each) for each in requirements], self._profile)

    @keyword
    def no_message_should_be_read_before_it_was_written(self) -> None:
        """Check the bench: beyond the bounds of the clocks no message may arrive before it left."""
        self._check_each(lambda ring, context: [order_measurement(ring, context)], "none", ORDER_CHECK)

    @keyword
    def the_whole_should_be_what_one_counter_says(self) -> None:
        """Check the bench: source and sink share a counter, which knows nothing of the timeline.

        The whole of no message may differ by more than the bounds of both places, and of at most 5 % by more
        than U.
        """
        self._check_each(whole_measurements, "they agree", OUTSIDE_CHECK, U_CHECK)

    @keyword
    def every_message_should_be_accounted_for(self) -> None:
        """Check the bench: on each hop each message was read once, or its reader says that it is missing."""
        self._check_each(lambda ring, context: [account_measurement(ring, context)], "all are", ACCOUNT_CHECK)

    @keyword
    def held_messages_should_appear_in_their_own_stretch(self) -> None:
        """Check the bench: how long one node held messages shows in its own stretch and the whole alone.

        Each within half of it.
        """
        judges(HOLD_CHECK)
        folder = self._folder / HOLD_FOLDER
        try:
            found = found_hold(self._read(folder))
        except ReportError as error:
            raise MeasurementError(str(error)) from error
        for each in found:
            put, later, u = (
                format_value(ns, "ns", 3)
                for ns in (each.put_ns, each.later.found_ns, 2 * each.later.standard_ns)
            )
            say(f"{each.stretch}: put in {put}, found {later}, U = {u}")
        records = [hold_measurement(found, self._context(f"node {HOLDING_NODE}", HOLD_FOLDER))]
        keep(records, "it appears where it was put")
        require_passed(records)

    def _check_each(
        self, judge: Callable[[Ring, Context], Iterable[Measurement]], passed: str, *checks: str
    ) -> None:
        """Judge every ring by checks of the bench."""
        self._require_sent()
        judges(*(case.check(check) for case in self._rings for check in checks))
        records = [
            replace(record, requirement=case.check(record.requirement))
            for case, ring in self._rings.items()
            for record in judge(ring, self._context(part=case.folder))
        ]
        keep(records, passed)
        require_passed(records)

    def _judged(self, requirement: Requirement) -> Measurement | str:
        """Return the record of a requirement, or why there is none."""
        name, case = case_of_stretch(requirement.of)
        if case not in self._rings:
            return f"{requirement.id}: {requirement.of}: nothing corrected the target's clock"
        context = self._context(requirement.of, case.folder)
        try:
            return stretch_measurement(self._rings[case], requirement, context, name)
        except ReportError as error:
            return f"{requirement.id}: {error}"

    def _requirements(self, profile: Profile | str) -> list[Requirement]:
        """Return the requirements of the file that a profile measures; raises ConfigError."""
        asked, others = asked_requirements(
            self._path, STRETCHES, profile, TIMES, lambda table: ring_times(table).cases
        )
        if others:
            say(f"not of profile {profile}: {', '.join(others)}")
        return asked

    def _require_sent(self) -> None:
        if not self._rings:
            raise MeasurementError("nothing was sent: call `Send Messages Round The Ring` first")

    @staticmethod
    def _read(folder: Path) -> Ring:
        try:
            return load_ring(folder)
        except ReportError as error:
            raise MeasurementError(str(error)) from error

    def _context(self, stretch: str = "", part: str = "") -> Context:
        run, bench, folder = current_run(), bench_library().bench.spec, self._folder / part
        facts = load_ring_facts(folder)
        numbers = {"size_bytes": facts.size_bytes, "writes": facts.writes}
        numbers |= read_load(folder, facts.load).numbers if facts.load else {}
        return Context(
            run_id=run.run_id,
            test=running_test(),
            subject=Subject(
                bench.name, facts.target, axes=(AxisValue(STRETCH, stretch),) if stretch else None
            ),
            conditions=Conditions(
                self._profile,
                load=facts.load.kind if facts.load else IDLE,
                numbers=tuple(NumberedCondition(*each) for each in numbers.items()),
            ),
            simulated=bench.simulated,
            evidence=tuple(run.evidence(folder / name) for name in (RING_FILE, *facts.files)),
        )
