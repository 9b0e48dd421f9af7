# SPDX-License-Identifier: Apache-2.0
"""Keywords that send messages round a ring of machines, and judge what each stretch of it takes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from hw.errors import MeasurementError
from hw.fields import Fields
from reports import Subject, current_run
from reports.control_loops.capability import LOOP_DELAY, LOOP_WIRE_DELAY, STRETCH, WHOLE
from reports.control_loops.case import Case
from reports.control_loops.load import AchievedLoad
from reports.control_loops.ring import Ring, load_ring
from reports.control_loops.ring_evidence import (
    FOLDER,
    HOLD_FOLDER,
    NAGLE_FOLDER,
    RING_FILE,
    KnownHold,
    RingFacts,
)
from reports.control_loops.ring_queue import ring_queue
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
from reports.control_loops.stretch_verdict import stretch_uncertainty
from reports.errors import ReportError
from reports.record.context import Context
from reports.record.measurement import AxisValue
from reports.run.current import judges
from reports.units import format_value
from resources.control_loops.loop_library import LoopLibrary, read_loop
from resources.control_loops.ring_trial import NODES, RingMessages, measure_ring
from resources.control_loops.settings import TIMES, ring_times
from resources.keywords.bench import bench_library, say
from resources.keywords.judged import keep, require_passed, running_test
from resources.keywords.robot_api import keyword, library
from resources.names import Profile
from resources.profiles import times_of

HOPS = tuple(f"hop {number}" for number in range(1, NODES + 2))
STRETCHES = {
    LOOP_DELAY: (WHOLE, *HOPS, *(f"node {number}" for number in range(1, NODES + 1))),
    LOOP_WIRE_DELAY: (WHOLE, *HOPS),
}
HOLDING_NODE = 2
"""The middle one of three: neither source nor sink is its neighbour."""


@library(scope="SUITE", version="1", listener="SELF")
class ControlLoopsLibrary(LoopLibrary[Ring]):
    """Send messages round a ring of machines, source and sink on the target, on one timeline of all.

    After the paper on distributed control loops: messages of 4 and 6 bytes over TCP. Every program records
    when it read and wrote each message, every kernel when the message's last frame came and left.
    """

    judging = "Stretches Should Be Within Their Limits"
    stretches = STRETCHES
    times = TIMES
    nothing = "nothing was sent: call `Send Messages Round The Ring` first"
    unmeasured = "nothing corrected the target's clock"

    def __init__(self, requirements: Path) -> None:
        """Name the requirements.

        Args:
            requirements: File such as `robot/control_loops/requirements/control_loops_virtual.toml`.
        """
        super().__init__(requirements)

    @staticmethod
    def _cases(table: Fields) -> list[Case]:
        return ring_times(table).cases

    @keyword
    def send_messages_round_the_ring(
        self, target: str, profile: Profile, kernel_events: bool = False
    ) -> None:
        """Send messages from the target over three producers and back to it, and record every program.

        Then some more, of which one node holds those of each second turn; where the profile asks for
        it some whose small writes wait for what was written before, and some beside each of its loads
        and while each of its daemons corrects the target's clock.

        Args:
            target: Name of the target under `benchwright.targets` of the bench file.
            profile: `ci`, `nightly`, …: how many.
            kernel_events: Record who has the processors of all machines, and what TCP waits for, so that the
                report names who made messages late.
        """
        library = bench_library()
        bench, spec = library.bench, library.target(target)
        times = times_of(profile, TIMES, ring_times)
        self._begin(profile, current_run().evidence_folder(FOLDER, target))
        messages = RingMessages(
            times.count, times.interval_us, times.size_bytes, times.writes, kernel_events=kernel_events
        )
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

        def measure(case: Case) -> None:
            say(f"{times.load_count} messages {case.words}")
            one = replace(beside, load=case.load, clock=case.clock)
            measure_ring(bench, spec, one, self._folder / case.folder)
            self._add(case)

        self._measure_each(bench, spec, [case for case in times.cases if case != Case()], measure)

    def _add(self, case: Case) -> None:
        self._found[case] = read_loop(load_ring, self._folder / case.folder)
        self._say(case)

    def _say(self, case: Case) -> None:
        ring = self._found[case]
        if ring.load:
            say(f"{ring.load.kind} load on {ring.load.node}: {ring.load.words}")
        for each in ring.stretches:
            if len(each):
                median, u = (
                    format_value(ns, "ns")
                    for ns in (int(np.median(each.time_ns)), stretch_uncertainty(each, "median").expanded)
                )
                say(f"{case.stretch(each.name)}: median {median}, U = {u}, of {len(each)} messages")
        if queue := ring_queue(ring).words:
            say(queue)

    @keyword
    def stretches_should_be_within_their_limits(self) -> None:
        """Judge each stretch by every requirement of the file.

        A requirement beside a load names it, as in `stretch = "whole under network load"`; one of a load that
        the profile does not have is not selected. Fails unless all outcomes are `pass`; the message begins
        with `FAIL:`, `INCONCLUSIVE:` or `UNSET:`.
        """
        self._judge_requirements()

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
        held = read_loop(load_ring, folder)
        try:
            found = found_hold(held)
        except ReportError as error:
            raise MeasurementError(str(error)) from error
        for each in found:
            put, later, u = (
                format_value(ns, "ns", 3)
                for ns in (each.put_ns, each.later.found_ns, 2 * each.later.standard_ns)
            )
            say(f"{each.stretch}: put in {put}, found {later}, U = {u}")
        records = [
            hold_measurement(found, self._context_of(held.facts, None, folder, f"node {HOLDING_NODE}"))
        ]
        keep(records, "it appears where it was put")
        require_passed(records)

    def _context(self, case: Case, stretch: str = "") -> Context:
        found = self._found[case]
        name = case.stretch(stretch) if stretch else ""
        return self._context_of(found.facts, found.load, self._folder / case.folder, name)

    def _context_of(self, facts: RingFacts, load: AchievedLoad | None, folder: Path, stretch: str) -> Context:
        run, bench = current_run(), bench_library().bench.spec
        return Context(
            run_id=run.run_id,
            test=running_test(),
            subject=Subject(
                bench.name, facts.target, axes=(AxisValue(STRETCH, stretch),) if stretch else None
            ),
            conditions=self._conditions(load, {"size_bytes": facts.size_bytes, "writes": facts.writes}),
            simulated=bench.simulated,
            evidence=tuple(run.evidence(folder / name) for name in (RING_FILE, *facts.files)),
        )
