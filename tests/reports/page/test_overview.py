# SPDX-License-Identifier: Apache-2.0
"""The pages of a run with several targets: one over all of them, one for each, with links both ways."""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest

from reports.__main__ import main
from reports.clock_sync.section import ClockSection
from reports.daq_replay.evidence import load_replay
from reports.daq_replay.section import LatencySection
from reports.history.advice import ADVICE
from reports.page.model import gather, gather_run
from reports.page.not_passed import NO_RECORD
from reports.page.overview import overview_of
from reports.page.render import PAGE, page_files, render, render_pages, write_page
from reports.page.renewal import renew
from reports.page.stalled import discrepancies
from reports.record.histogram import Quantile, merge
from reports.record.measurement import Limit, Subject, Uncertainty, margin_of
from reports.run.folder import RunFolder
from reports.run.integrity import changed_files, read_sums
from reports.run.left_out import LeftOut
from reports.run.manifest import Manifest
from reports.run.selected import SkippedTest, with_skipped
from reports.units import MINUS, format_measured
from tests.reports.clock_run import SUBJECT, add_clock_trial
from tests.reports.page.test_render import Outline, squeezed
from tests.reports.pages import words_of
from tests.reports.sample_advice import advice_of
from tests.reports.sample_clock import compare_answer
from tests.reports.sample_run import ask, make_run, make_run_of_targets

ROOT = Path(__file__).resolve().parents[3]
TARGETS = ("linux-rt", "windows", "embedded")
NAMES = (PAGE, *(f"qualification-{target}.html" for target in TARGETS))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return make_run_of_targets(tmp_path_factory.mktemp("results"))


@pytest.fixture(scope="module")
def pages(run: RunFolder) -> dict[str, str]:
    return render_pages(run.path)


@pytest.fixture(scope="module")
def finalised(run: RunFolder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = RunFolder.open(shutil.copytree(run.path, tmp_path_factory.mktemp("finalised") / run.path.name))
    write_page(folder.path)
    folder.finalise()
    return folder.path


def test_a_page_for_the_run_and_one_for_each_target(run: RunFolder, pages: dict[str, str]) -> None:
    assert tuple(pages) == NAMES == page_files(run.path)
    assert render(run.path) == pages[PAGE]


@pytest.mark.slow
def test_the_same_folder_gives_the_same_bytes_in_any_process_and_names_after_the_output(
    finalised: Path, pages: dict[str, str], tmp_path: Path
) -> None:
    environment = {**os.environ, "TZ": "Asia/Tokyo", "PYTHONHASHSEED": "12345", "LC_ALL": "C"}
    output = tmp_path / "mine.html"
    command = [sys.executable, "-m", "reports", "render", str(finalised), "--output", str(output)]
    subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        name.replace("qualification", "mine"): page.replace('href="qualification', 'href="mine')
        for name, page in pages.items()
    }


@pytest.mark.slow
def test_pages_nest_and_link_only_to_each_other_and_to_evidence(
    run: RunFolder, pages: dict[str, str]
) -> None:
    outlines = {name: Outline(page) for name, page in pages.items()}
    for name, found in outlines.items():
        assert len(found.ids) == len(set(found.ids))
        for address in found.addresses:
            page, _, anchor = address.partition("#")
            assert not anchor or anchor in outlines[page or name].ids, address
            assert not page or page in pages or (run.path / unquote(page)).is_file()
            assert not page or page in pages or page.startswith("evidence/")
        assert not found.tags & {"script", "link", "img", "iframe", "object"}
        others = set(NAMES[1:]) if name == PAGE else {PAGE}
        assert others <= {address.partition("#")[0] for address in found.addresses}


@pytest.mark.slow
def test_the_verdict_over_all_is_the_worst(run: RunFolder, pages: dict[str, str]) -> None:
    found = gather_run(run.path)
    assert found.whole.outcome == "fail"
    assert [report.outcome for report in found.targets] == ["pass", "fail", "pass"]
    text = squeezed(Outline(pages[PAGE]).text)
    assert "3 targets: 1 fail, 2 pass. 10 times a requirement was untested." in text
    assert "Of 96 measured values, 1 fail" in text


def test_what_the_profile_leaves_out_is_listed_and_costs_no_pass(tmp_path: Path) -> None:
    """With how sure a pass is; on each target's page its own alone, and nothing where there is none."""
    run = make_run_of_targets(tmp_path, close=False)
    before = {report.target: report.outcome for report in gather_run(run.path).targets}
    run.update(
        left_out=(
            LeftOut("linux-rt", "clock_sync/sync_error.robot", ("Holdover", "Relock"), whole=False),
            LeftOut("embedded", "daq_replay/latency_budgets.robot", ("Stream Arrives",), whole=True),
        ),
        excluded_miss_probability=0.05,
    )
    pages = render_pages(run.path)
    texts = {name: squeezed(Outline(page).text) for name, page in pages.items()}
    sure = "a pass shows, with 95 % confidence, that a stream exceeds its budget in no more than 5 % of its"
    assert all(sure in text for text in texts.values())
    assert "3 tests are left out" in texts[PAGE]
    assert re.search(r"linux-rt ?clock_sync/sync_error.robot ?some tests ?Holdover; Relock", texts[PAGE])
    assert re.search(r"embedded ?daq_replay/latency_budgets.robot ?all of it ?Stream Arrives", texts[PAGE])
    assert "2 tests are left out" in texts["qualification-linux-rt.html"]
    assert "1 test is left out" in texts["qualification-embedded.html"]
    assert "left-out" not in pages["qualification-windows.html"]
    assert {report.target: report.outcome for report in gather_run(run.path).targets} == before


def test_a_run_that_says_nothing_of_its_profile_shows_nothing(pages: dict[str, str]) -> None:
    assert not any("left-out" in page or "a pass shows, with 95 %" in page for page in pages.values())


@pytest.mark.slow
def test_counts_of_run_and_targets_agree_with_the_manifest(run: RunFolder) -> None:
    found = gather_run(run.path)
    assert found.whole.counts == run.manifest.counts
    for outcome, count in run.manifest.counts.items():
        assert sum(report.counts[outcome] for report in found.targets) == count


@pytest.mark.slow
def test_a_target_of_which_nothing_was_measured_leaves_no_pass(tmp_path: Path) -> None:
    run = make_run_of_targets(tmp_path, close=False)
    path = run.path / "measurements.jsonl"
    path.write_text("".join(line for line in path.open() if '"target":"linux-rt"' in line))
    run.close()
    report = gather(run.path)
    assert report.counts["pass"] == len(report.records) == 48
    assert report.outcome == "unset"
    text = squeezed(Outline(render(run.path)).text)
    assert "Nothing was measured of windows and embedded." in text
    assert "but not everything was measured" in text
    assert [report.outcome for report in gather_run(run.path).targets] == ["pass", "unset", "unset"]


@pytest.mark.slow
def test_every_cell_says_its_state_in_a_symbol_and_a_word(pages: dict[str, str]) -> None:
    table = pages[PAGE].split('<table class="matrix">')[1].split("</table>")[0]
    body, last = table.split('<tr class="last">')
    cells = re.findall(r"<td><span class=\"state\">(.*?)</td>", body)
    assert len(cells) == 3 * 49
    for cell in cells:
        text = squeezed(re.sub(r"<[^>]+>", "", cell)).strip()
        assert re.fullmatch(rf"([✔✖] (pass|fail)\s*{MINUS}?[0-9.]+ %)|▢ untested|· not asked", text), text
    assert "43 ✔ pass" in squeezed(re.sub(r"<[^>]+>", "", last))
    assert table.count("<thead>") == 1
    assert "✖" in body


@pytest.mark.slow
def test_the_row_of_a_target_has_the_lateness_of_its_own_replay(
    run: RunFolder, pages: dict[str, str]
) -> None:
    found = gather_run(run.path)
    overview = overview_of(run.path, found, dict.fromkeys(TARGETS, ""))
    rows = pages[PAGE].partition('<h2 id="instrument">')[2].partition("</table>")[0].split("<tr>")
    lateness: set[Quantile] = set()
    for row in overview.targets:
        evidence = load_replay(run.path / "evidence" / "daq_replay" / row.report.target / "attempt-1")
        assert evidence.recv is not None
        late = merge([stream.sent_minus_scheduled for stream in evidence.recv.streams]).quantile(0.99)
        assert late is not None
        shown = f"{format_measured(late.value_ns, 'ns')} <span"
        [line] = [each for each in rows if f">{row.report.target}</a>" in each]
        assert shown in line
        lateness.add(late)
    assert len(lateness) == 3
    assert [row.report.states.get("untested", 0) for row in overview.targets] == [1, 5, 4]
    assert "largest pattern" not in pages[PAGE].lower()


@pytest.mark.slow
def test_a_targets_page_has_only_its_own(run: RunFolder, pages: dict[str, str]) -> None:
    for target in TARGETS:
        page = pages[f"qualification-{target}.html"]
        files = set(re.findall(r"evidence/[\w./-]+", page))
        assert files
        assert all(f"/{target}/" in file for file in files), files
        assert f"6.12-{target}" in page
        assert f"{target}-host" in page
        for other in set(TARGETS) - {target}:
            assert f"{other}-host" not in page
            assert f"daq_replay/{other}" not in page
        assert f"daq_replay/{target}" in page
        assert ("DAQ-120" in page) == (target != "embedded"), "windows was asked it, and has no value"


@pytest.mark.slow
@pytest.mark.parametrize("alone", [False, True])
def test_a_targets_page_says_what_was_skipped_and_why(tmp_path: Path, alone: bool) -> None:
    run = make_run(tmp_path) if alone else make_run_of_targets(tmp_path)
    skipped = SkippedTest("Chrony Under Load", "no time server", ("CLK-CHRONY",))
    clocks = ROOT / "robot" / "clock_sync" / "requirements" / "clock_sync_virtual.toml"
    ask(run, "linux-rt", "clock_sync", clocks)
    run.update(asked=with_skipped(run.manifest.asked or (), "linux-rt", "clock_sync", skipped))
    page = render_pages(run.path)[PAGE if alone else "qualification-linux-rt.html"]
    text = words_of(page)
    assert "CLK-CHRONY ↷ skipped no time server" in text
    assert "Chrony Under Load no time server CLK-CHRONY" in text
    assert '<a href="#unmeasured">1 skipped</a>' in page
    assert 'id="unmeasured"' in page


@pytest.mark.slow
def test_clocks_of_a_target_stand_on_its_page_only(tmp_path: Path) -> None:
    run = make_run_of_targets(tmp_path, close=False)
    record = add_clock_trial(run, compare_answer(), target="windows")
    assert record.subject == dataclasses.replace(SUBJECT, target="windows")
    reports = gather_run(run.path).targets
    assert [report.shown_in("clocks") is None for report in reports] == [True, False, True]
    clocks = reports[1].shown_in("clocks")
    assert isinstance(clocks, ClockSection)
    assert [row.place for row in clocks.rows] == ["evidence/clock_sync/windows/chrony"]
    assert clocks.rows[0].record == record
    page = render(run.path)
    assert 'id="clocks"' not in page
    assert "CLK-CHRONY" in page


@pytest.mark.slow
def test_a_check_of_the_bench_spoils_only_the_target_it_is_of(tmp_path: Path) -> None:
    run = make_run_of_targets(tmp_path)
    limit, band = Limit(100, -100, "U of the difference"), Uncertainty.from_parts([])
    check = dataclasses.replace(
        run.records().measurements[0],
        requirement="BENCH", quantity="clock_step", statistic="max", value=150, limit=limit, reason="stepped",
        uncertainty=band, margin=margin_of(150, limit, band), outcome="fail",
        subject=Subject("virtual", "embedded"),
    )  # fmt: skip
    run.append(check)
    found = gather_run(run.path)
    assert [report.outcome for report in found.targets] == ["pass", "fail", "inconclusive"]
    text = squeezed(Outline(render(run.path)).text)
    assert "Checks of the bench by itself" in text
    assert "BENCH embedded" in text


@pytest.mark.slow
def test_what_comes_from_outside_cannot_become_markup(tmp_path: Path) -> None:
    run = make_run_of_targets(tmp_path)
    evil = '"><script>alert(1)</script>'
    first = run.records().measurements[0]
    run.append(dataclasses.replace(first, subject=Subject("virtual", evil), requirement=evil))
    names = page_files(run.path)
    assert len(names) == 5
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+", name) for name in names)
    found = Outline(render(run.path))
    assert "script" not in found.tags
    assert "alert(1)" in found.text


@pytest.mark.slow
def test_render_and_verify_cover_all_pages(finalised: Path, tmp_path: Path) -> None:
    run = shutil.copytree(finalised, tmp_path / finalised.name)
    assert set(NAMES) <= read_sums(run).keys()
    before = {name: (run / name).read_bytes() for name in NAMES}
    for name in NAMES:
        (run / name).unlink()
    assert main(["render", str(run)]) == 0
    assert main(["verify", str(run)]) == 0
    assert {name: (run / name).read_bytes() for name in NAMES} == before
    (run / NAMES[2]).write_bytes(before[NAMES[2]] + b" ")
    assert changed_files(run) == [f"{NAMES[2]}: changed"]


@pytest.mark.slow
def test_advice_renews_the_page_of_the_run_and_leaves_those_of_the_targets(
    finalised: Path, tmp_path: Path
) -> None:
    run = shutil.copytree(finalised, tmp_path / finalised.name)
    before = read_sums(run)
    assert renew(run, {ADVICE: advice_of(run).to_bytes()})
    after = read_sums(run)
    assert changed_files(run) == []
    assert {name for name in after if before.get(name) != after[name]} == {PAGE, ADVICE}
    assert 'id="history"' in (run / PAGE).read_text()


@pytest.mark.slow
def test_show_prints_a_line_a_target(finalised: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(finalised)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("FAIL  SIMULATED")
    assert any(
        re.fullmatch(rf"  worst margin {MINUS}[0-9.]+ ms: DAQ-033, stream 33, windows", line)
        for line in lines
    )
    shown = [line for line in lines if "  target " not in line and "  " in line]
    own = [line.split() for line in lines if " target " in line]
    assert [(words[0], words[2].rstrip(":")) for words in own] == [
        ("pass", "linux-rt"),
        ("fail", "windows"),
        ("pass", "embedded"),
    ]
    assert any(
        "43 pass, 1 fail; requirements: 43 pass, 1 fail, 5 untested; worst margin" in line for line in lines
    )
    (untested,) = [line for line in lines if line.startswith("  untested     windows  ")]
    assert untested == f"  untested     windows  CLK-CHRONY and 4 more  {NO_RECORD}"
    assert any(line.startswith("  fail") and "windows  DAQ-033" in line for line in shown)


@pytest.mark.slow
def test_a_stall_is_looked_for_in_the_replays_of_all_targets(run: RunFolder) -> None:
    found = discrepancies(run.path)
    assert any(line.startswith("DAQ-033: fail") for line in found)
    [(_section, every), *_] = gather(run.path).sections
    titles = [group.title for each in every if isinstance(each, LatencySection) for group in each.groups]
    assert [title.split(" · ")[0] for title in titles] == [f"target {target}" for target in TARGETS]


@pytest.mark.slow
def test_a_run_of_one_target_has_one_page(tmp_path: Path) -> None:
    run = make_run_of_targets(tmp_path, close=False)
    path = run.path / "measurements.jsonl"
    path.write_text("".join(line for line in path.open() if '"target":"linux-rt"' in line))
    data = run.manifest.to_text()
    manifest = dataclasses.replace(Manifest.from_text(data), asked=None)
    kept = {name: facts for name, facts in manifest.target.items() if name == "linux-rt"}
    (run.path / "run.json").write_text(dataclasses.replace(manifest, target=kept).to_text())
    pages = render_pages(run.path)
    assert tuple(pages) == (PAGE,)
    assert "table.matrix" not in pages[PAGE]
    assert "All targets" not in pages[PAGE]
