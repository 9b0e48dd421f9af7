# SPDX-License-Identifier: Apache-2.0
"""`verify` of a dossier as PDF: its pages, its data, and what stands behind them.

The dossier is rendered again for the first check alone; the others hold its bytes against what that gave.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from reports.__main__ import main
from reports.dossier import verify
from reports.dossier.model import Dossier
from reports.dossier.signature import load_signer, sign
from reports.dossier.verify import differences
from reports.errors import ReportError
from tests.reports.dossier.keys import Person, make_person
from tests.reports.dossier.sample import record, requirements_text, small_run

PHRASE = b"not in any log"


@dataclass(frozen=True)
class RunAndDossier:
    """A run, and its dossier as it was written."""

    run: Path
    file: Path
    pdf: bytes


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> RunAndDossier:
    folder = tmp_path_factory.mktemp("dossier")
    run = small_run(folder, record(), requirements=requirements_text("DAQ-031")).path
    file = folder / "dossier.pdf"
    assert main(["dossier", str(run), "--output", str(file)]) == 0
    return RunAndDossier(run, file, file.read_bytes())


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Person:
    return make_person(tmp_path_factory.mktemp("keys") / "one", "A. Operator", PHRASE)


@pytest.fixture
def rendered_once(made: RunAndDossier, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give back the bytes that were rendered, as rendering again would."""

    def again(_dossier: Dossier, _runs: list[Path], _output: Path) -> bytes:
        return made.pdf

    monkeypatch.setattr(verify, "rendered", again)


def found_in(tmp_path: Path, made: RunAndDossier, pdf: bytes, *trust: Path) -> list[str]:
    file = tmp_path / "other.pdf"
    file.write_bytes(pdf)
    try:
        return differences(file, [made.run], trust)
    except ReportError as error:
        return [str(error)]


def test_rendered_again_it_is_the_same_file(made: RunAndDossier, capsys: pytest.CaptureFixture[str]):
    assert main(["verify", str(made.file), "--runs", str(made.run)]) == 0
    assert "what its 1 run gives, byte for byte" in capsys.readouterr().out


@pytest.mark.usefixtures("rendered_once")
def test_a_signature_may_stand_behind_it_and_is_named(
    made: RunAndDossier, person: Person, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    signed = sign(made.pdf, load_signer(person.p12, None, PHRASE), "approved")
    (tmp_path / "other.pdf").write_bytes(signed)
    trust = ["--trust", str(person.issuer)]
    assert main(["verify", str(tmp_path / "other.pdf"), "--runs", str(made.run), *trust]) == 0
    said = capsys.readouterr().out
    assert "signed by" in said
    assert "A. Operator" in said
    assert "its certificate is trusted" in said
    assert found_in(tmp_path, made, made.pdf, person.issuer) == ["it is not signed"]


@pytest.mark.usefixtures("rendered_once")
def test_anything_else_behind_it_is_found(made: RunAndDossier, person: Person, tmp_path: Path):
    said = "bytes stand behind those that are rendered from the same data"
    assert said in found_in(tmp_path, made, made.pdf + b"\n")[0]
    signed = sign(made.pdf, load_signer(person.p12, None, PHRASE), "approved")
    assert found_in(tmp_path, made, signed + b"\n%%EOF\n")


@pytest.mark.usefixtures("rendered_once")
def test_an_altered_byte_anywhere_is_found(made: RunAndDossier, tmp_path: Path):
    for place in range(0, len(made.pdf), len(made.pdf) // 16):
        altered = bytearray(made.pdf)
        altered[place] ^= 1
        assert found_in(tmp_path, made, bytes(altered)), place


@pytest.mark.usefixtures("rendered_once")
def test_the_data_of_another_run_are_found(made: RunAndDossier, tmp_path: Path):
    other = small_run(tmp_path, record("fail", "too late"), requirements=requirements_text("DAQ-031")).path
    said = differences(made.file, [other])
    assert said[0].endswith("not named with --runs")
    assert said[1].endswith("is not part of this dossier")
