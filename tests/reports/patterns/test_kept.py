# SPDX-License-Identifier: Apache-2.0
"""Patterns of a run: searched for as it ends, kept in its folder, searched for again by `verify`."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from reports.__main__ import main
from reports.control_loops.ring_evidence import FOLDER, RING_FILE
from reports.errors import RecordError
from reports.page.render import render_pages
from reports.patterns import kept
from reports.patterns.kept import PATTERNS, keep_patterns, patterns_differ, read_patterns, search_run
from reports.rejudge.run import RejudgeResult
from reports.run.folder import RunFolder
from reports.run.integrity import write_sums
from reports.run.outcome import outcome_of
from tests.reports.control_loops.ring_sample import TARGET, hop_ns, write_sample_ring
from tests.reports.pages import page_with, words_of

COUNT, PERIOD, HEIGHT_NS = 420, 60, 5_000_000


def _ramps(place: int, number: int) -> int:
    """Return hops of which the second rises by 5 ms in 60 messages, 300 ms, and jumps back."""
    return hop_ns(place, number) + (number % PERIOD * HEIGHT_NS // PERIOD if place == 2 else 0)


def _made(folder: Path, profile: str = "ci") -> RunFolder:
    run = RunFolder.create(folder, "virtual", profile, simulated=True, commit="0" * 40)
    write_sample_ring(run.evidence_folder(FOLDER, TARGET), count=COUNT, hops=_ramps)
    run.update(target={TARGET: {"hostname": TARGET}})
    run.close()
    return run


@pytest.fixture(scope="module", autouse=True)
def _few() -> Iterator[None]:
    """Search three series of a run: the whole, both hops before the second node."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(kept.SERIES_MAX, "ci", 3)
        yield


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """Return a run of a ring, with its patterns."""
    run = _made(tmp_path_factory.mktemp("results"))
    assert keep_patterns(run.path, "ci") == ""
    return run


def _changed(run: RunFolder, change: Callable[[Any], None]) -> None:
    path = run.path / PATTERNS
    data = json.loads(path.read_bytes())
    change(data)
    path.write_text(json.dumps(data))


def test_a_pattern_of_a_run_is_kept_and_read_again(searched: RunFolder) -> None:
    found = read_patterns(searched.path)
    assert found is not None
    assert [each.name for each in found.series] == ["whole", "hop 1", "hop 2"]
    hop = found.series[-1]
    [ramp] = [each for each in hop.findings if each.kind in ("ramp", "drifting_grid")]
    assert ramp.parameters["period"].value == pytest.approx(0.3, rel=0.02)
    assert hop.drawn is not None
    assert found.to_bytes() == (searched.path / PATTERNS).read_bytes()
    assert hop.longest_s == pytest.approx(hop.length_s / 4)


def test_the_same_run_gives_the_same_bytes(searched: RunFolder) -> None:
    again = search_run(searched.path, "ci")
    assert again is not None
    assert again.to_bytes() == (searched.path / PATTERNS).read_bytes()
    assert patterns_differ(searched.path, searched.manifest) == []


def test_the_profile_bounds_the_cost(searched: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    assert search_run(searched.path, "quick") is None
    monkeypatch.setitem(kept.SERIES_MAX, "ci", 2)
    found = search_run(searched.path, "ci")
    assert found is not None
    assert [each.name for each in found.series] == ["whole", "hop 1"]
    assert {each.why for each in found.left_out} == {"profile ci takes 2 series"}
    assert len(found.left_out) == 6


def test_the_page_shows_the_series_with_its_pattern(searched: RunFolder) -> None:
    page = page_with(searched.path, "control-loops")
    words = words_of(page)
    assert "Patterns over time" in words
    assert "Values rise by 5" in words
    assert "and jump back each 300 ms" in words
    assert "Left out: 1 (all values are equal" in words
    assert "4 (profile ci takes 3 series). python -m reports patterns searches all." in words
    assert "3 series were searched for patterns" in words
    assert page.count('id="control_loops-pattern-0-title"') == 1
    assert page.index('id="control-loops"') < page.index("Patterns over time") < page.index('id="attempts"')


def test_a_verdict_is_what_it_was_without_them(searched: RunFolder, tmp_path: Path) -> None:
    without = _made(tmp_path)
    assert "Patterns over time" not in "".join(render_pages(without.path).values())
    one, other = (outcome_of(each, finalising=True) for each in (searched, without))
    assert (one.outcome, one.counts, one.reasons) == (other.outcome, other.counts, other.reasons)


def _copied(run: RunFolder, folder: Path) -> RunFolder:
    shutil.copytree(run.path, folder / run.path.name)
    return RunFolder.open(folder / run.path.name)


def test_a_changed_pattern_is_found_by_verify(searched: RunFolder, tmp_path: Path) -> None:
    run = _copied(searched, tmp_path)

    def larger(data: Any) -> None:
        [hop] = [each for each in data["series"] if each["name"] == "hop 2"]
        hop["findings"][0]["parameters"]["period"]["value"] *= 1.1

    _changed(run, larger)
    [said] = patterns_differ(run.path, run.manifest)
    assert said.endswith(f"{TARGET}: hop 2: not what the data of the run gives")
    _changed(run, _last_left_out)
    assert (
        f"{PATTERNS}: control_loops/{TARGET}: hop 2: not what the data of the run gives"
        in patterns_differ(run.path, run.manifest)
    )
    shutil.copyfile(searched.path / PATTERNS, run.path / PATTERNS)
    _changed(run, lambda data: data.update(series_max=9, series=[*data["series"], data["series"][0]]))
    said = patterns_differ(run.path, run.manifest)
    assert [each.split(": ")[1] for each in said] == ["a series comes twice", "series_max"]
    (run.path / PATTERNS).unlink()
    assert patterns_differ(run.path, run.manifest) == []  # a run of before, or of `quick`


def test_verify_searches_again_where_the_pages_were_made_here(
    searched: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What else `verify` finds of evidence that is made up counts for nothing here."""
    run = _copied(searched, tmp_path)
    _changed(run, _last_left_out)
    write_sums(run.path)
    by = ""

    def nothing(_run: Path) -> RejudgeResult:
        return RejudgeResult((), (), 0, 0)

    def compared(_run: Path) -> tuple[list[str], str]:
        return [], by

    monkeypatch.setattr("reports.__main__.rejudge", nothing)
    monkeypatch.setattr("reports.__main__.pages_differ", compared)
    assert main(["verify", str(run.path)]) == 1
    assert "hop 2: not what the data of the run gives" in capsys.readouterr().out
    by = "pages not compared: made by another commit"
    assert main(["verify", str(run.path)]) == 0


def _other_schema(data: Any) -> None:
    data["schema"] = "benchwright.patterns/2"


def _other_kind(data: Any) -> None:
    for each in data["series"]:
        for finding in each["findings"]:
            finding["kind"] = "x"


def _a_time_less(data: Any) -> None:
    for each in data["series"]:
        if "drawn" in each:
            each["drawn"]["times_s"].pop()


def _no_plot(data: Any) -> None:
    for each in data["series"]:
        each.pop("drawn", None)


def _a_huge_value(data: Any) -> None:
    for each in data["series"]:
        if "drawn" in each:
            each["drawn"]["values"][:2] = 1e308, -1e308


def _an_impossible_chance(data: Any) -> None:
    for each in data["series"]:
        for finding in each["findings"]:
            finding["false_alarms"] = -1.0


def _last_left_out(data: Any) -> None:
    data["series"].pop()


@pytest.mark.parametrize(
    "change", [_other_schema, _other_kind, _a_time_less, _no_plot, _a_huge_value, _an_impossible_chance]
)
def test_a_damaged_file_is_said_and_shows_nothing(
    searched: RunFolder, tmp_path: Path, change: Callable[[Any], None]
) -> None:
    run = _copied(searched, tmp_path)
    _changed(run, change)
    with pytest.raises(RecordError, match=r"found\.json"):
        read_patterns(run.path)
    assert "Patterns of this run cannot be read: found.json" in words_of(page_with(run.path, "control-loops"))


def test_evidence_that_cannot_be_read_is_left_out_and_fails_nothing(tmp_path: Path) -> None:
    run = _made(tmp_path)
    write_sample_ring(run.evidence_folder(FOLDER, TARGET, "under-network"), count=60)
    (run.path / "evidence" / FOLDER / TARGET / RING_FILE).write_text("{}")
    assert keep_patterns(run.path, "ci") == ""
    found = read_patterns(run.path)
    assert found is not None
    assert found.series == ()
    why = {each.why for each in found.left_out}
    assert "fewer than 200 values" in why
    assert "(fewer than 200 values)" in (words := words_of(page_with(run.path, "control-loops")))
    assert "searches all" not in words
    assert any(RING_FILE in each for each in why)


def test_whatever_goes_wrong_is_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = _made(tmp_path)

    def broken(_run: Path) -> None:
        raise RuntimeError("no memory")

    monkeypatch.setattr(kept, "latencies_of_run", broken)
    assert keep_patterns(run.path, "ci") == "RuntimeError: no memory"
    assert read_patterns(run.path) is None
