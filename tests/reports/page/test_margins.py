# SPDX-License-Identifier: Apache-2.0
"""One picture has the margins of all values of all targets; no quantile is printed that is the maximum."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from reports.curves import share_label
from reports.daq_replay.section import LatencySection
from reports.page.margins import figure_margins
from reports.page.model import RunReport, gather_run
from reports.page.render import PAGE, render_pages
from reports.record.histogram import Summary
from reports.record.measurement import margin_of
from reports.run.tally import relative_margin
from tests.reports.sample_run import make_run_of_targets


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run_of_targets(tmp_path_factory.mktemp("results")).path


@pytest.fixture(scope="module")
def found(run: Path) -> RunReport:
    return gather_run(run)


def test_every_margin_is_drawn_and_the_least_of_a_line_is_named(found: RunReport) -> None:
    svg = figure_margins("margins", found.targets)
    margins = [relative_margin(record) for report in found.targets for record in report.records]
    shares = [share for share in margins if share is not None]
    assert f"{len(shares)} values; the least margin is {100 * min(shares):.3g} %" in svg
    for report in found.targets:
        assert f"one way latency \u00b7 {report.target}<" in svg
        assert report.worst is not None
        assert f">{report.worst.requirement}<" in svg
    assert ">fail<" in svg


def test_a_long_name_at_a_fail_does_not_lie_on_the_words_of_its_line(found: RunReport) -> None:
    """Both are text that ends at its place; in this face a letter is at most 0.68 of its size, on average."""
    report = found.targets[0]
    first, name = report.records[0], "EDGE-TGPIO-FILTERED-READ-OF-THE-SECOND-CARD"
    assert first.limit.upper is not None
    late_ns = 2 * first.limit.upper
    margin_ns = margin_of(late_ns, first.limit, first.uncertainty)
    late = replace(first, requirement=name, value=late_ns, margin=margin_ns, outcome="fail", reason="late")
    svg = figure_margins("margins", [replace(report, records=(late, *report.records[1:]))])
    texts = re.findall(r'font-size: ([\d.]+)px[^>]*text-anchor: end[^>]* x="([\d.]+)"[^>]*>([^<]+)<', svg)
    ends = {words: (float(x_px), float(size_px)) for size_px, x_px, words in texts}
    x_px, size_px = ends[name]
    assert x_px - 0.68 * size_px * len(name) > ends["one way latency"][0]


def test_a_margin_off_the_axis_has_a_mark_and_its_number(found: RunReport) -> None:
    report = found.targets[0]
    first = report.records[0]
    assert first.limit.upper is not None
    drawn: dict[int, str] = {}
    for times in (1, 2, 270):
        late_ns = times * first.limit.upper
        margin_ns = margin_of(late_ns, first.limit, first.uncertainty)
        late = replace(first, value=late_ns, margin=margin_ns, outcome="fail", reason="late")
        drawn[times] = figure_margins("margins", [replace(report, records=(late, *report.records[1:]))])
        share = relative_margin(late)
        assert share is not None
        assert (f">{share_label(share)}<" in drawn[times]) is (share < -0.5), times
    marks = {times: set(re.findall(r'<path id="m[^"]+" d="([^"]+)"', svg)) for times, svg in drawn.items()}
    assert marks[2] == marks[270] != marks[1]


@pytest.mark.slow
def test_the_picture_stands_on_the_first_page_and_on_each_targets(run: Path) -> None:
    pages = render_pages(run)
    assert all(page.count('<figure id="margins">') == 1 for page in pages.values())
    assert pages[PAGE].index('id="margins"') < pages[PAGE].index('id="targets"')


def test_nothing_measured_is_no_picture() -> None:
    assert figure_margins("margins", ()) == ""


@pytest.mark.parametrize(("n", "tells"), [(600, False), (1000, True), (0, False)])
def test_p999_of_few_samples_is_the_maximum(n: int, tells: bool) -> None:
    summary = Summary(n, 1, 2, 1.5, None, 0, ((1, 2, n),))
    assert summary.tells(0.999) is tells


@pytest.mark.slow
def test_streams_say_p50_p99_maximum_and_how_many_were_over(run: Path) -> None:
    page = render_pages(run)["qualification-windows.html"]
    table = page.split('<table class="streams">')[1].split("</table>")[0]
    heads = re.findall(r"<th\b.*?</th>", table.split("<tbody>")[0])
    words = [re.sub(r"<[^>]+>", "", head) for head in heads]
    assert [word for word in words if word.startswith("p")] == ["p50", "p99 [95 %]", "p99.9"]
    shown = gather_run(run).targets[1].shown_in("streams")
    assert isinstance(shown, LatencySection)
    [group] = shown.groups
    assert {row.quantile(0.999) is None for row in group.rows} == {True, False}
    for row in group.rows:
        assert (row.quantile(0.999) is None) == (row.record.n < 1000)
    over = [int(late) for late in re.findall(r'<td class="n">(\d+) of \d+ <span', table)]
    assert len(over) == 44
    assert sum(late > 0 for late in over) == 1
