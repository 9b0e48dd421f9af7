# SPDX-License-Identifier: Apache-2.0
"""Timed edges are judged a second time: random trials alike, what was changed is named."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reports.record.measurement import Measurement
from reports.rejudge.edge_trial import EdgeTrial as Reread
from reports.run.folder import MANIFEST, MEASUREMENTS, RunFolder
from reports.timed_edges.capability import DEVIATION, MAX_ABS, MEAN, OFFSET_QUANTITY, PEAK_TO_PEAK, QUANTITY
from reports.timed_edges.trial import CLOCK_EDGE, TRIAL, Budgets, Counts, EdgeTrial
from reports.timed_edges.verdict import (
    edge_limit,
    edge_measurement,
    order_measurement,
    shift_measurement,
    unmeasured_edges,
)
from resources.timed_edges.trials import PIN_TICKS, with_resolution
from tests.reports.rejudge.edge_trials import (
    FOLDER,
    LATCH,
    RNG,
    Change,
    JudgedRun,
    drawn_budgets,
    folder_of,
    judged,
    of,
)
from tests.reports.sample_edges import add_trial, digitised, drawn_trial, latch_delays, measured_trial

ANSWER: dict[str, object] = {"valid": True, "complete": True, "method": LATCH, "period_ns": 2_000_000}
UNTOLD = {("mean", name) for name in ("threshold", "skew", "sample_interval")}


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
        assert found.discrepancies() == ([], len(found.records)), f"seed {seed}"
        seen.update(record["outcome"] for record in found.records)
    assert min(seen[outcome] for outcome in ("pass", "fail", "inconclusive", "unset")) > 10, seen


def test_edges_that_an_oscilloscope_digitised_are_judged_alike(tmp_path: Path) -> None:
    """Real budgets and waveforms: those of the segments lie where the histogram has delays."""
    made = digitised_run(tmp_path)
    assert {record["outcome"] for record in made.records} == {"pass"}
    assert made.discrepancies() == ([], 3)


def interrupted_run(results: Path, *, of_earlier: bool) -> JudgedRun:
    """Return a run whose software was interrupted once in a hundred edges: judged for its deviation."""
    rng = np.random.default_rng(5)
    method = "gettime-software"
    delays_ns = rng.normal(1400, 500, 2000) + np.where(
        rng.random(2000) < 0.01, rng.uniform(0, 180e3, 2000), 0
    )
    budgets, trial = drawn_budgets(rng, delays_ns, method, of_earlier=of_earlier)
    run = folder_of(results)
    written, context = add_trial(run, replace(trial, budgets=budgets))
    limit = edge_limit(DEVIATION, 11_000, "a source")
    return judged(run, [edge_measurement(written, QUANTITY, DEVIATION, "E", limit, 2000, context)])


def repeatability_ns(made: JudgedRun) -> float:
    parts = made.records[0]["uncertainty"]["parts"]
    return next(part["value"] for part in parts if part["name"] == "repeatability")


def test_both_judges_find_how_well_the_deviation_of_heavy_tails_is_known(tmp_path: Path) -> None:
    made = interrupted_run(tmp_path, of_earlier=False)
    as_normal_ns = made.records[0]["value"] / (2 * 1999) ** 0.5
    assert repeatability_ns(made) > 4 * as_normal_ns
    assert made.records[0]["outcome"] == "inconclusive"
    assert made.discrepancies() == ([], 1)


def test_a_trial_of_an_earlier_version_took_delays_as_normal(tmp_path: Path) -> None:
    """It notes no kurtosis: then, and only then, repeatability is that of normal delays."""
    made = interrupted_run(tmp_path, of_earlier=True)
    assert repeatability_ns(made) == pytest.approx(made.records[0]["value"] / (2 * 1999) ** 0.5)
    assert "kurtosis" not in (made.path / FOLDER / "gettime-software" / TRIAL).read_text()
    assert made.records[0]["outcome"] == "pass"
    assert made.discrepancies() == ([], 1)
    made = interrupted_run(tmp_path, of_earlier=False)
    made.rewrite("gettime-software", lambda trial: trial["delays"].pop("kurtosis"))
    assert any("repeatability of deviation is" in problem for problem in made.discrepancies()[0])


def wandering_run(results: Path, *, of_earlier: bool) -> JudgedRun:
    """Return a run that judges the mean of 2500 edges of a clock that wanders by 3 ns, alike for 20."""
    run = folder_of(results)
    rng = np.random.default_rng(4)
    offsets = rng.normal(0, 3, 2500)
    for index in range(1, 2500):
        offsets[index] = 0.95 * offsets[index - 1] + (1 - 0.95**2) ** 0.5 * offsets[index]
    budgets, trial = drawn_budgets(rng, 40.0 + offsets, "gettime-software", of_earlier=of_earlier)
    written, context = add_trial(run, replace(trial, budgets=budgets))
    limit = edge_limit(MEAN, 45, "a source")
    return judged(run, [edge_measurement(written, QUANTITY, MEAN, "E", limit, 2000, context)])


def jitter_ns(made: JudgedRun) -> float:
    parts = made.records[0]["uncertainty"]["parts"]
    return next(part["value"] for part in parts if part["name"] == "jitter")


def test_both_judges_find_how_well_the_mean_of_a_wandering_clock_is_known(tmp_path: Path) -> None:
    made = wandering_run(tmp_path, of_earlier=False)
    assert jitter_ns(made) > 4 * 3 / 2500**0.5
    assert made.discrepancies() == ([], 1)


def test_a_trial_of_an_earlier_version_took_edges_as_independent(tmp_path: Path) -> None:
    """It notes no blocks: then, and only then, the mean is that of independent edges."""
    made = wandering_run(tmp_path, of_earlier=True)
    assert "blocks" not in (made.path / FOLDER / "gettime-software" / TRIAL).read_text()
    assert jitter_ns(made) < 1.2 * 3 / 2500**0.5
    assert made.discrepancies() == ([], 1)
    made = wandering_run(tmp_path, of_earlier=False)
    made.rewrite("gettime-software", lambda trial: trial["delays"].pop("blocks"))
    assert any("jitter of mean is" in problem for problem in made.discrepancies()[0])


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
    problems, count = run.discrepancies(record)
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


def halved_blocks(trial: dict[str, Any]) -> None:
    """Let blocks lie about their mean at half of their distance from it."""
    mean = trial["delays"]["mean_ns"]
    blocks = trial["delays"]["blocks"]
    blocks["means_ns"] = [(each + mean) / 2 for each in blocks["means_ns"]]


TRIAL_CHANGES: list[tuple[Change, str]] = [
    (lambda trial: trial["delays"].update(mean_ns=9.0), "mean_ns is 9.0, the buckets allow"),
    (lambda trial: trial["delays"].update(deviation_ns=2.0), "deviation_ns is 2.0, that of the buckets"),
    (lambda trial: trial["delays"].update(minimum_ns=-1.0), "minimum_ns is -1.0, its bucket"),
    (lambda trial: trial["delays"].update(maximum_ns=1.0), "maximum_ns is 1.0, its bucket"),
    (lambda trial: trial["delays"].update(kurtosis=9.0), "kurtosis is 9.0, that of the buckets"),
    (lambda trial: trial["delays"]["blocks"].update(size=2), "400 blocks of 2, of 400 delays"),
    (lambda trial: trial["delays"]["blocks"]["means_ns"].__setitem__(3, 99.0), "blocks have means of"),
    (lambda trial: trial["delays"]["blocks"].update(means_ns=[-0.1] * 400), "the mean of the blocks is"),
    (halved_blocks, "blocks scatter by"),
    (lambda trial: trial["delays"]["blocks"]["means_ns"].sort(), "jitter of mean is"),
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
    problems, _ = run.discrepancies()
    assert any(said in problem for problem in problems), problems


def test_what_is_wrong_with_a_trial_is_said_once(run: JudgedRun) -> None:
    run.rewrite(LATCH, lambda trial: trial["counts"].update(pairs=399))
    problems, count = run.discrepancies()
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
    problems, _ = run.discrepancies()
    assert any(said in problem for problem in problems), problems


def test_waveforms_that_show_other_delays_are_named(run: JudgedRun) -> None:
    def later(document: dict[str, Any]) -> None:
        trace = document["segments"][2]["edge"]
        trace["time_ns"] = [time + 31.0 for time in trace["time_ns"]]

    path = run.path / FOLDER / LATCH / "waveforms.json"
    document = json.loads(path.read_text())
    later(document)
    path.write_text(json.dumps(document))
    problems, _ = run.discrepancies()
    assert any("the waveforms show a delay of" in problem for problem in problems)
    run.rewrite(LATCH, lambda trial: trial["counts"].update(clipped=1))
    problems, _ = run.discrepancies()
    assert not any("the waveforms" in problem for problem in problems), "a clipped segment does not count"


def test_more_loss_than_its_requirement_allows_is_named(run: JudgedRun) -> None:
    kept = run.path / "evidence" / "requirements"
    kept.mkdir()
    for key in ("lost_percent", "lost_percent_max"):
        item = f'[[requirement]]\nid = "E-mean"\n{key} = '
        (kept / "edges.toml").write_text(f"{item}1.0\n")
        assert run.discrepancies() == ([], 3)
        (kept / "edges.toml").write_text(f"{item}0.5\n")
        problems, _ = run.discrepancies()
        assert problems == ["E-mean: 4 may be lost, its requirement allows {2} of 400"]


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
        assert list(Reread(path.parent).discrepancies()), each


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
    problems, _ = run.discrepancies()
    assert problems


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
    assert made.discrepancies() == ([], 1)
    assert made.discrepancies(before)[0]
    manifest = json.loads((run.path / MANIFEST).read_text())
    del manifest["outcome"]
    (run.path / MANIFEST).write_text(json.dumps(manifest))
    assert made.discrepancies(before) == ([], 1)


def test_edges_that_could_not_be_made_are_left_alone(tmp_path: Path) -> None:
    run = folder_of(tmp_path)
    _, context = add_trial(run, drawn_trial(np.zeros(9), LATCH))
    limit = edge_limit(MEAN, 5, "a source")
    nothing = unmeasured_edges("no lock", QUANTITY, MEAN, "E", limit, 9, replace(context, evidence=()))
    assert judged(run, [nothing]).discrepancies() == ([], 0)
