# SPDX-License-Identifier: Apache-2.0
"""How many messages a profile sends round a ring, and how long it has a camera follow a target."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hw.errors import ConfigError
from hw.fields import Fields
from reports.control_loops.case import Case
from resources.control_loops.clocks import known_clocks
from resources.control_loops.loads import LOADS

TIMES = Path(__file__).with_name("times.toml")
CAMERA_TIMES = Path(__file__).with_name("camera.times.toml")
LOAD_COUNT_MIN = 100
LOAD_MBIT_MAX = 100_000
HOLD_PART = 2
"""Of an interval: so long a node may hold a message, since it does so with each."""


@dataclass(frozen=True)
class RingTimes:
    """What goes round.

    Attributes:
        count: Messages.
        interval_us: From one to the next.
        size_bytes: Of each, header and content.
        writes: Of each: 1, or 2: header, then content.
        hold_us: How long one node holds each message of each second turn, in a ring of its own.
        hold_count: Messages of that.
        hold_interval_us: From one to the next of them: long enough that one that was held is round before
            the next one leaves, which would meet it on the target.
        hold_turn: Messages of a turn.
        nagle_count: Messages of a ring whose small writes wait; 0: there is none.
        loads: Kinds of load, each beside a ring of its own.
        load_count: Messages of each of them, and of those with a clock.
        clocks: What corrects the target's clock, each in rings of its own, without load and beside each.
        load_mbit: Of a network's load, in Mbit/s of payload.
    """

    count: int
    interval_us: int
    size_bytes: int
    writes: int
    hold_us: int
    hold_count: int
    hold_interval_us: int
    hold_turn: int
    nagle_count: int
    loads: tuple[str, ...]
    load_count: int
    load_mbit: int
    clocks: tuple[str, ...]

    @property
    def cases(self) -> list[Case]:
        """Return under what messages go round, in this order: without clock first, idle first."""
        loads = "", *self.loads
        return [Case(load=load, clock=clock) for clock in ("", *self.clocks) for load in loads]


def ring_times(table: Fields) -> RingTimes:
    """Read the table of a profile; raises ConfigError: names file, field and allowed range."""
    times = RingTimes(
        count=table.integer("count", 100, 10_000_000),
        interval_us=table.integer("interval_us", 100, 10_000_000),
        size_bytes=table.integer("size_bytes", 10, 60_004),
        writes=table.integer("writes", 1, 2),
        hold_us=table.integer("hold_us", 1, 5_000_000),
        hold_count=table.integer("hold_count", 100, 10_000_000),
        hold_interval_us=table.integer("hold_interval_us", 100, 10_000_000),
        hold_turn=table.integer("hold_turn", 1, 100_000),
        nagle_count=table.integer("nagle_count", 0, 10_000_000),
        loads=_once(table, "loads", LOADS),
        load_count=table.integer("load_count", 0, 10_000_000),
        load_mbit=table.integer("load_mbit", 1, LOAD_MBIT_MAX),
        clocks=_once(table, "clocks", known_clocks()),
    )
    where = f"{table.file}: {table.table}"
    if times.hold_us > times.hold_interval_us // HOLD_PART:
        raise ConfigError(
            f"{where}.hold_us: {times.hold_us}; allowed: 1..{times.hold_interval_us // HOLD_PART}, half of"
            " hold_interval_us"
        )
    if (times.loads or times.clocks) and times.load_count < LOAD_COUNT_MIN:
        raise ConfigError(
            f"{where}.load_count: {times.load_count}; allowed, with loads or clocks:"
            f" {LOAD_COUNT_MIN}..10000000"
        )
    if times.hold_turn * 2 > times.hold_count:
        raise ConfigError(
            f"{where}.hold_turn: {times.hold_turn}; allowed: 1..{times.hold_count // 2}, half of hold_count"
        )
    table.finish()
    return times


@dataclass(frozen=True)
class CameraTimes:
    """How long a tracker follows the target, and at which delays of the path.

    Attributes:
        seconds: At each delay.
        delays_ms: Each way, 0 first.
        rest_s: So long the target rests before that, while TCP opens its window.
        loads: Kinds of load, beside each of which all delays come once more.
        clocks: What corrects the target's clock, each at the first delay, without load and beside each.
        load_mbit: Of a network's load, in Mbit/s of payload.
        speed_px_s: Of the target, in pixels of its world.
    """

    seconds: int
    delays_ms: tuple[int, ...]
    speed_px_s: int
    rest_s: int
    loads: tuple[str, ...]
    load_mbit: int
    clocks: tuple[str, ...]

    @property
    def cases(self) -> list[Case]:
        """Return under what the tracker follows the target: without clock first, idle first, each delay."""
        loads = ("", *self.loads)
        free = [Case(delay_ms, load) for load in loads for delay_ms in self.delays_ms]
        return free + [Case(self.delays_ms[0], load, clock) for clock in self.clocks for load in loads]


def camera_times(table: Fields) -> CameraTimes:
    """Read the table of a profile; raises ConfigError: names file, field and allowed range."""
    times = CameraTimes(
        seconds=table.integer("seconds", 2, 86_400),
        delays_ms=table.integers("delays_ms", 0, 10_000),
        speed_px_s=table.integer("speed_px_s", 1, 4000),
        rest_s=table.integer("rest_s", 0, 600),
        loads=_once(table, "loads", LOADS),
        load_mbit=table.integer("load_mbit", 1, LOAD_MBIT_MAX),
        clocks=_once(table, "clocks", known_clocks()),
    )
    if times.rest_s >= times.seconds:
        raise ConfigError(
            f"{table.file}: {table.table}.rest_s: {times.rest_s}; allowed: less than seconds, {times.seconds}"
        )
    if not times.delays_ms or times.delays_ms[0] or len(set(times.delays_ms)) < len(times.delays_ms):
        raise ConfigError(
            f"{table.file}: {table.table}.delays_ms: {list(times.delays_ms)}; needed: 0 first, each once"
        )
    table.finish()
    return times


def _once(table: Fields, key: str, choices: tuple[str, ...]) -> tuple[str, ...]:
    """Read some of the choices, each once."""
    found = table.texts(key, choices)
    if len(set(found)) < len(found):
        raise table.fault(key, f"{list(found)}; needed: each once")
    return found
