# SPDX-License-Identifier: Apache-2.0
"""The manifest lists the files of a run: what has come, gone or grown is named without anybody's key."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from reports.__main__ import main
from reports.page.render import PAGE, render_pages, write_page
from reports.page.renewal import renew
from reports.rejudge.listed import KEY, listed_discrepancies
from reports.rejudge.run import rejudge
from reports.run.files import write_file_list
from reports.run.folder import MANIFEST, RunFolder
from reports.run.integrity import SUMS, write_sums
from reports.run.seal import ADVICE, KEY_VARIABLE, SEAL, bench_key, key_file, seal
from tests.reports.sample_run import make_run

RECEIVED = "evidence/daq_replay/attempt-1/recv.ndjson"


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run as it ends, without seal and sums; it stays as it is."""
    run = make_run(tmp_path_factory.mktemp("results"))
    run.update(outcome="pass")
    write_file_list(run)
    write_page(run.path)
    return run.path


@pytest.fixture
def run(tmp_path: Path, ended: Path, monkeypatch: pytest.MonkeyPatch) -> RunFolder:
    """Return a copy of the run, sealed by its bench."""
    monkeypatch.setenv(KEY_VARIABLE, str(tmp_path / "seal.key"))
    folder = RunFolder.open(Path(shutil.copytree(ended, tmp_path / ended.name)))
    seal(folder.path, bench_key(key_file()))
    folder.finalise()
    return folder


def said(run: Path) -> list[str]:
    return list(listed_discrepancies(run, json.loads((run / MANIFEST).read_text())))


def append(path: Path) -> None:
    path.write_text(path.read_text() + "\n")


def test_the_list_has_every_file_and_its_size(run: RunFolder) -> None:
    sizes = run.manifest.file_sizes_bytes
    assert sizes is not None
    present = {path.relative_to(run.path).as_posix() for path in run.path.rglob("*") if path.is_file()}
    assert present - set(sizes) == {MANIFEST, SUMS, SEAL}
    assert sizes.pop(PAGE) is None
    assert all((run.path / name).stat().st_size == size for name, size in sizes.items())
    assert render_pages(run.path)[PAGE] == (run.path / PAGE).read_text(), "which shows the manifest's hash"
    assert said(run.path) == []


def remove(path: Path) -> None:
    path.unlink()


def add(path: Path) -> None:
    path.touch()


@pytest.mark.parametrize(
    ("change", "name", "named"),
    [
        (remove, RECEIVED, "missing; run.json lists it"),
        (remove, PAGE, "missing; run.json lists it"),
        (add, "evidence/more", "run.json does not list it"),
        (add, "qualification-x.html", "run.json does not list it"),
        (append, RECEIVED, "has "),
    ],
)
def test_what_has_come_gone_or_grown_is_named(
    run: RunFolder, change: Callable[[Path], None], name: str, named: str
) -> None:
    """Although it is sealed anew by another key."""
    change(run.path / name)
    seal(run.path, bench_key(run.path.parent / "stranger.key"))
    (run.path / SUMS).unlink()
    write_sums(run.path)
    (found,) = said(run.path)
    assert found.startswith(f"{name}: {named}")
    assert found in rejudge(run.path).problems


def test_pages_and_advice_that_the_bench_makes_anew_are_no_change(run: RunFolder) -> None:
    assert renew(run.path, {ADVICE: b"{}"})
    assert said(run.path) == []
    (run.path / PAGE).unlink()
    assert said(run.path) == [f"{PAGE}: missing; run.json lists it"]


def test_a_killed_run_that_is_finished_has_its_list(tmp_path: Path, ended: Path) -> None:
    """Whatever list a killed end has left."""
    killed = Path(shutil.copytree(ended, tmp_path / ended.name))
    append(killed / RECEIVED)
    (killed / "evidence" / "core.txt").write_text("words of the kernel\n")
    assert said(killed) != []
    assert main(["finish", str(killed)]) == 0
    assert said(killed) == []
    assert "evidence/core.txt" in (RunFolder.open(killed).manifest.file_sizes_bytes or {})


def test_a_run_of_before_has_no_list_and_verify_says_so(
    run: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = json.loads((run.path / MANIFEST).read_text())
    del manifest[KEY], manifest["outcome"]
    (run.path / MANIFEST).write_text(json.dumps(manifest))
    write_page(run.path)  # which shows the manifest's hash
    seal(run.path, bench_key(key_file()))
    (run.path / SUMS).unlink()
    write_sums(run.path)
    (run.path / "evidence/more").touch()
    assert said(run.path) == []
    (run.path / "evidence/more").unlink()
    assert main(["verify", str(run.path)]) == 0
    assert "its files are not listed" in capsys.readouterr().out
