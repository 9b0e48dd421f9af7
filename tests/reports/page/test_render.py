# SPDX-License-Identifier: Apache-2.0
"""The qualification page: the same bytes each time, self-contained, and true to its run folder."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

from reports.__main__ import main
from reports.page import model
from reports.page.model import gather
from reports.page.not_passed import not_passed
from reports.page.render import headline, render, write_page
from reports.record.measurement import (
    Conditions,
    Limit,
    Outcome,
    Subject,
    Uncertainty,
    UncertaintyPart,
    margin_of,
)
from reports.run.folder import RunFolder
from reports.svg import INKS
from reports.units import MINUS
from tests.reports.sample_run import Disturbance, make_run

ROOT = Path(__file__).resolve().parents[3]
BENCH_STALLED = Disturbance(path_delay_ns={33: 15_000_000}, stalled=True)
VOID = {"meta", "col", "br", "hr", "img", "link", "input"}


class Outline(HTMLParser):
    """Check that tags nest, and collect ids, addresses and text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.tags: set[str] = set()
        self.text = ""
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag, its id and its addresses."""
        self.tags.add(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            elif name in ("href", "src", "xlink:href"):
                self.addresses.append(value or "")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag that closes itself."""
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        """Check that the innermost open tag is closed."""
        assert self.open
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Collect text outside of style sheets."""
        if self.open and self.open[-1] != "style":
            self.text += data


def outline(run: RunFolder) -> Outline:
    return Outline(render(run.path))


def squeezed(text: str) -> str:
    return re.sub(r"\s+", " ", text)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return make_run(
        tmp_path_factory.mktemp("results"), Disturbance(path_delay_ns={33: 15_000_000}, lost={12: 3})
    )


@pytest.fixture(scope="module")
def page(run: RunFolder) -> Outline:
    return outline(run)


@pytest.mark.slow
def test_the_same_folder_gives_the_same_bytes_in_any_process(run: RunFolder, tmp_path: Path):
    pages: list[bytes] = []
    for number, (zone, seed) in enumerate((("UTC", "0"), ("Asia/Tokyo", "12345"))):
        target = tmp_path / f"{number}.html"
        environment = {**os.environ, "TZ": zone, "PYTHONHASHSEED": seed, "LC_ALL": "C"}
        command = [sys.executable, "-m", "reports", "render", str(run.path), "--output", str(target)]
        subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
        pages.append(target.read_bytes())
    assert pages[0] == pages[1]


def test_the_page_nests_has_unique_ids_and_links_only_to_itself_and_to_evidence(
    page: Outline, run: RunFolder
):
    assert len(page.ids) == len(set(page.ids))
    assert page.addresses
    for address in page.addresses:
        if address.startswith("#"):
            assert address[1:] in page.ids
        else:
            assert address.startswith("evidence/")
            assert (run.path / unquote(address)).is_file()
    assert not page.tags & {"script", "link", "img", "iframe", "object"}


def test_nothing_is_loaded_from_elsewhere(run: RunFolder):
    text = render(run.path)
    assert "@import" not in text
    assert re.findall(r"url\((?!#)", text) == []
    assert re.findall(r"https?://", text) == []


def test_every_colour_that_page_and_figures_name_is_there_in_light_and_in_dark(run: RunFolder):
    page = render(run.path)
    light, dark = re.findall(r":root \{([^}]*)\}", page)
    wanted = set(re.findall(r"var\((--[\w-]+)\)", page)) | {f"--{name}" for name in INKS}
    for scheme in (light, dark):
        assert wanted <= set(re.findall(r"(--[\w-]+):", scheme))


def test_the_verdict_stands_on_top_in_words(page: Outline, run: RunFolder):
    word = render(run.path).partition('id="verdict-word">')[2].partition("</div>")[0]
    assert re.sub(r"<[^>]*>", " ", word).split()[1] == "fail"
    text = squeezed(page.text)
    assert text.index("fail") < text.index("One-way latency by stream")
    assert "Of 48 measured values, 2 fail" in text
    assert "3 lost, 0 allowed" in text
    assert "is over 10 ms by more than U" in text


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        ("pass", "The only measured value meets its limit with the whole guard band U."),
        ("fail", "The only measured value fails (beyond the limit by more"),
        ("inconclusive", "The only measured value could not be decided."),
        ("unset", "Nothing was measured."),
    ],
)
def test_a_single_value_is_spoken_of_as_one(run: RunFolder, outcome: Outcome, said: str):
    every = gather(run.path)
    counts = dict.fromkeys(every.counts, 0) | {outcome: 1}
    report = replace(every, records=every.records[:1], counts=counts, outcome=outcome, checks=())
    assert headline(report).startswith(said)


def test_every_stream_has_its_row_and_every_outcome_its_word(page: Outline, run: RunFolder):
    for record in run.records().measurements:
        assert re.search(rf"\b{record.subject.stream}\b", page.text)
    words = re.findall(r"[✔✖◐○⚠]\s*(pass|fail|inconclusive|unset|error)\b", squeezed(page.text))
    assert words.count("pass") >= 46


def test_simulated_is_said_where_it_is_and_only_there(tmp_path: Path, run: RunFolder):
    assert render(run.path).count("SIMULATED") >= 4
    hardware = make_run(tmp_path, simulated=False)
    assert "SIMULATED" not in render(hardware.path)


def test_the_page_states_instrument_rule_uncertainty_attempts_and_hashes(page: Outline, run: RunFolder):
    text = squeezed(page.text)
    for words in (
        "Known-delay check", "Witness of the machine", "clock_offset", "clock_residual", "Guard band",
        "preempt_rt", "daq_replay/attempt-1", "6.12.57-rt", "low-latency TCP",
    ):  # fmt: skip
        assert words in text, words
    for record in run.records().measurements:
        for evidence in record.evidence:
            assert evidence.sha256 in page.text


@pytest.mark.slow
def test_an_inconclusive_attempt_before_a_pass_stays_visible(tmp_path: Path):
    text = squeezed(outline(make_run(tmp_path, BENCH_STALLED, Disturbance())).text)
    assert "All 48 measured values meet their limits" in text
    assert "the machine took up to" in text
    assert "96 values were recorded, 48 of them count" in text


def test_other_quantities_show_as_a_table(tmp_path: Path):
    run = make_run(tmp_path)
    limit, band = (
        Limit(10_000, -10_000, "Table 2"),
        Uncertainty.from_parts([UncertaintyPart("edge", "standard", 20)]),
    )
    record = dataclasses.replace(
        run.records().measurements[0],
        requirement="SYNC-1", quantity="sync_offset", statistic="max_abs", value=-5_230,
        subject=Subject("virtual", "linux-rt", clock="timeservice", method="tgpio-latch"), limit=limit,
        uncertainty=band, margin=margin_of(-5_230, limit, band), conditions=Conditions("ci"),
    )  # fmt: skip
    run.append(record)
    text = squeezed(outline(run).text)
    assert "sync offset" in text
    assert "SYNC-1 linux-rt · timeservice · tgpio-latch" in text
    assert f"{MINUS}5.230 µs" in text


@pytest.mark.parametrize(("error_ns", "outcome"), [(40, "pass"), (150, "fail")])
def test_the_benchs_own_check_can_spoil_a_pass_but_is_no_verdict_on_the_target(
    tmp_path: Path, error_ns: int, outcome: Outcome
):
    run = make_run(tmp_path)
    (run.path / "evidence" / "daq_replay" / "attempt-1" / "known_delay.json").unlink()
    limit, band = Limit(100, -100, "U of the difference"), Uncertainty.from_parts([])
    record = dataclasses.replace(
        run.records().measurements[0],
        requirement="BENCH", quantity="known_delay_error", statistic="median", value=error_ns, limit=limit,
        uncertainty=band, margin=margin_of(error_ns, limit, band), outcome=outcome, reason="",
    )  # fmt: skip
    run.append(record)
    report = gather(run.path)
    assert report.outcome == ("pass" if outcome == "pass" else "inconclusive")
    assert report.counts["pass"] == len(report.records) == 48
    text = squeezed(outline(run).text)
    assert f"found it with an error of {error_ns} ns" in text
    assert ("the bench did not pass its own check" in text) == (outcome == "fail")


def test_a_check_that_no_section_shows_stands_among_other_measurements(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A capability that has a section shows its checks itself; one without has no other place."""
    run = make_run(tmp_path)
    check = replace(run.records().measurements[0], requirement="BENCH", quantity="known_delay_error")
    run.append(check)
    assert gather(run.path).others == ()
    monkeypatch.setattr(model, "OF_SECTIONS", frozenset[str]())
    report = gather(run.path)
    assert report.others == (("known_delay_error", (check,)),)
    assert len(report.records) == 48
    failed = replace(report, others=(("known_delay_error", (replace(check, outcome="fail"),)),))
    failed = replace(failed, checks=failed.others[0][1])
    assert [each.section for each in not_passed((failed,), {})] == [("Other measurements", "#others")]


def test_what_comes_from_outside_cannot_become_markup(tmp_path: Path):
    run = make_run(tmp_path, close=False)
    evil = '"><script>alert(1)</script>'
    run.update(target={evil: evil}, host={"hostname": evil})
    run.add_attempt(evil, "inconclusive", evil)
    folder = run.path / "evidence" / "daq_replay" / "attempt-1"
    recv = folder / "recv.ndjson"
    recv.write_text(recv.read_text().replace('"name": "guest"', '"name": "<script>alert(2)</script>"'))
    found = outline(run)
    assert "script" not in found.tags
    assert "alert(1)" in found.text
    assert "alert(2)" in found.text


def test_evidence_that_was_changed_after_it_was_judged_is_named(tmp_path: Path):
    run = make_run(tmp_path)
    recv = run.path / "evidence" / "daq_replay" / "attempt-1" / "recv.ndjson"
    recv.write_text(recv.read_text().replace('"version": "0.1.0"', '"version": "0.1.1"'))
    assert "is not what its measurements were judged from" in outline(run).text


@pytest.mark.slow
def test_a_run_that_was_killed_still_has_a_page_that_says_so(tmp_path: Path):
    run = make_run(tmp_path, close=False)
    path = run.path / "measurements.jsonl"
    path.write_bytes(path.read_bytes()[:-25])
    text = squeezed(outline(run).text)
    assert "did not come to its end" in text
    assert "is torn and not counted" in text
    assert "All 47 measured values" in text


def test_evidence_that_cannot_be_read_leaves_the_records_and_a_problem(tmp_path: Path):
    run = make_run(tmp_path)
    (run.path / "evidence" / "daq_replay" / "attempt-1" / "recv.ndjson").unlink()
    text = squeezed(outline(run).text)
    assert "recv.ndjson: No such file" in text
    assert "All 48 measured values" in text


def test_an_empty_run_has_a_page(tmp_path: Path):
    run = RunFolder.create(tmp_path, "virtual", "ci")
    assert "Nothing was measured." in outline(run).text


def test_rendering_a_finalised_run_again_keeps_it_verified(tmp_path: Path):
    run = make_run(tmp_path)
    write_page(run.path)
    run.finalise()
    assert main(["render", str(run.path)]) == 0
    assert main(["verify", str(run.path)]) == 0


def test_a_finalised_run_that_was_changed_is_not_rendered_into(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    run = make_run(tmp_path)
    run.finalise()
    manifest = run.path / "run.json"
    manifest.write_text(manifest.read_text().replace('"ci"', '"acceptance"'))
    assert main(["render", str(run.path)]) == 2
    assert "run.json: changed" in capsys.readouterr().err
    assert not (run.path / "qualification.html").exists()


def test_show_prints_the_verdict_and_what_did_not_pass(run: RunFolder, capsys: pytest.CaptureFixture[str]):
    assert main(["show", str(run.path)]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("FAIL  SIMULATED")
    assert "46 pass, 2 fail" in shown
    assert "DAQ-033" in shown
    assert "DAQ-012" in shown
