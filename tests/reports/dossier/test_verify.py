# SPDX-License-Identifier: Apache-2.0
"""`verify` finds every changed byte: of a run folder, and of a dossier against the runs that it is of."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from reports.__main__ import main
from reports.dossier.verify import differences
from reports.errors import ReportError, RunFolderError
from reports.run.folder import RunFolder
from reports.run.integrity import SUMS, changed_files, list_files, write_sums
from tests.reports.dossier.sample import DAQ12, finished_run, record, requirements_text, small_run
from tests.reports.sample_run import Disturbance

Said = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """Return a run with what a real one leaves: two attempts, facts, requirements, Robot's files."""
    stalled = Disturbance(path_delay_ns={13: 15_000_000}, stalled=True)
    return finished_run(tmp_path_factory.mktemp("results"), stalled, Disturbance())


def is_changed(folder: Path) -> bool:
    try:
        return bool(changed_files(folder))
    except RunFolderError:
        return True


def test_one_byte_of_every_file_altered_removed_or_added_is_found(run: RunFolder):
    names = [*list_files(run.path), SUMS]
    assert len(names) > 20
    kinds = {Path(name).parts[1] for name in names if name.startswith("evidence/")}
    assert {"daq_replay", "provisioning", "requirements"} <= kinds
    for name in names:
        path = run.path / name
        before = path.read_bytes()
        place = len(before) // 2
        for altered in (
            before[:place] + bytes([(before[place] ^ 1) if before else 1]) + before[place + 1 :],
            before[:-1],
            before + b"\n",
        ):
            if altered != before:
                path.write_bytes(altered)
                assert is_changed(run.path), name
        path.unlink()
        assert is_changed(run.path), name
        path.write_bytes(before)
    for folder in {run.path / Path(name).parent for name in names}:
        added = folder / "added"
        added.touch()
        assert is_changed(run.path), folder
        added.unlink()
    assert not is_changed(run.path)


@pytest.fixture
def copies(tmp_path: Path) -> tuple[Path, Path, Path]:
    """Return two runs, and their dossier as data alone."""
    text = requirements_text("DAQ-031")
    first = small_run(tmp_path / "1", record("fail", "too late"), requirements=text).path
    second = small_run(tmp_path / "2", record(), requirements=text).path
    output = tmp_path / "dossier.json"
    assert main(["dossier", str(first), str(second), "--output", str(output)]) == 0
    return first, second, output


def test_a_dossier_is_what_its_runs_give(copies: tuple[Path, Path, Path], capsys: Said):
    first, second, output = copies
    assert main(["verify", str(output), "--runs", str(second), str(first)]) == 0
    assert "byte for byte" in capsys.readouterr().out


def test_runs_and_dossiers_are_checked_together(copies: tuple[Path, Path, Path], capsys: Said):
    first, second, output = copies
    assert main(["verify", str(first), str(output), "--runs", str(first), str(second)]) == 0
    (first / "run.json").write_text("{}")
    assert main(["verify", str(second), str(first)]) == 1
    assert f"{first}: run.json: changed" in capsys.readouterr().out


def test_the_sums_themselves_are_held_by_the_dossier(copies: tuple[Path, Path, Path]):
    first, second, output = copies
    answer = first / "evidence" / "daq_replay" / "answer.ndjson"
    answer.write_text("{}\n")
    write_sums(first)
    assert not is_changed(first)
    assert differences(output, [first, second]) == [f"{first}: {SUMS}: changed since the dossier was made"]


def test_a_run_that_is_missing_changed_or_another_is_named(copies: tuple[Path, Path, Path], tmp_path: Path):
    first, second, output = copies
    missing = RunFolder.open(second).run_id
    assert differences(output, [first]) == [f"run {missing}: not named with --runs"]
    other = small_run(tmp_path / "3", record()).path
    assert "is not part of this dossier" in differences(output, [first, second, other])[0]
    (first / "evidence" / "added").touch()
    assert differences(output, [first, second]) == [
        f"{first}: evidence/added: not part of the run when it was finalised"
    ]
    (first / SUMS).unlink()
    assert "missing; the run was not finalised" in differences(output, [first, second])[0]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"word": "not accepted"', '"word": "accepted"', "conclusion.word: "),
        ('"status": "fail"', '"status": "pass"', "targets[0].requirements[0].status: "),
        ('"value": 60000000', '"value": 6000000.0', "margin"),
        ('"id": "BD-', '"id": "BE-', "id: "),
        ('"kind": "earlier run"', '"kind": "x"', "deviations[0].kind: "),
    ],
)
def test_a_dossier_that_says_something_else_is_found(
    copies: tuple[Path, Path, Path], old: str, new: str, said: str
):
    first, second, output = copies
    text = output.read_text()
    assert old in text
    output.write_text(text.replace(old, new, 1))
    try:
        found = differences(output, [first, second])
    except ReportError as error:
        found = [str(error)]
    assert said in found[0]


def test_every_byte_of_the_data_matters(copies: tuple[Path, Path, Path]):
    first, second, output = copies
    before = output.read_bytes()
    for place in range(0, len(before), len(before) // 12):
        output.write_bytes(before[:place] + bytes([before[place] ^ 2]) + before[place + 1 :])
        try:
            assert differences(output, [first, second]), place
        except ReportError:
            continue
    output.write_bytes(before + b" ")
    assert differences(output, [first, second]) == [
        "1 bytes stand behind those that are rendered from the same data"
    ]
    output.write_bytes(before[:-1])
    assert "end before the" in differences(output, [first, second])[0]
    output.write_bytes(before)
    assert differences(output, [first, second], [output]) == ["it is not signed"]


def test_what_is_no_dossier_is_bad_input(copies: tuple[Path, Path, Path], tmp_path: Path, capsys: Said):
    first, _second, output = copies
    wrong = tmp_path / "page.html"
    wrong.write_text("<!doctype html>")
    assert main(["verify", str(wrong), "--runs", str(first)]) == 2
    assert "neither a run folder, a PDF nor a dossier's data" in capsys.readouterr().err
    assert main(["verify", str(output)]) == 2
    assert "needs its run folders" in capsys.readouterr().err
    assert main(["verify", str(first), "--runs", str(first)]) == 2
    output.write_text(json.dumps({"schema": "x"}))
    assert main(["verify", str(output), "--runs", str(first)]) == 2
    assert main(["verify", str(tmp_path / "nothing")]) == 2


def no_manifest(run: Path) -> None:
    (run / "run.json").write_text("{}")


def no_xunit(run: Path) -> None:
    (run / "xunit.xml").unlink()


def no_sums(run: Path) -> None:
    (run / SUMS).unlink()


@pytest.mark.parametrize(
    ("damage", "code", "said"),
    [
        (no_manifest, 2, "run.json"),
        (no_xunit, 1, "xunit.xml: missing since the run was finalised"),
        (no_sums, 4, "was not finalised: no dossier"),
        (shutil.rmtree, 2, "no run folder"),
    ],
)
def test_the_exit_code_says_why_there_is_no_dossier(
    run: RunFolder, tmp_path: Path, capsys: Said, damage: Callable[[Path], object], code: int, said: str
):
    copy = tmp_path / run.path.name
    shutil.copytree(run.path, copy)
    damage(copy)
    output = tmp_path / "dossier.json"
    assert main(["dossier", str(copy), "--output", str(output)]) == code
    assert said in capsys.readouterr().err
    assert not output.exists()


def test_the_command_line_says_what_the_dossier_says(run: RunFolder, tmp_path: Path, capsys: Said):
    output = tmp_path / "dossier.json"
    options = ["--requirements", str(DAQ12), "--title", "Hall 7", "--operator", "O", "--date", "2100-01-01"]
    assert main(["dossier", str(run.path), *options, "--output", str(output)]) == 0
    assert "ACCEPTED" in capsys.readouterr().out
    data = json.loads(output.read_text())
    assert (data["title"], data["date"], data["signatories"][0]["name"]) == ("Hall 7", "2100-01-01", "O")
    assert data["requirements_files"][0]["file"] == "daq12.toml"
    wrong = tmp_path / "waivers.toml"
    wrong.write_text("[[waiver]]\n")
    assert main(["dossier", str(run.path), "--waivers", str(wrong), "--output", str(output)]) == 2
    assert "waivers.toml: waivers: must hold schema" in capsys.readouterr().err
    assert main(["dossier", str(run.path), "--waivers", str(tmp_path / "none.toml")]) == 2
    assert "none.toml: No such file" in capsys.readouterr().err
