# SPDX-License-Identifier: Apache-2.0
"""The page's section on timed edges, and the paper's Table II beside it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reports.errors import RecordError
from reports.page.model import Report, gather
from reports.page.render import render
from reports.run.folder import RunFolder
from reports.section import TargetData
from reports.timed_edges.capability import DEVIATION, MEAN, QUANTITY
from reports.timed_edges.section import TimedEdgesSection, gather_timed_edges
from reports.timed_edges.table import best_of, common_count, paper_edges, ratios_to, shares_of
from reports.timed_edges.trial import (
    CAPTURE,
    FOLDER,
    TRIAL,
    WITNESSES,
    BudgetPart,
    EdgeTrial,
    write_edge_trial,
)
from reports.timed_edges.verdict import edge_limit, edge_measurement, shift_measurement
from tests.reports.sample_edges import IDENTITY, add_edges, add_trial, digitised, drawn_trial, latch_delays

PRINTED = {
    "gettime-software": (13_700, 204),
    "rdtsc-software": (18_500, 262),
    "tgpio-filtered-read": (313, 21),
    "tgpio-latch": (65, 16),
}
"""As the paper prints it: jitter and standard deviation, in ns."""
N = 400


def _run(tmp_path: Path, *, simulated: bool = True) -> RunFolder:
    return RunFolder.create(tmp_path, "virtual", "ci", simulated=simulated, commit="0" * 40)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    run = _run(tmp_path_factory.mktemp("edges"))
    add_edges(run, N)
    run.close()
    return run


@pytest.fixture(scope="module")
def whole(run: RunFolder) -> Report:
    return gather(run.path)


def _edges(report: Report) -> TimedEdgesSection:
    section = report.shown_in("timed-edges")
    assert isinstance(section, TimedEdgesSection)
    return section


def _section(run: RunFolder) -> TimedEdgesSection:
    return _edges(gather(run.path))


def _latch(n: int = N, seed: int = 5, **changes: Any) -> EdgeTrial:
    return drawn_trial(latch_delays(np.random.default_rng(seed), n), "tgpio-latch", **changes)


# -- the paper's table


def test_the_rows_are_the_papers() -> None:
    found = {method: (row.peak_to_peak_ns, row.stddev_ns) for method, row in paper_edges().items()}
    assert found == PRINTED
    assert {row.n for row in paper_edges().values()} == {1_000_000}
    assert [row.seen_by for row in paper_edges().values()] == ["capture"] * 2 + ["oscilloscope"] * 2


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("sundial,Sun,capture,9,2,1", "method: 'sundial' is not one of"),
        ("tgpio-latch,T,capture,0,2,1", "n >= 1"),
        ("tgpio-latch,T,capture,9,1,2", "stddev_ns <= peak_to_peak_ns"),
        ("tgpio-latch,T,capture,9,inf,2", "stddev_ns <= peak_to_peak_ns"),
        ("tgpio-latch,T,capture,nine,2,1", "whole n"),
        ("tgpio-latch,T,capture,9,2", "5 fields"),
    ],
)
def test_a_wrong_table_is_refused(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "table.csv"
    path.write_text(f"method,label,seen_by,n,peak_to_peak_ns,stddev_ns\n{line}\n")
    with pytest.raises(RecordError) as refused:
        paper_edges(path)
    assert str(refused.value).startswith(f"{path}:2: ")
    assert said in str(refused.value)


# -- figures of the table


def test_shares_of_a_budget_make_one_and_the_largest_leads() -> None:
    parts = (
        BudgetPart("noise", "standard", 0.3),
        BudgetPart("jitter", "standard", 0.4),
        BudgetPart("skew", "bound", 1.0),
        BudgetPart("trigger", "standard", 0.0),
    )
    shares = shares_of(parts)
    assert [share.name for share in shares] == ["skew", "jitter", "noise", "trigger"]
    assert [share.share for share in shares] == pytest.approx([0.5, 0.32, 0.18, 0.0])
    assert shares_of(None) == ()
    assert shares_of((BudgetPart("none", "bound", 0),))[0].share == 0


def test_the_best_is_that_which_an_oscilloscope_saw_scatter_least() -> None:
    rng = np.random.default_rng(1)
    methods = ("gettime-software", "tgpio-filtered-read", "tgpio-latch")
    trials = [
        drawn_trial(rng.normal(0, width_ns, N), method)
        for method, width_ns in zip(methods, (1000, 20, 10), strict=True)
    ]
    trials.append(drawn_trial(rng.normal(0, 1, N), "rdtsc-latched", "rdtsc-software", seen_by=CAPTURE))
    best = best_of(trials)
    assert best is trials[2]
    ratios = ratios_to(trials[2], trials)
    assert [ratio.method for ratio in ratios] == ["tgpio-filtered-read", "gettime-software"]
    assert [ratio.value for ratio in ratios] == pytest.approx([2, 100], rel=0.2)
    assert [ratio.paper for ratio in ratios] == pytest.approx([21 / 16, 204 / 16])
    for ratio in ratios:
        assert ratio.upper is not None
        assert ratio.lower < ratio.value < ratio.upper
    assert best_of([trials[3]]) is None


def test_peaks_to_peak_compare_at_equal_numbers_only() -> None:
    short, other, long = _latch(150), _latch(700), _latch(2000)
    assert common_count([other, long]) == 100
    assert common_count([long, _latch(2000, 6)]) == 2000
    assert common_count([short, long, _latch(20)]) == 100  # 20 edges ended early
    assert common_count([]) == 0


# -- the page


def test_shows_every_trial_with_verdict_paper_and_figures(whole: Report) -> None:
    section = _edges(whole)
    assert [row.title for row in section.methods] == [
        *PRINTED, "gettime-software, latched time", "rdtsc-software, latched time",
    ]  # fmt: skip
    assert section.best is not None
    assert section.best.trial.method == "tgpio-latch"
    assert [row.title for row in section.clocks] == ["chrony", "ptp-software"]
    assert len(section.orders) == 2
    assert section.lost == 3
    assert section.oscilloscopes == (IDENTITY,)
    assert section.problems == ()
    assert whole.others == ()
    assert set(section.records) == set(whole.records) | set(whole.checks)


def test_the_page_says_at_a_glance_what_matters(run: RunFolder) -> None:
    page = render(run.path)
    for text in (
        'Timed edges <span class="stamp">SIMULATED</span>', "Best method",
        "of gettime-software", "paper 12.8", "Edges missing", "is led by", "Table II of the paper",
        "13.7 µs", "65 ns", "A mistake that has to show",
        "Clocks by their edges", "bw-clock compare", "Closure of the witnesses", "contradict each other",
        "Budgets of uncertainty", "What became of every edge", "tgpio-latch &lt; tgpio-filtered-read",
        'id="edge-methods', 'id="edge-distances', 'id="edge-overlay', 'id="edge-delays',
        'id="edge-witnesses0', "reference (thick)", "1 missing", "sample interval 1 ns",
    ):  # fmt: skip
        assert text in page, text
    assert "Messages lost" not in page


def test_what_the_software_counted_stands_beside_what_was_seen(whole: Report) -> None:
    first = _edges(whole).methods[0]
    assert first.software == {"programmed": N, "late": 3, "reads": 3 * N, "reads_discarded": N // 2}
    assert first.trial.counts.missing == 3


def test_every_figure_draws_in_the_colours_of_the_page(whole: Report) -> None:
    section = _edges(whole)
    figures = [row.overlay for row in section.rows] + [row.histogram for row in section.rows]
    figures += [section.figure_methods, section.figure_distances, section.witnesses[0].figure]
    drawn = [figure for figure in figures if figure]
    assert len(drawn) == 6 + 9 + 3
    for figure in drawn:
        assert "var(--" in figure
        assert "#0101" not in figure
        assert "<title" in figure


def test_a_trial_only_to_compare_is_no_row_of_the_methods(tmp_path: Path) -> None:
    run = _run(tmp_path)
    judged, context = add_trial(run, _latch())
    run.append(edge_measurement(judged, QUANTITY, DEVIATION, "E", edge_limit(DEVIATION, 99, "s"), 9, context))
    right, right_context = add_trial(run, replace(_latch(seed=6), name="tgpio-latch-right"))
    wrong = replace(_latch(seed=7, correlation_error_ns=200), name="tgpio-latch-200-ns-wrong")
    _, wrong_context = add_trial(run, wrong)
    both = replace(wrong_context, evidence=(*right_context.evidence, *wrong_context.evidence))
    run.append(shift_measurement(right, wrong, "BENCH-EDGE-ERROR", 200, both))
    run.close()
    section = _section(run)
    assert [row.trial.name for row in section.methods] == ["tgpio-latch"]
    shift = section.shifts[0]
    assert shift.plain is not None
    assert shift.plain.trial == right
    assert shift.record is not None
    assert shift.record.outcome == "inconclusive"  # nothing was moved
    assert [row.title for row in section.rows] == [
        "tgpio-latch", "tgpio-latch, to compare", "tgpio-latch, +200 ns put in",
    ]  # fmt: skip


def test_without_another_the_compared_trial_is_the_method(tmp_path: Path) -> None:
    run = _run(tmp_path)
    add_trial(run, _latch())
    add_trial(run, replace(_latch(seed=7, correlation_error_ns=200), name="wrong"))
    run.close()
    section = _section(run)
    assert [row.trial.name for row in section.methods] == ["tgpio-latch"]
    assert section.shifts[0].shift_ns == pytest.approx(0, abs=3)


def test_why_a_trial_is_in_doubt_or_ended_early_is_told(tmp_path: Path) -> None:
    run = _run(tmp_path)
    trial, context = add_trial(
        run, _latch(doubts=("ch2 expired on 2026-01-01",), failed="no trigger within 5 s")
    )
    run.append(edge_measurement(trial, QUANTITY, MEAN, "EDGE-1", edge_limit(MEAN, 99, "s"), 9, context))
    run.close()
    page = render(run.path)
    assert "Ended early: no trigger within 5 s" in page
    assert "ch2 expired on 2026-01-01" in page
    assert "EDGE-1" in page


def test_a_trial_without_a_pair_is_shown(tmp_path: Path) -> None:
    run = _run(tmp_path)
    bare = _latch(failed="*IDN?: no answer")
    add_trial(
        run, replace(bare, delays=None, budgets=type(bare.budgets)(), counts=type(bare.counts)(wanted=9))
    )
    run.close()
    section = _section(run)
    assert (section.best, section.ratios, section.figure_methods) == (None, (), "")
    page = render(run.path)
    assert "no pair of edges" in page
    assert "*IDN?: no answer" in page


def test_nothing_is_called_simulated_on_hardware(tmp_path: Path) -> None:
    run = _run(tmp_path, simulated=False)
    add_trial(run, _latch(), digitised(np.array([5.0, -3.0])))
    run.close()
    page = render(run.path)
    assert "SIMULATED" not in page
    assert render(run.path) == page


def test_damaged_files_are_told_and_the_rest_is_shown(tmp_path: Path) -> None:
    run = _run(tmp_path)
    trial, _ = add_trial(run, _latch(), digitised(np.zeros(4)), {"programmed": N})
    folder = run.path / "evidence" / FOLDER
    (folder / trial.name / "waveforms.json").write_text("{")
    (folder / trial.name / "software.ndjson").write_text("killed\n")
    for name, file in (("broken", TRIAL), ("torn", WITNESSES)):
        (folder / name).mkdir()
        (folder / name / file).write_text("{")
    run.close()
    section = _section(run)
    assert len(section.rows) == 1
    assert (section.rows[0].overlay, section.rows[0].software) == ("", {})
    told = "\n".join(section.problems)
    for text in ("broken: edges.json", "torn: witnesses.json", "waveforms.json", "software.ndjson"):
        assert text in told
    assert "no result line" in render(run.path)


def test_a_file_that_is_missing_is_told(tmp_path: Path) -> None:
    run = _run(tmp_path)
    folder = run.evidence_folder(FOLDER, "latch")
    write_edge_trial(folder, replace(_latch(), software_file="gone.ndjson", waveforms_file="gone.json"))
    run.close()
    told = "\n".join(_section(run).problems)
    assert "gone.ndjson" in told
    assert "gone.json" in told


def test_of_several_attempts_that_which_counts_is_shown(tmp_path: Path) -> None:
    run = _run(tmp_path)
    for place, seed in (("1", 5), ("2", 6)):
        folder = run.evidence_folder(FOLDER, place)
        write_edge_trial(folder, _latch(seed=seed))
    run.close()
    section = gather_timed_edges(TargetData(run.path))
    assert section is not None
    assert [row.place for row in section.methods] == [f"evidence/{FOLDER}/2"]


def test_a_run_without_edges_has_no_section(tmp_path: Path) -> None:
    run = _run(tmp_path)
    run.close()
    assert gather_timed_edges(TargetData(run.path)) is None
    assert 'id="timed-edges"' not in render(run.path)
