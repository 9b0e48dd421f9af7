# SPDX-License-Identifier: Apache-2.0
"""Timed edges of a target against a periodic reference, seen by an oscilloscope: one trial after the other.

The reference runs, the software makes its edges, and the oscilloscope is armed and read until there are
enough pairs. Nothing asks the target anything meanwhile.
"""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from hw.edges import CapturedEdges, EdgeRole
from hw.errors import BenchError, BenchwrightError, CapabilityError, MeasurementError
from hw.open_bench import OpenBench
from hw.oscilloscopes import OscilloscopeSpec
from hw.protocols import Job, TimedOutput
from reports.clock_sync.server_replies import silence_causes
from reports.clock_sync.trial import ClockTrial
from reports.clock_sync.verdict import sync_uncertainty
from reports.requirements import Requirement
from reports.timed_edges.trial import (
    CAPTURE,
    CLOCK_EDGE,
    OSCILLOSCOPE,
    BudgetPart,
    Budgets,
    Counts,
    EdgeTrial,
    OtherView,
    write_edge_trial,
)
from reports.units import NS_PER_S
from resources.clock_sync.lab import ClockLab
from resources.clock_sync.settings import SYSTEM_CLOCK, ClockSettings
from resources.clock_sync.stack import ClockStack
from resources.clock_sync.trial import TrialSettings
from resources.profiles import times_of
from resources.timed_edges.acquisition import Observation, watch_edges
from resources.timed_edges.device import EdgeDevice, run_edge_device
from resources.timed_edges.evidence import (
    NO_LIMITS,
    budgets_of,
    correction_of,
    counts_of,
    delays_of,
    keep_waveforms,
)
from resources.timed_edges.settings import TIMES, EdgeTimes, edge_times, load_view
from resources.timed_edges.software import (
    ART_TICK_NS,
    LATCH_METHOD,
    PHC_TICK_NS,
    EdgeCommand,
    doubts_of,
    latch_options,
    latched_delays,
    run_options,
    sampled_budgets,
    software_result,
)
from resources.tools.experiment import Experiment
from scope.errors import WaveformError

SOFTWARE = "software"
ENDING_S = 20.0
FIRST_EDGE_S = 0.3
"""The software's first edge comes so long after it is ready, at the latest."""
PIN_TICKS = {"tgpio-filtered-read": 0.5, LATCH_METHOD: 1.0, CLOCK_EDGE: 0.5}
"""By method, ticks of TGPIO that lie between an instant and its edge: half a one to either side where it
fires, and as many where it latches."""
COMPARE_SHARE, COMPARE_SPARE_S = 6.0, 8
"""A clock is compared so many times as long as its edges take, and so much longer: reading takes time."""
COVERED = 0.8
"""Share of the look of the oscilloscope that a comparison has to have seen."""
LATCH_S = 0.05
"""What a latched edge may take at most, on average."""
DISCIPLINE = "phc2sys"
"""The stack that holds the system's clock to the PHC, for software that asks it."""


@dataclass(frozen=True)
class EdgePlan:
    """One trial.

    Attributes:
        name: Unique in the run; of its folder too.
        method: One of METHODS, or CLOCK_EDGE.
        wanted: Pairs.
        period_ns: From one edge to the next.
        reference: Whose edges the delays count from.
        clock: Stack that the target's clock follows, where that matters.
        correlation_error_ns: A mistake that is put into the software.
        captures: Whether the edges are captured by the network card, too.
        device: The clock that this stack keeps, as `bw-clock` names it.
    """

    name: str
    method: str
    wanted: int
    period_ns: int
    reference: EdgeRole = EdgeRole.REFERENCE
    clock: str = ""
    correlation_error_ns: int = 0
    captures: bool = False
    device: str = SYSTEM_CLOCK

    @property
    def view(self) -> str:
        """Return what the oscilloscope is to show."""
        if self.method != CLOCK_EDGE:
            return self.method
        return f"{CLOCK_EDGE}-{'phc' if self.reference is EdgeRole.REFERENCE else 'timecard'}"


@dataclass(frozen=True)
class EdgeRun:
    """A trial that is written, and what went wrong with it.

    Attributes:
        trial: As its folder holds it.
        folder: Its evidence.
        fault: What is to be raised once it is judged; None: nothing.
        captured: What the network card captured of the edges; None: it was not asked to.
        watched_s: When the oscilloscope began and ended to look, by time.monotonic.
    """

    trial: EdgeTrial
    folder: Path
    fault: BenchwrightError | None = None
    captured: CapturedEdges | None = None
    watched_s: tuple[float, float] = (0.0, 0.0)


class EdgeLab:
    """A bench whose target makes edges that an oscilloscope sees. Use with `with`, in an open ClockLab."""

    def __init__(self, clocks: ClockLab, oscilloscope: str) -> None:
        """Prepare; nothing is started.

        Args:
            clocks: Open: its timecards are served. Evidence goes to its folder.
            oscilloscope: Name in the bench file; empty: the first one.

        Raises:
            CapabilityError: The bench has no such oscilloscope, or the target no pins.
            ConfigError: The profile does not say how many edges.
        """
        self.clocks = clocks
        self.bench: OpenBench = clocks.bench
        self.target = clocks.target
        self.folder = clocks.folder
        self.times: EdgeTimes = times_of(clocks.profile.name, TIMES, edge_times)
        self.scope: OscilloscopeSpec = _scope_spec(self.bench, oscilloscope)
        self._stack = ExitStack()
        self._device = EdgeDevice()

    def __enter__(self) -> EdgeLab:
        """Start what makes the edges, where they are not hardware."""
        device = run_edge_device(self.bench, self.target.kind, self.scope.name, self.folder / "edge-device")
        self._device = self._stack.enter_context(device)
        return self

    def __exit__(self, *_: object) -> None:
        """End what was started; logs stay in the folder."""
        self._stack.close()

    @contextmanager
    def disciplined(self, requirement: Requirement, folder: Path) -> Generator[ClockStack, None, None]:
        """Run a clock stack on the target and wait for its lock.

        The PHC is left as it is: to make it wander, as measurements of phc2sys do, would move the reference
        edges, which are its own.

        Raises:
            MeasurementError: It did not lock in time, or a daemon died.
        """
        self.clocks.progress(f"{requirement.of}: starting on {self.target.node}")
        settings = ClockSettings(phc_wander=None)
        stack = ClockStack(self.bench, self.target, requirement.of, settings, folder, self.clocks.progress)
        with stack:
            lock = stack.wait_locked(requirement.lock_within_s)
            self.clocks.progress(f"{requirement.of}: locked after {lock.after_s:.1f} s")
            yield stack
            stack.require_running()

    # -- trials

    def method_plan(self, method: str, correlation_error_ns: int = 0, *, check: bool = False) -> EdgePlan:
        """Return the trial of a method.

        Args:
            method: One of METHODS.
            correlation_error_ns: A mistake that is put into the software.
            check: Whether it is a trial of the check that such a mistake shows, which takes fewer edges.
        """
        suffix = f"-{correlation_error_ns}-ns-wrong" if correlation_error_ns else "-right" if check else ""
        return EdgePlan(
            name=method + suffix,
            method=method,
            wanted=self.times.error_edges if check else self.times.edges,
            period_ns=self.times.period_ns,
            clock=DISCIPLINE if method == "gettime-software" else "",
            correlation_error_ns=correlation_error_ns,
        )

    def clock_plan(self, clock: str) -> EdgePlan:
        """Return the trial of a clock's own edges: against the PHC, which captures them, if it follows it."""
        spec = self.clocks.stack_spec(clock)
        follows_phc = spec.needs_phc
        return EdgePlan(
            name=f"{CLOCK_EDGE}-{clock}",
            method=CLOCK_EDGE,
            wanted=self.times.clock_edges,
            period_ns=self.times.clock_period_us * 1000,
            reference=EdgeRole.REFERENCE if follows_phc else EdgeRole.TIMECARD_REFERENCE,
            clock=clock,
            captures=follows_phc and self.target.edges is not None and self.target.edges.capture is not None,
            device=spec.device,
        )

    def trial(self, plan: EdgePlan) -> EdgeRun:
        """Let the software make edges, watch them, and write the evidence.

        Raises:
            BenchError: The reference, the software or the edge device did not start or end.
            CapabilityError: The target lacks a pin.
        """
        folder = self.folder / plan.name
        folder.mkdir(parents=True, exist_ok=True)
        view = load_view(plan.view, self.bench.spec.simulated)
        self.clocks.progress(f"{plan.name}: {plan.wanted} edges, one every {plan.period_ns / 1e6:.7g} ms")
        captured = None
        with ExitStack() as stack, Experiment(self.bench) as experiment:
            oscilloscope = self.bench.instruments.oscilloscope(self.scope.name)
            stack.callback(oscilloscope.close)
            reference = self.bench.instruments.timed_output(self.target.kind, plan.reference, folder)
            stack.callback(_stop, reference)
            start_ns = reference.start_periodic(plan.period_ns)
            command = EdgeCommand(
                plan.method, plan.period_ns, start_ns, plan.correlation_error_ns, plan.device
            )
            job = self._start(experiment, "run", run_options(self.target, command), folder)
            time.sleep(FIRST_EDGE_S)
            capture = None
            if plan.captures:
                capture = self.bench.instruments.edge_capture(self.target.kind, EdgeRole.CAPTURE, folder)
                capture.start(plan.wanted * 100, self.times.trial_max_s * 1000)
            began_s = time.monotonic()
            watched = watch_edges(
                oscilloscope,
                self.scope,
                view,
                plan.wanted,
                plan.period_ns,
                self.times.trial_max_s,
                self.clocks.progress,
            )
            watched_s = (began_s, time.monotonic())
            if capture is not None:
                captured = capture.stop()
            self._device.require_running()
            doubts = _ended(job, folder / f"{SOFTWARE}.ndjson")
        trial = self._evidence(plan, folder, watched, doubts)
        write_edge_trial(folder, trial)
        return EdgeRun(trial, folder, _fault(watched), captured, watched_s)

    def latch_trial(self, method: str) -> EdgeRun:
        """Let software note the time around its own edge, and the network card latch it (Listing 1).

        Raises:
            BenchError: The software did not start or end.
            CapabilityError: The target lacks a pin.
        """
        name = f"{method}-latched"
        folder = self.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        wanted = self.times.latches
        self.clocks.progress(f"{name}: {wanted} edges")
        with Experiment(self.bench) as experiment:
            job = self._start(experiment, "latch", latch_options(self.target, method, wanted), folder)
            job.wait(max(self.times.trial_max_s, wanted * LATCH_S) + ENDING_S)
            answer = job.fetch()
        result = software_result(answer)
        delays = latched_delays(result)
        count = 0 if delays is None else delays.count
        trial = EdgeTrial(
            name=name,
            method=method,
            clock=DISCIPLINE if method == "gettime-software" else "",
            reference="phc",
            seen_by=CAPTURE,
            oscilloscope="",
            period_ns=0,
            correlation_error_ns=0,
            wanted=wanted,
            delays=delays,
            budgets=sampled_budgets(delays, PHC_TICK_NS),
            counts=Counts(wanted=wanted, pairs=count, missing=max(0, wanted - count)),
            doubts=tuple(doubts_of(result)),
            software_file=answer.name,
        )
        write_edge_trial(folder, trial)
        return EdgeRun(trial, folder)

    def clock_trial(self, requirement: Requirement) -> tuple[EdgeRun, ClockTrial]:
        """Put a clock stack on the target and watch the clock's own edges, beside `bw-clock compare`.

        Raises:
            MeasurementError: It did not lock in time, or a tool came to no result.
            BenchError: Something of the bench did not start or end.
        """
        plan = self.clock_plan(requirement.of)
        folder = self.folder / plan.name
        runs: list[EdgeRun] = []
        began_s: list[float] = []

        def watch() -> None:
            began_s.append(time.monotonic())
            runs.append(self.trial(plan))

        with self.disciplined(requirement, folder / "stack") as stack:
            facts = self.clocks.facts(stack, "edges", None)
            edges_s = plan.wanted * plan.period_ns * 1e-9
            settings = TrialSettings(
                math.ceil(COMPARE_SHARE * edges_s) + COMPARE_SPARE_S, sequential=False, two_way=False
            )
            compared = self.clocks.measured(stack, facts, settings, folder / "compare", watch)
        run = doubted(runs[0], silence_causes(compared))
        span_s = (run.watched_s[0] - began_s[0], run.watched_s[1] - began_s[0])
        view = compared_meanwhile(compared, span_s)
        if view is not None:
            run = replace(run, trial=replace(run.trial, beside=(view,)))
            write_edge_trial(run.folder, run.trial)
        return run, compared

    # -- inside

    def _start(self, experiment: Experiment, verb: str, options: list[str], folder: Path) -> Job:
        argv = [self.bench.tool(self.target.node, "bw-edge"), verb, *options]
        job = experiment.start(self.target.node, argv, folder / SOFTWARE)
        experiment.wait_ready([job])
        return job

    def _evidence(self, plan: EdgePlan, folder: Path, watched: Observation, doubts: list[str]) -> EdgeTrial:
        correction = correction_of(self.scope, datetime.now(UTC).date(), serial_of(watched.instrument))
        doubts = [*doubts, *correction.doubts, *([] if self.scope.limits is not None else [NO_LIMITS])]
        budgets = budgets_of(self.scope, watched.result, correction)
        budgets = with_resolution(budgets, PIN_TICKS.get(plan.method, 0.0))
        return EdgeTrial(
            name=plan.name,
            method=plan.method,
            clock=plan.clock,
            reference="phc" if plan.reference is EdgeRole.REFERENCE else "timecard",
            seen_by=OSCILLOSCOPE,
            oscilloscope=watched.instrument,
            period_ns=plan.period_ns,
            correlation_error_ns=plan.correlation_error_ns,
            wanted=plan.wanted,
            delays=None if watched.result is None else delays_of(watched.result.delays),
            budgets=budgets,
            counts=counts_of(watched),
            doubts=tuple(doubts),
            failed=watched.failed,
            correction_ns=correction.delay_s * 1e9,
            settings=watched.settings,
            software_file=f"{SOFTWARE}.ndjson" if (folder / f"{SOFTWARE}.ndjson").exists() else "",
            waveforms_file=keep_waveforms(self.scope, watched.frames, folder),
        )


def doubted(run: EdgeRun, causes: Sequence[str]) -> EdgeRun:
    """Write down why nothing may pass on a run that is over; without a cause it stays as it is.

    Args:
        run: Its evidence is written.
        causes: In words.
    """
    if not causes:
        return run
    run = replace(run, trial=replace(run.trial, doubts=(*run.trial.doubts, *causes)))
    write_edge_trial(run.folder, run.trial)
    return run


def compared_meanwhile(compared: ClockTrial, span_s: tuple[float, float]) -> OtherView | None:
    """Return what `bw-clock compare` found while the oscilloscope looked; None: it ended too early for that.

    Args:
        compared: The clock against its reference.
        span_s: Begin and end of the look, after that of the comparison: known to some tenths of a second.
    """
    found = compared.filtered
    first_ns, last_ns = (found.start_tai_ns + round(end_s * NS_PER_S) for end_s in span_s)
    points = [point for point in found.series if first_ns <= point.time_tai_ns <= last_ns]
    n = sum(point.n for point in points)
    seen_ns = points[-1].time_tai_ns - points[0].time_tai_ns if n else 0
    if seen_ns < COVERED * (last_ns - first_ns):
        return None
    mean_ns = sum(point.mean_ns * point.n for point in points) / n
    return OtherView("bw-clock compare", mean_ns, sync_uncertainty(compared).expanded, n)


def serial_of(identity: str) -> str:
    """Return the serial number in a reply to `*IDN?` (maker, model, serial number, firmware)."""
    fields = identity.split(",")
    return fields[2].strip() if len(fields) > 2 else ""


def with_resolution(budgets: Budgets, ticks: float) -> Budgets:
    """Add to a mean what TGPIO's ticks hide of the instants that were meant: all edges may fall alike.

    Args:
        budgets: Of the delays.
        ticks: How many, at most, to either side.
    """
    if budgets.mean is None or not ticks:
        return budgets
    part = BudgetPart("pin_resolution", "bound", ticks * ART_TICK_NS)
    return replace(budgets, mean=(*budgets.mean, part))


def _scope_spec(bench: OpenBench, name: str) -> OscilloscopeSpec:
    specs = bench.spec.oscilloscopes
    spec = specs.get(name) if name else next(iter(specs.values()), None)
    if spec is None:
        raise CapabilityError(
            f"bench {bench.spec.name}: no oscilloscope {name or 'at all'}; add it to"
            f" benchwright.oscilloscopes of {bench.spec.path}"
        )
    return spec


def _stop(output: TimedOutput) -> None:
    with suppress(BenchError):
        output.stop()


def _ended(job: Job, answer: Path) -> list[str]:
    """End the software and return what it says against its own edges."""
    job.stop()
    job.wait(ENDING_S)
    job.fetch()
    try:
        return doubts_of(software_result(answer))
    except MeasurementError as error:
        return [str(error)]


def _fault(watched: Observation) -> BenchwrightError | None:
    """Return the error that a trial ends with: samples without a signal are an invalid measurement."""
    if watched.fault is None:
        return None
    kind = MeasurementError if isinstance(watched.fault, WaveformError) else BenchError
    error = kind(watched.failed)
    error.__cause__ = watched.fault
    return error
