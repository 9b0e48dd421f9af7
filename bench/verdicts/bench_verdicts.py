# SPDX-License-Identifier: Apache-2.0
"""How often is the verdict wrong? Replays of targets whose truth is known, on a machine that is disturbed.

One bench is open for the whole campaign. A case is a fault of the target, or none, crossed with a disturbance
of the machine, or none; both are drawn from tables, by a seed. It is replayed and judged by the rule of a
qualification, with as many replays as the profile allows. What comes of it is a confusion matrix, truth
against verdict: docs/verdict-specification.md says how truth is known and what the figures mean.

Every case is one line of results/bench/verdicts-cases.ndjson, written when it ends. Ctrl-C ends the campaign
with the matrix of what was done.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from bench.lab.options import Options
from bench.lab.report import REPOSITORY, RESULTS, publish, say, steal_ms
from bench.verdicts.verdict_disturbances import DISTURBANCES, disturbances_of
from bench.verdicts.verdict_faults import FAULTS, NONE, Site, Truth, build_hog, faults_of
from bench.verdicts.verdict_matrix import (
    BARS,
    INVALID,
    CaseResult,
    by_fault_text,
    figures,
    matrix_text,
)
from hw.errors import BenchError, BenchwrightError, MeasurementError
from hw.provisioning import Provisioner
from hw.session import Bench, open_bench
from reports.quantities import producer_of
from reports.record.measurement import Outcome
from reports.record.sampling import CONFIDENCE
from reports.run.tally import worst_outcome
from resources.daq_replay.evidence import LatencyEvidence
from resources.daq_replay.pattern import Pattern, load_pattern
from resources.daq_replay.plan import ReplaySettings
from resources.daq_replay.requirements import StreamRequirements, load_requirements
from resources.profiles import Profile, load_profile

BENCHES = REPOSITORY / "hw" / "benches"
PATTERN_FILE = REPOSITORY / "traffic-gen" / "patterns" / "daq12.toml"
REQUIREMENTS = REPOSITORY / "robot" / "daq_replay" / "requirements"
REQUIREMENTS_OF = {
    "linux-rt": "daq12.toml",
    "windows": "daq12.toml",
    "embedded": "daq_embedded_virtual.toml",
    "linux": "daq12.toml",
}
BENCH_OF = {"linux": "native.yaml"}
"""By kind of target; of all others the virtual bench."""
CASES_FILE = RESULTS / "verdicts-cases.ndjson"
KEPT = RESULTS / "verdicts"
"""Evidence of cases whose verdict is wrong."""

PHASE = "aligned-12"
WARMUP_MS = 4_000
COUNTED_S = 10
COUNTED_MIN_S = 5
COUNTED_MAX_S = 600
CASES = {"ci": 12, "nightly": 300}
TARGETS = tuple(REQUIREMENTS_OF)
UNTOUCHED_WEIGHT = 3
"""How often a deck has a target without any fault where it has every other one once."""

ERRORS_MAX = 4
"""A bench that fails so often in a row is broken, not disturbed: the campaign ends."""
COUNTING = re.compile(r"^replaying .*: 0 of \d+ s$")
"""What a replay says when the counted time begins (resources/daq_replay/replay.py)."""


@dataclass(frozen=True)
class Case:
    """A fault and a disturbance by name, and how severe each is."""

    number: int
    fault: str
    disturbance: str
    drawn: Mapping[str, Mapping[str, int]]


def draw_cases(seed: int, count: int, faults: Sequence[str], disturbances: Sequence[str]) -> list[Case]:
    """Draw cases: by turns faulty and sound targets, on a quiet and on a disturbed machine.

    Each of the four has a deck of its pairs, which is shuffled whenever it has been dealt, so that no pair is
    left out for long. A case is the same whatever comes after it: fewer cases are the first of more.
    """
    decks: dict[tuple[bool, bool], list[tuple[str, str]]] = {}
    for is_sound, is_quiet in ((False, True), (True, False), (False, False), (True, True)):
        deck = [
            (fault, disturbance)
            for fault in faults
            for disturbance in disturbances
            if (FAULTS[fault].truth == Truth.SOUND, disturbance == NONE) == (is_sound, is_quiet)
            for _ in range(UNTOUCHED_WEIGHT if fault == NONE else 1)
        ]
        if deck:
            decks[is_sound, is_quiet] = deck
    hands = [_dealt(deck, Random(f"{seed}/{turn}")) for turn, deck in decks.items()]
    cases: list[Case] = []
    for number in range(1, count + 1):
        fault, disturbance = next(hands[(number - 1) % len(hands)])
        own = Random(f"{seed}/{number}")
        drawn = {"fault": FAULTS[fault].draw(own), "disturbance": DISTURBANCES[disturbance].draw(own)}
        cases.append(Case(number, fault, disturbance, drawn))
    return cases


def _dealt(deck: Sequence[tuple[str, str]], random: Random) -> Iterator[tuple[str, str]]:
    """Deal a deck in a random order, again and again."""
    while True:
        yield from random.sample(deck, len(deck))


@dataclass(frozen=True)
class PartVerdict:
    """The verdict on the part of a target that a fault is in.

    Attributes:
        name: Of the part; empty: the whole target.
        outcome: `pass`, `fail`, `inconclusive`, `unset`, `error`; or `INVALID`.
        reason: Of a stream with that outcome; empty for a pass.
        first_passes: Whether the first replay alone was a pass.
    """

    name: str
    outcome: str
    reason: str
    first_passes: bool


class CountingBegins:
    """A replay's progress, which tells when the counted time has begun: once in each replay."""

    def __init__(self, act: Callable[[], None]) -> None:
        """Call `act` then."""
        self._act = act

    def __call__(self, text: str) -> None:
        """Take a line of progress."""
        if COUNTING.match(text):
            self._act()


def excluded_miss_probability(pattern: Pattern, counted_s: int) -> float:
    """Return what a pass excludes with the samples that the slowest stream has, but one; 0 to 1.

    That one it may lack at the edges of the counted time.
    """
    slowest_ns = max(stream.period_ns for stream in pattern.streams)
    samples = counted_s * 1_000_000_000 // slowest_ns - 1
    return math.ceil(1000 * (1.0 - (1.0 - CONFIDENCE) ** (1.0 / samples))) / 1000


class Campaign:
    """Cases on one open bench."""

    def __init__(self, bench: Bench, target: str, seed: int, counted_s: int, hog: Path, folder: Path) -> None:
        """Provision the target.

        Args:
            bench: Open; its nodes may be off.
            target: Kind of the consumer.
            seed: Of the cases, for their lines.
            counted_s: How long each replay counts.
            hog: The program of `hog.c`.
            folder: For evidence.
        """
        self.bench = bench
        self.target = bench.spec.targets[target]
        self.seed = seed
        self.began = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        self.hog = hog
        self.folder = folder
        self.pattern: Pattern = load_pattern(PATTERN_FILE, PHASE)
        self.requirements: StreamRequirements = load_requirements(REQUIREMENTS / REQUIREMENTS_OF[target])
        self.counted_s = counted_s
        self.profile: Profile = replace(
            load_profile("ci"),
            name="verdicts",
            warmup_ms=WARMUP_MS,
            duration_ms=counted_s * 1000,
            excluded_miss_probability=excluded_miss_probability(self.pattern, counted_s),
        )
        self._provisioned = False

    def run(self, case: Case) -> list[CaseResult]:
        """Inject, disturb, replay, judge, and undo it all; a result for each part of the target."""
        folder = self.folder / f"case-{case.number:04d}"
        folder.mkdir()
        begin_s, stolen_ms = time.monotonic(), steal_ms()
        done: dict[str, Mapping[str, int]] = {}
        evidence: LatencyEvidence | None = None
        try:
            self._prepare(folder)
            evidence = LatencyEvidence(
                self.bench, self.target, "kernel", "two-way", self.profile, self.requirements, folder
            )
            found = self._judged(case, evidence, folder, done)
        except BenchwrightError as error:
            self._provisioned = False
            found = [PartVerdict("", "error", f"{type(error).__name__}: {error}", first_passes=False)]
        results = [
            CaseResult(
                campaign=self.began,
                seed=self.seed,
                case=case.number,
                part=part.name,
                fault=case.fault,
                disturbance=case.disturbance,
                target=self.target.kind,
                truth=FAULTS[case.fault].truth,
                outcome=part.outcome,
                first_passes=part.first_passes,
                reason=part.reason[:400],
                replays=len(evidence.attempts) if evidence is not None else 0,
                counted_s=self.counted_s,
                steal_ms=steal_ms() - stolen_ms,
                seconds=round(time.monotonic() - begin_s, 1),
                drawn=case.drawn,
                done=done,
            )
            for part in found
        ]
        self._keep_or_remove(results, folder)
        return results

    def _prepare(self, folder: Path) -> None:
        """Bring the target into its known state, where it is not known to be in it."""
        producers = {producer.node for producer in self.bench.spec.producers.values()}
        self.bench.power_on([self.target.node, *sorted(producers)])
        if not self._provisioned:
            Provisioner(self.bench.node(self.target.node), self.target).prepare(folder)
            self._provisioned = True

    def _judged(
        self, case: Case, evidence: LatencyEvidence, folder: Path, done: dict[str, Mapping[str, int]]
    ) -> list[PartVerdict]:
        """Return the verdict on each part; `done` gets what was injected."""
        producers = self.requirements.producers
        site = Site(self.bench, self.target, self.pattern, producers, self.hog, folder)
        settings = ReplaySettings(
            PATTERN_FILE,
            phase=PHASE,
            warmup_ms=WARMUP_MS,
            duration_ms=self.profile.duration_ms,
            only_producers=producers,
        )
        with FAULTS[case.fault].inject(site, case.drawn["fault"]) as injection:
            with DISTURBANCES[case.disturbance].disturb(site, case.drawn["disturbance"]) as disturbed:
                evidence.replay(self.pattern, settings, CountingBegins(injection.when_counting_begins))
            done["disturbance"] = disturbed
            try:
                done["fault"] = injection.confirm(len(evidence.attempts))
            except MeasurementError as error:
                return [PartVerdict("", INVALID, str(error), first_passes=False)]
            return [judged(evidence, producer) for producer in injection.producers or (None,)]

    def _keep_or_remove(self, results: Sequence[CaseResult], folder: Path) -> None:
        """Keep the evidence of a wrong verdict only: that of all would fill the disk in a night."""
        if any(is_wrong(result) for result in results):
            KEPT.mkdir(parents=True, exist_ok=True)
            shutil.move(folder, KEPT / f"{self.began}-{folder.name}")
        else:
            shutil.rmtree(folder)


def judged(evidence: LatencyEvidence, producer: int | None) -> PartVerdict:
    """Return the worst outcome over the streams of a producer, or over all, and the first reason for it."""
    chosen = [
        stream
        for stream in sorted(evidence.requirements.by_stream)
        if producer in (None, producer_of(stream))
    ]
    decided = evidence.decided()
    verdicts = {stream: decided[stream].verdict for stream in chosen}
    outcome: Outcome = worst_outcome({verdict.outcome for verdict in verdicts.values()})
    reasons = (f"stream {stream}: {verdict.reason}" for stream, verdict in verdicts.items())
    return PartVerdict(
        name=f"producer {producer}" if producer is not None else "",
        outcome=outcome,
        reason=next(
            (
                reason
                for reason, verdict in zip(reasons, verdicts.values(), strict=True)
                if verdict.outcome == outcome
            ),
            "",
        )
        if outcome != "pass"
        else "",
        first_passes=all(decided[stream].judged[0].standing == "clean" for stream in chosen),
    )


def is_wrong(result: CaseResult) -> bool:
    """Tell whether a verdict contradicts the truth."""
    wrong = {Truth.SOUND: ("fail",), Truth.FAULTY: ("pass",), Truth.UNDECIDABLE: ("pass", "fail")}
    return result.outcome in wrong[Truth(result.truth)]


def append_line(path: Path, result: CaseResult) -> None:
    """Write one case, so that a campaign that is broken off keeps it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as lines:
        lines.write(json.dumps(result.to_json(), separators=(",", ":")) + "\n")


def told(result: CaseResult, count: int) -> str:
    """Return a line on a case for whoever watches."""
    mark = "  WRONG" if is_wrong(result) else ""
    return (
        f"case {result.case} of {count}: {result.fault} / {result.disturbance}"
        f"{f', {result.part}' if result.part else ''}: {result.truth},"
        f" {result.outcome} after {result.replays} replays, {result.seconds:.0f} s{mark}"
        f"{': ' + result.reason if result.reason else ''}"
    )


def chosen(
    known: Sequence[str], only: Sequence[str], what: str, parser: argparse.ArgumentParser
) -> list[str]:
    """Return the rows that were asked for; all where none was."""
    for name in only:
        if name not in known:
            parser.error(f"{what} {name!r}: must be one of {', '.join(known)}")
    return list(only) or list(known)


def parse() -> tuple[Options, list[Case]]:
    """Read the command line; return options and cases."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seed", type=int, default=1, help="of all that is drawn (default 1)")
    parser.add_argument(
        "--profile", choices=tuple(CASES), default="ci", help="how many cases (default ci: 12)"
    )
    parser.add_argument("--cases", type=int, help="how many cases, whatever the profile says")
    parser.add_argument(
        "--counted-s", type=int, default=COUNTED_S, metavar="N", help=f"of each replay (default {COUNTED_S})"
    )
    parser.add_argument("--target", choices=TARGETS, default=TARGETS[0], help="the consumer")
    parser.add_argument("--only-fault", action="append", default=[], metavar="NAME", help="may be repeated")
    parser.add_argument("--only-disturbance", action="append", default=[], metavar="NAME", help="likewise")
    parser.add_argument("--list", action="store_true", help="print the cases that would be run")
    options = parser.parse_args()
    faults = chosen(list(faults_of(options.target)), options.only_fault, "fault", parser)
    known = list(disturbances_of(options.target))
    disturbances = chosen(known, options.only_disturbance, "disturbance", parser)
    count: int = CASES[options.profile] if options.cases is None else options.cases
    if count < 1:
        parser.error("--cases: must be at least 1")
    if not COUNTED_MIN_S <= options.counted_s <= COUNTED_MAX_S:
        parser.error(f"--counted-s: must be in {COUNTED_MIN_S}..{COUNTED_MAX_S}")
    return options, draw_cases(options.seed, count, faults, disturbances)


def run_cases(options: Options, cases: Sequence[Case], results: list[CaseResult]) -> None:
    """Run cases on one bench until all are done or somebody breaks it off; `results` gets each."""
    bench_file = BENCHES / BENCH_OF.get(options.target, "virtual.yaml")
    with tempfile.TemporaryDirectory(prefix="bw-verdicts-") as name, open_bench(bench_file) as bench:
        folder = Path(name)
        campaign = Campaign(bench, options.target, options.seed, options.counted_s, build_hog(folder), folder)
        for case in cases:
            for result in campaign.run(case):
                results.append(result)
                append_line(CASES_FILE, result)
                say(told(result, len(cases)))
            last = results[-ERRORS_MAX:]
            if len(last) == ERRORS_MAX and all(result.outcome == "error" for result in last):
                raise BenchError(f"{ERRORS_MAX} errors in a row: {last[-1].reason}")


def main() -> int:
    """Run the benchmark."""
    options, cases = parse()
    if options.list:
        for case in cases:
            print(f"{case.number} {case.fault} / {case.disturbance} {json.dumps(case.drawn)}")
        return 0
    results: list[CaseResult] = []
    complete = False
    try:
        run_cases(options, cases, results)
        complete = True
    except KeyboardInterrupt:
        say(f"broken off after {len(results)} of {len(cases)} cases")
    except BenchwrightError as error:
        say(f"{error}")
        if not results:
            return error.exit_code
    print(matrix_text(results), by_fault_text(results), sep="\n\n", end="\n\n")
    detail = {
        "seed": options.seed,
        "target": options.target,
        "counted_s": options.counted_s,
        "complete": complete,
        "cases": [result.to_json() for result in results],
    }
    return publish("verdicts", figures(results), BARS, detail)
