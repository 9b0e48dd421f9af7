# SPDX-License-Identifier: Apache-2.0
"""Nothing is accepted whose runs do not have the seal of a bench that the reader knows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reports.__main__ import main
from reports.dossier.gather import NOTHING_ASKED, gather
from reports.dossier.page import dossier_page
from reports.errors import RunFolderError
from reports.run.benches import read_benches
from reports.run.folder import RunFolder
from reports.run.integrity import SUMS, write_sums
from reports.run.seal import KEY_VARIABLE, bench_key, fingerprint, seal
from tests.reports.dossier.sample import KEY, record, requirements_text, small_run, write_benches

Said = pytest.CaptureFixture[str]
ONE = requirements_text("DAQ-031")
OWN = fingerprint(KEY)
OTHER = "0" * 64
HEAD = '[benches]\nschema = "benchwright.benches/1"\n'
ENTRY = f'[[bench]]\nname = "hall-7"\nfingerprint = "{OWN}"\nsince = 2026-01-01\n'


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return small_run(tmp_path / "results", record(), requirements=ONE)


@pytest.fixture
def no_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, str(tmp_path / "none" / "seal.key"))


def made(run: RunFolder, *options: str) -> dict[str, Any]:
    output = run.path.parent / "dossier.json"
    assert main(["dossier", str(run.path), "--output", str(output), *options]) == 0
    found: dict[str, Any] = json.loads(output.read_text())
    return found


def hash_anew(run: RunFolder) -> None:
    (run.path / SUMS).unlink()
    write_sums(run.path)


@pytest.mark.usefixtures("no_list")
def test_without_a_key_or_a_list_a_dossier_says_unchecked_and_is_not_accepted(run: RunFolder):
    found = made(run)
    assert found["conclusion"]["word"] == "not accepted"
    assert found["conclusion"]["reasons"][0].startswith("seals unchecked")
    assert found["runs"][0]["seal"] == {"fingerprint": OWN, "bench": "", "remark": "unchecked"}
    page = dossier_page(gather([run.path], NOTHING_ASKED), ())
    assert "UNCHECKED" in page.split("Contents")[0]
    assert OWN in page.split("Contents")[0]


def test_the_list_beside_the_key_is_the_default_and_names_the_bench_on_the_cover(run: RunFolder, site: Path):
    assert site.name == "benches.toml"
    found = made(run)
    assert found["conclusion"]["word"] == "accepted"
    assert found["runs"][0]["seal"] == {"fingerprint": OWN, "bench": "bench-1", "remark": ""}


def test_a_key_that_is_named_stands_in_place_of_the_list(run: RunFolder):
    assert made(run, "--sealed-by", OWN.upper())["conclusion"]["word"] == "accepted"
    found = made(run, "--sealed-by", OTHER)
    assert found["conclusion"]["word"] == "not accepted"
    assert "is no key that was named or listed" in found["conclusion"]["reasons"][0]


@pytest.mark.parametrize("command", ["dossier", "verify"])
@pytest.mark.parametrize("value", ["", "abc", "g" * 64])
def test_a_key_that_is_none_is_bad_input(run: RunFolder, command: str, value: str, capsys: Said):
    with pytest.raises(SystemExit) as ended:
        main([command, str(run.path), "--sealed-by", value])
    assert ended.value.code == 2
    assert "need 64 hex digits" in capsys.readouterr().err


def test_a_run_sealed_by_a_fresh_key_or_by_none_is_never_accepted(run: RunFolder, tmp_path: Path):
    seal(run.path, bench_key(tmp_path / "fresh.key"))
    hash_anew(run)
    assert "no key that was named or listed" in made(run)["conclusion"]["reasons"][0]
    (run.path / "seal.json").unlink()
    hash_anew(run)
    assert "the run is not sealed" in made(run)["conclusion"]["reasons"][0]


def test_a_seal_that_does_not_fit_is_never_accepted(run: RunFolder):
    (run.path / "evidence" / "added").touch()
    hash_anew(run)
    assert "was not there when the run was sealed" in made(run)["conclusion"]["reasons"][0]


@pytest.mark.parametrize(
    ("name", "since", "until"),
    [("hall-7", "2026-01-01", ""), ("bench-1", "2100-01-01", ""), ("bench-1", "2020-01-01", "2020-12-31")],
)
def test_a_bench_counts_under_its_name_and_on_its_days(
    run: RunFolder, tmp_path: Path, name: str, since: str, until: str, capsys: Said
):
    file = write_benches(tmp_path / "list.toml", name, since=since, until=until)
    found = made(run, "--benches", str(file))
    assert found["conclusion"]["word"] == "not accepted"
    assert f"the list allows: {name}, {since} to {until or 'now'}" in found["conclusion"]["reasons"][0]
    capsys.readouterr()
    assert main(["verify", str(run.path), "--benches", str(file)]) == 1
    assert "the list allows" in capsys.readouterr().out


def test_verify_of_a_run_names_the_bench_of_the_list(run: RunFolder, tmp_path: Path, capsys: Said):
    assert main(["verify", str(run.path)]) == 0
    assert "sealed by bench-1, of the list of benches" in capsys.readouterr().out
    seal(run.path, bench_key(tmp_path / "fresh.key"))
    hash_anew(run)
    assert main(["verify", str(run.path)]) == 1
    assert main(["verify", str(run.path), "--benches", str(tmp_path / "none.toml")]) == 2
    assert "none.toml: No such file" in capsys.readouterr().err


def test_a_dossier_is_held_against_the_readers_list_not_its_own(
    run: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said
):
    """A forger seals by a key of his own and lists it himself: the same bytes, and nothing to rely on."""
    made(run)
    file = str(run.path.parent / "dossier.json")
    runs = ["--runs", str(run.path)]
    assert main(["verify", file, *runs]) == 0
    assert main(["verify", file, *runs, "--sealed-by", OWN]) == 0
    capsys.readouterr()
    assert main(["verify", file, *runs, "--sealed-by", OTHER]) == 1
    assert "is no key that was named or listed" in capsys.readouterr().out
    monkeypatch.setenv(KEY_VARIABLE, str(tmp_path / "none" / "seal.key"))
    assert main(["verify", file, *runs]) == 2
    said = capsys.readouterr()
    assert "seals: unchecked" in said.out
    assert "--sealed-by FINGERPRINT" in said.err


@pytest.mark.usefixtures("no_list")
def test_a_dossier_that_is_not_accepted_is_compared_without_a_key(run: RunFolder, capsys: Said):
    made(run)
    assert main(["verify", str(run.path.parent / "dossier.json"), "--runs", str(run.path)]) == 0
    assert "seals: unchecked" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("bench", "list.toml: "),
        ("", 'list.toml: benches: must hold schema = "benchwright.benches/1"'),
        (HEAD, "list.toml: bench: must be an array"),
        (f"{HEAD}[more]\n", "list.toml: more: unknown table (allowed: benches, bench)"),
        (
            f"{HEAD}{ENTRY}key = 1\n",
            "list.toml: bench[1].key: unknown key (allowed: name, fingerprint, since, until)",
        ),
        (
            HEAD + ENTRY.replace(OWN, "ab"),
            "list.toml: bench[1].fingerprint: 'ab' is no fingerprint; need 64 hex",
        ),
        (HEAD + ENTRY.replace("hall-7", " "), "list.toml: bench[1].name: must be a text that is not empty"),
        (HEAD + ENTRY.replace("2026-01-01", '"now"'), "list.toml: bench[1].since: must be a date YYYY-MM-DD"),
        (f"{HEAD}{ENTRY}until = 2025-01-01\n", "bench[1].until: 2025-01-01 is before since = 2026-01-01"),
        (HEAD + ENTRY.replace("since = 2026-01-01\n", ""), "list.toml: bench[1].since: missing key"),
    ],
)
def test_a_list_that_is_wrong_names_file_bench_and_field(text: str, said: str):
    with pytest.raises(RunFolderError) as caught:
        read_benches(text.encode(), "list.toml")
    assert said in str(caught.value)
