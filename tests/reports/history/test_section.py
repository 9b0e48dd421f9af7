# SPDX-License-Identifier: Apache-2.0
"""The section of the report on the history: what it says, draws and leaves out, and that it stays advice."""

from __future__ import annotations

import dataclasses
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from reports.errors import RecordError
from reports.history.advice import ADVICE, AdvisedLevel, SeriesChange, find_advice, parse_advice
from reports.history.plots import figure_beyond, figure_change
from reports.history.section import BEYOND_SHOWN, CHANGES_DRAWN, CHANGES_LISTED
from reports.page.model import gather
from reports.page.render import render
from reports.units import NO_VALUE, format_value
from tests.dashboards.runs import make_run, record
from tests.reports.sample_advice import BENCH_CHANGE, advice_of, beyond, change

Show = Callable[..., str]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run folder, which stays as it is."""
    return make_run(tmp_path_factory.mktemp("results"), [record()]).path


@pytest.fixture
def show(run: Path) -> Show:
    """Return a way to get the text of the section for advice that is told."""

    def text_of(**changes: Any) -> str:
        page = render(run, {ADVICE: advice_of(run, **changes).to_bytes()})
        section = page[page.index('<h2 id="history">') : page.index('<h2 id="attempts">')]
        return re.sub(r"\s+", " ", unescape(re.sub(r"<svg.*?</svg>|<[^>]+>", " ", section, flags=re.DOTALL)))

    return text_of


def test_a_change_is_shown_with_its_figures(show: Show) -> None:
    text = show(changes=(change(31),))
    assert "Advice only:" in text
    assert "Seen with this run: 1 regression ." in text
    assert "stream 31 one way latency max: 5 ms → 6 ms (+1 ms, +20.0 %)" in text
    assert "5 ms [4.9 ms, 5.1 ms] 40 6 ms [5.9 ms, 6.1 ms] 4 +1 ms +20.0 % 3.90 r039 r040" in text
    assert "1 run earlier, 1 later" in text
    assert "aaaaaaaaaaaa net: a <b>larger</b> buffer 1 of 1" in text
    assert f"bbbbbbbbbbbb {NO_VALUE} 1 of 1" in text
    assert "changed files that are in no commit" in text


def test_no_markup_of_a_commit_reaches_the_page(run: Path) -> None:
    page = render(run, {ADVICE: advice_of(run, changes=(change(),)).to_bytes()})
    assert "<b>larger" not in page
    assert "&lt;b&gt;larger" in page


def test_commits_that_explain_more_changes_come_first(show: Show) -> None:
    rare, common = change().commits
    changes = (change(0, commits=(rare, common)), change(1, "improvement", commits=(common,)))
    text = show(changes=changes)
    assert "1 regression and 1 improvement" in text
    assert text.index(f"bbbbbbbbbbbb {NO_VALUE} 2 of 2") < text.index("aaaaaaaaaaaa net")


def test_what_is_not_drawn_or_listed_is_counted(show: Show) -> None:
    changes = tuple(change(number) for number in range(CHANGES_LISTED + 5))
    text = show(changes=changes, beyond=tuple(beyond(number) for number in range(BEYOND_SHOWN + 2)))
    assert f"{len(changes) - CHANGES_DRAWN} more changes are not drawn" in text
    assert "5 more are in evidence/history/advice.json" in text
    assert f"The {BEYOND_SHOWN} farthest are shown; 2 more are in" in text


@pytest.mark.parametrize(("least", "most", "said"), [(3, 3, "3"), (3, 14, "3 to 14"), (0, 0, "0")])
def test_little_history_is_no_silence(show: Show, least: int, most: int, said: str) -> None:
    text = show(series_ready=0, history_least=least, history_most=most)
    assert f"{said} of 15 earlier runs, no statement yet (3 series" in text


@pytest.mark.parametrize(("most", "said"), [(18, False), (19, True)])
def test_no_change_is_said_where_one_could_be_seen(show: Show, most: int, said: bool) -> None:
    text = show(history_least=15, history_most=most, change_needs=19)
    assert ("Seen with this run: no change" in text) is said
    assert (f"{most} of 19 earlier runs, no statement on changes yet" in text) is not said


def test_a_run_without_series_says_so(show: Show) -> None:
    assert "no value that is followed" in show(series=0, series_ready=0)


def test_part_of_the_series_have_history(show: Show) -> None:
    text = show(series_ready=2, history_least=4)
    assert "2 of 3 series have enough history" in text
    assert "the shortest has 4" in text


def test_a_request_is_said_to_be_held_against_main(show: Show) -> None:
    text = show(branch="pr", beyond=(beyond(7),))
    assert "branch class main (this run: pr)" in text
    assert "Seen with this run" not in text
    assert "1 values of this run lie beyond" in text
    assert "stream 7 p99: 7 ms; 20 runs had 5 ms to 5 ms, median 5 ms" in text


def test_a_change_of_the_bench_is_said_in_words(show: Show) -> None:
    text = show(bench_change=BENCH_CHANGE)
    assert "The bench changed with this run : host.kernel: 6.1 -> 6.12" in text
    later = show(bench_change=dataclasses.replace(BENCH_CHANGE, runs_since=8))
    assert "The bench changed 7 runs ago , with run r030" in later


def test_nothing_else_on_the_page_follows_from_advice(run: Path) -> None:
    plain = gather(run)
    advised = gather(run, {ADVICE: advice_of(run, changes=(change(),)).to_bytes()})
    assert plain.advice is None
    for name in ("outcome", "counts", "records", "worst", "problems", "checks"):
        assert getattr(advised, name) == getattr(plain, name)
    assert {row.path for row in advised.hashes} - {row.path for row in plain.hashes} == {ADVICE}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"{", "advice.json:"),
        (b"[]", "expected an object"),
        (b'{"schema":"x"}', "missing key"),
    ],
)
def test_damaged_advice_is_said_and_breaks_nothing(run: Path, data: bytes, words: str) -> None:
    section = gather(run, {ADVICE: data}).advice
    assert section is not None
    assert section.advice is None
    assert words in section.problem
    assert "cannot be read" in render(run, {ADVICE: data})


def test_advice_is_that_of_its_run_and_schema(run: Path) -> None:
    advice = advice_of(run, changes=(change(),), beyond=(beyond(),), bench_change=BENCH_CHANGE)
    run_id = advice.run_id
    assert find_advice(run, {ADVICE: advice.to_bytes()}, run_id) == advice
    assert find_advice(run, {}, run_id) is None
    with pytest.raises(RecordError, match="not of other"):
        find_advice(run, {ADVICE: advice.to_bytes()}, "other")
    with pytest.raises(RecordError, match="schema"):
        parse_advice(dataclasses.replace(advice, schema="benchwright.advice/2").to_bytes())


def marks(svg: str) -> tuple[list[float], list[float]]:
    """Return the heights of the round marks and of the square ones."""
    root = ElementTree.fromstring(svg)  # noqa: S314 - our own
    rounds = [float(mark.attrib["cy"]) for mark in root.iter("circle")]
    squares = [mark for mark in root.iter("rect") if mark.attrib["width"] == "4.6"]
    return rounds, [float(mark.attrib["y"]) + 2.3 for mark in squares]


def test_a_figure_has_every_run_at_its_height() -> None:
    before, after = marks(figure_change("a", change()))
    assert (len(before), len(after)) == (40, 4)
    assert max(after) < min(before)  # heights count downwards
    assert before == sorted(before, reverse=True)
    assert max(before) - min(after) == pytest.approx((94 - 8) / 1.12, abs=0.2)


def test_a_figure_of_a_value_beyond() -> None:
    baseline, (value,) = marks(figure_beyond("b", beyond()))
    assert len(baseline) == 20
    assert value < min(baseline)


@pytest.mark.parametrize(("place", "extreme"), [(3, 20e9), (37, -20e9)])
@pytest.mark.parametrize("figure", ["change", "beyond"])
def test_a_figure_marks_an_extreme_run_and_flattens_no_other(figure: str, place: int, extreme: float) -> None:
    drawn: list[str] = []
    for value in (extreme / 100, extreme):
        shown = change() if figure == "change" else beyond()
        place = min(place, len(shown.values) - 2)
        values = (*shown.values[:place], value, *shown.values[place + 1 :])
        shown = dataclasses.replace(shown, values=values)
        drawn.append(
            figure_change("a", shown) if isinstance(shown, SeriesChange) else figure_beyond("a", shown)
        )
    few, many = (marks(svg) for svg in drawn)
    assert few == many
    assert max(many[0]) - min(many[1]) > 70
    assert f">{format_value(extreme, 'ns', 4)}</text>" in drawn[1]


@pytest.mark.parametrize("values", [(5.0,) * 44, (0.0,) * 44, (-5.0, *([-4.0] * 43))])
def test_a_figure_of_odd_values(values: tuple[float, ...]) -> None:
    level = AdvisedLevel(40, values[-1], values[-1], values[-1])
    svg = figure_change("c", change(values=values, before=level, after=dataclasses.replace(level, runs=4)))
    assert "nan" not in svg
    assert len(marks(svg)[0]) == 40
