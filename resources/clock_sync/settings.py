# SPDX-License-Identifier: Apache-2.0
"""What can be chosen of a clock stack, and what is known of each: `targets/KIND/clock/NAME/stack.toml`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from hw.errors import ConfigError
from hw.fields import Fields
from hw.provisioning import TARGETS
from hw.toml_file import read_toml
from resources.clock_sync.refused_answers import ANSWER_READERS
from resources.clock_sync.servo_log import ServoLog, servo_log

STACKS = "clock"
"""Folder below `targets/KIND`; of it each folder with a `stack.toml` is a stack of that name."""
STACK_FILE = "stack.toml"
LINUX_STACKS = TARGETS / "linux-rt" / STACKS
FREE_RUN = "free-run"
"""Of a target whose clock nothing steers, and of a time server that serves nobody."""
SERVER, PHC = "server", "phc"
"""What a stack may need: the bench's time server, a PTP hardware clock of the target."""
SYSTEM_CLOCK = "realtime"
"""The clock that stacks steer, as `bw-clock` names it."""
BASE_PPB_MAX = 50_000
WALK_PPB_PER_SQRT_S = 100


@dataclass(frozen=True)
class Wander:
    """How wrong a clock is made by `bw-wander`: a random frequency, and a random walk on it.

    Attributes:
        base_ppb_max: The frequency is uniform within plus or minus this.
        walk_ppb_per_sqrt_s: Standard deviation of the walk after one second.
        interval_ms: Time between two settings.
        seed: Repeats a run; None: random, and in the log.
    """

    base_ppb_max: int = BASE_PPB_MAX
    walk_ppb_per_sqrt_s: int = WALK_PPB_PER_SQRT_S
    interval_ms: int = 1000
    seed: int | None = None


@dataclass(frozen=True)
class ClockSettings:
    """What is chosen of a clock stack.

    Attributes:
        sync_interval_s: Time between synchronisations; None: the stack's own. chrony and PTP can only do
            powers of two: `effective` says which.
        max_change_s: A time that is further off than this is the server's fault, not the target's error.
        server_wander: Makes the time server's clock wander while the stack runs; None: it is left alone, or
            made to wander by somebody else.
        phc_wander: phc2sys on a simulated bench: makes the PHC wander.
        phc_offset_s: phc2sys: UTC less the PHC's time; None: the PHC shows TAI.
        hardware_stamps: chrony: let the cards stamp at both ends (`hwtimestamp`).
        fifo_priority: chrony: SCHED_FIFO priority of the daemon on the target; 0: as the system starts it.
        ptp_domain: PTP domain number.
        server_address: Where the server is asked and answers; empty: its address in the bench file.
        standby: PTP: a second grandmaster on the time server, of lower priority, serves the same clock.
    """

    sync_interval_s: float | None = None
    max_change_s: int = 10
    server_wander: Wander | None = None
    phc_wander: Wander | None = Wander()
    phc_offset_s: int | None = None
    hardware_stamps: bool = False
    fifo_priority: int = 0
    ptp_domain: int = 0
    server_address: str = ""
    standby: bool = False

    def effective(self, stack: StackSpec) -> ClockSettings:
        """Return these settings with the sync interval that the stack will really have.

        Raises:
            ConfigError: It is out of the stack's range.
        """
        wanted = stack.sync_interval_s if self.sync_interval_s is None else self.sync_interval_s
        if stack.interval_max_s == 0:
            return replace(self, sync_interval_s=0.0)
        low, high = stack.interval_min_s, stack.interval_max_s
        if not low <= wanted <= high:
            raise ConfigError(
                f"clock stack {stack.name}: sync_interval_s: must be in {low:g}..{high:g}, found {wanted:g}"
            )
        if stack.power_of_two:
            wanted = 2.0 ** log2_interval(wanted)
        return replace(self, sync_interval_s=wanted)


def log2_interval(interval_s: float) -> int:
    """Return the exponent of the power of two that is nearest to an interval, on a logarithmic scale."""
    return round(math.log2(interval_s))


@dataclass(frozen=True)
class LockRule:
    """When a servo counts as locked: |offset| below `offset_ns` in `consecutive` observations in a row."""

    offset_ns: int
    consecutive: int
    source: str

    def text(self) -> str:
        """Return the rule in words, for a report."""
        limit_us = self.offset_ns / 1000
        return f"|servo offset| below {limit_us:g} us in {self.consecutive} consecutive observations"


@dataclass(frozen=True)
class MachineNeed:
    """What a machine itself has to have for a stack: a command, and what is said where that fails."""

    command: tuple[str, ...]
    without: str


@dataclass(frozen=True)
class StackSpec:
    """What its `stack.toml` says of one stack.

    Attributes:
        title: Subject of `Keeps The Clock Within Its Limit`, its test of the steady state; empty: none.
        edges_title: Of its test of edges, after `Edges Of`; empty: it has none.
        interval_min_s: Least time between synchronisations that it can do.
        interval_max_s: Longest; 0: it does not synchronise.
        power_of_two: It can only do powers of two of seconds.
        lock: None for a stack without a servo.
        kp: Proportional constant of a PI servo, 1/s as linuxptp counts it; None: it has no such servo.
        ki: Integral constant.
        served_as: The stack of Linux whose server's side the time server plays for it; empty: its own.
        files: Its configuration on the target, templates of `config/`.
        device: The clock that it keeps, as `bw-clock` names it: what programs read, and trials measure.
        server_wander: How wrong the time server's clock is made where a suite is about this stack alone;
            None: as for all.
        logs: Of its servos; all have to be locked. The last is that which keeps the clock that is measured.
        answers: Log of the server's answers, below the folder of the run, and its format: what it says of
            those that were refused is told where a lock does not come. Empty texts: none.
        tools: Native tools that it needs on the target.
        needs: What it cannot do without: `server`, `phc`.
        machine_needs: What not every machine of the kind has; None: nothing.
        can_resume: Its daemons live on when it is cut off from its server, and listen again.
        multicast: Its packets go to whoever listens at the test interface, not to the server's address.
        disturbable: Its servo steers by the frequency alone: an oscillator may be changed under it.
        server_files: Configuration of the time server, templates of `config/`.
        standby_file: The first of them again, for a second grandmaster of the same clock; empty: there can
            be none.
        leader: The daemon on the time server which serves the time, and ends where the server vanishes.
    """

    name: str
    sync_interval_s: float
    interval_min_s: float
    interval_max_s: float
    power_of_two: bool
    lock: LockRule | None
    kp: float | None
    ki: float | None
    title: str = ""
    edges_title: str = ""
    served_as: str = ""
    files: tuple[str, ...] = ()
    device: str = SYSTEM_CLOCK
    server_wander: Wander | None = None
    logs: tuple[ServoLog, ...] = ()
    answers: tuple[str, str] = ("", "")
    tools: tuple[str, ...] = ()
    needs: tuple[str, ...] = (SERVER,)
    machine_needs: MachineNeed | None = None
    can_resume: bool = True
    multicast: bool = False
    disturbable: bool = False
    server_files: tuple[str, ...] = ()
    standby_file: str = ""
    leader: str = ""

    @property
    def needs_server(self) -> bool:
        """Tell whether it follows the bench's time server."""
        return SERVER in self.needs

    @property
    def needs_phc(self) -> bool:
        """Tell whether the target has to have a PTP hardware clock for it."""
        return PHC in self.needs

    @property
    def follows_phc(self) -> bool:
        """Tell whether the PHC is its only source of time; what a PHC only stamps for has a server, too."""
        return self.needs_phc and not self.needs_server

    @property
    def served(self) -> str:
        """Return the stack of Linux whose server's side the time server plays."""
        return self.served_as or (self.name if self.needs_server else FREE_RUN)

    @property
    def daemon(self) -> str:
        """Return the daemon that keeps the clock which is measured; empty: there is none."""
        return self.logs[-1].daemon if self.logs else ""

    @property
    def is_locked_to_server(self) -> bool:
        """Tell whether it keeps a clock on the time of its server, and says when it has it."""
        return self.needs_server and self.lock is not None


def stack_names(path: Path = LINUX_STACKS) -> tuple[str, ...]:
    """Return the names of the stacks of a kind, by name."""
    return tuple(sorted(file.parent.name for file in path.glob(f"*/{STACK_FILE}")))


def load_stack(name: str, simulated: bool, path: Path = LINUX_STACKS) -> StackSpec:
    """Read what is known of a clock stack.

    Args:
        name: One of the file.
        simulated: Whether the bench is a virtual one.
        path: Folder of the stacks.

    Raises:
        ConfigError: There is no such stack, or its file is wrong; names file, field and allowed range.
    """
    names = stack_names(path)
    if name not in names:
        raise ConfigError(f"{path}: clock stack: must be one of {', '.join(names)}, found {name!r}")
    file = path / name / STACK_FILE
    return _stack(name, Fields(read_toml(file), str(file), ""), "simulated" if simulated else "hardware")


def load_stacks(simulated: bool, path: Path = LINUX_STACKS) -> dict[str, StackSpec]:
    """Read what is known of all stacks of a kind, by name; as `load_stack`.

    Raises:
        ConfigError: Besides: two of them have one title, by which Robot Framework tells tests apart.
    """
    found = {name: load_stack(name, simulated, path) for name in stack_names(path)}
    for key in ("title", "edges_title"):
        named: dict[str, str] = {}
        for name, stack in found.items():
            title: str = getattr(stack, key)
            other = named.setdefault(re.sub(r"[\s_]", "", title).lower(), name) if title else name
            if other != name:
                raise ConfigError(f"{path / name / STACK_FILE}: {key}: {other} has it, too: {title!r}")
    return found


def stacks_of_any_kind(wanted: Callable[[StackSpec], bool]) -> tuple[str, ...]:
    """Return the names of the stacks of all kinds of target for which something is so; raises ConfigError.

    For files that are of no kind of target, such as profiles: what one kind lacks is skipped there.
    """
    folders = sorted(TARGETS.glob(f"*/{STACKS}"))
    specs = [spec for each in folders for spec in load_stacks(simulated=True, path=each).values()]
    return tuple(dict.fromkeys(spec.name for spec in specs if wanted(spec)))


def _stack(name: str, table: Fields, kind: str) -> StackSpec:
    interval_s = table.number("sync_interval_s", 0.0, 3600.0)
    least_s = table.number("interval_min_s", 0.0, 3600.0, 0.0)
    most_s = table.number("interval_max_s", least_s, 3600.0, 0.0)
    power_of_two = table.boolean("power_of_two", False)
    rules: dict[str, LockRule] = {}
    lock = table.child("lock", optional=True)
    if lock is not None:
        for which in ("simulated", "hardware"):
            inner = lock.child(which)
            assert inner is not None
            rules[which] = LockRule(
                inner.integer("offset_ns", 1, 1_000_000_000),
                inner.integer("consecutive", 1, 10_000),
                inner.text("source"),
            )
            inner.finish()
        lock.finish()
    kp = ki = None
    servo = table.child("servo", optional=True)
    if servo is not None:
        kp, ki = servo.number("kp", 0.0, 10.0), servo.number("ki", 0.0, 10.0)
        servo.text("source")
        servo.finish()
    spec = StackSpec(
        name=name,
        sync_interval_s=interval_s,
        interval_min_s=least_s,
        interval_max_s=most_s,
        power_of_two=power_of_two,
        lock=rules.get(kind),
        kp=kp,
        ki=ki,
        title=_title(table, "title"),
        edges_title=_title(table, "edges_title"),
        served_as=table.text("served_as", ""),
        files=table.words("files", ""),
        device=table.text("device", SYSTEM_CLOCK),
        server_wander=_wander(table.child("server_wander", optional=True)),
        logs=tuple(servo_log(daemon, log) for daemon, log in table.table_of("logs", optional=True).items()),
        answers=_answers(table.child("answers", optional=True)),
        tools=table.words("tools", ""),
        needs=table.texts("needs", (SERVER, PHC), (SERVER,)),
        machine_needs=_machine_needs(table.child("machine_needs", optional=True)),
        can_resume=table.boolean("can_resume", True),
        multicast=table.boolean("multicast", False),
        disturbable=table.boolean("disturbable", False),
        server_files=table.words("server_files", ""),
        standby_file=table.text("standby_file", ""),
        leader=table.text("leader", ""),
    )
    table.finish()
    return spec


def _title(table: Fields, key: str) -> str:
    """Return a title as it is to stand in the name of a test; empty: there is none."""
    title = " ".join(table.text_that_says(key).split()) if table.has(key) else ""
    if title != table.text(key, ""):
        raise ConfigError(f"{table.file}: {key}: must be words with one blank between them")
    return title


def _answers(table: Fields | None) -> tuple[str, str]:
    if table is None:
        return "", ""
    answers = table.text("file"), table.text("format", choices=tuple(ANSWER_READERS))
    table.finish()
    return answers


def _machine_needs(table: Fields | None) -> MachineNeed | None:
    if table is None:
        return None
    need = MachineNeed(table.words("command"), table.text("without"))
    table.finish()
    return need


def _wander(table: Fields | None) -> Wander | None:
    if table is None:
        return None
    wander = Wander(
        table.integer("base_ppb_max", 0, 400_000), table.integer("walk_ppb_per_sqrt_s", 0, 100_000)
    )
    table.text("source")
    table.finish()
    return wander
