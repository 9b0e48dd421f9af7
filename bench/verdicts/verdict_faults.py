# SPDX-License-Identifier: Apache-2.0
"""Faults of a target whose truth is known from what was injected, for `bench_verdicts`.

A row of `FAULTS` says what is drawn, what the truth is then, and how that is known. A fault is there through
all replays of a case, and it proves itself: `Injection.confirm` raises where it has not happened, and the
case then counts nowhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from random import Random

from bench.lab.compiler import compile_c
from hw.bench import TargetSpec
from hw.drivers.ssh import REMOTE_TOOLS
from hw.errors import MeasurementError
from hw.path_settings import PathSettings, RandomLoss, RealisedPath
from hw.paths import producer_path, producer_paths
from hw.protocols import Job
from hw.session import Bench
from resources.daq_replay.pattern import Pattern
from resources.tools.experiment import last_result
from resources.tools.jobs import end_job

HOG_SOURCE = Path(__file__).with_name("hog.c")
LIFE_S = 900
"""After this time everything that was started has ended by itself; no case takes as long."""
EXCESS_MIN_US = 3_000
"""By so much a budget is exceeded at least where a target is called faulty."""
DELAYED_PRODUCERS = 6
"""Whose packets are held back in one case, of a small pattern two thirds; each is judged on its own."""
TIGHTEST_US = 10_000
"""Smallest budget of the pattern, and the period of stream 23, which has that budget."""
RECEIVE_WINDOW_BYTES = 2304
"""Smallest receive buffer that Linux gives a socket."""

SHARED_PAUSE_US = (100_000, 300_000)
"""Between bursts on a CPU that a target shares with others."""

_SEED = (0, 2**31 - 1)

Parameters = Mapping[str, int]


class Truth(StrEnum):
    """What a verdict has to find."""

    SOUND = "sound"
    FAULTY = "faulty"
    UNDECIDABLE = "undecidable"
    """What is measured is not valid: neither a pass nor a fail is right."""


@dataclass(frozen=True)
class Site:
    """Where a case takes place.

    Attributes:
        bench: The open bench; target and producers are on, the target provisioned.
        target: The consumer.
        pattern: What is replayed.
        producers: Those that take part; empty: all of the pattern.
        hog: The program of `hog.c`.
        folder: What tools say goes here.
    """

    bench: Bench
    target: TargetSpec
    pattern: Pattern
    producers: tuple[int, ...]
    hog: Path
    folder: Path


class Injection:
    """A fault that is there; this one is none.

    Attributes:
        producers: Those whose streams it is in, each a case of its own; empty: it is the whole target's.
    """

    producers: tuple[int, ...] = ()

    def when_counting_begins(self) -> None:
        """Do what belongs into the counted time; called once in each replay."""

    def confirm(self, replays: int) -> dict[str, int]:  # noqa: ARG002  (of those that happen in each)
        """Return what shows that the fault was there; called while it still is.

        Args:
            replays: How many replays there were.

        Raises:
            MeasurementError: It was not.
        """
        return {}


Inject = Callable[[Site, Parameters], AbstractContextManager[Injection]]


@dataclass(frozen=True)
class FaultKind:
    """A row of the table of faults.

    Attributes:
        name: In options and results.
        truth: Of a target that has it.
        known: How that is known, for people.
        ranges: What is drawn, uniformly, ends included; the unit is in the name.
        inject: Puts it in place while the context lasts.
        targets: Kinds of target that it can be put into; empty: any.
    """

    name: str
    truth: Truth
    known: str
    ranges: Mapping[str, tuple[int, int]]
    inject: Inject
    targets: frozenset[str] = frozenset()

    def draw(self, random: Random) -> dict[str, int]:
        """Draw how severe it is."""
        return {name: random.randint(*limits) for name, limits in self.ranges.items()}


def build_hog(folder: Path) -> Path:
    """Compile `hog.c` for this machine and for guests of its kind.

    Raises:
        CapabilityError: There is no compiler, or no static C library.
    """
    return compile_c(HOG_SOURCE, folder / "hog", "-static")


def hog_arguments(
    cpu: int,
    priority: int,
    burst_us: tuple[int, int],
    pause_us: tuple[int, int],
    seed: int,
    kind: str = "spin",
) -> list[str]:
    """Return the arguments of the hog; it ends by itself after `LIFE_S`."""
    return [kind, *(str(value) for value in (cpu, priority, *burst_us, *pause_us, seed, LIFE_S))]


def hog_result(job: Job) -> dict[str, int]:
    """End a hog and return what it has taken.

    Raises:
        MeasurementError: It left no result.
        BenchError: It does not end, or its node is gone.
    """
    job.stop()
    job.wait(10.0)
    result = last_result(job.fetch())
    return {key: int(result[key]) for key in ("bursts", "busy_us", "longest_us", "cpu_us")}


# -- the faults


@contextmanager
def _none(_site: Site, _drawn: Parameters) -> Generator[Injection]:
    yield Injection()


class _Netem(Injection):
    """A path through the impairment node, whose queue counts what it does."""

    def __init__(
        self, site: Site, set_up: RealisedPath, loses: bool, producers: tuple[int, ...] = ()
    ) -> None:
        self._site = site
        self._set_up = set_up
        self._loses = loses
        self.producers = producers

    def confirm(self, replays: int) -> dict[str, int]:  # noqa: ARG002
        set_up = self._set_up
        show = ["tc", "-s", "qdisc", "show", "dev", set_up.interface]
        seen = queue_counts(self._site.bench.node(set_up.node).run(show).stdout)
        if not seen["packets"] or (self._loses and not seen["dropped"]):
            raise MeasurementError(f"not injected: netem on {set_up.interface} has counted {seen}")
        return seen


def queue_counts(text: str) -> dict[str, int]:
    """Return how many packets the netem queue in an answer of `tc -s qdisc show` has passed and dropped.

    Raises:
        MeasurementError: There is no such queue.
    """
    found = re.search(r"qdisc netem .*?Sent \d+ bytes (\d+) pkt \(dropped (\d+)", text, re.DOTALL)
    if found is None:
        raise MeasurementError(f"not injected: no netem queue in {text.strip()[-200:]!r}")
    return {"packets": int(found[1]), "dropped": int(found[2])}


@contextmanager
def _netem_delay(site: Site, drawn: Parameters) -> Generator[Injection]:
    router, paths = site.bench.router(), producer_paths(site.bench.spec, site.target.node)
    known = [number for number in sorted(paths) if number in (site.producers or site.pattern.producers)]
    delayed = tuple(sorted(Random(drawn["seed"]).sample(known, min(DELAYED_PRODUCERS, 2 * len(known) // 3))))
    try:
        settings = PathSettings(delay_us=held_us(site.pattern, delayed, drawn["excess_us"]))
        set_up = router.configure({paths[number] for number in delayed}, settings)
        yield _Netem(site, set_up, loses=False, producers=delayed)
    finally:
        router.clear()


def held_us(pattern: Pattern, producers: Collection[int], excess_us: int) -> int:
    """Return a delay in us by which each of these producers exceeds the budget of one of its streams."""
    smallest_ns = (
        min(stream.budget_ns for stream in pattern.streams if stream.producer == number)
        for number in producers
    )
    return max(smallest_ns) // 1000 + excess_us


LOSSY_PRODUCERS = (4, 6, 7)
"""Their datagrams have 3, 3 and 2 fragments."""


@contextmanager
def _netem_loss(site: Site, drawn: Parameters) -> Generator[Injection]:
    router = site.bench.router()
    paths = {producer_path(site.bench.spec, number, site.target.node) for number in LOSSY_PRODUCERS}
    try:
        set_up = router.configure(paths, PathSettings(loss=RandomLoss(drawn["loss_permille"] / 10)))
        yield _Netem(site, set_up, loses=True)
    finally:
        router.clear()


class _GuestHog(Injection):
    """A hog inside the target."""

    def __init__(self, job: Job, longest_at_least_us: int) -> None:
        self._job = job
        self._longest_at_least_us = longest_at_least_us

    def confirm(self, replays: int) -> dict[str, int]:
        taken = hog_result(self._job)
        if taken["longest_us"] < self._longest_at_least_us or taken["bursts"] < 10 * replays:
            raise MeasurementError(f"not injected: the hog has taken {taken} in {replays} replays")
        return taken


@contextmanager
def _guest_hog(site: Site, arguments: list[str], longest_at_least_us: int) -> Generator[Injection]:
    node = site.bench.node(site.target.node)
    program = f"{REMOTE_TOOLS}/hog"
    node.put(site.hog, program)
    job = node.start([program, *arguments], site.folder / "hog-in-target")
    try:
        job.wait_ready()
        yield _GuestHog(job, longest_at_least_us)
    finally:
        end_job(job)


def _shared_hog(site: Site, drawn: Parameters) -> AbstractContextManager[Injection]:
    burst_us = (TIGHTEST_US + EXCESS_MIN_US, drawn["burst_max_us"])
    arguments = hog_arguments(shared_cpu(site), drawn["priority"], burst_us, SHARED_PAUSE_US, drawn["seed"])
    return _guest_hog(site, arguments, 2 * TIGHTEST_US + EXCESS_MIN_US)


def _timer_storm(site: Site, drawn: Parameters) -> AbstractContextManager[Injection]:
    burst_us = (drawn["burst_us"], drawn["burst_us"])
    arguments = hog_arguments(shared_cpu(site), 40, burst_us, SHARED_PAUSE_US, drawn["seed"], "timers")
    return _guest_hog(site, arguments, 2 * TIGHTEST_US + EXCESS_MIN_US)


def shared_cpu(site: Site) -> int:
    """Return the CPU of this machine that the target's consumer runs on."""
    return site.bench.spec.witness.cpus[-1] if site.bench.spec.witness is not None else 0


def _rt_hog(site: Site, drawn: Parameters) -> AbstractContextManager[Injection]:
    burst_us = (TIGHTEST_US + EXCESS_MIN_US, drawn["burst_max_us"])
    arguments = hog_arguments(0, 98, burst_us, (100_000, 1_100_000), drawn["seed"])
    return _guest_hog(site, arguments, 2 * TIGHTEST_US + EXCESS_MIN_US)


@contextmanager
def _low_priority(site: Site, drawn: Parameters) -> Generator[Injection]:
    node = site.bench.node(site.target.node)
    before = node.priority
    arguments = hog_arguments(0, -20, (130_000, drawn["burst_max_us"]), (100_000, 300_000), drawn["seed"])
    try:
        node.priority = 0
        with _guest_hog(site, arguments, 130_000) as injection:
            yield injection
    finally:
        node.priority = before


@dataclass
class _Sysctl(Injection):
    """A setting of the target's kernel that is not as provisioned."""

    site: Site
    name: str
    value: str

    def read(self) -> str:
        """Return what holds now, with single spaces."""
        node = self.site.bench.node(self.site.target.node)
        return " ".join(node.run(["sysctl", "-n", self.name]).stdout.split())

    def write(self, value: str) -> None:
        """Set it."""
        self.site.bench.node(self.site.target.node).run(["sysctl", "-q", "-w", f"{self.name}={value}"])

    def confirm(self, replays: int) -> dict[str, int]:  # noqa: ARG002
        if self.read() != self.value:
            raise MeasurementError(f"not injected: {self.name} is {self.read()}, not {self.value}")
        return {}


@contextmanager
def _small_buffers(site: Site, _drawn: Parameters) -> Generator[Injection]:
    setting = _Sysctl(site, "net.ipv4.tcp_rmem", " ".join([str(RECEIVE_WINDOW_BYTES)] * 3))
    before = setting.read()
    try:
        setting.write(setting.value)
        yield setting
    finally:
        setting.write(before)


@dataclass
class _ClockStep(Injection):
    """Steps of the target's clock, one in each replay."""

    site: Site
    step_ns: int
    steps: int = field(default=0, init=False)

    def step(self, step_ns: int) -> None:
        """Step the clock; positive: it is put ahead."""
        self.site.bench.node(self.site.target.node).run(["bw-setclock", "--step-ns", str(step_ns)])

    def when_counting_begins(self) -> None:
        self.step(self.step_ns)
        self.steps += 1

    def confirm(self, replays: int) -> dict[str, int]:
        if self.steps != replays:
            raise MeasurementError(f"not injected: {self.steps} steps in {replays} replays")
        return {"steps": self.steps}


@contextmanager
def _clock_step(site: Site, drawn: Parameters) -> Generator[Injection]:
    steps = _ClockStep(site, (-1 if drawn["backwards"] else 1) * drawn["step_us"] * 1000)
    try:
        yield steps
    finally:
        if steps.steps:
            steps.step(-steps.steps * steps.step_ns)


class _Wander(Injection):
    """A clock that `bw-wander` makes wrong."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def confirm(self, replays: int) -> dict[str, int]:
        lines = self._job.fetch().read_text().splitlines()
        settings = sum(json.loads(line)["type"] == "setting" for line in lines if line.endswith("}"))
        if settings < 10 * replays:
            raise MeasurementError(f"not injected: the clock was set {settings} times in {replays} replays")
        return {"settings": settings}


@contextmanager
def _clock_wander(site: Site, drawn: Parameters) -> Generator[Injection]:
    node = site.bench.node(site.target.node)
    argv = [site.bench.tool(site.target.node, "bw-wander"), "--base-ppb-max", str(drawn["base_max_ppb"])]
    argv += ["--walk-ppb-per-sqrt-s", str(drawn["walk_ppb_per_sqrt_s"]), "--seed", str(drawn["seed"])]
    argv += ["--duration-ms", str(LIFE_S * 1000)]
    job = node.start(argv, site.folder / "wander")
    try:
        job.wait_ready()
        yield _Wander(job)
    finally:
        end_job(job)


_GUEST = frozenset({"linux-rt"})
_NATIVE = frozenset({"linux"})

NONE = "none"
FAULTS: dict[str, FaultKind] = {
    kind.name: kind
    for kind in (
        FaultKind(NONE, Truth.SOUND, "nothing is injected into the target", {}, _none),
        FaultKind(
            "netem-delay",
            Truth.FAULTY,
            f"netem holds every packet of up to {DELAYED_PRODUCERS} producers back, each by the smallest"
            " budget of its streams and 3 to 20 ms more at least",
            {"seed": _SEED, "excess_us": (EXCESS_MIN_US, 20_000)},
            _netem_delay,
            frozenset({"linux-rt", "windows", "embedded"}),
        ),
        FaultKind(
            "netem-loss",
            Truth.FAULTY,
            "of 300 datagrams in 800 fragments, each lost with 2 % at least, some are lost in all but one"
            " replay in 10^6; the queue's counter shows losses",
            {"loss_permille": (20, 60)},
            _netem_loss,
            frozenset({"linux-rt", "windows"}),
        ),
        FaultKind(
            "rt-hog",
            Truth.FAULTY,
            "a burst of B ms at FIFO 98 on the only processor keeps a message of stream 23, one every 10 ms,"
            " for B - 10 ms at least: 13 ms, budget + 3 ms, from B = 23 ms on. Of 8 bursts, drawn from 13 to"
            " 30 ms or more, one does so at least in all but one replay in 10^4",
            {"burst_max_us": (30_000, 50_000), "seed": _SEED},
            _rt_hog,
            _GUEST,
        ),
        FaultKind(
            "shared-hog",
            Truth.FAULTY,
            "as rt-hog, on the processor that the consumer shares with others of this machine, at FIFO 51 to"
            " 99: over the consumer's 50, from 90 on over the witness, too",
            {"priority": (51, 99), "burst_max_us": (30_000, 50_000), "seed": _SEED},
            _shared_hog,
            _NATIVE,
        ),
        FaultKind(
            "timer-storm",
            Truth.UNDECIDABLE,
            "tens of thousands of timers of the target end at one instant, every 0.1 to 0.3 s: interrupts"
            " take some 20 to 45 ms, and 23 ms once at least, by the hog's own waking; no account says whose"
            " they were",
            {"burst_us": (30_000, 45_000), "seed": _SEED},
            _timer_storm,
            _NATIVE,
        ),
        FaultKind(
            "low-priority",
            Truth.FAULTY,
            "bursts of 130 ms or more at nice -20 leave the consumer, at ordinary priority, 1.1 % of the only"
            " processor: a message of 640 kB that comes in the first 87 ms is late by 3 ms at least",
            {"burst_max_us": (150_000, 300_000), "seed": _SEED},
            _low_priority,
            _GUEST,
        ),
        FaultKind(
            "small-buffers",
            Truth.FAULTY,
            f"with a receive buffer of {RECEIVE_WINDOW_BYTES} bytes 640 kB take 278 round trips: over 43 ms"
            " from 0.16 ms a round trip on",
            {},
            _small_buffers,
            _GUEST,
        ),
        FaultKind(
            "clock-step",
            Truth.UNDECIDABLE,
            "the target's clock is stepped once in the counted time of each replay",
            {"step_us": (3_000, 50_000), "backwards": (0, 1)},
            _clock_step,
            _GUEST,
        ),
        FaultKind(
            "clock-wander",
            Truth.SOUND,
            "only the rate of the target's clock is wrong, and wanders; latencies are not",
            {"base_max_ppb": (1_000, 100_000), "walk_ppb_per_sqrt_s": (10, 1_000), "seed": _SEED},
            _clock_wander,
            _GUEST,
        ),
    )
}


def faults_of(target: str) -> dict[str, FaultKind]:
    """Return the faults that a kind of target can be given."""
    return {name: kind for name, kind in FAULTS.items() if not kind.targets or target in kind.targets}
