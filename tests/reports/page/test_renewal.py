# SPDX-License-Identifier: Apache-2.0
"""A finalised run folder gets its advice: nothing else changes, and a kill at any instant can be fixed."""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path

import pytest

from reports.__main__ import main
from reports.durable import replace_file
from reports.errors import ReportError
from reports.history.advice import ADVICE
from reports.page import renewal
from reports.page.render import PAGE, render, render_pages, write_page
from reports.page.renewal import holds, renew
from reports.run.integrity import SUMS, changed_files, read_sums
from tests.dashboards.runs import make_run, record
from tests.reports.sample_advice import advice_of


class Kill(BaseException):
    """Stands for SIGKILL: nothing is cleaned up."""


@pytest.fixture(scope="module")
def finalised(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a finalised run folder, which stays as it is."""
    folder = make_run(tmp_path_factory.mktemp("results"), [record()])
    folder.close()
    write_page(folder.path)
    folder.finalise()
    return folder.path


@pytest.fixture
def run(tmp_path: Path, finalised: Path) -> Path:
    """Return a copy of the finalised run folder."""
    return shutil.copytree(finalised, tmp_path / finalised.name)


def added(run: Path, **changes: object) -> dict[str, bytes]:
    return {ADVICE: advice_of(run, **changes).to_bytes()}


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file of a folder."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_advice_joins_a_finalised_run(run: Path) -> None:
    before = read_sums(run)
    assert renew(run, added(run))
    assert changed_files(run) == []
    after = read_sums(run)
    assert after.keys() - before.keys() == {ADVICE}
    assert {name for name in before if before[name] != after[name]} == {PAGE}
    assert (run / PAGE).read_text() == render(run)
    assert holds(run, ADVICE)


def test_the_same_again_writes_nothing(run: Path) -> None:
    renew(run, added(run))
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*")}
    assert not renew(run, added(run))
    assert {path: path.stat().st_mtime_ns for path in run.rglob("*")} == before


def test_a_run_that_is_not_finalised_stays_so(tmp_path: Path) -> None:
    folder = make_run(tmp_path, [record()])
    assert renew(folder.path, added(folder.path))
    assert not folder.finalised
    assert holds(folder.path, ADVICE)
    assert (folder.path / PAGE).read_text() == render(folder.path)


@pytest.mark.parametrize("name", ["run.json", "measurements.jsonl", "evidence/new.txt"])
def test_nothing_is_added_to_a_run_that_has_changed(run: Path, name: str) -> None:
    (run / name).write_bytes((run / name).read_bytes() + b" " if (run / name).exists() else b"x")
    before = contents(run)
    with pytest.raises(ReportError, match=name):
        renew(run, added(run))
    assert contents(run) == before


def test_a_file_that_changes_meanwhile_is_not_blessed(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the lines of the page and the advice are renewed: another file's keep what was finalised."""

    def render_slowly(path: Path, files: dict[str, bytes], *, as_it_is: bool) -> dict[str, str]:
        pages = render_pages(path, files, as_it_is=as_it_is)
        (run / "run.json").write_bytes((run / "run.json").read_bytes() + b" ")
        return pages

    monkeypatch.setattr(renewal, "render_pages", render_slowly)
    renew(run, added(run))
    assert changed_files(run) == ["run.json: changed"]


@pytest.mark.parametrize("again", [False, True], ids=["first", "again"])
def test_a_kill_at_any_instant_is_fixed(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: bool
) -> None:
    def render_at_once(_path: Path, files: dict[str, bytes], *, as_it_is: bool) -> dict[str, str]:
        assert as_it_is
        return {PAGE: str(files[ADVICE])}

    monkeypatch.setattr(renewal, "render_pages", render_at_once)
    if again:
        renew(run, added(run))
    wanted = added(run, history_most=4)
    whole = tmp_path / "whole"
    shutil.copytree(run, whole)
    renew(whole, wanted)
    writes = 3  # advice, page, sums
    for place in range(2 * writes):
        folder = tmp_path / f"killed-{place}" / run.name
        shutil.copytree(run, folder)
        count = 0

        def write(path: Path, data: bytes, place: int = place) -> None:
            nonlocal count
            if count == place // 2:
                if place % 2:  # in the middle of the draft
                    path.with_name(f".{path.name}.{os.getpid()}.new").write_bytes(data[: len(data) // 2])
                raise Kill
            count += 1
            replace_file(path, data)

        with monkeypatch.context() as patch:
            patch.setattr(renewal, "replace_file", write)
            patch.setattr("reports.run.integrity.replace_file", write)
            with pytest.raises(Kill):
                renew(folder, wanted)
        own = {PAGE, ADVICE, SUMS}
        left = changed_files(folder)
        names = {line.split(":")[0] for line in left}
        drafts = {name for name in names if Path(name).name.startswith(".")}
        assert names - drafts <= own
        assert len(drafts) == place % 2
        renew(folder, wanted)
        assert changed_files(folder) == []
        assert contents(folder) == contents(whole)


def test_a_changed_advice_is_found_and_not_rendered_over(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    renew(run, added(run))
    data = (run / ADVICE).read_bytes()
    (run / ADVICE).write_bytes(data.replace(b"15", b"16", 1))
    assert main(["verify", str(run)]) == 1
    assert f"{ADVICE}: changed" in capsys.readouterr().out
    assert main(["render", str(run)]) == 2
    assert not holds(run, ADVICE)


def test_render_keeps_the_page_of_an_advised_run(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    renew(run, added(run))
    sums = (run / SUMS).read_bytes()
    (run / PAGE).unlink()
    assert main(["render", str(run)]) == 0
    assert capsys.readouterr().out.strip() == str(run / PAGE)
    assert (run / SUMS).read_bytes() == sums


def test_no_run_folder(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match="no run folder"):
        renew(tmp_path / "missing", {})


def test_a_folder_that_somebody_holds_is_not_waited_for_without_end(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everybody who can read it can hold its lock."""
    monkeypatch.setattr(renewal, "OTHERS_S", 0.2)
    handle = os.open(run, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        with pytest.raises(ReportError, match=r"another process has held it for 0\.2 s"):
            renew(run)
    finally:
        os.close(handle)
