# SPDX-License-Identifier: Apache-2.0
"""Turns of network stacks on one bench: each stack is put on, carries a short replay, and makes room.

The clocks are served all the while, and measured anew where their lines have become old, between two rounds.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hw.bench import TargetSpec
from hw.errors import CapabilityError, MeasurementError
from hw.open_bench import OpenBench
from reports.daq_replay.emulation import keep_emulation
from reports.daq_replay.evidence import load_replay
from reports.errors import RecordError
from reports.stacks.evidence import (
    KeptTurn,
    StackNeeds,
    StackTurns,
    StreamType,
    write_messages,
    write_stack_turns,
)
from reports.stacks.turns import turn_order
from reports.units import NS_PER_US
from resources.clock_sync.lines import (
    CLOCK_MEASURING_MS,
    ClockLine,
    clocks_of,
    measure_clock_lines,
    serve_clocks,
)
from resources.daq_replay.pattern import Pattern
from resources.daq_replay.plan import ReplaySettings
from resources.daq_replay.replay import LEADS_S, Progress, Replay
from resources.network_stack import BOTH, NetworkStack, interface_on
from resources.network_stack_ends import network_stack_on, stack_interfaces
from resources.stacks.conditions import IDLE, condition_on
from resources.stacks.ends_cpu import OTHER_ENDS, TARGET_END, EndsCpu
from resources.stacks.messages import type_messages, types_of
from resources.stacks.settings import SEED_MAX, StackTimes
from resources.tools.experiment import Experiment

CLOCKS, CONDITION = "clocks", "condition"
LINES_AGE_S = 120.0
"""As long a line of a clock counts; a replay follows the clocks by itself, it takes their lines to begin."""
TURN_MAX_S = 120.0
"""Of one turn, for the responders of the clocks alone: they end with the comparison."""
LEAD_S, LEAD_MORE = 1.0, 1.4
"""From a turn's plan to slot 0 at first: at least, and of what the tools took in the stack's turn before."""


@dataclass(frozen=True)
class AskedTurns:
    """What turns are asked for.

    Attributes:
        stacks: At least two, each once; the first is the first of each pair.
        pattern: What every one of them carries.
        settings: Of each turn's replay.
        seed: By which the order of turns is drawn.
    """

    stacks: tuple[NetworkStack, ...]
    pattern: Pattern
    settings: ReplaySettings
    times: StackTimes
    seed: int

    @property
    def by_name(self) -> dict[str, NetworkStack]:
        """Return the stacks by their names."""
        return {each.name: each for each in self.stacks}


@dataclass
class TurnMaker:
    """Makes the turns of a comparison.

    Attributes:
        bench: Open; target and producers are on.
        target: The consumer, which has the stacks.
        folder: Evidence goes here.
        say: Called with one line of text now and then.
        missing: Turns that do not count, and why.
    """

    bench: OpenBench
    target: TargetSpec
    folder: Path
    say: Progress
    missing: dict[str, str] = field(default_factory=dict[str, str])
    _turns: list[KeptTurn] = field(default_factory=list[KeptTurn])
    _starting_s: dict[str, float] = field(default_factory=dict[str, float])
    _interfaces: dict[str, str] = field(default_factory=dict[str, str])

    def possible(self, stacks: Sequence[NetworkStack]) -> tuple[NetworkStack, ...]:
        """Return the stacks that this machine can have; each is put on once, and taken off.

        Raises:
            CapabilityError: Fewer than two are left; says why of each.
            BenchError: One cannot be put on, or taken off, for another reason.
        """
        found: list[NetworkStack] = []
        reasons: list[str] = []
        for stack in stacks:
            try:
                with network_stack_on(*self._on(stack), self.folder / "tried" / stack.name):
                    found.append(stack)
            except CapabilityError as error:
                reasons.append(str(error))
                self.say(f"{stack.name} is left out: {error}")
        if len(found) < 2:
            left = ", ".join(each.name for each in found) or "none"
            raise CapabilityError(
                f"a comparison needs at least 2 stacks, left is {left}: {'; '.join(reasons)}"
            )
        return tuple(found)

    def run(self, what: AskedTurns) -> StackTurns:
        """Make all turns; the evidence grows round by round.

        Raises:
            BenchError: A node died, a tool or a stack does not work.
            CapabilityError: A condition cannot be had, or the clocks are not known well enough.
            MeasurementError: No turn counts.
        """
        names = [each.name for each in what.stacks]
        order = list(turn_order(names, what.times.conditions, what.times.rounds, what.seed))
        clocks = clocks_of(self.bench.spec, self.target, self._nodes())
        with Experiment(self.bench) as experiment:
            served = dict.fromkeys([*clocks, self.bench.spec.reference_clock])
            life_ms = round(1000 * TURN_MAX_S * len(order))
            for job in serve_clocks(self.bench, served, life_ms, self.folder / CLOCKS):
                experiment.add(job)
            lines = _Lines(self.bench, clocks, self.folder / CLOCKS)
            before = -1
            for place, (round_, condition, stack) in enumerate(order):
                if round_ != before:
                    before = round_
                    self.say(f"round {round_ + 1} of {what.times.rounds}: {len(names)} stacks by turns")
                    lines.renew()
                self._turn(what, place, (round_, condition, stack), lines.known)
                self._keep(what)
        if not self._turns:
            raise MeasurementError(f"no turn counts: {next(iter(self.missing.values()))}")
        return self._keep(what)

    def _turn(
        self, what: AskedTurns, place: int, key: tuple[int, str, str], lines: Mapping[str, ClockLine]
    ) -> None:
        """Make a turn; one whose replay has no result that counts is missing."""
        round_, condition, name = key
        label = f"turn-{place:04}"
        folder = self.folder / label
        stack = what.by_name[name]
        replay = Replay(self.bench, self.target, what.pattern, what.settings, folder, _unsaid)
        replay.stack = (self.target.node, stack)
        replay.log_messages = replay.watch_emulator = True
        replay.clock_lines = lines
        replay.leads_s = min(LEADS_S[0], max(LEAD_S, LEAD_MORE * self._starting_s.get(name, 0.0))), *LEADS_S
        cpu = EndsCpu(self.bench, self.target.node, self._nodes(), replay)
        try:
            lasts_s = math.ceil(what.settings.total_ms / 1000 + TURN_MAX_S)
            with (
                network_stack_on(*self._on(stack), folder / "stack"),
                condition_on(
                    *(condition, self.bench, [self.target.node, *self._nodes()], lasts_s),
                    folder / CONDITION,
                    seed=1 + (what.seed + round_) % SEED_MAX,
                ) as achieved,
            ):
                answers = replay.run()
            self._starting_s[name] = replay.starting_s
            keep_emulation(folder, load_replay(folder).replay(self._witness_clock))
            messages = type_messages(
                folder, what.pattern.streams, self._witness_clock, self._threshold_ns, answers.faults
            )
        except (MeasurementError, RecordError) as error:
            self.missing[label] = f"{name}, round {round_ + 1}: {error}"
            self.say(f"a turn of {self.missing[label]}")
            return
        file = write_messages(self.folder, f"{label}.csv", messages).name
        lost = {kind: each.lost for kind, each in messages.items()}
        used_ns = cpu.used_ns
        target_ns = used_ns.get(TARGET_END) if condition == IDLE else None  # a load has its share in it
        frames = None if achieved.loss is None else achieved.loss.seen
        frames_lost = None if achieved.loss is None else achieved.loss.dropped
        others_ns = used_ns.get(OTHER_ENDS)
        self._turns.append(
            KeptTurn(round_, condition, name, file, lost, target_ns, others_ns, frames, frames_lost)
        )

    def _keep(self, what: AskedTurns) -> StackTurns:
        """Write what is known so far, and return it."""
        types: tuple[StreamType, ...] = types_of(what.pattern.streams)
        needs = tuple(
            StackNeeds(each.name, each.needs_root, each.driver, each.endpoints == BOTH)
            for each in what.stacks
        )
        kept = StackTurns(self.target.kind, what.seed, needs, types, tuple(self._turns))
        write_stack_turns(self.folder, kept)
        return kept

    def _on(self, stack: NetworkStack) -> tuple[NetworkStack, OpenBench, str, dict[str, str]]:
        """Return how a stack is put on: on which nodes, and the interface of each."""
        spec, node = self.bench.spec, self.target.node
        wanted = stack_interfaces(spec, stack, node, node, self.target.test_interface)
        for name, interface in wanted.items():
            if name not in self._interfaces:
                self._interfaces[name] = interface or interface_on(self.bench, name)
        return stack, self.bench, node, {name: self._interfaces[name] for name in wanted}

    def _nodes(self) -> list[str]:
        return sorted({each.node for each in self.bench.spec.producers.values()})

    @property
    def _witness_clock(self) -> str:
        spec = self.bench.spec
        return "" if spec.witness is None else spec.nodes[spec.witness.node].clock

    @property
    def _threshold_ns(self) -> int:
        witness = self.bench.spec.witness
        return 0 if witness is None else witness.threshold_us * NS_PER_US


class _Lines:
    """Lines of the clocks, measured anew where they are old."""

    def __init__(self, bench: OpenBench, names: Sequence[str], folder: Path) -> None:
        self._bench, self._names, self._folder = bench, names, folder
        self._until_s = 0.0
        self._count = 0
        self.known: Mapping[str, ClockLine] = {}

    def renew(self, now_s: Callable[[], float] = time.monotonic) -> None:
        if self.known and now_s() < self._until_s:
            return
        folder = self._folder / f"measured-{self._count}"
        self.known = measure_clock_lines(self._bench, self._names, CLOCK_MEASURING_MS, folder)
        self._until_s, self._count = now_s() + LINES_AGE_S, self._count + 1


def _unsaid(_line: str) -> None:
    """Say nothing of a turn's replay: there are many."""


def common_pattern(pattern: Pattern, stacks: Sequence[NetworkStack]) -> tuple[Pattern, dict[int, str]]:
    """Return what of a pattern every stack carries, and why each other stream is left out.

    Raises:
        CapabilityError: No stream is carried by all.
    """
    refused = {
        stream.id: why for stream in pattern.streams for stack in stacks if (why := stack.why_not(stream))
    }
    if len(refused) == len(pattern.streams):
        raise CapabilityError(f"pattern {pattern.name}: {'; '.join(dict.fromkeys(refused.values()))}")
    for stack in stacks:
        pattern = stack.carried(pattern)
    return pattern, refused
