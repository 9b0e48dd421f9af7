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
from reports.errors import RunFolderError
from reports.rejudge.seal import SEAL, seal_objections, sealed_by
from reports.run.folder import RunFolder
from reports.run.integrity import SUMS, write_sums
from reports.run.seal import KEY_VARIABLE, bench_key, canonical, fingerprint, key_file, seal
from tests.reports.sample_run import make_run


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return a run folder that a key has sealed, and the key's file."""
    folder = tmp_path_factory.mktemp("sealed")
    run, key = make_run(folder / "results"), folder / "seal.key"
    seal(run.path, bench_key(key))
    run.finalise()
    return run.path, key


@pytest.fixture
def sealed(tmp_path: Path, made: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> RunFolder:
    """Return a copy of the run, on the bench that has sealed it."""
    monkeypatch.setenv(KEY_VARIABLE, str(made[1]))
    shutil.copytree(made[0], tmp_path / "run")
    return RunFolder.open(tmp_path / "run")


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
    assert set(seal_objections(sealed.path)) == {
        f"{name}: was there when the run was sealed",
        "evidence/more.txt: was not there when the run was sealed",
    }


def test_pages_and_advice_may_be_made_anew(sealed: RunFolder) -> None:
    (sealed.path / "qualification.html").write_text("anew")
    (sealed.path / "qualification-windows.html").write_text("anew")
    (sealed.path / "evidence" / "history").mkdir()
    (sealed.path / "evidence" / "history" / "advice.json").write_text("{}")
    assert list(seal_objections(sealed.path)) == []


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
        said = list(seal_objections(sealed.path))
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
