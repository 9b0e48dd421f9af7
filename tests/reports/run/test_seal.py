# SPDX-License-Identifier: Apache-2.0
"""The seal of a run: it names every file that is not as it was, though every hash was made anew."""

from __future__ import annotations

import base64
import json
import shutil
import stat
import threading
from pathlib import Path

import pytest

from reports.__main__ import main
from reports.errors import ReportError, RunFolderError
from reports.page import compared
from reports.page.render import write_page
from reports.page.renewal import renew
from reports.rejudge.seal import SEAL, seal_discrepancies, sealed_by
from reports.run import seal as seal_module
from reports.run.folder import RunFolder
from reports.run.integrity import SUMS, write_sums
from reports.run.seal import (
    ADVICE,
    KEY_VARIABLE,
    bench_key,
    canonical,
    fingerprint,
    key_file,
    seal,
    seal_renewal,
)
from tests.reports.sample_run import make_run


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return a run folder that a key has sealed, and the key's file."""
    folder = tmp_path_factory.mktemp("sealed")
    run, key = make_run(folder / "results"), folder / "seal.key"
    write_page(run.path)
    seal(run.path, bench_key(key))
    run.finalise()
    return run.path, key


@pytest.fixture
def sealed(tmp_path: Path, made: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> RunFolder:
    """Return a copy of the run, on the bench that has sealed it."""
    monkeypatch.setenv(KEY_VARIABLE, str(made[1]))
    return RunFolder.open(Path(shutil.copytree(made[0], tmp_path / made[0].name)))


def hash_anew(run: RunFolder) -> None:
    (run.path / SUMS).unlink()
    write_sums(run.path)


def test_a_sealed_run_is_verified_and_says_by_whom(
    sealed: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    key = fingerprint(bench_key(key_file()))
    assert main(["verify", "--sealed-by", key.upper(), str(sealed.path)]) == 0
    assert f"sealed by this bench: {key}" in capsys.readouterr().out
    assert main(["key"]) == 0
    assert capsys.readouterr().out == f"{key}\n"


def test_a_value_that_the_folder_says_once_is_named(
    sealed: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = json.loads((sealed.path / "run.json").read_text())
    manifest["host"]["note"] = "another"
    (sealed.path / "run.json").write_text(json.dumps(manifest, indent=2) + "\n")
    hash_anew(sealed)
    assert main(["verify", str(sealed.path)]) == 1
    assert "run.json: not as it was when the run was sealed" in capsys.readouterr().out


def test_files_that_have_come_and_gone_are_named(sealed: RunFolder) -> None:
    gone = next(path for path in sorted((sealed.path / "evidence").rglob("*")) if path.is_file())
    gone.unlink()
    (sealed.path / "evidence" / "more.txt").write_text("more\n")
    name = gone.relative_to(sealed.path).as_posix()
    assert set(seal_discrepancies(sealed.path)) == {
        f"{name}: was there when the run was sealed",
        "evidence/more.txt: was not there when the run was sealed",
    }


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("qualification.html", "not as it was when the run was sealed"),
        ("qualification-windows.html", "was not there when the run was sealed"),
        ("qualification-x/any.html", "was not there when the run was sealed"),
        ("evidence/history/advice.json", "was not there when the run was sealed"),
        ("evidence/history/more/any.txt", "was not there when the run was sealed"),
    ],
)
def test_pages_are_sealed_and_the_set_of_files_is_exact(sealed: RunFolder, name: str, said: str) -> None:
    (sealed.path / name).parent.mkdir(parents=True, exist_ok=True)
    (sealed.path / name).write_text("anew")
    assert list(seal_discrepancies(sealed.path)) == [f"{name}: {said}"]


def test_a_page_that_was_removed_is_named(sealed: RunFolder) -> None:
    (sealed.path / "qualification.html").unlink()
    assert list(seal_discrepancies(sealed.path)) == ["qualification.html: was there when the run was sealed"]


def sealed_as_before(run: RunFolder) -> None:
    """Seal a run as versions did whose seals had no pages."""
    key = bench_key(key_file())
    found = json.loads((run.path / SEAL).read_text())
    for name in ("pages", "made_by", "signature"):
        found.pop(name)
    found["signature"] = base64.b64encode(key.sign(canonical(found))).decode()
    (run.path / SEAL).write_text(json.dumps(found))


def test_a_run_of_before_verifies_and_says_that_its_pages_are_not_compared(
    sealed: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    sealed_as_before(sealed)
    hash_anew(sealed)
    assert main(["verify", str(sealed.path)]) == 0
    said = "pages not compared: what made them is not sealed"
    assert said in capsys.readouterr().out
    for name in ("qualification-x/any.html", "qualification-x.html", "evidence/history/any.txt"):
        (sealed.path / name).parent.mkdir(exist_ok=True)
        (sealed.path / name).write_text("added")
    assert len(list(seal_discrepancies(sealed.path))) == 3


def test_pages_that_the_bench_makes_anew_are_sealed_with_the_advice(sealed: RunFolder) -> None:
    seal_before = (sealed.path / SEAL).read_bytes()
    assert renew(sealed.path, {ADVICE: b"{}"})
    assert (sealed.path / SEAL).read_bytes() == seal_before
    assert list(seal_discrepancies(sealed.path)) == []
    assert main(["verify", str(sealed.path)]) == 0
    assert not renew(sealed.path, {ADVICE: b"{}"})
    (sealed.path / ADVICE).write_text("[]")
    assert list(seal_discrepancies(sealed.path)) == [f"{ADVICE}: not as it was when the run was sealed"]


def test_who_has_not_the_key_makes_no_page_anew(
    sealed: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (sealed.path / SUMS).read_bytes()
    monkeypatch.setenv(KEY_VARIABLE, str(tmp_path / "none.key"))
    with pytest.raises(ReportError, match="--output renders them elsewhere"):
        renew(sealed.path, {ADVICE: b"{}"})
    assert (sealed.path / SUMS).read_bytes() == before
    assert not (tmp_path / "none.key").exists()
    assert not renew(sealed.path)


def test_a_renewal_by_another_key_or_of_another_run_or_of_raw_data_is_named(
    sealed: RunFolder, tmp_path: Path
) -> None:
    seal_renewal(sealed.path, ["qualification.html"], bench_key(tmp_path / "other.key"))
    assert any("renewal.json: sealed by" in each for each in seal_discrepancies(sealed.path))
    seal_renewal(sealed.path, ["run.json"], bench_key(key_file()))
    assert any("run.json: no page and no advice" in each for each in seal_discrepancies(sealed.path))
    seal_renewal(sealed.path, ["qualification.html"], bench_key(key_file()))
    (sealed.path / SEAL).write_text((sealed.path / SEAL).read_text() + "\n")
    assert "renewal.json: is of another seal than this run's" in list(seal_discrepancies(sealed.path))


def test_pages_of_this_installation_are_rendered_again(
    sealed: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Even the bench's own seal does not make a page say other than its data."""
    here: dict[str, str | None] = {"commit": "1" * 40, "jinja2": "3"}
    monkeypatch.setattr(seal_module, "made_by", lambda: here)
    monkeypatch.setattr(compared, "made_by", lambda: here)
    seal(sealed.path, bench_key(key_file()))
    hash_anew(sealed)
    assert main(["verify", str(sealed.path)]) == 0
    assert "pages rendered again: the same bytes" in capsys.readouterr().out
    page = sealed.path / "qualification.html"
    page.write_text(page.read_text().replace("SIMULATED", "ON HARDWARE"))
    seal(sealed.path, bench_key(key_file()))
    hash_anew(sealed)
    assert main(["verify", str(sealed.path)]) == 1
    assert "qualification.html: not what the data of the run gives" in capsys.readouterr().out
    monkeypatch.setattr(compared, "made_by", lambda: {**here, "jinja2": "4"})
    assert main(["verify", str(sealed.path)]) == 0
    said = capsys.readouterr().out
    assert f"pages not compared: made by commit {'1' * 40}, jinja2 3" in said
    monkeypatch.setattr(compared, "made_by", lambda: here)
    renamed = sealed.path.rename(tmp_path / "renamed")
    assert main(["verify", str(renamed)]) == 0
    assert "they name their folder" in capsys.readouterr().out


@pytest.mark.parametrize("part", ["files", "key_sha256", "public_key", "signature", "schema"])
def test_a_changed_seal_is_named(sealed: RunFolder, part: str) -> None:
    found = json.loads((sealed.path / SEAL).read_text())
    if part == "files":
        found["files"]["run.json"] = "0" * 64
    elif part in ("public_key", "signature"):
        data = bytearray(base64.b64decode(found[part]))
        data[3] ^= 1
        found[part] = base64.b64encode(data).decode()
    else:
        found[part] = found[part][:-1] + ("3" if found[part].endswith("2") else "2")
    (sealed.path / SEAL).write_text(json.dumps(found))
    try:
        said = list(seal_discrepancies(sealed.path))
    except ValueError as error:  # the changed bytes are no key at all
        said = [str(error)]
    assert said


def test_a_seal_by_another_key_is_found_by_its_fingerprint_alone(
    sealed: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = sealed_by(sealed.path)
    (sealed.path / SEAL).unlink()
    seal(sealed.path, bench_key(tmp_path / "other.key"))
    hash_anew(sealed)
    assert main(["verify", str(sealed.path)]) == 0
    assert "sealed by another bench; compare its fingerprint" in capsys.readouterr().out
    assert main(["verify", "--sealed-by", own, str(sealed.path)]) == 1
    assert f"{SEAL}: sealed by " in capsys.readouterr().out


def test_a_run_without_seal_says_so(sealed: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    own = sealed_by(sealed.path)
    (sealed.path / SEAL).unlink()
    hash_anew(sealed)
    assert main(["verify", str(sealed.path)]) == 0
    assert "not sealed" in capsys.readouterr().out
    assert main(["verify", "--sealed-by", own, str(sealed.path)]) == 1
    assert f"{SEAL}: missing; the run is not sealed" in capsys.readouterr().out


def test_runs_that_end_at_once_have_one_key(tmp_path: Path) -> None:
    path = tmp_path / "config" / "seal.key"
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(fingerprint(bench_key(path)))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in path.parent.iterdir()] == ["seal.key"]


def test_a_file_that_is_no_key_is_told(tmp_path: Path) -> None:
    path = tmp_path / "seal.key"
    path.write_text("no key\n")
    with pytest.raises(RunFolderError, match=rf"seal\.key: .*; {KEY_VARIABLE} names another file"):
        bench_key(path)


def test_the_key_is_where_the_environment_says(tmp_path: Path) -> None:
    assert key_file({KEY_VARIABLE: "/keys/one"}) == Path("/keys/one")
    assert key_file({"XDG_CONFIG_HOME": str(tmp_path)}) == tmp_path / "benchwright" / "seal.key"
    assert key_file({}) == Path.home() / ".config" / "benchwright" / "seal.key"


def test_what_is_signed_does_not_depend_on_the_order_of_keys() -> None:
    assert canonical({"b": 1, "a": {"d": "ö", "c": 2}}) == '{"a":{"c":2,"d":"ö"},"b":1}'.encode()
