# SPDX-License-Identifier: Apache-2.0
"""How turns follow each other: who has one, what is carried, which do not count, and what is kept of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hw.errors import CapabilityError, MeasurementError
from hw.open_bench import OpenBench
from reports.stacks.evidence import load_stack_turns
from reports.stacks.loss import KnownLoss, PortLoss
from reports.stacks.turns import turn_order
from resources.daq_replay.plan import ReplaySettings
from resources.network_stack import NetworkStack
from resources.stacks import turns
from resources.stacks.conditions import Achieved
from resources.stacks.settings import StackTimes
from resources.stacks.turns import AskedTurns, TurnMaker, common_pattern
from tests.fake_bench import FakeBench
from tests.resources.stacks.sample import PATTERN, write_replay

TARGET: Any = SimpleNamespace(node="linux", kind="linux", test_interface="test0", test_address="10.0.0.9")
KERNEL = NetworkStack("kernel", Path("kernel.toml"))
USER = NetworkStack("user", Path("user.toml"), endpoints="both", needs_root=True, driver="AF_XDP")
TIMES = StackTimes(("idle",), 8, 0, 500, 100)
ASKED = AskedTurns((KERNEL, USER), PATTERN, ReplaySettings(Path()), TIMES, seed=11)
SPEC = SimpleNamespace(
    producers={1: SimpleNamespace(node="p01", address="10.0.0.1")},
    targets={"linux": TARGET},
    nodes={"p01": SimpleNamespace(clock="host"), "linux": SimpleNamespace(clock="host")},
    clocks={"host": SimpleNamespace()},
    reference_clock="host",
    witness=None,
)


def _nothing(*_: object) -> tuple[()]:
    return ()


def _lines(*_: object) -> dict[str, None]:
    return {"host": None}


def _answer(*_: object) -> tuple[int, str, str]:
    return 0, "2: eth9    inet 10.0.0.1/24", ""


class Machine:
    """A bench whose replays are made up; a stack of `refused` cannot be had."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.on: list[str] = []
        self.replayed: list[tuple[str, int]] = []
        self.refused: set[str] = set()
        self.broken: set[int] = set()
        self.said: list[str] = []
        self.counts = True
        self.folder = folder
        bench: Any = FakeBench(SPEC, answer=_answer)
        bench.virtual = SimpleNamespace(cpu_accounts=self._accounts)
        self.maker = TurnMaker(cast("OpenBench", bench), TARGET, folder, self.said.append)
        monkeypatch.setattr(turns, "network_stack_on", self._on)
        monkeypatch.setattr(turns, "Replay", self._replay)
        monkeypatch.setattr(turns, "serve_clocks", _nothing)
        monkeypatch.setattr(turns, "measure_clock_lines", _lines)
        monkeypatch.setattr(turns, "keep_emulation", _nothing)

    @contextmanager
    def _on(
        self, stack: NetworkStack, _bench: object, node: str, interfaces: dict[str, str], _to: Path
    ) -> Any:
        if stack.name in self.refused:
            raise CapabilityError(f"network stack {stack.name}: no such thing here")
        assert not self.on, "two stacks are on at a time"
        assert interfaces == ({"p01": "eth9", node: "test0"} if stack is USER else {node: "test0"})
        self.on.append(stack.name)
        yield from self._until_off()

    @contextmanager
    def _accounts(self, parts: dict[str, list[str]]) -> Generator[dict[str, Path]]:
        assert parts == {"target-end": ["linux"], "other-ends": ["p01"]}
        yield {end: self.folder / end for end in parts} if self.counts else {}

    def _until_off(self) -> Generator[None, None, None]:
        try:
            yield
        finally:
            self.on.clear()

    def _replay(
        self, _bench: object, _target: object, _pattern: object, _how: object, folder: Path, _say: object
    ):
        replay = SimpleNamespace(starting_s=0.0, sleep=self._pass)
        replay.run = lambda: self._run(folder, replay)
        return replay

    def _pass(self, counting_s: float) -> None:
        """Let the ends use 2 and 3 ns a second, on what they have used so far."""
        for end, ns in (("target-end", 2), ("other-ends", 3)):
            (self.folder / end).write_text(f"{1000 + round(ns * counting_s)}\n")

    def _run(self, folder: Path, replay: Any) -> Any:
        number = int(folder.name.removeprefix("turn-"))
        [stack] = self.on
        self.replayed.append((stack, number))
        write_replay(folder, lost={13: 1} if stack == "user" else {})
        for end in ("target-end", "other-ends"):
            (self.folder / end).write_text("1000\n")
        replay.when_ready()
        replay.during(4.0)
        if number in self.broken:
            raise MeasurementError("the tool came to no result")
        return SimpleNamespace(faults=[])


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def test_turns_are_made_in_the_order_that_the_seed_draws(machine: Machine, tmp_path: Path) -> None:
    kept = machine.maker.run(ASKED)
    order = list(turn_order(["kernel", "user"], ["idle"], 8, 11))
    assert [stack for stack, _ in machine.replayed] == [stack for _, _, stack in order]
    assert [(each.round, each.condition, each.stack) for each in kept.turns] == order
    facts, loaded = load_stack_turns(tmp_path)
    assert facts == kept
    assert (facts.seed, [each.both_ends for each in facts.stacks]) == (11, [False, True])
    assert [each.driver for each in facts.stacks] == ["", "AF_XDP"]
    assert {(turn.target_cpu_ns, turn.others_cpu_ns) for turn in loaded} == {(8, 12)}
    lost = {(turn.stack, turn.messages["type 3"].lost) for turn in loaded}
    assert lost == {("kernel", 0), ("user", 1)}


def test_beside_a_load_the_targets_cpu_time_is_not_told(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[str] = []
    seeds: list[int] = []

    @contextmanager
    def condition_on(condition: str, *_: object, seed: int) -> Generator[Achieved, None, None]:
        loaded.append(condition)
        seeds.append(seed)
        lost = KnownLoss(1000, seed, (PortLoss("p01", 1000, 2), PortLoss("linux", 10, 0)))
        yield Achieved(lost if condition == "lossy_1000_ppm" else None)

    monkeypatch.setattr(turns, "condition_on", condition_on)
    times = replace(TIMES, conditions=("idle", "loaded", "lossy_1000_ppm"))
    kept = machine.maker.run(replace(ASKED, times=times))
    assert [each.condition for each in kept.turns] == loaded
    told = {(each.condition, each.target_cpu_ns, each.others_cpu_ns) for each in kept.turns}
    assert told == {("idle", 8, 12), ("loaded", None, 12), ("lossy_1000_ppm", None, 12)}
    by_round = {(each.round, seed) for each, seed in zip(kept.turns, seeds, strict=True)}
    assert len(by_round) == 8, "all turns of a round meet the same losses"
    lost = {(each.condition, each.frames, each.frames_lost) for each in kept.turns}
    assert lost == {("idle", None, None), ("loaded", None, None), ("lossy_1000_ppm", 1010, 2)}
    assert kept.line_lost("lossy_1000_ppm", "user") == (16, 8080)
    assert kept.line_lost("idle", "user") is None


def test_where_the_ends_are_machines_of_their_own_no_cpu_time_is_told(machine: Machine) -> None:
    machine.counts = False
    kept = machine.maker.run(ASKED)
    assert {(turn.target_cpu_ns, turn.others_cpu_ns) for turn in kept.turns} == {(None, None)}


def test_a_turn_without_a_result_is_missing_and_its_stack_goes_on(machine: Machine, tmp_path: Path) -> None:
    machine.broken = {0, 5}
    kept = machine.maker.run(ASKED)
    assert len(machine.replayed) == 16
    assert Counter(each.round for each in kept.turns) == Counter({r: 2 - (r in (0, 2)) for r in range(8)})
    assert [*machine.maker.missing] == ["turn-0000", "turn-0005"]
    assert any("the tool came to no result" in line for line in machine.said)
    load_stack_turns(tmp_path)


def test_without_a_turn_that_counts_there_is_no_comparison(machine: Machine) -> None:
    machine.broken = {*range(16)}
    with pytest.raises(MeasurementError, match=r"no turn counts: .*the tool came to no result"):
        machine.maker.run(ASKED)


def test_a_stack_that_the_machine_cannot_have_is_left_out_by_name(machine: Machine) -> None:
    tuned = replace(KERNEL, name="kernel-tuned")
    machine.refused = {"user"}
    assert machine.maker.possible([KERNEL, USER, tuned]) == (KERNEL, tuned)
    assert machine.said == ["user is left out: network stack user: no such thing here"]
    with pytest.raises(
        CapabilityError, match="at least 2 stacks, left is kernel: network stack user: no such"
    ):
        machine.maker.possible([KERNEL, USER])


def test_what_is_replayed_is_what_all_stacks_carry() -> None:
    udp = replace(USER, transports=("udp",))
    small = replace(USER, name="small", message_max_bytes=99)
    streams = tuple(
        replace(each, transport="udp" if each.id == 13 else "tcp", size_bytes=100 if each.id == 10 else 50)
        for each in PATTERN.streams
    )
    pattern = replace(PATTERN, streams=streams)
    carried, refused = common_pattern(pattern, [KERNEL, small])
    assert [each.id for each in carried.streams] == [20, 13]
    assert refused == {10: "network stack small carries messages of 99 bytes at most, not of 100"}
    assert [each.id for each in common_pattern(pattern, [KERNEL, small, udp])[0].streams] == [13]
    with pytest.raises(CapabilityError, match="pattern made-up: network stack small carries messages of 99"):
        common_pattern(replace(pattern, streams=streams[:1]), [KERNEL, small])
