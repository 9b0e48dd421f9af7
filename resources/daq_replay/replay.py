# SPDX-License-Identifier: Apache-2.0
"""One replay of a pattern into a target: agree on an instant, start all nodes, wait in silence, collect.

Nothing travels over SSH to a node between the last `ready` and the end of the measurement.
"""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from hw.bench import TargetSpec
from hw.errors import BenchError, BenchwrightError, CapabilityError, MeasurementError
from hw.open_bench import OpenBench
from hw.protocols import Job
from reports.daq_replay.emulation import TARGET_WITNESS
from reports.daq_replay.kernel_moments import KERNEL_RING
from reports.daq_replay.stack_proof import DELIVERED, StackEnd, StackProof
from resources.clock_sync.lines import (
    CLOCK_MEASURING_MS,
    ClockLine,
    clocks_of,
    measure_clock_lines,
    served_clock_lines,
)
from resources.clock_sync.tai_utc import common_tai_utc_s
from resources.daq_replay.machine_use import keep_machine_use, said_of_machine
from resources.daq_replay.pattern import Pattern
from resources.daq_replay.plan import ReplaySettings, new_nonce, write_plan
from resources.daq_replay.stack_used import SYSTEMS_OWN, StartedProgram, write_stack_used
from resources.network_stack import BOTH, NetworkStack
from resources.network_stack_ends import counters, frame_bytes
from resources.tools.capture import capture_file, start_capture
from resources.tools.experiment import DONE, INVALID, Experiment, silence
from resources.tools.fetched import fetch_known
from resources.tools.kernel_recorder import SCHEDULING, KernelEvents, KernelRecorder, kernel_recorded
from resources.tools.witness import start_witness

Progress = Callable[[str], None]

LEADS_S = (3.0, 6.0, 12.0)
"""From making the plan to slot 0: when a tool is not ready by then, all start again with the next one."""
RECV_FILES = ("misses.ndjson", "messages.csv", TARGET_WITNESS)
"""What `bw-traffic recv` leaves in its folder."""
ENDING_S = 15.0
"""What a tool may take to its end after the silence."""
TARGET_EVENTS = KernelEvents(SCHEDULING, buffer_kb=16_384, overwrite=True, name="replay_recorder")
"""Of each processor half a million events: the last half minute of an emulated target."""
DISK_FULL_BYTES = 16_384
"""With less than this the answer of a tool does not fit."""


@dataclass(frozen=True)
class ReplayAnswers:
    """What a replay left behind. All files are in `folder`."""

    folder: Path
    recv: dict[str, Any]
    lines_before: dict[str, ClockLine]
    lines_after: dict[str, ClockLine]
    """Once more after the replay, where its stamps are not corrected; else empty."""
    captures: list[Path]
    faults: list[str] = field(default_factory=list[str])
    """What only who collected them has seen go wrong."""


@dataclass(frozen=True)
class _Programs:
    start_ns: int
    recv: Job
    sends: dict[str, Job]
    witness: Job | None
    captures: list[Job]


class Replay:
    """A replay in the making; `run` does it all."""

    def __init__(
        self,
        bench: OpenBench,
        target: TargetSpec,
        pattern: Pattern,
        settings: ReplaySettings,
        folder: Path,
        progress: Progress,
    ) -> None:
        """Prepare a replay.

        Args:
            bench: An open bench; the nodes of target and producers are powered on by `run`.
            target: The consumer.
            pattern: What is replayed.
            settings: How, and how long.
            folder: Evidence goes here.
            progress: Called with one line of text now and then.
        """
        self.bench = bench
        self.target = target
        self.pattern = pattern
        self.settings = settings
        self.folder = folder
        self.progress = progress
        self._recv_folder = ""
        self._nonce = ""
        self._programs: dict[str, StartedProgram] = {}
        self._measuring: Sequence[str] = ()
        self.capture_interfaces: tuple[str, ...] = ()
        """Interfaces of the capture node whose packets are kept as evidence."""
        self.log_messages = False
        """Keep every message, not only histograms and misses."""
        self.kernel_events = False
        """Record what the target's kernel does, as far as its rings reach back from the end."""
        self.watch_emulator = False
        """Let the witness watch what emulates the target, where something does, and write a series."""
        self.stack: tuple[str, NetworkStack] | None = None
        """A node, and the network stack that its programs use; None: everybody takes the system's own."""
        self.clock_lines: Mapping[str, ClockLine] | None = None
        """Lines that who asks has measured, and whose responders it lets run; None: the replay does both."""
        self.leads_s: Sequence[float] = LEADS_S
        """Of the starts of its tools, as LEADS_S."""
        self.starting_s = 0.0
        """What its tools took to be ready, from their plan on."""
        self.when_ready: Callable[[], None] | None = None
        """Called once when all tools are ready, before slot 0."""
        self.during: Callable[[float], None] | None = None
        """Called once when counting begins, with the seconds until it ends: a test may disturb the bench."""

    def run(self) -> ReplayAnswers:
        """Replay the pattern once.

        Raises:
            BenchError: A node died, a tool did not start or end, or this machine's disk is full.
            MeasurementError: A tool came to no result.
        """
        try:
            return self._run()
        except BenchwrightError as error:
            if shutil.disk_usage(self.folder).free < DISK_FULL_BYTES:
                raise BenchError(f"{self.folder}: No space left on device; {error}") from error
            raise

    def _run(self) -> ReplayAnswers:
        self.folder.mkdir(parents=True, exist_ok=True)
        spec = self.bench.spec
        numbers = self.settings.only_producers or self.pattern.producers
        nodes = sorted({spec.producers[number].node for number in numbers if number in spec.producers})
        self.bench.power_on([self.target.node, *nodes])
        agreed_s = common_tai_utc_s(self.bench, [self.target.node, *nodes], self.folder)
        self.settings = replace(self.settings, tai_utc_s=agreed_s)
        measured = clocks_of(spec, self.target, nodes, self.settings.synchronised_to)
        with Experiment(self.bench) as experiment, ExitStack() as stack:
            before = self.clock_lines
            if before is None:
                life_ms = self.settings.total_ms + 2 * CLOCK_MEASURING_MS + 60_000
                self.progress(f"measuring {len(measured)} clocks by two-way time transfer")
                before = served_clock_lines(experiment, measured, life_ms, self.folder)
            self._require_capable(before, spec.nodes[self.target.node].clock)
            experiment.keep(self._fetch_recv_files)
            counted = self._count(nodes)
            recorder = stack.enter_context(self._kernel_recorded())
            started = self._start_in_time(experiment, before, nodes, numbers)
            self._keep_stack_used()
            if self.when_ready is not None:
                self.when_ready()
            self._measuring = (self.target.node, *nodes)
            use = self.bench.virtual.machine_use()
            self._wait_in_silence(started.start_ns)
            if words := keep_machine_use(self.bench, use, self.folder):
                self.progress(words)
            self._keep_proof(counted, nodes)
            if recorder is not None:
                self._keep_kernel_events(recorder)
            answers = self._collect(experiment, started, before)
            if self.settings.correction != "none":
                return answers  # the consumer followed the clocks all the time
            after = measure_clock_lines(self.bench, measured, CLOCK_MEASURING_MS, self.folder / "after")
        return replace(answers, lines_after=after)

    @contextmanager
    def _kernel_recorded(self) -> Generator[KernelRecorder | None, None, None]:
        """Record the target's kernel while the context lasts, where that is asked for and can be had."""
        if not self.kernel_events:
            yield None
            return
        node = self.bench.node(self.target.node)
        with ExitStack() as stack:
            recorder = None
            try:
                recorder = stack.enter_context(kernel_recorded(node, TARGET_EVENTS))
            except CapabilityError as error:
                self.progress(f"kernel events are not recorded: {error}")
            yield recorder

    def _keep_kernel_events(self, recorder: KernelRecorder) -> None:
        """Fetch what was recorded; a replay counts without it, too."""
        try:
            recorder.end(self.folder / KERNEL_RING)
        except BenchError as error:
            self.progress(f"kernel events are not kept: {error}")

    def _require_capable(self, lines: Mapping[str, ClockLine], own_clock: str) -> None:
        """Refuse to measure what could not pass: a clock error as large as a budget leaves no value to pass.

        Raises:
            CapabilityError: Names the stream whose budget is the smallest, and both times.
        """
        if self.settings.correction == "none":
            return
        own_ns = lines[own_clock].bound_ns if own_clock in lines else 0
        numbers = self.settings.only_producers or self.pattern.producers
        for stream in sorted(self.pattern.streams, key=lambda stream: stream.budget_ns):
            if stream.producer not in numbers:
                continue
            line = lines[self.bench.spec.nodes[self.bench.spec.producers[stream.producer].node].clock]
            if line.bound_ns + own_ns >= stream.budget_ns:
                raise CapabilityError(
                    f"bench not capable: the clocks of producer {stream.producer} and the target are known to"
                    f" {(line.bound_ns + own_ns) / 1e6:.3f} ms, stream {stream.id} has a budget of"
                    f" {stream.budget_ns / 1e6:g} ms"
                )

    def _start_in_time(
        self,
        experiment: Experiment,
        lines: Mapping[str, ClockLine],
        nodes: Sequence[str],
        numbers: Sequence[int],
    ) -> _Programs:
        """Start all tools before slot 0, as part of an experiment.

        Where they are ready too late, or one of them found slot 0 past and ended, they start once more with a
        longer lead.

        Raises:
            BenchError: This machine is too slow for the longest lead, too; or a tool failed before slot 0.
        """
        late = ""
        for lead_s in self.leads_s:
            start_ns = _reference_now_ns(self.settings.tai_utc_s) + round(lead_s * 1e9)
            plans = self._plans(lines, numbers, start_ns)
            with Experiment(self.bench) as attempt:
                try:
                    started = self._start(attempt, plans, nodes, numbers, start_ns)
                except BenchError as error:
                    if self._late_ms(start_ns) <= 0:
                        raise
                    late = f"slot 0 was past before all tools were ready: {error}"
                else:
                    late_ms = self._late_ms(start_ns)
                    if late_ms <= 0:
                        experiment.take_over(attempt)
                        self.starting_s = lead_s + late_ms / 1000
                        return started
                    late = f"the tools were ready {late_ms:.0f} ms after slot 0"
            self.progress(f"{late}: starting them once more")
        raise BenchError(f"{late}: the bench is too slow")

    def _late_ms(self, start_ns: int) -> float:
        """Return by how much slot 0 is past; negative: it is still to come."""
        return (_reference_now_ns(self.settings.tai_utc_s) - start_ns) / 1e6

    def _plans(
        self, lines: Mapping[str, ClockLine], numbers: Sequence[int], start_ns: int
    ) -> tuple[Path, Path]:
        """Write the plans of producers and consumer: one file, unless the consumer's clock is not corrected.

        A target that is synchronised has the slots on the clock that it is synchronised to.
        """
        text, nonce = self.pattern.text(numbers), new_nonce()
        self._nonce = nonce
        plan = self.folder / "plan.toml"
        plan.write_text(write_plan(self.bench.spec, self.target, self.settings, lines, start_ns, text, nonce))
        if not self.settings.synchronised_to:
            return plan, plan
        consumer = self.folder / "plan-consumer.toml"
        scale = lines[self.settings.synchronised_to]
        consumer.write_text(
            write_plan(self.bench.spec, self.target, self.settings, lines, start_ns, text, nonce, scale)
        )
        return plan, consumer

    def _start(
        self,
        experiment: Experiment,
        plans: tuple[Path, Path],
        nodes: Sequence[str],
        numbers: Sequence[int],
        start_ns: int,
    ) -> _Programs:
        plan_file, consumer_plan = plans
        lead_ms = (start_ns - _reference_now_ns(self.settings.tai_utc_s)) // 1_000_000
        captures = [
            experiment.add(start_capture(self.bench, interface, self.folder))
            for interface in self.capture_interfaces
        ]
        witness = None
        emulated: Mapping[str, int] = {}
        if self.bench.spec.witness is not None:
            duration_ms = self.settings.total_ms + lead_ms
            if self.watch_emulator:
                emulated = self.bench.virtual.emulating_threads(self.target.node)
            witness = experiment.add(
                start_witness(
                    self.bench,
                    self.bench.spec.witness,
                    self.folder / "witness",
                    duration_ms,
                    emulated,
                    self.bench.virtual.target_account(),
                )
            )
        recv, *sends = experiment.start_at_once(
            [
                lambda: self._start_recv(consumer_plan, is_emulated=bool(emulated)),
                *(partial(self._start_send, node_name, numbers, plan_file) for node_name in nodes),
            ],
        )
        return _Programs(start_ns, recv, dict(zip(nodes, sends, strict=True)), witness, captures)

    def _start_recv(self, plan_file: Path, *, is_emulated: bool = False) -> Job:
        node = self.bench.node(self.target.node)
        remote = node.bring(plan_file)
        self._recv_folder = out = node.fresh_folder("recv")
        arguments = ["recv", remote, "--out", out, "--priority", str(node.priority)]
        if self.log_messages:
            arguments.append("--log")
        if is_emulated:  # is the target slow, or is it not run? (reports/daq_replay/emulation.py)
            arguments += ["--witness", f"{out}/{TARGET_WITNESS}"]
        return self._start_tool(self.target.node, arguments, self.folder / "recv")

    def _start_tool(self, node_name: str, arguments: Sequence[str], stem: Path) -> Job:
        """Start bw-traffic on a node, where it may use a network stack."""
        _, stack = self.stack or ("", None)
        if stack is not None and self._uses_stack(node_name):
            job, program = stack.start(self.bench, node_name, arguments, stem)
        else:
            program = StartedProgram(node_name, (self.bench.tool(node_name), *arguments))
            job = self.bench.node(node_name).start(program.command, stem)
        self._programs[stem.name] = program
        return job

    def _uses_stack(self, node_name: str) -> bool:
        node, stack = self.stack or ("", None)
        return stack is not None and (stack.endpoints == BOTH or node == node_name)

    def _keep_stack_used(self) -> None:
        """Keep how each program was started, as evidence."""
        _, stack = self.stack or ("", None)
        proof = None if stack is None else stack.proof
        counted = None if proof is None else DELIVERED[proof.frame_bytes is None]
        write_stack_used(
            self.folder,
            self._nonce,
            SYSTEMS_OWN if stack is None else stack.name,
            self.target.node,
            counted,
            self._programs,
        )

    def _count(self, nodes: Sequence[str]) -> dict[str, StackEnd]:
        """Ask the ends of the stack what they have counted so far; empty: it cannot be asked."""
        _, stack = self.stack or ("", None)
        if stack is None or stack.proof is None:
            return {}
        ends = dict.fromkeys(name for name in (self.target.node, *nodes) if self._uses_stack(name))
        for name in ends:
            stack.bring(self.bench, name)  # by the kernel's stack: not while it is counted
        return {name: counters(stack, self.bench, name) for name in ends}

    def _keep_proof(self, before: Mapping[str, StackEnd], nodes: Sequence[str]) -> None:
        """Keep what the ends have gained, as evidence; nothing where the stack cannot be asked."""
        _, stack = self.stack or ("", None)
        if stack is None or stack.proof is None:
            return
        after = self._count(nodes)
        ends = {name: after[name].since(begun) for name, begun in before.items()}
        per_frame = frame_bytes(stack, self.bench, self.target.node)
        StackProof(stack.name, per_frame, self.target.node, ends).write(self.folder)

    def _start_send(self, node_name: str, numbers: Sequence[int], plan_file: Path) -> Job:
        node = self.bench.node(node_name)
        numbers = [number for number in numbers if self.bench.spec.producers[number].node == node_name]
        arguments = ["send", node.bring(plan_file), "--producer", ",".join(str(number) for number in numbers)]
        arguments += ["--priority", str(node.priority)]
        if cpus := self.bench.spec.nodes[node_name].cpus:
            arguments += ["--cpu", ",".join(str(cpu) for cpu in cpus)]
        return self._start_tool(node_name, arguments, self.folder / f"send-{node_name}")

    def _wait_in_silence(self, start_ns: int) -> None:
        """Wait for the end of the measurement.

        Raises:
            BenchError: A node has lost its power.
        """
        begin_s = time.monotonic() + self.settings.warmup_ms / 1000
        begin_s += (start_ns - _reference_now_ns(self.settings.tai_utc_s)) / 1e9
        counting_s = self.settings.duration_ms / 1000
        self.progress(f"replaying {self.pattern.name}: warming up")
        self._sleep_until(begin_s)
        if self.during is not None:
            self.during(counting_s)
        for passed_s in range(0, math.ceil(counting_s), 10):
            self.progress(f"replaying {self.pattern.name}: {passed_s} of {counting_s:.0f} s")
            self._sleep_until(begin_s + min(passed_s + 10.0, counting_s))
        self._sleep_until(begin_s + counting_s + self.settings.grace_ms / 1000)

    def sleep(self, duration_s: float) -> None:
        """Wait while the replay goes on: for who is called `during` it.

        Raises:
            BenchError: A node has lost its power.
        """
        self._sleep_until(time.monotonic() + duration_s)

    def _sleep_until(self, end_s: float) -> None:
        silence(self.bench, end_s, self._measuring)

    def _collect(
        self, experiment: Experiment, started: _Programs, before: Mapping[str, ClockLine]
    ) -> ReplayAnswers:
        """Save all raw data first; complain afterwards."""
        problems: list[BenchwrightError] = []
        faults: list[str] = []

        of_sends: list[BenchwrightError] = []

        def attempt(job: Job, told: list[BenchwrightError] = problems) -> dict[str, Any] | None:
            try:
                answer = experiment.collect(job, ENDING_S)
            except (BenchError, MeasurementError) as error:
                told.append(error)
                return None
            if answer.code not in (DONE, INVALID):
                faults.append(f"{job.name} ended with exit code {answer.code}")
            return answer.result

        recv = attempt(started.recv)
        try:
            self._fetch_recv_files()
        except BenchError as error:
            problems.append(error)
        sends = {name: attempt(job, of_sends) for name, job in started.sends.items()}
        witness = attempt(started.witness) if started.witness is not None else None
        for line in said_of_machine(witness, simulated=self.bench.spec.simulated):
            self.progress(line)
        for job in started.captures:
            job.stop()
            job.wait(10.0)
        planned_s = self.settings.tai_utc_s
        for where, result in (("the target", recv), *sends.items()):
            if result is not None and result["tai_utc_s"] != planned_s:
                faults.append(
                    f"TAI - UTC is {result['tai_utc_s']} s on {where} and {planned_s} s in the plan"
                )
        is_any_sent = any(result is not None for result in sends.values())
        if recv is None or not is_any_sent or any(isinstance(each, BenchError) for each in of_sends):
            problems += of_sends
            text = "; ".join(dict.fromkeys(str(problem) for problem in problems))
            if any(isinstance(problem, BenchError) for problem in problems):
                raise BenchError(text)
            raise MeasurementError(text)
        for each in of_sends:
            self.progress(f"{each}: the streams of this producer have no verdict")
        return ReplayAnswers(
            folder=self.folder,
            recv=recv,
            lines_before=dict(before),
            lines_after={},
            captures=[capture_file(self.folder, interface) for interface in self.capture_interfaces],
            faults=[*faults, *(str(problem) for problem in problems)],
        )

    def _fetch_recv_files(self) -> None:
        if self._recv_folder:
            fetch_known(self.bench.node(self.target.node), self._recv_folder, RECV_FILES, self.folder)


def _reference_now_ns(tai_utc_s: int) -> int:
    """Return TAI now, on the clock of this machine (the reference of every bench that it drives)."""
    return time.time_ns() + tai_utc_s * 1_000_000_000
