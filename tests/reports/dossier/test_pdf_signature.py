# SPDX-License-Identifier: Apache-2.0
"""Signatures: whoever signs is named, the bytes before stay, and whatever is added or altered is found."""

from __future__ import annotations

from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from pyhanko.pdf_utils import generic
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter

from reports.__main__ import main
from reports.dossier.pdf import Attachment, PdfError, Properties, extract_attachment, render_pdf
from reports.dossier.signature import PASSPHRASE, check_signatures, load_signer, passphrase, sign
from tests.reports.dossier.keys import Person, make_person

_fields: Any = import_module("pyhanko.sign.fields")
_signers: Any = import_module("pyhanko.sign.signers")

PHRASE = b"not in any log"
PROPERTIES = Properties("BD-1", "Title", "Subject", "", (), "2026-11-22T00:00:00Z")
PAGE = (
    '<!DOCTYPE html><html lang="en"><head><title>t</title></head>'
    '<body style="font-family: DejaVu Sans">x</body></html>'
)


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> tuple[Person, Person]:
    folder = tmp_path_factory.mktemp("keys")
    return make_person(folder / "one", "A. Operator", PHRASE), make_person(
        folder / "two", "B. Reviewer", PHRASE
    )


@pytest.fixture(scope="module")
def plain() -> bytes:
    attached = Attachment("dossier.json", b"{}\n", "application/json", "The data", "Data")
    return render_pdf(PAGE, PROPERTIES, [attached])


@pytest.fixture(scope="module")
def signed(plain: bytes, people: tuple[Person, Person]) -> bytes:
    return sign(plain, load_signer(people[0].p12, None, PHRASE), "approved")


def problems(pdf: bytes, *trust: Path) -> list[str]:
    return [problem for one in check_signatures(pdf, trust) for problem in one.problems]


def test_a_signature_stands_behind_the_bytes_and_names_its_signer(
    plain: bytes, signed: bytes, people: tuple[Person, Person]
):
    assert check_signatures(plain) == ()
    assert signed.startswith(plain)
    (found,) = check_signatures(signed, [people[0].issuer])
    assert "A. Operator" in found.signer
    assert found.trusted
    assert found.problems == ()
    assert extract_attachment(signed, "dossier.json") == b"{}\n"


def test_two_persons_sign_one_after_the_other(signed: bytes, people: tuple[Person, Person]):
    both = sign(signed, load_signer(people[1].key, people[1].certificate, None), "")
    assert both.startswith(signed)
    found = check_signatures(both)
    assert ["A. Operator" in found[0].signer, "B. Reviewer" in found[1].signer] == [True, True]
    assert problems(both) == []


def test_another_authority_is_not_trusted(signed: bytes, people: tuple[Person, Person]):
    assert problems(signed, people[1].issuer) == ["its certificate does not lead to one that is trusted"]
    assert check_signatures(signed)[0].trusted is None


def test_bytes_behind_a_signature_are_found(signed: bytes):
    assert "it does not cover the whole file" in problems(signed + b"\n% and more\n")


def test_an_altered_byte_is_found(plain: bytes, signed: bytes):
    place = signed.index(b"(approved)")
    altered = signed[:place] + b"(Approved)" + signed[place + 10 :]
    assert "what it covers was changed" in problems(altered)
    assert len(altered) == len(signed) > len(plain)


def updated(pdf: bytes) -> bytes:
    """Return a PDF whose title was changed by an update behind its bytes."""
    writer: Any = IncrementalPdfFileWriter(BytesIO(pdf))
    writer.root["/Lang"] = generic.pdf_string("fr")
    writer.update_root()
    out = BytesIO()
    writer.write(out)
    return out.getvalue()


def test_a_change_between_two_signatures_or_before_the_first_is_found(
    plain: bytes, signed: bytes, people: tuple[Person, Person]
):
    signer = load_signer(people[1].p12, None, PHRASE)
    text = "the file was changed otherwise than by signatures since it was written"
    for pdf in (updated(plain), updated(signed)):
        assert text in problems(seen_by(pdf, signer))
        with pytest.raises(PdfError, match="without a signature"):
            sign(pdf, signer, "")


def with_field(pdf: bytes, visible: bool, kind: str = "/Sig") -> bytes:
    """Return a PDF with one more field, empty, over the upper half of its first page."""
    writer: Any = IncrementalPdfFileWriter(BytesIO(pdf))
    _fields.append_signature_field(
        writer, _fields.SigFieldSpec("Cover", box=(0, 400, 600, 800) if visible else None)
    )
    if kind != "/Sig":
        (field,) = [
            each for each in writer.root["/AcroForm"]["/Fields"] if each.get_object()["/T"] == "Cover"
        ]
        field.get_object()["/FT"] = generic.NameObject(kind)
    out = BytesIO()
    writer.write(out)
    return out.getvalue()


def seen_by(pdf: bytes, signer: Any) -> bytes:
    """Sign a PDF as pyHanko does, whatever stands on it."""
    settings = _signers.PdfSignatureMetadata(
        field_name="Signature9", subfilter=_fields.SigSeedSubFilter.PADES
    )
    writer: Any = IncrementalPdfFileWriter(BytesIO(pdf))
    signed: bytes = _signers.sign_pdf(writer, settings, signer=signer).getvalue()
    return signed


def test_a_field_that_is_laid_over_the_cover_is_found(plain: bytes, people: tuple[Person, Person]):
    """ACCEPTED over a refusal, as a field that nobody has signed, or as the place of a signature."""
    signer = load_signer(people[0].p12, None, PHRASE)
    for visible, kind in ((True, "/Sig"), (False, "/Sig"), (True, "/Tx"), (True, "/Btn")):
        spoilt = with_field(plain, visible, kind)
        with pytest.raises(PdfError, match="without a signature"):
            sign(spoilt, signer, "")
        assert any(
            "field Cover of its form is no signature" in each for each in problems(seen_by(spoilt, signer))
        )
    writer: Any = IncrementalPdfFileWriter(BytesIO(plain))
    _fields.append_signature_field(writer, _fields.SigFieldSpec("Cover", box=(0, 400, 600, 800)))
    settings = _signers.PdfSignatureMetadata(field_name="Cover", subfilter=_fields.SigSeedSubFilter.PADES)
    shown: bytes = _signers.sign_pdf(writer, settings, signer=signer).getvalue()
    assert "field Cover of its form can be seen, over what the page says" in problems(shown)


def test_what_was_appended_without_a_signature_is_found(plain: bytes, people: tuple[Person, Person]):
    """Also between two signatures, where the second one covers it."""
    signer = load_signer(people[0].p12, None, PHRASE)
    once = sign(plain, signer, "")
    twice = seen_by(with_field(once, visible=False), signer)
    assert "1 changes of the file are without a signature" in problems(twice)


def test_the_pass_phrase_comes_from_a_file_or_the_environment(tmp_path: Path):
    file = tmp_path / "phrase"
    file.write_bytes(b"first line\r\nsecond")
    assert passphrase(file, {PASSPHRASE: "other"}) == b"first line"
    assert passphrase(None, {PASSPHRASE: "other"}) == b"other"
    assert passphrase(None, {}) is None
    with pytest.raises(PdfError, match="No such file"):
        passphrase(tmp_path / "none", {})


def test_a_wrong_pass_phrase_and_a_file_that_is_no_key_say_what_is_needed(
    people: tuple[Person, Person], tmp_path: Path
):
    with pytest.raises(PdfError, match=PASSPHRASE) as caught:
        load_signer(people[0].p12, None, b"wrong")
    assert "wrong" not in str(caught.value)
    with pytest.raises(PdfError, match=r"need PKCS#12 or PEM"):
        load_signer(people[0].certificate, None, None)
    with pytest.raises(PdfError, match="No such file"):
        load_signer(tmp_path / "none.p12", None, None)


def test_the_command_signs_in_place_and_refuses_a_spoilt_file(
    plain: bytes,
    people: tuple[Person, Person],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.setenv(PASSPHRASE, PHRASE.decode())
    file = tmp_path / "dossier.pdf"
    file.write_bytes(plain)
    assert main(["sign", str(file), "--key", str(people[0].p12), "--reason", "approved"]) == 0
    said = capsys.readouterr()
    assert "A. Operator" in said.out
    assert PHRASE.decode() not in said.out + said.err
    assert file.read_bytes().startswith(plain)
    file.write_bytes(file.read_bytes() + b"% more\n")
    assert main(["sign", str(file), "--key", str(people[1].p12)]) == 2
    assert "an earlier signature does not hold" in capsys.readouterr().err
    file.write_bytes(b"no PDF")
    assert main(["sign", str(file), "--key", str(people[0].p12)]) == 2
    assert "no PDF" in capsys.readouterr().err


def with_metadata(pdf: bytes, kind: str) -> Any:
    """Return the writer of a PDF whose title was changed, in its XMP or its /Info, not yet signed."""
    writer: Any = IncrementalPdfFileWriter(BytesIO(pdf))
    if kind == "xmp":
        stream = writer.root["/Metadata"]
        text = stream.data.replace(b">Title<", b">ACCEPTED on hardware<")
        assert text != stream.data
        changed: Any = generic.StreamObject(dict(stream), stream_data=text)
        for key in ("/Length", "/Filter", "/DecodeParms"):
            changed.pop(key, None)
        writer.root["/Metadata"] = writer.add_object(changed)
        writer.update_root()
    elif kind == "info":
        info = writer.trailer["/Info"]
        info["/Title"] = generic.pdf_string("ACCEPTED on hardware")
        writer.update_container(info)
    else:
        writer.set_info(
            writer.add_object(
                generic.DictionaryObject({"/Title": generic.pdf_string("ACCEPTED on hardware")})
            )
        )
    return writer


@pytest.mark.parametrize("kind", ["xmp", "info", "another info"])
@pytest.mark.parametrize("before", ["plain", "signed"])
def test_metadata_changed_in_the_revision_of_a_signature_is_refused(
    kind: str, before: str, request: pytest.FixtureRequest, people: tuple[Person, Person]
):
    """A reader shows the title on its window: it says what the first writer said, or nothing holds."""
    signer = load_signer(people[1].p12, None, PHRASE)
    settings = _signers.PdfSignatureMetadata(
        field_name="Signature9", subfilter=_fields.SigSeedSubFilter.PADES
    )
    writer = with_metadata(request.getfixturevalue(before), kind)
    spoilt: bytes = _signers.sign_pdf(writer, settings, signer=signer).getvalue()
    which = "XMP" if kind == "xmp" else "/Info"
    assert any(f"its metadata ({which}) was changed" in each for each in problems(spoilt))
    with pytest.raises(PdfError, match="its metadata"):
        sign(spoilt, signer, "")
