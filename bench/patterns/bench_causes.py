# SPDX-License-Identifier: Apache-2.0
"""Is the cause of late messages found that was put in, and none where nobody can know? Live.

A ring goes round from a target; the kernels of all its machines are recorded, while one of
bench/patterns/injectors.py makes its messages late; what it did is read once a run is judged, and it is
judged a second time without the guilty part of its evidence. What the bench itself does to a ring is named,
too, where it has a part in late messages: a run in which nothing is done tells what that is.

right_first_percent       of runs with late messages that were put in: the guilty one is named first
wrong_first_percent       of the same: something else is named first
strange_percent           of the same: named beside it is what no run names in which nothing was done
without_percent           of the same runs without the guilty evidence: nothing but the bench's own is named
nothing_named_percent     of runs in which nothing was done: something is named
"""

from __future__ import annotations

import json
import random
import shutil
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench.lab.options import Options, takes
from bench.lab.report import REPOSITORY, RESULTS, Bar, publish, say, steal_ms
from bench.patterns.injected import Scene
from bench.patterns.injectors import INJECTORS
from hw.bench import TargetSpec
from hw.errors import CapabilityError
from hw.open_bench import OpenBench
from hw.session import open_bench
from reports.causes.suspects import Finding
from reports.control_loops.ring import load_ring
from reports.control_loops.ring_suspects import ring_suspects
from reports.record.codec import from_json, to_json
from resources.control_loops.ring_trial import RingMessages, measure_ring

FOLDER = RESULTS / "causes"
BENCH = REPOSITORY / "hw" / "benches" / "virtual.yaml"
SIZE_BYTES = 10
STARTING_S = 20.0
BARS = {
    "right_first_percent": Bar(90, at_least=True),
    "wrong_first_percent": Bar(2),
    "strange_percent": Bar(2),
    "without_percent": Bar(95, at_least=True),
}


@dataclass(frozen=True)
class Outcome:
    """What came of a run; names are those of activities, the largest share first.

    Attributes:
        kind: Of its injector.
        guilty: Beginnings of names; empty: nothing was done.
        late: Some message was.
        named: As measured.
        without: Without the guilty evidence.
    """

    kind: str
    guilty: tuple[str, ...]
    late: bool
    named: tuple[str, ...]
    without: tuple[str, ...]


def one(
    bench: OpenBench, target: TargetSpec, kind: str, seed: int, messages: RingMessages, folder: Path
) -> Outcome:
    """Make a run, and judge it.

    Raises:
        CapabilityError: The bench cannot have this cause.
    """
    lasts_s = messages.count * messages.interval_us / 1e6 + STARTING_S
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with INJECTORS[kind](Scene(bench, target, random.Random(seed), folder, lasts_s)) as done:
        measure_ring(bench, target, replace(messages, **done.messages), folder)
    return judged(kind, done.guilty, folder)


def judged(kind: str, guilty: tuple[str, ...], folder: Path) -> Outcome:
    """Judge the evidence of a run, with and without its guilty part."""
    found = ring_suspects(load_ring(folder), folder)
    innocent = ring_suspects(load_ring(folder), folder, guilty) if guilty else None
    shown = [f"{each.name} {each.share:.2f} ({each.chance:.4f})" for each in found.seen[:4]] if found else []
    outcome = Outcome(kind, guilty, found is not None, _names(found), _names(innocent))
    say(f"{kind}: late in {found.groups if found else 0} groups; named {outcome.named}; seen {shown}")
    say(f"  guilty: {guilty}; without: {outcome.without}")
    return outcome


def _names(found: Finding | None) -> tuple[str, ...]:
    return tuple(each.name for each in found.named) if found else ()


def figures_of(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Return the figures, and by kind how many runs were judged and how many of them are right."""
    judged = [each for each in outcomes if each.guilty and each.late]
    own = {name for each in outcomes if not each.guilty for name in each.named}

    def percent(of: Sequence[Outcome], is_so: Callable[[Outcome], bool]) -> float:
        return 100 * statistics.mean(is_so(each) for each in of) if of else 0.0

    def is_right(each: Outcome) -> bool:
        return bool(each.named) and each.named[0].startswith(each.guilty)

    def is_strange(each: Outcome) -> bool:
        return any(not name.startswith(each.guilty) and name not in own for name in each.named)

    figures = {
        "right_first_percent": percent(judged, is_right),
        "wrong_first_percent": percent(judged, lambda each: bool(each.named) and not is_right(each)),
        "strange_percent": percent(judged, is_strange),
        "without_percent": percent(judged, lambda each: own.issuperset(each.without)),
        "nothing_named_percent": percent(
            [each for each in outcomes if not each.guilty], lambda each: bool(each.named)
        ),
        "runs": len(outcomes),
        "judged": len(judged),
    }
    for kind in sorted({each.kind for each in judged}):
        of_kind = [each for each in judged if each.kind == kind]
        figures |= {f"judged_{kind}": len(of_kind), f"right_{kind}": sum(map(is_right, of_kind))}
    return figures


@takes(
    runs=(10, "of each cause"),
    count=(1500, "messages of a run"),
    interval_us=(10_000, "between two; emulated kernels that are recorded do not keep up with many more"),
    causes=(",".join(INJECTORS), "which, in this form"),
    seed=(1, "of order and causes"),
    bench=(BENCH, "file of the bench"),
    target=("linux-rt", "where source and sink are"),
    resume=(False, "go on behind the last run of the same options that ended"),
    again=(False, "judge once more what runs of the same options have left, and make none"),
)
def main(options: Options) -> int:
    """Run the benchmark."""
    stolen_ms = steal_ms()
    rng = random.Random(options.seed)
    order = [kind for kind in options.causes.split(",") for _ in range(options.runs)]
    rng.shuffle(order)
    seeds = [rng.randrange(1 << 30) for _ in order]
    journal = FOLDER / "outcomes.ndjson"
    asked = {name: str(value) for name, value in vars(options).items() if name not in ("resume", "again")}
    outcomes = outcomes_of(journal, asked) if options.resume or options.again else []
    if options.again:
        outcomes = [
            judged(each.kind, each.guilty, FOLDER / f"{number:03}")
            for number, each in enumerate(outcomes)
            if (FOLDER / f"{number:03}" / "ring.json").exists()
        ]
        order = []
    if not outcomes and not options.again:
        FOLDER.mkdir(parents=True, exist_ok=True)
        journal.write_text(json.dumps(asked) + "\n")
    if order:
        _measure(options, list(zip(order, seeds, strict=True)), outcomes, journal)
    runs = [to_json(each) for each in outcomes]
    return publish("causes", figures_of(outcomes), BARS, {"stolen_ms": steal_ms() - stolen_ms, "runs": runs})


def _measure(
    options: Options, runs: Sequence[tuple[str, int]], outcomes: list[Outcome], journal: Path
) -> None:
    """Make the runs that have no outcome yet; each of them is kept as it ends."""
    messages = RingMessages(options.count, options.interval_us, SIZE_BYTES, 2, kernel_events=True)
    with open_bench(options.bench) as bench:
        target = bench.spec.targets[options.target]
        bench.power_on([target.node])
        for number, (kind, seed) in list(enumerate(runs))[len(outcomes) :]:
            say(f"run {number + 1} of {len(runs)}")
            try:
                outcome = one(bench, target, kind, seed, messages, FOLDER / f"{number:03}")
            except CapabilityError as error:
                say(f"{kind}: cannot be had: {error}")
                outcome = Outcome(kind, ("",), False, (), ())
            outcomes.append(outcome)
            with journal.open("a") as file:
                file.write(json.dumps(to_json(outcome)) + "\n")


def outcomes_of(journal: Path, asked: dict[str, str]) -> list[Outcome]:
    """Return the outcomes of a journal of the same options; a last line that was cut off counts as none."""
    lines = journal.read_text().splitlines(keepends=True) if journal.exists() else []
    if not lines or json.loads(lines[0]) != asked:
        return []
    whole = [line for line in lines[1:] if line.endswith("\n")]
    journal.write_text("".join([lines[0], *whole]))
    return [from_json(Outcome, json.loads(line)) for line in whole]
