# SPDX-License-Identifier: Apache-2.0
"""Under the verdict stands what did not pass: value, limit, cause, where it is shown, and its evidence."""

from __future__ import annotations

import html
import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from reports.__main__ import main
from reports.page.model import gather_run
from reports.page.not_passed import NO_RECORD, not_passed
from reports.page.render import NOT_PASSED_SHOWN_MAX, render, render_pages
from reports.run.folder import RunFolder
from reports.run.outcome import GLOSSARY, NEXT_STEPS
from reports.units import exact_value
from tests.reports.pages import words_of
from tests.reports.sample_run import ROOT, TABLE_1, Disturbance, make_run, make_run_of_targets

MS = 1_000_000
WRONG = Disturbance(
    path_delay_ns={33: 15 * MS}, generator_delay_ns={43: 20 * MS}, lost={12: 3}, stalled_fraction=0.0
)


def before(page: str, end: str) -> str:
    """Return the text of a page from its verdict up to a place."""
    part = page[page.index('class="verdict') : page.index(end)]
    return html.unescape(words_of(part))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return make_run(tmp_path_factory.mktemp("results"), WRONG)


def test_the_list_has_value_limit_reason_and_the_stage_that_took_most(run: RunFolder) -> None:
    page = render(run.path)
    text = before(page, 'class="tiles"')
    order = [text.index(name) for name in ("DAQ-033", "DAQ-012", "DAQ-043")]
    assert order == sorted(order)
    for words in (
        "What did not pass", "3 lost, 0 allowed", "≤ 10 ms", "is over 10 ms by more than U", "generator late",
        "between sending and the kernel's stamp", "before it was sent", NEXT_STEPS, GLOSSARY,
    ):  # fmt: skip
        assert words in text, words


def test_a_loss_is_told_in_messages_not_as_a_latency_within_its_limit(run: RunFolder) -> None:
    found = {each.requirement: each for each in not_passed([gather_run(run.path).whole], {})}
    loss, late = found["DAQ-012"], found["DAQ-033"]
    assert loss.record is not None
    assert loss.record.margin is not None
    assert loss.record.margin > 0
    assert (loss.lost, late.lost) == (3, 0)
    page = render(run.path)
    rows = page[page.index('id="not-passed"') : page.index('class="tiles"')].split("<tr>")
    words = html.unescape(words_of(next(row for row in rows if "DAQ-012" in row)))
    sent = exact_value(loss.record.n + 3, "")
    assert f"3 lost of {sent} ≤ 0 lost" in words
    assert "≤ 10 ms" not in words


@pytest.mark.slow
def test_each_row_links_to_its_section_and_to_every_file_that_it_was_judged_from(run: RunFolder) -> None:
    page = render(run.path)
    rows = page[page.index('id="not-passed"') : page.index('class="tiles"')].split("<tr>")[1:]
    rows = [row for row in rows if "<th scope" in row]
    found = not_passed([gather_run(run.path).whole], {})
    assert len(rows) == len(found) == 3
    for row, each in zip(rows, found, strict=True):
        assert each.requirement in row
        links = re.findall(r'href="([^"]+)"', row)
        assert links[0] == "#streams"
        assert f'id="{links[0][1:]}"' in page
        assert each.record is not None
        assert links[1:] == [file.path for file in each.record.evidence]


def test_a_run_that_passed_has_no_list_and_hardly_grows(tmp_path: Path) -> None:
    page = render(make_run(tmp_path).path)
    assert "What did not pass" not in page
    assert NEXT_STEPS not in page
    text = before(page, 'class="tiles"')
    assert "All 48 measured values meet their limits" in text


@pytest.mark.slow
def test_more_than_a_screen_of_them_is_folded_away(tmp_path: Path) -> None:
    late = {10 * producer + 3: 15 * MS for producer in TABLE_1} | {10: 120 * MS, 11: 120 * MS}
    page = render(make_run(tmp_path, Disturbance(path_delay_ns=late)).path)
    shown = page[page.index('id="not-passed"') : page.index('class="tiles"')]
    head, folded = shown.split("<details>")
    assert head.count("<th scope") == NOT_PASSED_SHOWN_MAX
    assert folded.count("<th scope") == len(late) - NOT_PASSED_SHOWN_MAX


@pytest.mark.slow
def test_of_several_targets_each_row_names_its_own_and_leads_to_its_page(tmp_path: Path) -> None:
    run = make_run_of_targets(tmp_path)
    pages = render_pages(run.path)
    shown = pages["qualification.html"]
    shown = shown[shown.index('id="not-passed"') : shown.index('class="tiles"')]
    assert "windows" in shown
    for address in re.findall(r'href="([^"]+)"', shown):
        name, _, anchor = unquote(address).partition("#")
        assert f'id="{anchor}"' in pages[name] if anchor else (run.path / name).is_file()
    assert "qualification-windows.html#streams" in shown
    assert "qualification-windows.html#unmeasured" in shown
    own = pages["qualification-windows.html"]
    assert 'href="#streams"' in own[own.index('id="not-passed"') : own.index('class="tiles"')]


def test_what_was_asked_and_has_no_value_is_on_it(tmp_path: Path) -> None:
    found = gather_run(make_run_of_targets(tmp_path).path)
    untested = [each for each in not_passed(found.targets, {}) if each.state == "untested"]
    assert {(each.target, each.requirement) for each in untested} >= {("windows", "DAQ-120")}
    assert {each.reason for each in untested} == {NO_RECORD}


def test_the_terminal_says_the_same_and_where_to_go_on(
    run: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", str(run.path)]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"fail +DAQ-033  .*; worst message no\. \d+: of 1\d\.\d+ ms, 15\.?\d* ms between", shown)
    assert NEXT_STEPS in shown
    run = make_run(tmp_path)
    run.finalise()
    assert main(["show", str(run.path)]) == 0
    assert NEXT_STEPS not in capsys.readouterr().out


@pytest.mark.parametrize("document", [NEXT_STEPS, GLOSSARY])
def test_what_pages_name_is_there_and_the_readme_leads_to_it(document: str) -> None:
    assert (ROOT / document).is_file()
    assert f"]({document})" in (ROOT / "README.md").read_text()
