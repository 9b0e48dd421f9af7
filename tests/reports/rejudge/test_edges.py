# SPDX-License-Identifier: Apache-2.0
"""Timed edges are judged a second time: random trials alike, what was changed is named."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hw.edges import CapturedEdges
from reports.clock_sync.trial import load_trial
from reports.record.context import Context
from reports.record.measurement import Measurement
from reports.rejudge.edge_trial import EdgeTrial as Reread
from reports.rejudge.edges import edge_objections
from reports.run.folder import MANIFEST, MEASUREMENTS, RunFolder
from reports.timed_edges.trial import (
    CAPTURE,
    CLOCK_EDGE,
    TRIAL,
    WITNESSES,
    BudgetPart,
    Budgets,
    Counts,
    EdgeTrial,
    write_witnesses,
)
from reports.timed_edges.verdict import (
    DEVIATION,
    MAX_ABS,
    MEAN,
    OFFSET_QUANTITY,
    PEAK_TO_PEAK,
    QUANTITY,
    edge_limit,
    edge_measurement,
    order_measurement,
    shift_measurement,
    unmeasured_edges,
    witness_measurements,
)
from resources.edges.software import (
    ART_TICK_NS,
    PHC_TICK_NS,
    latched_delays,
    sampled_budgets,
)
from resources.edges.trials import PIN_TICKS, EdgeRun, with_resolution
from resources.edges.witnesses import clock_witnesses
from scope.budget import (
    EdgeQuality,
    InstrumentLimits,
    Part,
    deviation_budget,
    mean_budget,
    peak_to_peak_budget,
)
from scope.jitter import DelayTally
from tests.reports.sample_clock import START_TAI_NS, compare_answer, write_clock_trial
from tests.reports.sample_edges import (
    Floats,
    add_trial,
    delays_of,
    digitised,
    drawn_trial,
    latch_delays,
    measured_trial,
    parts_of,
)
from tests.reports.sample_run import summary

RNG = np.random.Generator
Change = Callable[[dict[str, Any]], object]
"""Changes a document in its place."""
FOLDER = Path("evidence", "timed_edges")
LATCH = "tgpio-latch"
ANSWER: dict[str, object] = {"valid": True, "complete": True, "method": LATCH, "period_ns": 2_000_000}
PERIOD_NS = 10_000_000
UNTOLD = {("mean", name) for name in ("threshold", "skew", "sample_interval")}
PART = {"name": "noise", "kind": "bound", "value": 1}


@dataclass
class JudgedRun:
    """A run, and its records as they lie there."""

    path: Path
    records: list[dict[str, Any]]

    def objections(self, *records: dict[str, Any]) -> tuple[list[str], int]:
        """Judge records again; without any, all."""
        return edge_objections(self.path, records or self.records)

    def rewrite(self, trial: str, change: Change, name: str = TRIAL) -> None:
        """Change a file of a trial."""
        path = self.path / FOLDER / trial / name
        document = json.loads(path.read_text().splitlines()[-1] if name != TRIAL else path.read_text())
        change(document)
        path.write_text(json.dumps(document) + "\n")


def folder_of(results: Path) -> RunFolder:
    """Return an empty run of this version."""
    run = RunFolder.create(results, "virtual", "ci", simulated=True, commit="0" * 40)
    manifest = json.loads((run.path / MANIFEST).read_text())
    (run.path / MANIFEST).write_text(json.dumps(manifest | {"outcome": "pass"}))
    return run


def judged(run: RunFolder, records: Iterable[Measurement]) -> JudgedRun:
    for record in records:
        run.append(record)
    lines = (run.path / MEASUREMENTS).read_text().splitlines()
    return JudgedRun(run.path, [json.loads(line) for line in lines])


def of(context: Context, method: str | None, *others: Context) -> Context:
    """Return a context of several trials."""
    files = (*context.evidence, *(file for other in others for file in other.evidence))
    return replace(context, subject=replace(context.subject, method=method), evidence=files)


# -- both implementations


def drawn_budgets(rng: RNG, delays_ns: Floats, method: str) -> tuple[Budgets, EdgeTrial]:
    """Return the budgets that `scope` makes of delays on some oscilloscope, and a trial of these delays."""
    tally = DelayTally()
    for part in np.array_split(delays_ns * 1e-9, 3):
        tally.add(part)
    delays = tally.summary()
    assert delays is not None
    scale = float(rng.choice([0.0, 1e-12, 1e-9]))
    sizes = rng.uniform(0, scale, 8)
    edges = (EdgeQuality(*sizes[:4].tolist()), EdgeQuality(*sizes[4:].tolist()))
    time_base_error, clock_jitter_s = (float(rng.choice(some)) for some in ([0.0, 2e-6], [0.0, 1e-12, 2e-9]))
    limits = InstrumentLimits(time_base_error, clock_jitter_s, skew_s=1e-10)
    skew = [Part("channel_skew:ch2", "standard", 3e-12)] if rng.random() < 0.3 else []
    lock = (float(rng.choice([0.0, 0.4, 1.0])), float(rng.random()))
    budgets = Budgets(
        parts_of(mean_budget(delays, edges, limits, phase_lock=lock, calibration=skew)),
        parts_of(deviation_budget(delays, edges, limits)),
        parts_of(peak_to_peak_budget(delays, edges, limits)),
    )
    trial = drawn_trial(delays_ns, method, method, clock="chrony" if method == CLOCK_EDGE else "")
    trial = replace(trial, delays=delays_of(delays))
    return with_resolution(budgets, PIN_TICKS.get(method, 0.0)), trial


def random_trial(rng: RNG, name: str, method: str) -> EdgeTrial:
    """Return a trial of anything: few edges and many, tails, losses, doubts, corrections; or of nothing."""
    n = int(rng.choice([1, 3, 4, 60, 100, 1200]))
    delays_ns = rng.normal(rng.uniform(-500, 500), float(rng.choice([0.0, 8.0, 300.0])), n)
    delays_ns += np.where(rng.random(n) < 0.01, rng.exponential(5_000, n), 0.0)
    budgets, trial = drawn_budgets(rng, delays_ns, method)
    lost, runts, outside = (int(rng.choice([0, 0, 2, 30])) for _ in range(3))
    counts = Counts(n, n + 32, pairs=n, missing=lost, runt=runts, at_border=outside)
    trial = replace(trial, name=name, budgets=budgets, counts=counts)
    trial = replace(trial, correction_ns=float(rng.choice([0.0, 2.5])))
    what = rng.random()
    if what < 0.1:
        return replace(trial, delays=None, budgets=Budgets(), counts=replace(counts, pairs=0))
    if what < 0.2:
        return replace(trial, doubts=("no limits",), budgets=Budgets())
    if what < 0.3:
        return replace(trial, failed="no trigger")
    return trial


def random_records(run: RunFolder, rng: RNG) -> list[Measurement]:
    """Write trials of anything and judge everything that can be asked of them."""

    def limit_ns() -> float:
        return float(round(10 ** rng.uniform(0, 4)))

    first, one = add_trial(run, random_trial(rng, "first", LATCH))
    wrong, two = add_trial(run, replace(random_trial(rng, "wrong", LATCH), correlation_error_ns=200))
    worse, three = add_trial(run, random_trial(rng, "worse", "gettime-software"))
    clock, four = add_trial(run, random_trial(rng, "clock", CLOCK_EDGE))
    records = [
        edge_measurement(
            trial,
            quantity,
            statistic,
            f"E-{statistic}",
            edge_limit(statistic, limit_ns(), "a source"),
            int(rng.choice([2, 100, 1000])),
            context,
            allowed_lost=int(rng.choice([0, 10, 100])),
        )
        for trial, context, quantity, statistics in (
            (first, one, QUANTITY, (MEAN, DEVIATION, PEAK_TO_PEAK)),
            (worse, three, QUANTITY, (MEAN, DEVIATION, PEAK_TO_PEAK)),
            (clock, four, OFFSET_QUANTITY, (MEAN, MAX_ABS)),
        )
        for statistic in statistics
    ]
    pair = of(one, f"{LATCH}/gettime-software", three)
    if all((each.delays is None) == (each.budgets.deviation is None) for each in (first, worse)):
        n_required = int(rng.choice([3, 1000]))
        records.append(order_measurement(first, worse, "EDGE-ORDER", "a paper", n_required, pair))
    put_in = 200 if rng.random() < 0.9 else 0
    wrong = replace(wrong, correlation_error_ns=put_in)
    (_, two) = add_trial(run, wrong)
    records.append(shift_measurement(first, wrong, "BENCH-EDGE-ERROR", put_in, of(one, LATCH, two)))
    return records


def test_what_was_judged_of_random_edges_is_judged_alike(tmp_path: Path) -> None:
    """Every statistic, of trials of all kinds; every outcome occurs."""
    seen: Counter[str] = Counter()
    for seed in range(60):
        run = folder_of(tmp_path / str(seed))
        found = judged(run, random_records(run, np.random.default_rng(seed)))
        assert found.objections() == ([], len(found.records)), f"seed {seed}"
        seen.update(record["outcome"] for record in found.records)
    assert min(seen[outcome] for outcome in ("pass", "fail", "inconclusive", "unset")) > 10, seen


def test_edges_that_an_oscilloscope_digitised_are_judged_alike(tmp_path: Path) -> None:
    """Real budgets and waveforms: those of the segments lie where the histogram has delays."""
    made = digitised_run(tmp_path)
    assert {record["outcome"] for record in made.records} == {"pass"}
    assert made.objections() == ([], 3)


def digitised_run(results: Path) -> JudgedRun:
    """Return a run of one trial that an oscilloscope of the model saw, with its three statistics."""
    run = folder_of(results)
    delays_ns = latch_delays(np.random.default_rng(3), 400)
    trial = measured_trial(delays_ns, LATCH)
    trial = replace(trial, budgets=with_resolution(trial.budgets, PIN_TICKS[LATCH]))
    answer = ANSWER | {"fired": 500, "correlation_error_ns": 0}
    written, context = add_trial(run, trial, digitised(delays_ns[:16]), answer)
    return judged(
        run,
        [
            edge_measurement(
                written, QUANTITY, each, f"E-{each}", edge_limit(each, 100, "s"), 100, context, allowed_lost=4
            )
            for each in (MEAN, DEVIATION, PEAK_TO_PEAK)
        ],
    )


# -- single changes


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the text of every file of the run that tests change, by its path; it is made once."""
    made = digitised_run(tmp_path_factory.mktemp("edges"))
    files = (file for file in made.path.rglob("*") if file.is_file())
    return {file.relative_to(made.path).as_posix(): file.read_text() for file in files}


@pytest.fixture
def run(tmp_path: Path, template: dict[str, str]) -> JudgedRun:
    for name, text in template.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    lines = template[MEASUREMENTS].splitlines()
    return JudgedRun(tmp_path, [json.loads(line) for line in lines])


RECORD_CHANGES: list[tuple[Change, str]] = [
    (lambda record: record.update(value=record["value"] + 1), "value is"),
    (lambda record: record.update(value=None), "value is None"),
    (lambda record: record.update(n=record["n"] + 1), "n is"),
    (lambda record: record.update(lost=1), "lost is 1, the edges say 0"),
    (lambda record: record.update(outcome="fail"), "fail, the edges come to pass"),
    (lambda record: record.update(outcome="unset"), "unset, the edges come to pass"),
    (lambda record: record["limit"].update(lower=-7), "lower limit is -7"),
    (lambda record: record["limit"].update(upper=1), "the edges come to"),
    (lambda record: record.update(n_required=10_000), "pass, the edges come to inconclusive"),
    (lambda record: record["uncertainty"]["parts"][0].update(value=9), "parts of U are"),
    (lambda record: record["uncertainty"]["parts"][0].update(kind="none"), "parts of U are"),
    (lambda record: record["uncertainty"]["parts"].pop(), "parts of U are"),
    (lambda record: record["subject"].update(method="rdtsc-software"), "method is rdtsc-software"),
]


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize(("change", "said"), RECORD_CHANGES)
def test_a_changed_record_is_named(run: JudgedRun, place: int, change: Change, said: str) -> None:
    record = run.records[place]
    change(record)
    problems, count = run.objections(record)
    assert count == 1
    assert any(said in problem for problem in problems), problems


def part(budget: str, name: str, **members: object) -> Change:
    """Return a change of one part of a budget."""

    def change(trial: dict[str, Any]) -> None:
        parts = trial["budgets"][budget]
        next(each for each in parts if each["name"] == name).update(members)

    return change


def without(budget: str, name: str) -> Change:
    """Return a change that takes a part out of a budget."""

    def change(trial: dict[str, Any]) -> None:
        trial["budgets"][budget] = [each for each in trial["budgets"][budget] if each["name"] != name]

    return change


def scaled_peaks(trial: dict[str, Any]) -> None:
    peaks = trial["delays"]["peak_to_peak_ns"]
    peaks["100"] = 2 * peaks["400"]


TRIAL_CHANGES: list[tuple[Change, str]] = [
    (lambda trial: trial["delays"].update(mean_ns=9.0), "mean_ns is 9.0, the buckets allow"),
    (lambda trial: trial["delays"].update(deviation_ns=2.0), "deviation_ns is 2.0, that of the buckets"),
    (lambda trial: trial["delays"].update(minimum_ns=-1.0), "minimum_ns is -1.0, its bucket"),
    (lambda trial: trial["delays"].update(maximum_ns=1.0), "maximum_ns is 1.0, its bucket"),
    (lambda trial: trial["delays"].update(count=401), "401 delays, their buckets hold 400"),
    (lambda trial: trial["delays"]["buckets"][3].__setitem__(2, 9), "400 delays, their buckets hold"),
    (lambda trial: trial["delays"]["peak_to_peak_ns"].update({"400": 9.0}), "peak to peak of all 400"),
    (scaled_peaks, "the peak to peak of the first 100"),
    (lambda trial: trial["counts"].update(pairs=399), "399 pairs, 400 delays"),
    (lambda trial: trial["counts"].update(missing=5), "lost is 0, the edges say 5"),
    (lambda trial: trial["counts"].update(at_border=9), "pass, the edges come to inconclusive"),
    (lambda trial: trial.update(doubts=["expired"]), "pass, the edges come to inconclusive"),
    (lambda trial: trial.update(failed="no trigger"), "pass, the edges come to inconclusive"),
    (lambda trial: trial.update(correction_ns=3.0), "value is"),
    (lambda trial: trial.update(delays=None), "value is"),
    (lambda trial: trial.update(period_ns=1), "period_ns is 1, the software had 2000000"),
    (lambda trial: trial.update(correlation_error_ns=50), "correlation_error_ns is 50, the software had"),
    (lambda trial: trial.update(method="clock-edge"), "method is clock-edge, the software had"),
    (lambda trial: trial["budgets"].update(mean=None), "of 400 delays deviation, peak_to_peak has"),
    (part("mean", "jitter", value_ns=0.01), "jitter of mean is 0.01, the deviation leaves"),
    (part("mean", "noise", value_ns=0.0), "noise of mean is 0.0, the delays give"),
    (part("mean", "sample_interval", value_ns=0.0), "sample_interval of mean is 0.0, less than"),
    (part("mean", "time_base", value_ns=9.0), "time_base of mean is 9.0, not as that of"),
    (part("mean", "pin_resolution", value_ns=8.0), "pin_resolution of mean is 8.0, the delays give"),
    (part("mean", "noise", kind="bound"), "the budget of mean has no noise"),
    (part("deviation", "repeatability", value_ns=0.1), "repeatability of deviation is 0.1"),
    (part("deviation", "time_base", value_ns=0.1), "time_base of deviation is 0.1, not as"),
    (part("peak_to_peak", "noise", value_ns=9.0), "noise of mean is"),
    (without("mean", "jitter"), "the budget of mean has no jitter"),
    (without("mean", "skew"), "the budget of mean has no skew"),
    (without("mean", "pin_resolution"), "pin_resolution of mean is None"),
]


@pytest.mark.parametrize(("change", "said"), TRIAL_CHANGES)
def test_a_trial_that_was_changed_is_named(run: JudgedRun, change: Change, said: str) -> None:
    run.rewrite(LATCH, change)
    problems, _ = run.objections()
    assert any(said in problem for problem in problems), problems


def test_what_is_wrong_with_a_trial_is_said_once(run: JudgedRun) -> None:
    run.rewrite(LATCH, lambda trial: trial["counts"].update(pairs=399))
    problems, count = run.objections()
    assert (sum("399 pairs" in problem for problem in problems), count) == (1, 3)


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"valid": False}, "the software came to no valid result, and the trial has no doubts"),
        ({"fired": 399}, "400 delays of 399 edges that were made"),
        ({"method": "tgpio-filtered-read"}, "method is tgpio-latch, the software had tgpio-filtered-read"),
    ],
)
def test_software_that_says_something_else_is_named(
    run: JudgedRun, members: dict[str, Any], said: str
) -> None:
    run.rewrite(LATCH, lambda answer: answer.update(members), "software.ndjson")
    problems, _ = run.objections()
    assert any(said in problem for problem in problems), problems


def test_waveforms_that_show_other_delays_are_named(run: JudgedRun) -> None:
    def later(document: dict[str, Any]) -> None:
        trace = document["segments"][2]["edge"]
        trace["time_ns"] = [time + 31.0 for time in trace["time_ns"]]

    path = run.path / FOLDER / LATCH / "waveforms.json"
    document = json.loads(path.read_text())
    later(document)
    path.write_text(json.dumps(document))
    problems, _ = run.objections()
    assert any("the waveforms show a delay of" in problem for problem in problems)
    run.rewrite(LATCH, lambda trial: trial["counts"].update(clipped=1))
    problems, _ = run.objections()
    assert not any("the waveforms" in problem for problem in problems), "a clipped segment does not count"


def test_more_loss_than_its_requirement_allows_is_named(run: JudgedRun) -> None:
    kept = run.path / "evidence" / "requirements"
    kept.mkdir()
    for key in ("lost_percent", "lost_percent_max"):
        item = f'[[requirement]]\nid = "E-mean"\n{key} = '
        (kept / "edges.toml").write_text(f"{item}1.0\n")
        assert run.objections() == ([], 3)
        (kept / "edges.toml").write_text(f"{item}0.5\n")
        problems, _ = run.objections()
        assert problems == ["E-mean: 4 may be lost, its requirement allows {2} of 400"]


# -- two trials


def two_trials(results: Path) -> JudgedRun:
    """Return a run with the order of two methods, and a mistake of 200 ns that shows."""
    run, rng = folder_of(results), np.random.default_rng(5)
    made: list[tuple[EdgeTrial, Context]] = []
    for name, method, mean_ns, spread_ns in (
        ("right", LATCH, 0.0, 8.0),
        ("wrong", LATCH, 200.0, 8.0),
        ("worse", "gettime-software", 900.0, 300.0),
    ):
        budgets, trial = drawn_budgets(rng, rng.normal(mean_ns, spread_ns, 1000), method)
        mistake = 200 if name == "wrong" else 0
        trial = replace(trial, name=name, budgets=budgets, correlation_error_ns=mistake)
        made.append(add_trial(run, trial))
    (right, one), (wrong, two), (worse, three) = made
    records = judged(
        run,
        [
            order_measurement(
                right, worse, "EDGE-ORDER", "a paper", 100, of(one, f"{LATCH}/gettime-software", three)
            ),
            shift_measurement(right, wrong, "BENCH-EDGE-ERROR", 200, of(one, LATCH, two)),
        ],
    )
    assert [record["outcome"] for record in records.records] == ["pass", "pass"]
    assert records.objections() == ([], 2)
    return records


PAIR_CHANGES: list[tuple[int, Change, str]] = [
    (0, lambda record: record.update(value=1.0), "value is 1.0"),
    (0, lambda record: record.update(n=999), "n is 999"),
    (0, lambda record: record.update(outcome="fail"), "fail, the edges come to pass"),
    (0, lambda record: record["limit"].update(lower=-9), "lower limit is -9"),
    (0, lambda record: record["limit"].update(upper=9), "upper limit is 9"),
    (0, lambda record: record["uncertainty"]["parts"].pop(), "parts of U are"),
    (0, lambda record: record["subject"].update(method=LATCH), "method is tgpio-latch"),
    (0, lambda record: record["evidence"].reverse(), "value is"),
    (1, lambda record: record.update(value=0.0), "value is 0.0"),
    (1, lambda record: record["limit"].update(upper=99.0), "limit is 99.0"),
    (1, lambda record: record["limit"].update(lower=-99.0), "lower limit is -99.0"),
    (1, lambda record: record.update(outcome="fail"), "fail, the edges come to pass"),
    (1, lambda record: record["subject"].update(method="clock-edge"), "is of clock-edge, its trials of"),
    (1, lambda record: record["uncertainty"]["parts"].append(PART), "parts of U are"),
]


@pytest.mark.parametrize(("place", "change", "said"), PAIR_CHANGES)
def test_a_changed_record_of_two_trials_is_named(
    tmp_path: Path, place: int, change: Change, said: str
) -> None:
    run = two_trials(tmp_path)
    change(run.records[place])
    problems, count = run.objections(run.records[place])
    assert count == 1
    assert any(said in problem for problem in problems), problems


TRIAL_OF_TWO_CHANGES: list[tuple[str, Change, tuple[int, ...]]] = [
    ("right", lambda trial: trial.update(doubts=["expired"]), (0, 1)),
    ("wrong", lambda trial: trial.update(correlation_error_ns=100), (1,)),
    ("worse", lambda trial: trial["delays"].update(deviation_ns=5.0), (0,)),
    ("wrong", lambda trial: trial.update(correction_ns=50.0), (1,)),
]


@pytest.mark.parametrize(("trial", "change", "places"), TRIAL_OF_TWO_CHANGES)
def test_a_trial_of_two_that_was_changed_is_named(
    tmp_path: Path, trial: str, change: Change, places: tuple[int, ...]
) -> None:
    run = two_trials(tmp_path)
    run.rewrite(trial, change)
    for place in places:
        problems, _ = run.objections(run.records[place])
        assert any("the edges" in problem for problem in problems)


# -- witnesses


def witnessed_run(results: Path, seed: int, *, captured: int = 300, offset_ns: int = -90) -> JudgedRun:
    """Return a run whose clock three witnesses saw, as the suite writes it."""
    run, rng = folder_of(results), np.random.default_rng(seed)
    delays_ns = rng.normal(-offset_ns, 6.0, 200)
    budgets, trial = drawn_budgets(rng, delays_ns, CLOCK_EDGE)
    trial = replace(trial, budgets=budgets, clock="phc2sys", period_ns=PERIOD_NS, correction_ns=1.5)
    written, context = add_trial(run, trial)
    folder = run.path / FOLDER / trial.name
    compared = compare_answer(mean_ns=offset_ns - 700, deviation_ns=900, seconds=5)
    write_clock_trial(folder / "compare", compared)
    first = START_TAI_NS // PERIOD_NS * PERIOD_NS + 100 * PERIOD_NS
    late = np.rint(rng.normal(-offset_ns, 5.0, captured)).astype(int).tolist()
    edges = tuple((k, first + k * PERIOD_NS + each) for k, each in enumerate(late))
    answer = {"type": "result", "valid": True, "captures": [list(edge) for edge in edges]}
    (folder / "edge-capture-1.ndjson").write_text(json.dumps(answer) + "\n")
    seen = EdgeRun(written, folder, None, CapturedEdges(edges, len(edges)))
    witnesses = clock_witnesses(seen, load_trial(folder / "compare"))
    write_witnesses(folder, witnesses)
    files = (*context.evidence, run.evidence(folder / WITNESSES))
    context = replace(context, evidence=files)
    return judged(run, witness_measurements(witnesses, "BENCH-EDGE-WITNESSES", 100, context))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("captured", "offset_ns"), [(300, -90), (300, 40_000), (3, 12), (0, 0)])
def test_witnesses_are_worked_out_from_what_they_saw(
    tmp_path: Path, seed: int, captured: int, offset_ns: int
) -> None:
    run = witnessed_run(tmp_path, seed, captured=captured, offset_ns=offset_ns)
    assert len(run.records) == 3
    assert run.objections() == ([], 3)
    unset = sum(record["outcome"] == "unset" for record in run.records)
    assert unset == (0 if captured > 3 else 2)


WITNESS_CHANGES: list[tuple[Change, str]] = [
    (lambda record: record.update(value=0.9), "E_n is 0.9"),
    (lambda record: record.update(n=7), "of 7, the witnesses say"),
    (lambda record: record.update(outcome="fail"), "fail, the witnesses come to pass"),
    (lambda record: record["limit"].update(upper=2), "is not held against 1"),
    (lambda record: record.update(n_required=5_000), "pass, the witnesses come to inconclusive"),
    (lambda record: record["subject"].update(method="one/other"), "is of one and other"),
]


@pytest.mark.parametrize(("change", "said"), WITNESS_CHANGES)
def test_a_changed_record_of_witnesses_is_named(tmp_path: Path, change: Change, said: str) -> None:
    run = witnessed_run(tmp_path, 1)
    assert run.records[0]["outcome"] == "pass"
    change(run.records[0])
    problems, _ = run.objections(run.records[0])
    assert any(said in problem for problem in problems), problems


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("member", ["offset_ns", "n"])
def test_a_witness_that_says_what_it_did_not_see_is_named(tmp_path: Path, place: int, member: str) -> None:
    run = witnessed_run(tmp_path, 2)
    path = run.path / FOLDER / CLOCK_EDGE / WITNESSES
    document = json.loads(path.read_text())
    name = document["witnesses"][place]["name"]
    document["witnesses"][place][member] += 5
    path.write_text(json.dumps(document))
    problems, _ = run.objections()
    assert any(f"{name} says" in problem and "it saw" in problem for problem in problems), problems


@pytest.mark.parametrize("place", range(3))
def test_a_witness_of_other_uncertainty_is_named(tmp_path: Path, place: int) -> None:
    run = witnessed_run(tmp_path, 2)
    path = run.path / FOLDER / CLOCK_EDGE / WITNESSES
    before = json.loads(path.read_text())
    for number in range(len(before["witnesses"][place]["parts"])):
        document = json.loads(json.dumps(before))
        document["witnesses"][place]["parts"][number]["value_ns"] += 500
        path.write_text(json.dumps(document))
        problems, _ = run.objections()
        assert any("parts of U of" in problem for problem in problems), number


# -- latched delays, older folders, damaged files


def latched(run: RunFolder, **changes: Any) -> Reread:
    """Write a trial of latched delays (Listing 1), and return it as it is read again."""
    values = np.rint(np.random.default_rng(9).normal(-300, 40, 2000)).astype(int).tolist()
    answer: dict[str, Any] = {"valid": True, "complete": True, "delay": summary(values)}
    answer["peak_to_peak_ns"] = {"100": max(values[:100]) - min(values[:100])}
    delays = latched_delays(answer)
    trial = drawn_trial(np.array(values, float), "latched", "gettime-software", seen_by=CAPTURE)
    counts = Counts(wanted=2000, pairs=2000)
    budgets = sampled_budgets(delays, PHC_TICK_NS)
    add_trial(run, replace(trial, delays=delays, budgets=budgets, counts=counts), answer=answer)
    folder = run.path / FOLDER / "latched"
    document = json.loads((folder / TRIAL).read_text())
    for path, value in changes.items():
        inner = document
        *way, last = path.split("__")
        for step in way:
            inner = inner[step]
        inner[last] = value
    (folder / TRIAL).write_text(json.dumps(document))
    return Reread(folder)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, ""),
        ({"delays__mean_ns": -301}, "mean_ns of the delays is not that of the software's answer"),
        ({"delays__deviation_ns": 5}, "deviation_ns is 5"),
        ({"counts__pairs": 1}, "1 pairs, 2000 delays"),
        ({"budgets__peak_to_peak": []}, "resolution of peak_to_peak is None"),
        ({"budgets__mean": []}, "jitter of mean is None"),
    ],
)
def test_latched_delays_are_those_of_the_software(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    told = list(latched(folder_of(tmp_path), **changes).objections())
    assert bool(told) == bool(said)
    assert not said or any(said in each for each in told)


def test_a_pin_fires_at_ticks_of_the_timer() -> None:
    """Both implementations have the figure by themselves: 38.4 MHz."""
    assert pytest.approx(26.0417, abs=1e-4) == ART_TICK_NS


def test_a_folder_of_the_version_before_may_have_left_a_fail_open(tmp_path: Path) -> None:
    """All edges missing: then unset, without a count of them; now a fail."""
    run = folder_of(tmp_path)
    counts = Counts(wanted=900, segments=900, missing=900)
    trial = drawn_trial(np.zeros(9), LATCH)
    written, context = add_trial(run, replace(trial, delays=None, budgets=Budgets(), counts=counts))
    limit = edge_limit(MEAN, 5, "a source")
    made = judged(run, [edge_measurement(written, QUANTITY, MEAN, "E", limit, 100, context)])
    assert made.records[0]["outcome"] == "fail"
    before = made.records[0] | {"outcome": "unset", "lost": 0}
    assert made.objections() == ([], 1)
    assert made.objections(before)[0]
    manifest = json.loads((run.path / MANIFEST).read_text())
    del manifest["outcome"]
    (run.path / MANIFEST).write_text(json.dumps(manifest))
    assert made.objections(before) == ([], 1)


def test_edges_that_could_not_be_made_are_left_alone(tmp_path: Path) -> None:
    run = folder_of(tmp_path)
    _, context = add_trial(run, drawn_trial(np.zeros(9), LATCH))
    limit = edge_limit(MEAN, 5, "a source")
    nothing = unmeasured_edges("no lock", QUANTITY, MEAN, "E", limit, 9, replace(context, evidence=()))
    assert judged(run, [nothing]).objections() == ([], 0)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (TRIAL, "[]"),
        (TRIAL, "{}"),
        (TRIAL, "not a trial"),
        (TRIAL, '{"delays":null,"counts":{"missing":0,"runt":0,"at_border":0},"budgets":3}'),
        ("waveforms.json", '{"segments":[{}]}'),
        ("waveforms.json", '{"segments":3}'),
        ("software.ndjson", "\n"),
    ],
)
def test_what_cannot_be_read_is_a_problem_and_no_traceback(run: JudgedRun, name: str, text: str) -> None:
    (run.path / FOLDER / LATCH / name).write_text(text)
    problems, _ = run.objections()
    assert problems


def test_changes_of_any_number_of_a_budget_are_named(run: JudgedRun) -> None:
    """But for what nothing else tells: threshold, skew, and how much of a sample interval all edges share."""
    path = run.path / FOLDER / LATCH / TRIAL
    before = json.loads(path.read_text())
    parts = [
        (budget, number)
        for budget, own in before["budgets"].items()
        for number, each in enumerate(own)
        if (budget, each["name"]) not in UNTOLD
    ]
    for (budget, number), factor in itertools.product(parts, (0.5, 3.0)):
        document = json.loads(json.dumps(before))
        each: dict[str, Any] = document["budgets"][budget][number]
        each["value_ns"] = each["value_ns"] * factor + 0.01
        path.write_text(json.dumps(document))
        assert list(Reread(path.parent).objections()), each


def test_parts_of_a_budget_are_read_as_they_are_written(tmp_path: Path) -> None:
    run = folder_of(tmp_path)
    budgets = Budgets(peak_to_peak=(BudgetPart("noise", "bound", 3),))
    add_trial(run, replace(drawn_trial(np.zeros(9), LATCH), budgets=budgets))
    found = Reread(run.path / FOLDER / LATCH)
    assert found.parts(PEAK_TO_PEAK) == [("noise", "bound", 3)]
    assert found.parts(MAX_ABS) is None
