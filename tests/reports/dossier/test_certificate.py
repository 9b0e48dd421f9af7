# SPDX-License-Identifier: Apache-2.0
"""Certificates of signatures: judged as of when they signed, by a time stamp server where there is one."""

from __future__ import annotations

import datetime
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib import import_module
from io import BytesIO
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID, ObjectIdentifier
from pyhanko.pdf_utils.reader import PdfFileReader

from reports.__main__ import main
from reports.dossier.certificate import judge
from reports.dossier.pdf import PdfError
from reports.dossier.signature import check_signatures, load_signer, sign
from tests.reports.dossier.keys import Person, make_person
from tests.reports.dossier.test_pdf_signature import PAGE, PHRASE, PROPERTIES, render_pdf

_keys: Any = import_module("pyhanko.keys")
_dummy: Any = import_module("pyhanko.sign.timestamps.dummy_client")
_tsp: Any = import_module("asn1crypto.tsp")

YEAR = datetime.timedelta(days=365)
NOW = datetime.datetime.now(datetime.UTC)
DOCUMENT_SIGNING = ObjectIdentifier("1.3.6.1.5.5.7.3.36")


@pytest.fixture(scope="module")
def plain() -> bytes:
    return render_pdf(PAGE, PROPERTIES, [])


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Person:
    """Make a signer whose certificate ends a month from now."""
    end = NOW + datetime.timedelta(days=30)
    return make_person(tmp_path_factory.mktemp("keys") / "one", "A. Operator", PHRASE, end=end)


@contextmanager
def stamp_server(folder: Path, dead: bool = False) -> Generator[tuple[str, Path]]:
    """Serve time stamps on loopback; give the URL, and the certificate of their issuer."""
    authority = make_person(folder / "tsa", "Stamps", PHRASE, ExtendedKeyUsageOID.TIME_STAMPING, is_rsa=True)
    stamper = _dummy.DummyTimeStamper(
        next(iter(_keys.load_certs_from_pemder_data(authority.certificate.read_bytes()))),
        _keys.load_private_key_from_pemder_data(authority.key.read_bytes(), None),
    )

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if dead:
                self.send_error(503)
                return
            answer = stamper.request_tsa_response(_tsp.TimeStampReq.load(body)).dump()
            self.send_response(200)
            self.send_header("Content-Type", "application/timestamp-reply")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", authority.issuer
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def roots(*files: Path) -> list[Any]:
    return [each for file in files for each in _keys.load_certs_from_pemder_data(file.read_bytes())]


def only(pdf: bytes) -> Any:
    (found,) = PdfFileReader(BytesIO(pdf)).embedded_signatures
    return found


def test_a_signature_outlives_its_certificate(plain: bytes, person: Person) -> None:
    """A month before and a year after the end; that the time is the signer's word is said."""
    signed = only(sign(plain, load_signer(person.p12, None, PHRASE), ""))
    today, later = (judge(signed, roots(person.issuer), NOW + wait) for wait in (0 * YEAR, YEAR))
    assert (today.trusted, today.is_proven, today.remarks) == (True, False, ())
    assert later.trusted
    (remark,) = later.remarks
    assert "has expired since, on " in remark
    assert "what the signer's machine said" in remark


def test_a_certificate_that_had_expired_before_is_not_trusted(plain: bytes, tmp_path: Path) -> None:
    old = make_person(tmp_path / "old", "O. Long Gone", PHRASE, end=NOW - datetime.timedelta(days=1))
    signed = sign(plain, load_signer(old.p12, None, PHRASE), "")
    (found,) = check_signatures(signed, [old.issuer])
    assert not found.trusted
    assert "its certificate does not lead to one that is trusted" in found.problems


def test_a_time_stamp_proves_when_it_was(plain: bytes, person: Person, tmp_path: Path) -> None:
    with stamp_server(tmp_path) as (url, issuer):
        signed = sign(plain, load_signer(person.p12, None, PHRASE), "", url)
    found = judge(only(signed), roots(person.issuer, issuer), NOW + YEAR)
    assert (found.trusted, found.is_proven) == (True, True)
    assert found.time is not None
    assert abs(found.time - NOW) < datetime.timedelta(hours=1)
    assert [remark.partition(",")[0] for remark in found.remarks] == ["its certificate has expired since"]
    assert "machine" not in found.remarks[0]
    unknown = judge(only(signed), roots(person.issuer), NOW + YEAR)
    assert (unknown.trusted, unknown.is_proven) == (True, False)
    (shown,) = check_signatures(signed, [person.issuer, issuer])
    assert shown.problems == ()
    assert shown.time.endswith(" (time stamp)")


def test_a_stamp_server_that_fails_leaves_no_signature(plain: bytes, person: Person, tmp_path: Path) -> None:
    signer = load_signer(person.p12, None, PHRASE)
    with (
        stamp_server(tmp_path, dead=True) as (url, _issuer),
        pytest.raises(PdfError, match="cannot be signed"),
    ):
        sign(plain, signer, "", url)
    with pytest.raises(PdfError, match="cannot be signed"):
        sign(plain, signer, "", "http://127.0.0.1:9/")


@pytest.mark.parametrize(
    ("purpose", "said"),
    [
        (ExtendedKeyUsageOID.SERVER_AUTH, "that of a TLS server"),
        (ExtendedKeyUsageOID.CODE_SIGNING, "for code_signing alone"),
        (ExtendedKeyUsageOID.EMAIL_PROTECTION, ""),
        (ExtendedKeyUsageOID.CLIENT_AUTH, ""),
        (DOCUMENT_SIGNING, ""),
    ],
)
def test_a_certificate_signs_what_it_is_for(plain: bytes, tmp_path: Path, purpose: Any, said: str) -> None:
    holder = make_person(tmp_path / "holder", "H. Older", PHRASE, purpose)
    signer = load_signer(holder.p12, None, PHRASE)
    if not said:
        (found,) = check_signatures(sign(plain, signer, ""), [holder.issuer])
        assert (found.trusted, found.problems) == (True, ())
        return
    with pytest.raises(PdfError, match=said):
        sign(plain, signer, "")


def test_the_command_takes_a_stamp_server(
    plain: bytes, person: Person, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "dossier.pdf"
    file.write_bytes(plain)
    (tmp_path / "phrase").write_bytes(PHRASE)
    with stamp_server(tmp_path) as (url, _issuer):
        argv = ["sign", str(file), "--key", str(person.p12), "--passphrase-file", str(tmp_path / "phrase")]
        assert main([*argv, "--stamp-server", url]) == 0
    assert "A. Operator" in capsys.readouterr().out
    assert only(file.read_bytes()).signer_info["unsigned_attrs"]
