# SPDX-License-Identifier: Apache-2.0
"""Two years of history, made up, always the same: 2,000 runs of 48 streams, clocks, timed edges, and events.

Points are those that `points.run_points`, `stored_event` and the store make of small real runs; only values
are replaced, so that no name, type or tag can be another than a real run's.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from dashboards.delivery.deliver import SPOOL
from dashboards.line_protocol import Field, Point
from dashboards.points import EVENT, LATENCY, OUTCOME_CODE, RUN, RunPoints, run_points
from dashboards.regressions.event import Event, Kind, Level, RunValue
from dashboards.regressions.series_events import stored_event
from dashboards.store import Store
from reports.record.measurement import AxisValue, Outcome, Subject
from tests.dashboards.runs import make_run, record
from tests.dashboards.stored import stored_points
from tests.reports import sample_run

RUNS = 2000
END_NS = 1_795_219_200_000_000_000  # 2026-11-21T00:00:00Z
BEGIN_NS = END_NS - 731 * 86_400_000_000_000  # two years earlier
BATCH_LINES = 5000
SHARDS = "52w"
"""Duration of a shard that docs/grafana.md recommends for such a history; the server's default is a week."""
STREAM_REGRESSED, REGRESSED_FROM = "31", 0.6
"""Stream that becomes slower, and after which share of the history."""
BENCH_CHANGES = (0.25, 0.5, 0.75)
HOST = "lab-host-1"

_TIME = 1_234_567_890_123_456_789
_RUN_ID, _COMMIT, _KEY, _OUTCOME = "RUN-ID", "COMMIT", "KEY", "OUTCOME"
_SCALED = ("value_ns", "value", "mean_ns", "p50_ns", "p90_ns", "p99_ns", "p999_ns")


@dataclass(frozen=True)
class Setup:
    """What a kind of run is made with, and how many of the runs are of it."""

    tags: Mapping[str, str]
    share: float
    speed: float = 1.0


SETUPS = (
    Setup({"bench": "lab-1", "target": "linux-rt", "profile": "ci", "branch": "main"}, 0.40),
    Setup({"bench": "lab-1", "target": "linux-rt", "profile": "ci", "branch": "pr"}, 0.30, 1.05),
    Setup(
        {"bench": "lab-1", "target": "linux-rt", "stack": "user", "profile": "nightly", "branch": "main"},
        0.15,
        0.4,
    ),
    Setup(
        {
            "bench": "lab-2",
            "target": "windows",
            "model": "IPC 427E",
            "clock": "ptp-hardware",
            "profile": "nightly",
            "branch": "main",
        },
        0.12,
        1.6,
    ),
    Setup({"bench": "lab-2", "target": "windows", "profile": "acceptance", "branch": "release"}, 0.03, 1.6),
)


@dataclass(frozen=True)
class Run:
    """One run of the history."""

    number: int
    run_id: str
    time_ns: int
    commit: str
    key: str
    setup: Setup


def runs(count: int = RUNS) -> list[Run]:
    """Return the runs, oldest first, the last one just before END_NS."""
    rng = random.Random(1)
    step_ns = (END_NS - BEGIN_NS) // count
    setups = rng.choices(SETUPS, [setup.share for setup in SETUPS], k=count)
    found: list[Run] = []
    for number, setup in enumerate(setups):
        time_ns = BEGIN_NS + number * step_ns + rng.randrange(step_ns)
        key = f"{sum(number >= share * count for share in BENCH_CHANGES):012x}"
        commit = f"{number:040x}"
        found.append(Run(number, f"20250101T{number:06d}Z-{number:08x}", time_ns, commit, key, setup))
    return found


def lines(folder: Path, count: int = RUNS) -> Iterator[str]:
    """Yield the history as line protocol; `folder` takes the small runs that it is made of."""
    templates = _templates(folder)
    compiled: dict[tuple[int, int], _Row] = {}
    rng = random.Random(2)
    history = runs(count)
    for run in history:
        worst = math.inf
        codes: list[int] = []
        setup = SETUPS.index(run.setup)
        for place, point in enumerate(templates):
            row = compiled.get((setup, place))
            if row is None:
                row = compiled[setup, place] = _Row(point, run.setup)
            if point.measurement == RUN:
                yield row.run_line(run, rng, worst, codes)
                continue
            line, share, code = row.line(run, rng, run.number / count)
            if share is not None:
                worst = min(worst, share)
            codes += [code] * (point.measurement == LATENCY)
            yield line
        yield _spool(run, rng).line()
    yield from _events(folder, history)


def load_two_years(write: Callable[[bytes], None], folder: Path, count: int = RUNS) -> int:
    """Hand the history to a writer of line protocol (nanoseconds), in batches; return the number of points.

    Args:
        write: Posts a body to a server, and raises where it is not taken.
        folder: An empty place for the small runs that the history is made of.
        count: Number of runs.
    """
    batch: list[str] = []
    written = 0
    for line in lines(folder, count):
        batch.append(line)
        if len(batch) == BATCH_LINES:
            write("\n".join(batch).encode())
            written += len(batch)
            batch = []
    write("\n".join(batch).encode())
    return written + len(batch)


class _Row:
    """A point with its changing values left open, as a format that is fast to fill."""

    def __init__(self, point: Point, setup: Setup) -> None:
        tags = {**point.tags, **{name: text for name, text in setup.tags.items() if name in point.tags}}
        fields = dict(point.fields)
        self.speed = setup.speed
        self.stream = tags.get("stream")
        self.fields = fields
        open_fields: dict[str, Field] = {"run_id": _RUN_ID, "commit": _COMMIT, "bench_key": _KEY}
        if "outcome" in fields:
            open_fields |= {"outcome": _OUTCOME, "outcome_code": 9_000_001}
        self.scaled = [name for name in _SCALED if name in fields]
        self.margins = [name for name in ("margin_ns", "margin", "margin_share") if name in fields]
        self.late = [name for name in ("lateness_p99_ns", "lateness_max_ns") if name in fields]
        self.counted = [n for n in ("count_pass", "count_fail", "count_inconclusive") if n in fields]
        self.worst = [n for n in ("worst_margin_share",) if n in fields]
        for mark, name in enumerate((*self.scaled, *self.margins, *self.late, *self.worst)):
            open_fields[name] = 1e300 + mark * 1e298
        for mark, name in enumerate(self.counted):
            open_fields[name] = 9_000_010 + mark
        text = Point(point.measurement, tags, {**fields, **open_fields}, _TIME).line().replace("%", "%%")
        for name, value in open_fields.items():
            written = f"{value}i" if isinstance(value, int) else repr(value)
            if isinstance(value, str):
                written = f'"{value}"'
            form = f'"%({name})s"' if isinstance(value, str) else f"%({name})r"
            form += "i" if isinstance(value, int) else ""
            text = text.replace(f"{name}={written}", f"{name}={form}", 1)
        self.format = text.replace(str(_TIME), "%(time)d")

    def line(self, run: Run, rng: random.Random, age: float) -> tuple[str, float | None, int]:
        """Return the line, its margin as a share of the limit, and its outcome."""
        factor = self.speed * rng.lognormvariate(0, 0.08) * (8.0 if rng.random() < 2e-4 else 1.0)
        if self.stream == STREAM_REGRESSED and age > REGRESSED_FROM:
            factor *= 1.6
        filled = self._common(run)
        for name in self.scaled:
            filled[name] = float(self.fields[name]) * factor
        for name in self.late:
            filled[name] = float(self.fields[name]) * rng.lognormvariate(0, 0.15)
        share, code = None, 0
        outcome: Outcome = "pass"
        if self.margins and self.scaled:
            share = self._margins(filled)
            outcome = "pass" if share is None or share >= 0 else "fail"
            code = OUTCOME_CODE[outcome]
        filled |= {"outcome": outcome, "outcome_code": code}
        return self.format % filled, share, code

    def run_line(self, run: Run, rng: random.Random, worst: float, codes: list[int]) -> str:
        """Return the line of the run itself."""
        failed = sum(code > 0 for code in codes)
        filled = self._common(run)
        outcome: Outcome = "fail" if failed else "pass"
        filled |= {"outcome": outcome, "outcome_code": OUTCOME_CODE[outcome], "worst_margin_share": worst}
        filled |= {"count_pass": len(codes) - failed, "count_fail": failed, "count_inconclusive": 0}
        for name in self.late:
            filled[name] = float(self.fields[name]) * rng.lognormvariate(0, 0.15)
        return self.format % filled

    def _common(self, run: Run) -> dict[str, Field]:
        return {"run_id": run.run_id, "commit": run.commit, "bench_key": run.key, "time": run.time_ns}

    def _margins(self, filled: dict[str, Field]) -> float | None:
        """Fill the margins in: that of the template, less what the value has grown."""
        absolute = next((name for name in self.margins if name != "margin_share"), None)
        if absolute is None:
            return None
        name = self.scaled[0]
        before = float(self.fields[absolute])
        grown = abs(float(filled[name])) - abs(float(self.fields[name]))
        margin = before - grown
        filled[absolute] = margin
        if "margin_share" not in self.margins:
            return None
        share = float(self.fields["margin_share"])
        if share:
            share = margin / (before / share)
        filled["margin_share"] = share
        return share


def small_runs(folder: Path) -> tuple[RunPoints, RunPoints]:
    """Return the points of a run of 48 streams, and of one of clocks, edges and checks."""
    linux, windows = Subject("virtual", "linux-rt"), Subject("virtual", "windows")
    clocks = [dataclasses.replace(linux, clock=name) for name in ("chrony", "ptp-software", "phc2sys")]
    clocks.append(dataclasses.replace(windows, clock="timeservice"))
    methods = ("gettime-software", "rdtsc-software", "tgpio-filtered-read", "tgpio-latch")
    records = [
        record(quantity="known_delay_error", requirement="BENCH-KNOWN-DELAY", value=157_000, upper=10**6)
    ]
    for clock in clocks:
        name = f"CLK-{(clock.clock or '').upper()}"
        records += [
            record(quantity="sync_offset", requirement=name, value=-140_000, upper=10**6, subject=clock),
            record(quantity="lock_time", requirement=name, value=12, unit="s", upper=90, subject=clock),
            record(quantity="mtie", requirement=name, value=10_500, upper=320_000, subject=clock),
            record(
                quantity="clock_witness_difference",
                requirement="BENCH-CLOCK-WITNESSES",
                value=19_000,
                upper=241_000,
                subject=clock,
            ),
        ]
    for number, method in enumerate(methods):
        subject = dataclasses.replace(linux, method=method)
        name = f"EDGE-{method.upper()}"
        value = (12_700, 12_900, 47, 8)[number]
        records.append(
            record(quantity="edge_delay", requirement=name, value=value, upper=40_000, subject=subject)
        )
    pair = dataclasses.replace(linux, method="tgpio-latch/tgpio-filtered-read")
    shifted = dataclasses.replace(linux, method="tgpio-latch")
    records += [
        record(
            quantity="edge_deviation_difference",
            requirement="EDGE-ORDER",
            value=39,
            upper=10**6,
            subject=pair,
        ),
        record(
            quantity="edge_error_shift", requirement="BENCH-EDGE-ERROR", value=1, upper=530, subject=shifted
        ),
    ]
    reader = dataclasses.replace(linux, clock="realtime", method="vdso")
    records.append(
        record(quantity="clock_read_latency", requirement="CLK-READ", value=187, upper=1000, subject=reader)
    )
    board = dataclasses.replace(linux, axes=(AxisValue("device", "board"),))
    records.append(
        record(quantity="software_latency", requirement="SW-BOARD", value=90_000, upper=10**6, subject=board)
    )
    leg = dataclasses.replace(linux, axes=(AxisValue("leg", "to the target"),))
    records.append(record(quantity="leg_time", requirement="TL-TO", value=40_000, upper=10**6, subject=leg))
    whole = dataclasses.replace(linux, axes=(AxisValue("stretch", "whole"),))
    records.append(
        record(quantity="loop_delay", requirement="CL-WHOLE", value=250_000, upper=10**7, subject=whole)
    )
    idle = dataclasses.replace(linux, axes=(AxisValue("beside", "nothing"),))
    records.append(
        record(quantity="wakeup_latency", requirement="RT-IDLE-MAX", value=90_000, upper=10**7, subject=idle)
    )
    records.append(
        record(quantity="hardware_noise", requirement="RT-IDLE-NOISE", value=9000, upper=10**7, subject=idle)
    )
    compared = dataclasses.replace(
        linux,
        axes=(
            AxisValue("under", "idle"),
            AxisValue("pair", "user less kernel"),
            AxisValue("message_type", "type 0"),
        ),
    )
    records.append(
        record(
            quantity="stack_latency_difference",
            requirement="STACK-USER-MEDIAN",
            value=9000,
            upper=10**6,
            subject=compared,
        )
    )
    small = dataclasses.replace(linux, stack="kernel", axes=(AxisValue("size", "64 B"),))
    records += [
        record(
            quantity="message_latency",
            requirement=f"RTE-64-{number}",
            value=40_000,
            upper=10**6,
            subject=small,
        )
        for number in range(2)
    ]
    runs = sample_run.make_run(folder / "streams"), make_run(folder / "others", records)
    for run in runs:
        run.finalise()
    return run_points(runs[0], "main"), run_points(runs[1], "main")


def _templates(folder: Path) -> list[Point]:
    """Return the points of a run, the run's own last, the judged streams before their verdicts' use."""
    streams, others = small_runs(folder)
    points = [point for point in others.points if point.measurement != RUN]
    return points + [p for p in streams.points if p.measurement != RUN] + _of(streams, RUN)


def _of(run: RunPoints, measurement: str) -> list[Point]:
    return [point for point in run.points if point.measurement == measurement]


def _spool(run: Run, rng: random.Random) -> Point:
    waiting = 0 if rng.random() < 0.95 else rng.randrange(5000)
    fields = {"waiting": waiting, "rejected": 0, "runs": run.number + 1}
    return Point(SPOOL, {"host": HOST}, fields, run.time_ns + 300_000_000_000)


def _events(folder: Path, history: list[Run]) -> Iterator[str]:
    """Yield a regression, improvements and changes of the bench, made as the store makes them."""
    first = next(p for p in small_runs(folder / "events")[0].points if p.tags.get("stream") == "31")
    kinds: tuple[tuple[Kind, float, float], ...] = (
        ("improvement", 0.3, 0.8),
        ("regression", REGRESSED_FROM, 1.6),
        ("regression", 0.99, 1.1),
    )
    for kind, share, ratio in kinds:
        place = next(
            n for n in range(int(share * len(history)), len(history)) if history[n].setup is SETUPS[0]
        )
        tags = {**first.tags, **SETUPS[0].tags}
        event = an_event(kind, history[place - 8 : place + 5], ratio=ratio)
        yield stored_event(event, LATENCY, tags).line()
    yield from _bench_changes(folder, history)


def an_event(kind: Kind, around: list[Run], level_ns: float = 12e6, ratio: float = 1.6) -> Event:
    """Return an event in the middle of some runs, from a level to so many times the level."""
    values = [RunValue(run.run_id, run.time_ns, level_ns, run.key, run.commit) for run in around]
    before = Level(40, level_ns, 0.95 * level_ns, 1.05 * level_ns)
    after = Level(5, ratio * level_ns, 0.95 * ratio * level_ns, 1.05 * ratio * level_ns)
    first = len(values) // 2 + 2
    return Event(
        kind=kind,
        series="linux-rt kernel stream 31 one_way_latency max",
        unit="ns",
        last_before=values[first - 1],
        first_after=values[first],
        range_before=values[first - 2],
        range_after=values[first + 1],
        seen=values[-1],
        before=before,
        after=after,
        z=4.2 if ratio > 1 else -4.2,
        commits=(values[first].commit or "",),
    )


def runs_of_two_benches(history: list[Run]) -> Iterator[RunPoints]:
    """Yield the runs before and after each change of each bench, without measurements."""
    for bench in ("lab-1", "lab-2"):
        mine = [run for run in history if run.setup.tags["bench"] == bench]
        for before, after in itertools.pairwise(mine):
            if before.key != after.key:
                yield from (_bare(before), _bare(after))


def _bench_changes(folder: Path, history: list[Run]) -> Iterator[str]:
    with Store(folder / "changes.sqlite") as store:
        for run in runs_of_two_benches(history):
            store.add_run(run)
        events = stored_points(store, EVENT)
    yield from (event.line for event in events)


def _bare(run: Run) -> RunPoints:
    """Return a run that has only what the store looks at to see that a bench has changed."""
    point = Point(RUN, {"bench": run.setup.tags["bench"]}, {"run_id": run.run_id}, run.time_ns)
    return RunPoints(
        run_id=run.run_id,
        time_ns=run.time_ns,
        bench=run.setup.tags["bench"],
        profile=run.setup.tags["profile"],
        branch=run.setup.tags["branch"],
        commit=run.commit,
        simulated=True,
        outcome="pass",
        points=(point,),
        facts={"host.kernel": f"6.{int(run.key, 16) + 1}"},
    )
