# SPDX-License-Identifier: Apache-2.0
"""Keywords that make edges on a target and judge them by what an oscilloscope sees."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from robot.api import SkipExecution
from robot.libraries.BuiltIn import BuiltIn

from hw.edges import EdgeRole
from hw.errors import MeasurementError
from reports import Conditions, Limit, Measurement, Subject, current_run
from reports.clock_sync.trial import ClockTrial
from reports.record.context import Context
from reports.requirements import Requirement
from reports.run.current import judges
from reports.timed_edges.capability import OFFSET_QUANTITY, QUANTITY
from reports.timed_edges.trial import FOLDER, TRIAL, WITNESSES, EdgeTrial, write_witnesses
from reports.timed_edges.verdict import (
    edge_limit,
    edge_measurement,
    order_measurement,
    shift_measurement,
    unmeasured_edges,
    witness_measurements,
)
from reports.units import format_measured
from resources.clock_sync.lab import ClockLab
from resources.clock_sync.requirements import STACKS_OWN, lock_requirement
from resources.clock_sync.stack_tests import (
    make_stack_tests,
    simulated_stacks_of_variables,
    stacks_of_variables,
)
from resources.keywords.bench import bench_library, say
from resources.keywords.converters import EdgeMethod, Nanoseconds, SoftwareMethod
from resources.keywords.judged import keep, require_passed, running_test
from resources.keywords.requirement_scope import RequirementScope, of_subjects
from resources.keywords.robot_api import keyword, library
from resources.moved import present
from resources.names import ClockStack, Profile
from resources.profiles import load_profile
from resources.timed_edges.requirements import TimedEdgeRequirements, load_timed_edge_requirements
from resources.timed_edges.software import pin_of
from resources.timed_edges.trials import DISCIPLINE, EdgeLab, EdgeRun
from resources.timed_edges.witnesses import clock_witnesses

ORDER = (
    ("tgpio-latch", "tgpio-filtered-read"),
    ("tgpio-filtered-read", "gettime-software"),
    ("tgpio-filtered-read", "rdtsc-software"),
)
"""Better, worse: Table II of the paper."""
ORDER_REQUIREMENT = "EDGE-ORDER"
ORDER_SOURCE = (
    "paper on intra-process clock synchronization, Table II: 16 ns latched, 21 ns by filtered reads, 204 and"
    " 262 ns by software"
)
SHIFT_REQUIREMENT = "BENCH-EDGE-ERROR"
WITNESS_REQUIREMENT = "BENCH-EDGE-WITNESSES"
PAIRS_MIN = 100
WITNESSES_AGREE = "Three Witnesses Should Agree"
JUDGE = frozenset({"Edges Should Keep Their Limits", "Edges Of The Clock Should Keep Its Limits"})
"""Keywords that judge by the requirements file."""


@library(scope="GLOBAL", version="1", listener="SELF", converters={Nanoseconds: Nanoseconds.convert})
class TimedEdgesLibrary(RequirementScope):
    """Make edges on a target in several ways, and judge them by the oscilloscope that sees them.

    A delay is edge - reference: positive, the edge is late. An offset is clock - reference: positive, the
    clock is ahead, so its edges are early. Limits come from requirements files.
    """

    def __init__(self, requirements: Path, *clock_requirements: Path) -> None:
        """Name the requirements.

        Args:
            requirements: File such as `robot/timed_edges/requirements/timed_edges_virtual.toml`.
            clock_requirements: Files that say how long clock stacks may take to lock.
        """
        self._path = present(requirements)
        self._clock_paths = tuple(map(present, clock_requirements))
        self._requirements: TimedEdgeRequirements | None = None
        self._stack = ExitStack()
        self._discipline = ExitStack()
        self._holders: set[str] = set()
        self._lab: EdgeLab | None = None
        self._runs: dict[str, EdgeRun] = {}
        self._clock_runs: dict[str, tuple[EdgeRun, ClockTrial]] = {}

    def make_tests(self, suite: Any) -> None:
        """Put one test for each clock stack in the place of a row that stands for all."""
        make_stack_tests(suite, stacks_of_variables)

    def selected(self, named: Collection[str]) -> Iterable[tuple[Path, Collection[str]]]:
        """Say that the suite asks the requirements on the methods and clocks that its tests name.

        Witnesses that have to agree about a clock judge nothing by the file.
        """
        if WITNESSES_AGREE in named and not JUDGE & {*named}:
            return
        judged = load_timed_edge_requirements(self._path).all
        yield self._path, of_subjects({each.id: each.of for each in judged}, named)

    @keyword
    def start_edge_bench(self, target: str, profile: Profile, oscilloscope: str, folder: str) -> None:
        """Serve the timecards and start what makes and sees edges, where that is not hardware.

        A suite inside another one that has done so shares what runs; only its evidence goes elsewhere.

        Args:
            target: Name of the target under `benchwright.targets` of the bench file.
            profile: `ci`, `nightly`, `acceptance` or `soak`: how many edges.
            oscilloscope: Its name in the bench file; empty: the first one.
            folder: Of the evidence, below `timed_edges/TARGET`; suites share none.
        """
        self._requirements = load_timed_edge_requirements(self._path)
        place = current_run().evidence_folder(FOLDER, target, folder)
        self._runs.clear()
        if self._lab is None:
            bench = bench_library()
            clocks = ClockLab(bench.bench, bench.target(target), load_profile(profile), place, say)
            lab = EdgeLab(clocks, oscilloscope)
            self._stack.enter_context(clocks)
            self._lab = self._stack.enter_context(lab)
        self._lab.folder = place
        self._holders.add(_suite())

    @keyword
    def discipline_the_clock_of_the_target(self) -> None:
        """Let phc2sys hold the target's clock to its PHC until this suite ends; wait for its lock."""
        disciplined = self.lab.disciplined(self._clock(DISCIPLINE), self.lab.folder / "discipline")
        self._discipline.enter_context(disciplined)

    @keyword
    def stop_edge_bench(self) -> bool:
        """End what was started, unless a suite around this one still needs it; harmless when nothing was.

        Returns:
            Whether nobody needs it any more.
        """
        self._holders.discard(_suite())
        try:
            self._discipline.close()
        finally:
            if not self._holders:
                self._lab = None
                self._clock_runs.clear()
                self._stack.close()
        return not self._holders

    @keyword
    def edges_should_keep_their_limits(self, method: EdgeMethod) -> None:
        """Make edges in one way, watch them with the oscilloscope, and judge them by their requirements.

        Fails unless all outcomes are `pass`; the message begins with `FAIL:`, `INCONCLUSIVE:` or `UNSET:`. A
        method for which the file has no requirement is only measured, and fails where no edge was seen.

        Args:
            method: How the edges are made.
        """
        requirements = self._judged.of_method(method)
        judges(*(each.id for each in requirements))
        run = self.lab.trial(self.lab.method_plan(method))
        self._runs[method] = run
        _say_delays(run.trial)
        if requirements or run.fault is not None:
            self._finish(run, self._method_records(run))
            return
        _should_have_delays(run.trial)
        say(f"{method}: {self._path} has no limit for it: shown, not judged")

    @keyword
    def latched_time_should_be_measured(self, method: SoftwareMethod) -> None:
        """Hold what software takes for now against the latched time of an edge that it makes (Listing 1).

        Nothing is judged: the report has it beside the paper's. Fails where nothing was latched.

        Args:
            method: How the edge is made.
        """
        run = self.lab.latch_trial(method)
        _say_delays(run.trial)
        _should_have_delays(run.trial)

    @keyword
    def methods_should_be_in_the_order_of_the_paper(self) -> None:
        """Judge the order of the methods by their standard deviations, each over as many edges.

        The latch is to scatter less than the filtered read, and this less than software; where U does not
        decide it is inconclusive, the reverse fails.
        """
        records = [
            order_measurement(
                self._run(better).trial,
                self._run(worse).trial,
                ORDER_REQUIREMENT,
                ORDER_SOURCE,
                self.lab.times.edges,
                self._context(
                    [self._run(better), self._run(worse)], method=f"{better}/{worse}", phase="order"
                ),
            )
            for better, worse in ORDER
        ]
        self._judge(records)

    @keyword
    def error_of_the_correlation_should_show(self, method: EdgeMethod, error: Nanoseconds) -> None:
        """Put a mistake into the software's correlation of clocks: the edges move by it, within U.

        A check of the bench: what the target does wrong has to show.

        Args:
            method: A way that correlates clocks.
            error: How much later the edges are to come, with its unit.
        """
        right = self.lab.trial(self.lab.method_plan(method, check=True))
        wrong = self.lab.trial(self.lab.method_plan(method, error.value_ns, check=True))
        context = self._context([right, wrong], method=method, phase="correlation error")
        record = shift_measurement(right.trial, wrong.trial, SHIFT_REQUIREMENT, error.value_ns, context)
        for run in (right, wrong):
            _say_delays(run.trial)
        self._finish_all([right, wrong], [record])

    @keyword
    def edges_of_the_clock_should_keep_its_limits(self, clock: ClockStack) -> None:
        """Put a clock stack on the target and let its clock make edges; judge its offset by them.

        `bw-clock compare` measures the same meanwhile; the report has both. A clock that does not lock leaves
        records without a value: `unset`.

        Args:
            clock: A stack that keeps a clock of the target; skipped where the profile does not name it.
        """
        lab = self.lab
        judges(*(each.id for each in self._judged.all if each.subject == ("clock", clock)))
        if clock not in lab.times.clocks:
            raise SkipExecution(f"profile {lab.clocks.profile.name} watches no edges of {clock}")
        try:
            run, _compared = self._clock_runs[clock] = lab.clock_trial(self._clock(clock))
        except MeasurementError as error:
            keep(self._unset_clock_records(clock, str(error)))
            raise
        _say_offset(run.trial)
        self._finish(run, self._clock_records(run))

    @keyword
    def three_witnesses_should_agree(self, clock: ClockStack = DISCIPLINE) -> None:
        """See a clock in three ways at the same time; every two have to agree within their uncertainties.

        Cross-timestamps of clock and PHC, the clock's edges captured by the network card, and the same edges
        on the oscilloscope. Where the clock's edges have been watched on this bench already, they count.

        Args:
            clock: A stack that follows the PHC.
        """
        pin_of(self.lab.target, EdgeRole.CAPTURE)
        run, compared = self._clock_runs.get(clock) or self.lab.clock_trial(self._clock(clock))
        witnesses = clock_witnesses(run, compared)
        write_witnesses(run.folder, witnesses)
        for witness in witnesses.witnesses:
            found = format_measured(witness.offset_ns, "ns") if witness.failed == "" else witness.failed
            say(f"{clock}: {witness.name}: {found}")
        context = self._context([run], clock=clock, phase="witnesses")
        evidence = (*context.evidence, current_run().evidence(run.folder / WITNESSES))
        records = witness_measurements(
            witnesses, WITNESS_REQUIREMENT, PAIRS_MIN, replace(context, evidence=evidence)
        )
        self._finish(run, records)

    @property
    def lab(self) -> EdgeLab:
        """Return the lab that `Start Edge Bench` has opened."""
        if self._lab is None:
            raise MeasurementError("no edges: call `Start Edge Bench` first")
        return self._lab

    # -- inside

    @property
    def _judged(self) -> TimedEdgeRequirements:
        if self._requirements is None:
            raise MeasurementError("no requirements: call `Start Edge Bench` first")
        return self._requirements

    def _clock(self, clock: str) -> Requirement:
        stacks = simulated_stacks_of_variables()
        own = [] if stacks is None else [stacks / clock / STACKS_OWN]
        return lock_requirement([*self._clock_paths, *filter(Path.exists, own)], clock)

    def _run(self, method: str) -> EdgeRun:
        if method not in self._runs:
            raise MeasurementError(f"{method}: was not measured in this suite")
        return self._runs[method]

    def _method_records(self, run: EdgeRun) -> list[Measurement]:
        context = self._context([run], method=run.trial.method, phase="edges")
        return _measure(QUANTITY, run.trial, self._judged.of_method(run.trial.method), context)

    def _clock_records(self, run: EdgeRun) -> list[Measurement]:
        context = self._context([run], clock=run.trial.clock, phase="edges")
        return _measure(OFFSET_QUANTITY, run.trial, self._judged.of_clock(run.trial.clock), context)

    def _unset_clock_records(self, clock: str, reason: str) -> list[Measurement]:
        """Return a record for each requirement on a clock that came to no trial."""
        context = self._context([], clock=clock, phase="edges")
        return [
            unmeasured_edges(
                reason, OFFSET_QUANTITY, one.statistic, one.id, _limit(one), one.samples, context
            )
            for one in self._judged.of_clock(clock)
        ]

    def _context(
        self, runs: Sequence[EdgeRun], *, phase: str, method: str | None = None, clock: str | None = None
    ) -> Context:
        run, lab = current_run(), self.lab
        files = [each.folder / TRIAL for each in runs]
        files += [each.folder / each.trial.software_file for each in runs if each.trial.software_file]
        return Context(
            run_id=run.run_id,
            test=running_test(),
            subject=Subject(lab.bench.spec.name, lab.target.kind, clock=clock, method=method),
            conditions=Conditions(lab.clocks.profile.name, phase),
            simulated=lab.bench.spec.simulated,
            evidence=tuple(run.evidence(file) for file in files),
        )

    def _finish(self, run: EdgeRun, records: Sequence[Measurement]) -> None:
        self._finish_all([run], records)

    def _finish_all(self, runs: Sequence[EdgeRun], records: Sequence[Measurement]) -> None:
        """Write the records; an instrument that failed is an error of the bench, else they decide."""
        keep(records)
        for run in runs:
            if run.fault is not None:
                raise run.fault
        require_passed(records)

    def _judge(self, records: Sequence[Measurement]) -> None:
        keep(records)
        require_passed(records)


def _suite() -> str:
    """Return the name of the suite whose setup or teardown runs."""
    return str(BuiltIn().get_variable_value("${SUITE NAME}"))


def _measure(
    quantity: str, trial: EdgeTrial, requirements: Sequence[Requirement], context: Context
) -> list[Measurement]:
    return [
        edge_measurement(
            trial,
            quantity,
            one.statistic,
            one.id,
            _limit(one),
            one.samples,
            context,
            allowed_lost=one.lost_of(trial.counts.segments),
        )
        for one in requirements
    ]


def _limit(requirement: Requirement) -> Limit:
    return edge_limit(requirement.statistic, requirement.upper_ns, requirement.limit.source)


def _should_have_delays(trial: EdgeTrial) -> None:
    if trial.doubts or trial.delays is None:
        raise MeasurementError(f"{trial.name}: {'; '.join(trial.doubts) or 'no edge was seen'}")


def _say_delays(trial: EdgeTrial) -> None:
    delays = trial.delays
    if delays is None:
        say(f"{trial.name}: no delay")
        return
    mean, deviation, peak = (
        format_measured(value, "ns")
        for value in (delays.mean_ns, delays.deviation_ns, delays.maximum_ns - delays.minimum_ns)
    )
    lost = trial.counts.lost
    say(
        f"{trial.name}: {delays.count} edges, {lost} missing; {mean} late, standard deviation {deviation},"
        f" {peak} peak to peak"
    )


def _say_offset(trial: EdgeTrial) -> None:
    if trial.delays is None:
        say(f"{trial.clock}: no edge")
        return
    offset_ns = trial.correction_ns - trial.delays.mean_ns
    said = f"{trial.clock}: {format_measured(offset_ns, 'ns')} ahead by its edges"
    for other in trial.beside:
        said += f", {format_measured(other.offset_ns, 'ns')} by {other.source}"
    say(said)
