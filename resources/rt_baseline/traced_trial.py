# SPDX-License-Identifier: Apache-2.0
"""Hardware noise and late wake-ups of a target by its kernel's own tracers, with rtla.

A second instance of the tracer, and its events, are recorded meanwhile: their times are held against the
bench's witness. The kernel has osnoise or timerlat at a time: one after the other.
"""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hw.answers import tail
from hw.bench import TargetSpec
from hw.errors import CapabilityError, MeasurementError
from hw.open_bench import OpenBench
from hw.protocols import Node
from reports.control_loops.load import KnownLoad
from reports.errors import ReportError
from reports.rt_baseline.emulator import VCPU
from reports.rt_baseline.noise import EVENT, TABLE, NoiseFacts, write_noise
from reports.rt_baseline.noise import FOLDER as NOISE_FOLDER
from reports.rt_baseline.timerlat import FOLDER as TIMERLAT_FOLDER
from reports.rt_baseline.timerlat import HISTOGRAM, KINDS, TimerlatFacts, keep_timerlat
from reports.rt_baseline.traced import CLOCKS, RING, WITNESS
from resources.clock_sync.two_way_trial import ask_clocks
from resources.control_loops.loads import known_load
from resources.loads.kinds import load_of
from resources.loads.load import Load
from resources.rt_baseline.wakeup_trial import (
    ENDING_S,
    LATE_SHARE,
    PRIORITY,
    STARTING_S,
    WITNESS_MAX_MS,
    keep_pauses,
    machine_of,
    said_end,
)
from resources.tools.experiment import Experiment, silence
from resources.tools.kernel_recorder import KernelEvents, kernel_recorded
from resources.tools.witness import add_witness

PROGRAM = "rtla"
PACKAGE = "rtla"
THRESHOLD_US = 10
"""As hwlatdetect has it."""
NOISE_PERIOD_US, NOISE_RUNTIME_US = 500_000, 375_000
"""Three quarters of the time interrupts are off, as rtla has it; half as long at a time."""
TIMERLAT_PERIOD_US = 1000
ENTRIES = 9999
"""Of timerlat's histogram: rtla has no more."""
BUFFER_KB, SMALL_KB = 32_768, 64
CLOCK_S = 1


Failure = CapabilityError | MeasurementError


@dataclass(frozen=True)
class AskedTraces:
    """How long each is measured, 0: not at all, and beside which load; empty: none."""

    noise_s: int
    timerlat_s: int
    load: str = ""


@dataclass(frozen=True)
class Traces:
    """What came of it.

    Attributes:
        noise_failed: Why there is no `noise.json`; None: there is.
        split: Of the late wake-ups, or why there is none.
    """

    noise_failed: Failure | None
    split: TimerlatFacts | Failure


def measure_traces(bench: OpenBench, target: TargetSpec, asked: AskedTraces, folder: Path) -> Traces:
    """Look for hardware noise on a target, let timerlat wake up its threads, and write the evidence.

    A kernel without such a tracer, a target without rtla, and an rtla that does not come to its end cost
    their own figure alone.

    Args:
        bench: An open bench; the target is on.
        target: Where.
        asked: How long.
        folder: Of the case (reports/rt_baseline/noise.py, timerlat.py).

    Raises:
        BenchError: A node or a tool does not work.
    """
    places = noise, timerlat = folder / NOISE_FOLDER, folder / TIMERLAT_FOLDER
    for place in places:
        place.mkdir(parents=True, exist_ok=True)
    node, machine = bench.node(target.node), machine_of(bench, target)
    failed: dict[Path, Failure] = {}
    recordings = _noise(asked.noise_s), _timerlat(asked.timerlat_s)
    for place, what in zip(places, recordings, strict=True):
        try:
            if not what.within_s:
                raise CapabilityError(f"{what.tracer}: not asked for")
            require_tracer(node, what)
        except CapabilityError as error:
            failed[place] = error
    is_asked = machine == "guest" and len(failed) < len(places)
    if is_asked:
        _ask(bench, node.name, places, CLOCKS[0])
    loads: dict[Path, KnownLoad | None] = {}
    for place, what in zip(places, recordings, strict=True):
        try:
            if place not in failed:
                loads[place] = _traced(bench, target, what, asked.load, place)
        except (CapabilityError, MeasurementError) as error:
            failed[place] = error
    if is_asked:
        _ask(bench, node.name, places, CLOCKS[1])
    if noise not in failed:
        own = NOISE_PERIOD_US, NOISE_RUNTIME_US, machine, loads[noise]
        write_noise(noise, NoiseFacts(target.kind, THRESHOLD_US, *own))
    if timerlat in failed:
        return Traces(failed.get(noise), failed[timerlat])
    how = TimerlatFacts(target.kind, TIMERLAT_PERIOD_US, ENTRIES, machine, load=loads[timerlat])
    try:
        return Traces(failed.get(noise), keep_timerlat(timerlat, how))
    except ReportError as error:
        return Traces(failed.get(noise), MeasurementError(str(error)))


@dataclass(frozen=True)
class Recorded:
    """A run of rtla, and what is recorded beside it.

    Attributes:
        tracer: As the kernel calls it.
        events: See `KernelEvents`.
        words: The command line.
        printed: File for what it prints.
        period_us: A guest has something to do at least as often.
        within_s: How long it takes.
    """

    tracer: str
    events: tuple[str, ...]
    words: list[str]
    printed: str
    period_us: int
    within_s: int

    def kernel_events(self, buffer_kb: int) -> KernelEvents:
        """Return what is recorded, in a buffer of so much a CPU."""
        return KernelEvents(self.events, buffer_kb, clock="tai", name="rt_baseline")


def _noise(within_s: int) -> Recorded:
    words = [
        PROGRAM, "hwnoise", "--quiet", "--duration", f"{within_s}s", "--threshold", str(THRESHOLD_US),
        "--period", str(NOISE_PERIOD_US), "--runtime", str(NOISE_RUNTIME_US),
    ]  # fmt: skip
    return Recorded("osnoise", (EVENT,), words, TABLE, NOISE_PERIOD_US, within_s)


def _timerlat(within_s: int) -> Recorded:
    words = [
        PROGRAM, "timerlat", "hist", "--kernel-threads", "--no-aa", "--duration", f"{within_s}s",
        "--period", str(TIMERLAT_PERIOD_US), "--priority", f"f:{PRIORITY}",
        "--bucket-size", "1", "--entries", str(ENTRIES),
    ]  # fmt: skip
    events = "tracer:timerlat", *(f"?{name}" for _, names in KINDS for name in names)
    return Recorded("timerlat", events, words, HISTOGRAM, TIMERLAT_PERIOD_US, within_s)


def require_tracer(node: Node, what: Recorded) -> None:
    """Raise CapabilityError where the kernel of a node lacks a tracer or its events, or the node rtla."""
    try:
        with kernel_recorded(node, what.kernel_events(SMALL_KB)):
            pass
    except CapabilityError as error:
        raise CapabilityError(f"no tracer {what.tracer}: {error}") from error
    if node.run(["sh", "-c", f"command -v {PROGRAM}"], check=False).exit_code:
        raise CapabilityError(f"{node.name} has no {PROGRAM}: install Debian's package {PACKAGE} there")


def _traced(
    bench: OpenBench, target: TargetSpec, what: Recorded, load_kind: str, folder: Path
) -> KnownLoad | None:
    """Record while rtla runs, and return what the load came to."""
    node = bench.node(target.node)
    is_guest = machine_of(bench, target) == "guest"
    threads = bench.virtual.emulating_threads(node.name) if is_guest else {}
    emulated = {name: tid for name, tid in threads.items() if name.startswith(VCPU)}
    with Experiment(bench) as experiment:
        stem = folder / Path(WITNESS).stem
        witness = add_witness(experiment, stem, WITNESS_MAX_MS, emulated, bench.virtual.target_account())
        load = None
        if load_kind:
            lasts_s = math.ceil(what.within_s * (1 + LATE_SHARE)) + STARTING_S
            load = Load(bench, load_of(load_kind, node.name, lasts_s, {}), folder)
            load.start(experiment)
        began_ns = time.time_ns()
        with kernel_recorded(node, what.kernel_events(BUFFER_KB)) as recorder:
            job = experiment.start(node.name, what.words, folder / PROGRAM)
            silence(bench, time.monotonic() + what.within_s, [node.name])
            code = job.wait(what.within_s * (1 + LATE_SHARE) + ENDING_S)
            ended_ns = time.time_ns()
            said = job.fetch()
            if load is not None:
                load.end()
            recorder.end(folder / RING)
        if witness is not None:
            witness.stop()
            experiment.collect(witness, ENDING_S).require_done()
    if code:
        raise MeasurementError(
            f"{PROGRAM} on {node.name} {said_end(code)} ({tail(said.with_suffix('.err'))})"
        )
    said.replace(folder / what.printed)
    if witness is not None and emulated:
        keep_pauses(folder, [*emulated], what.period_us, (began_ns, ended_ns))
    return known_load(load, folder) if load else None


def _ask(bench: OpenBench, node: str, folders: Sequence[Path], name: str) -> None:
    """Ask for a guest's clock, for several folders; where nobody can, nothing is held against the machine."""
    try:
        ask_clocks(bench, {name: node}, CLOCK_S, folders[0])
        for folder in folders[1:]:
            shutil.copy(folders[0] / name, folder / name)
    except (CapabilityError, MeasurementError):
        for folder in folders:
            (folder / name).unlink(missing_ok=True)
