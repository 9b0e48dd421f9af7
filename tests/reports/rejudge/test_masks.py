# SPDX-License-Identifier: Apache-2.0
"""Verdicts by a mask are judged a second time: random clocks alike, what was changed is named."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reports.clock_sync.mask import load_mask, mask_file
from reports.clock_sync.mask_verdict import MaskRange, mask_measurements, unset_mask_measurements
from reports.clock_sync.trial import FILTERED, MASK, TRIAL, WITNESS, load_trial
from reports.record.context import Context
from reports.record.measurement import Conditions, Subject
from reports.rejudge.masks import mask_discrepancies
from reports.rejudge.wander import Series, mtie, series_of, tdev
from reports.run.folder import MANIFEST, MEASUREMENTS, RunFolder
from tests.reports.sample_clock import START_TAI_NS, compare_answer, write_clock_trial
from tests.reports.sample_run import summary

SECOND_NS = 1_000_000_000
HEADER = "# name: test\n# source: a test\nquantity,tau_above_s,tau_to_s,limit_ns,slope_ns_per_s\n"
PLACE = Path("evidence", "clock_sync", "chrony")
SWING = "mtie,0.1,6.4,40000,0\n"
ALL = {
    "te": "max_abs_te,,,{},0\n",
    "te_l": "max_abs_tel,,,{},0\n",
    "cte": "cte,,,{},0\n",
    "mtie": "mtie,0.1,6.4,{},0\n",
    "tdev": "tdev,0.1,1.6,{},0\n",
    "dte_l_mtie": "dte_l_mtie,0.1,6.4,{},0\n",
    "dte_l_tdev": "dte_l_tdev,0.1,1,{},0\n",
}
Rows = list[list[float]]
Change = Callable[[dict[str, Any]], object]
"""Changes a document in its place."""


def answer_of(rows: Rows, **changes: Any) -> dict[str, Any]:
    """Return an answer with such rows of time, mean, least and largest offset; each is of three samples."""
    answer = compare_answer()
    answer["series"]["rows"] = [[time, 3, mean, low, high] for time, mean, low, high in rows]
    samples = [
        int(value) for _, mean, low, high in rows for value in (low, round(3 * mean) - low - high, high)
    ]
    answer |= {"offset": summary(samples), "window": summary([900] * len(samples))}
    return answer | {"iterations": len(samples), "discarded": 0} | changes


def rows_of(offsets: list[int], interval_ns: int = SECOND_NS // 10, scatter: int = 0) -> Rows:
    """Return rows of offsets that follow each other."""
    return [
        [START_TAI_NS + place * interval_ns, offset, offset - scatter, offset + scatter]
        for place, offset in enumerate(offsets)
    ]


def judged_run(
    results: Path,
    answer: dict[str, Any],
    mask: str,
    taus: tuple[float | None, float | None] = (None, None),
    stalls_ms: tuple[int, ...] = (),
) -> Path:
    """Write a trial into a run, judge it by a mask the real way, and return the run."""
    run = RunFolder.create(results, "virtual", "ci", simulated=True, commit="0" * 40)
    folder = run.evidence_folder("clock_sync", "chrony")
    write_clock_trial(folder, answer, stalls_ms=stalls_ms)
    witness = json.loads((folder / WITNESS).read_text())
    (folder / WITNESS).write_text(json.dumps(witness | {"period_ns": 250_000}) + "\n")
    (folder / MASK).write_text(HEADER + mask)
    item = ['[[requirement]]\nid = "CLK-CHRONY"\nmask = "own.csv"']
    keys = ("mask_from_tau_s", "mask_to_tau_s")
    item += [f"{key} = {tau}" for key, tau in zip(keys, taus, strict=True) if tau is not None]
    (run.evidence_folder("requirements") / "clocks.toml").write_text("\n".join(item) + "\n")
    files = tuple(run.evidence(folder / name) for name in (TRIAL, FILTERED, WITNESS, MASK))
    subject = Subject("virtual", "linux-rt", clock="chrony")
    context = Context(run.run_id, "Chrony", subject, Conditions("ci", "sync 1 s"), True, files)
    wanted = MaskRange(load_mask(folder / MASK), *taus)
    for record in mask_measurements(load_trial(folder), wanted, "CLK-CHRONY", 99, context):
        run.append(record)
    of_now = json.loads((run.path / MANIFEST).read_text()) | {"outcome": "pass"}
    (run.path / MANIFEST).write_text(json.dumps(of_now))
    return run.path


def records_of(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / MEASUREMENTS).read_text().splitlines()]


def sine(amplitude: float, seconds: int = 30, period_s: float = 5.0) -> list[int]:
    return [round(amplitude * math.sin(2 * math.pi * k / 10 / period_s)) for k in range(seconds * 10)]


# -- both implementations


def drawn_rows(rng: random.Random) -> Rows:
    """Return the series of some clock: noise, wander, a ramp, a jump, with gaps."""
    interval_ns = rng.choice((SECOND_NS // 10, SECOND_NS, 4 * SECOND_NS, 10 * SECOND_NS))
    noise, wander, ramp = rng.choice((0, 300, 20_000)), rng.choice((0, 500)), rng.choice((0, 0, 2_000))
    offset, rows = rng.choice((0, 40_000, -3_000_000_000)), Rows()
    time_ns = START_TAI_NS
    for place in range(rng.choice((0, 1, 2, 3, 30, 120, 300))):
        time_ns += interval_ns * (rng.choice((2, 7, 90)) if rng.random() < rng.choice((0.0, 0.02)) else 1)
        offset += ramp + round(rng.gauss(0, wander)) + (60_000 if rng.random() < 0.005 else 0)
        middle, half = offset + round(rng.gauss(0, noise)), rng.randrange(2_000)
        rows.append([time_ns + place % 2, middle, middle - half, middle + half])
    return rows


def drawn_mask(rng: random.Random) -> str:
    rows = ""
    for text in rng.sample(list(ALL.values()), k=len(ALL)):
        limit = round(10 ** rng.uniform(2.5, 6.5))
        if "," * 3 in text:
            rows += text.format(limit)
            continue
        quantity = text.partition(",")[0]
        low_s, middle_s, high_s = sorted(rng.sample([0, 0.05, 0.1, 0.15, 0.8, 3, 12.8, 60, 1000], k=3))
        rows += f"{quantity},{low_s},{middle_s},{limit},{rng.choice((0, 200))}\n"
        rows += f"{quantity},{middle_s},{rng.choice((high_s, 'inf'))},{2 * limit},0\n"
    return rows


def test_what_was_judged_of_random_clocks_is_judged_alike(tmp_path: Path) -> None:
    """Two implementations of each figure, over all kinds of series; every outcome occurs."""
    seen: Counter[str] = Counter()
    for seed in range(120):
        rng = random.Random(seed)
        rows = drawn_rows(rng)
        changes: dict[str, Any] = {}
        if rng.random() < 0.15:
            changes = rng.choice(({"valid": False}, {"complete": False}, {"reference_bound_ns": None}))
        if rows and rng.random() < 0.2:
            changes["steps"] = [{"time_tai_ns": rng.choice(rows)[0], "step_ns": 60_000}]
        taus = rng.choice(((None, None), (0.2, 1.0), (None, 30.0)))
        stalls_ms = rng.choice(((), (), (1,), (40, 3)))
        run = judged_run(tmp_path / str(seed), answer_of(rows, **changes), drawn_mask(rng), taus, stalls_ms)
        records = records_of(run)
        assert mask_discrepancies(run, records) == ([], len(ALL)), f"seed {seed}"
        seen.update(record["outcome"] for record in records)
    assert min(seen[outcome] for outcome in ("pass", "fail", "inconclusive", "unset")) > 10, seen


@pytest.mark.parametrize("seed", range(4))
def test_curves_are_those_of_the_definitions(seed: int) -> None:
    """Written out once more, window by window, as the Recommendation has them."""
    rng = random.Random(seed)
    x = [rng.gauss(0, 1000) + 50 * k for k in range(60)]
    series = Series(SECOND_NS, (tuple((k * SECOND_NS, offset) for k, offset in enumerate(x)),))
    for point in mtie(series):
        m = point.tau_ns // SECOND_NS
        windows = [x[k : k + m + 1] for k in range(len(x) - m)]
        assert point.windows == len(windows)
        assert point.value_ns == pytest.approx(max(max(each) - min(each) for each in windows), abs=1e-5)
    for point in tdev(series):
        n = point.tau_ns // SECOND_NS
        terms = [
            sum(x[i + 2 * n] - 2 * x[i + n] + x[i] for i in range(j, j + n)) ** 2
            for j in range(len(x) - 3 * n + 1)
        ]
        assert point.windows == len(terms)
        assert point.value_ns == pytest.approx(math.sqrt(sum(terms) / len(terms) / 6) / n, rel=1e-6)


def test_nothing_bridges_a_gap_or_a_step() -> None:
    rows = rows_of([0] * 10 + [9_000] * 10)
    whole = series_of(answer_of(rows))
    stepped = series_of(answer_of(rows, steps=[{"time_tai_ns": rows[10][0], "step_ns": 9_000}]))
    for row in rows[10:]:
        row[0] += SECOND_NS
    parted = series_of(answer_of(rows))
    assert whole is not None
    assert max(point.value_ns for point in mtie(whole)) == 9_000
    for series in (stepped, parted):
        assert series is not None
        assert [len(stretch) for stretch in series.stretches] == [10, 10]
        assert max(point.value_ns for point in mtie(series)) == 0


# -- single changes


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return a run whose clock swings by 30 us, within all limits."""
    mask = "".join(text.format(90_000) for text in ALL.values())
    made = judged_run(tmp_path, answer_of(rows_of(sine(30_000))), mask, (None, 1.0))
    outcomes = {record["quantity"]: record["outcome"] for record in records_of(made)}
    assert outcomes == dict.fromkeys(ALL, "pass")
    assert mask_discrepancies(made, records_of(made)) == ([], len(ALL))
    return made


RECORD_CHANGES: list[tuple[Change, str]] = [
    (lambda record: record.update(value=(record["value"] or 0) * 0.9 - 1), "value is"),
    (lambda record: record.update(n=record["n"] + 1), "n is"),
    (lambda record: record["limit"].update(upper=95_000), "limit is 95000"),
    (lambda record: record["limit"].update(lower=-95_000), "lower limit is -95000"),
    (lambda record: record["limit"].update(source="mask another, te: a test"), "the source of its limit"),
    (lambda record: record["uncertainty"]["parts"][0].update(value=1), "parts of U are"),
    (lambda record: record["uncertainty"]["parts"][0].update(kind="standard"), "parts of U are"),
    (lambda record: record["uncertainty"]["parts"].pop(), "parts of U are"),
    (lambda record: record.update(outcome="fail"), "fail, its series comes to pass"),
    (lambda record: record.update(outcome="unset"), "unset, its series comes to pass"),
    (lambda record: record.update(statistic="p99"), "its statistic is p99"),
    (lambda record: record["subject"].update(clock="ntp-user"), "is of clock ntp-user"),
]


@pytest.mark.parametrize("quantity", list(ALL))
@pytest.mark.parametrize(("change", "said"), RECORD_CHANGES)
def test_a_changed_record_is_named(run: Path, quantity: str, change: Change, said: str) -> None:
    record = next(each for each in records_of(run) if each["quantity"] == quantity)
    change(record)
    problems, count = mask_discrepancies(run, [record])
    assert count == 1
    assert any(problem.startswith("CLK-CHRONY: ") and said in problem for problem in problems), problems


def rewrite_answer(run: Path, **members: Any) -> None:
    path = run / PLACE / FILTERED
    answer = json.loads(path.read_text().splitlines()[-1])
    path.write_text(json.dumps(answer | members) + "\n")


@pytest.mark.parametrize("quantity", ["cte", "mtie", "tdev", "te_l", "dte_l_mtie", "dte_l_tdev"])
def test_a_series_that_was_smoothed_is_named(run: Path, quantity: str) -> None:
    rows = json.loads((run / PLACE / FILTERED).read_text().splitlines()[-1])["series"]
    for row in rows["rows"]:
        row[2:] = [value // 2 + 7 for value in row[2:]]
    rewrite_answer(run, series=rows)
    records = [record for record in records_of(run) if record["quantity"] == quantity]
    problems, _ = mask_discrepancies(run, records)
    assert any("the series says" in problem for problem in problems)


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"valid": False}, "pass, its series comes to inconclusive"),
        ({"complete": False}, "pass, its series comes to inconclusive"),
        ({"invalid_reasons": ["stale"]}, "pass, its series comes to inconclusive"),
        ({"steps": [{"time_tai_ns": START_TAI_NS, "step_ns": 1}]}, "pass, its series comes to inconclusive"),
        ({"reference_bound_ns": 7_000}, "parts of U are"),
        ({"window": summary([90_000])}, "parts of U are"),
        ({"reference": {"name": "card", "tai_utc_s": 36}}, "pass, its series comes to inconclusive"),
    ],
)
def test_a_comparison_that_was_changed_is_named(run: Path, members: dict[str, Any], said: str) -> None:
    rewrite_answer(run, **members)
    for record in records_of(run):
        problems, _ = mask_discrepancies(run, [record])
        assert any(said in problem for problem in problems), record["quantity"]


def test_a_mask_that_was_changed_is_named(run: Path) -> None:
    path = run / PLACE / MASK
    before = path.read_text()
    path.write_text(before.replace("90000", "80000"))
    for record in records_of(run):
        problems, _ = mask_discrepancies(run, [record])
        assert any("limit is 90000, the series says 80000" in problem for problem in problems)
    path.write_text(before.replace("# name: test", "# name: another"))
    problems, _ = mask_discrepancies(run, records_of(run))
    assert sum("the source of its limit" in problem for problem in problems) == len(ALL)
    path.write_text(HEADER)
    problems, count = mask_discrepancies(run, records_of(run))
    assert (len(problems), count) == (len(ALL), 0)


def test_a_copy_with_other_limits_than_the_mask_of_its_name_is_named(run: Path) -> None:
    """Where the requirement names one that comes with the project: of a site's own nothing is known."""
    path = run / "evidence" / "requirements" / "clocks.toml"
    path.write_text(path.read_text().replace("own.csv", "g8273-2-class-d"))
    [record] = [each for each in records_of(run) if each["quantity"] == "te_l"]
    said = "CLK-CHRONY: te_l: its mask has other limits than g8273-2-class-d, which its requirement asks for"
    assert mask_discrepancies(run, [record]) == ([said], 1)
    mask = run / PLACE / MASK
    mask.write_text(mask_file("g8273-2-class-d", Path()).read_text())
    assert not any(each == said for each in mask_discrepancies(run, [record])[0])


@pytest.mark.parametrize("quantity", ["cte", "mtie", "tdev", "dte_l_mtie", "dte_l_tdev"])
def test_a_pass_by_less_than_the_requirement_asks_for_is_named(run: Path, quantity: str) -> None:
    """The series is of 30 s: it reaches no tau of 1000 s, and is no mean over as much."""
    path = run / "evidence" / "requirements" / "clocks.toml"
    path.write_text(path.read_text().replace("= 1.0", "= 1000.0"))
    records = [record for record in records_of(run) if record["quantity"] == quantity]
    problems, _ = mask_discrepancies(run, records)
    assert any("pass, its series comes to inconclusive" in problem for problem in problems)
    path.unlink()
    assert mask_discrepancies(run, records) == ([], 1)


def test_a_fail_that_a_stall_explains_is_named(tmp_path: Path) -> None:
    """30 us are put down to 60 ms: what is beyond the limit by more is not."""
    for name, stalls_ms, outcome in (("long", (60,), "inconclusive"), ("none", (), "fail")):
        run = judged_run(tmp_path / name, answer_of(rows_of(sine(30_000))), SWING, stalls_ms=stalls_ms)
        (record,) = records_of(run)
        assert record["outcome"] == outcome
        assert mask_discrepancies(run, [record]) == ([], 1)
        other = {"fail": "inconclusive", "inconclusive": "fail"}[outcome]
        problems, _ = mask_discrepancies(run, [record | {"outcome": other}])
        assert problems == [f"CLK-CHRONY: mtie: {other}, its series comes to {outcome}"]


def test_a_folder_of_the_version_before_may_have_left_a_fail_open(tmp_path: Path) -> None:
    run = judged_run(tmp_path, answer_of(rows_of(sine(30_000))), SWING)
    manifest = json.loads((run / MANIFEST).read_text())
    del manifest["outcome"]
    (run / MANIFEST).write_text(json.dumps(manifest))
    (record,) = records_of(run)
    for outcome in ("fail", "inconclusive"):
        assert mask_discrepancies(run, [record | {"outcome": outcome}]) == ([], 1)
    problems, _ = mask_discrepancies(run, [record | {"outcome": "pass"}])
    assert problems


def test_the_worst_window_of_1000_s_is_worked_out(tmp_path: Path) -> None:
    """-9 us, then 4 us, at last 50 us: the last window holds 800 s of the one and 200 s of the other."""
    offsets = [-9_000] * 100 + [4_000] * 100 + [50_000] * 20
    run = judged_run(tmp_path, answer_of(rows_of(offsets, 10 * SECOND_NS)), "cte,,,20000,0\n")
    (record,) = records_of(run)
    assert (record["value"], record["n"], record["outcome"]) == (13_200, 220, "pass")
    assert mask_discrepancies(run, [record]) == ([], 1)
    problems, _ = mask_discrepancies(run, [record | {"value": 4_000}])
    assert problems == ["CLK-CHRONY: cte: value is 4000, the series says 13200.0"]


# -- what is not worked out


def test_a_clock_that_could_not_be_measured_is_left_alone(run: Path) -> None:
    context = Context("run", "test", Subject("virtual", "linux-rt"), Conditions("ci"), True, ())
    records = unset_mask_measurements(MaskRange(load_mask("paper-40us")), "CLK-1", 99, "no lock", context)
    told: list[dict[str, Any]] = [{"quantity": record.quantity, "evidence": []} for record in records]
    assert mask_discrepancies(run, told) == ([], 0)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (FILTERED, "{}\n"),
        (FILTERED, '{"type":"result","series":{"rows":[[1],[2]]},"steps":[]}\n'),
        (FILTERED, "not an answer\n"),
        (TRIAL, "[]"),
        (TRIAL, '{"clock":"chrony","timecard":3}'),
        (MASK, "quantity\nmtie\n"),
        (WITNESS, '{"type":"result","windows":[[1]]}\n'),
        ("../../requirements/clocks.toml", 'requirement = "none"\n'),
    ],
)
def test_what_cannot_be_read_raises_nothing(tmp_path: Path, name: str, text: str) -> None:
    run = judged_run(tmp_path, answer_of(rows_of(sine(90_000))), SWING)
    (run / PLACE / name).write_text(text)
    problems, count = mask_discrepancies(run, records_of(run))
    assert bool(problems) != bool(count)
