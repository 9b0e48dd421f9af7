# SPDX-License-Identifier: Apache-2.0
"""Digital signatures on a dossier: PAdES at level B-B, with the user's own key.

With a time stamp server (RFC 3161) it is level B-T; without one the time of a signature is what the signer's
machine said, and no proof. A signature is added behind the bytes of the PDF, which stay as they are: the
dossier can still be made again and compared. Several persons may sign, one after the other.

A signature is a field of a form, and a field may be seen: what is laid over a page would be signed with it.
So fields other than signatures, and signatures that take room on a page, are refused. So is any change of
the metadata (XMP, /Info): a reader shows the title on its window.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

from reports.dossier.certificate import judge, no_signer
from reports.dossier.pdf import PdfError

PASSPHRASE = "BENCHWRIGHT_KEY_PASSPHRASE"  # noqa: S105 - the variable's name
FIELD = "Signature"
STAMP_S = 20.0
"""How long a time stamp server may take."""

_keys: Any = import_module("pyhanko.keys")
_signers: Any = import_module("pyhanko.sign.signers")
_fields: Any = import_module("pyhanko.sign.fields")
_validation: Any = import_module("pyhanko.sign.validation")
_diff: Any = import_module("pyhanko.sign.diff_analysis")
_generic: Any = import_module("pyhanko.pdf_utils.generic")
_reader: Any = import_module("pyhanko.pdf_utils.reader")
_writer: Any = import_module("pyhanko.pdf_utils.incremental_writer")
_certvalidator: Any = import_module("pyhanko_certvalidator")
_stamps: Any = import_module("pyhanko.sign.timestamps.requests_client")


class _KeepsMetadata(_writer.IncrementalPdfFileWriter):
    """Add a revision to a PDF whose metadata stay as they are, time of change and producer among them."""

    def _update_meta(self) -> None:
        """Leave XMP and /Info alone."""


@dataclass(frozen=True, slots=True)
class Signature:
    """What a signature says, and what is wrong with it.

    Attributes:
        signer: Subject of the certificate.
        certificate_sha256: Its fingerprint, to compare with what the signer has handed over.
        time: When it was made, as a time stamp that is trusted says, else the signer's machine; empty: nobody
            says.
        trusted: Whether it leads to a certificate that is trusted, as of that time; None: not asked.
        problems: What speaks against it; empty: nothing.
        remarks: What a reader has to know of it, though it holds.
    """

    signer: str
    certificate_sha256: str
    time: str
    trusted: bool | None
    problems: tuple[str, ...]
    remarks: tuple[str, ...] = ()


def passphrase(file: Path | None, environment: Mapping[str, str] = os.environ) -> bytes | None:
    """Return the pass phrase of a key: the first line of a file, else of the environment, else None.

    Raises:
        PdfError: The file cannot be read.
    """
    if file is None:
        found = environment.get(PASSPHRASE)
        return found.encode() if found is not None else None
    try:
        return file.read_bytes().split(b"\n", 1)[0].rstrip(b"\r")
    except OSError as error:
        raise PdfError(f"{file}: {error.strerror}") from error


def load_signer(key: Path, certificate: Path | None, phrase: bytes | None) -> Any:
    """Return who signs, with the private key and its certificates.

    Args:
        key: PKCS#12 with key and certificate, or the key in PEM.
        certificate: In PEM, those of its issuers behind it, for a key in PEM; None: in the key's file.
        phrase: Pass phrase of the key; None: it has none.

    Raises:
        PdfError: A file cannot be read, is none of these, or the pass phrase is wrong.
    """
    try:
        data = key.read_bytes()
        if b"-----BEGIN" not in data:
            return _signers.SimpleSigner.load_pkcs12_data(data, (), phrase)
        private = _keys.load_private_key_from_pemder_data(data, phrase)
        chain = list(_keys.load_certs_from_pemder_data((certificate or key).read_bytes()))
    except OSError as error:
        raise PdfError(f"{error.filename}: {error.strerror}") from error
    except (ValueError, TypeError) as error:
        raise PdfError(
            f"{key}: {error}; need PKCS#12 or PEM, its pass phrase in {PASSPHRASE} or in a file"
        ) from error
    if not chain:
        raise PdfError(f"{certificate or key}: holds no certificate")
    store = _certvalidator.registry.SimpleCertificateStore()
    store.register_multiple(chain[1:])
    return _signers.SimpleSigner(signing_cert=chain[0], signing_key=private, cert_registry=store)


def sign(pdf: bytes, signer: Any, reason: str, stamp_server: str = "") -> bytes:
    """Return a dossier with one more signature behind its bytes.

    Args:
        pdf: The dossier.
        signer: Of `load_signer`.
        reason: Such as `approved`.
        stamp_server: URL of a time stamp server (RFC 3161); empty: the signer's machine says when it was.

    Raises:
        PdfError: The certificate may not sign, something was added to the file, or the server gave no stamp.
    """
    if refused := no_signer(signer.signing_cert):
        raise PdfError(f"the dossier cannot be signed: {refused}")
    stamper = _stamps.RequestsHTTPTimeStamper(stamp_server, timeout=STAMP_S) if stamp_server else None
    with _silent():
        try:
            reader = _reader.PdfFileReader(BytesIO(pdf))
            added = _additions(reader)
            number = len(reader.embedded_signatures) + 1
            settings = _signers.PdfSignatureMetadata(
                field_name=f"{FIELD}{number}",
                subfilter=_fields.SigSeedSubFilter.PADES,
                md_algorithm="sha256",
                reason=reason or None,
                name=signer.subject_name,
            )
            signed: bytes = _signers.sign_pdf(
                _KeepsMetadata(BytesIO(pdf)), settings, signer=signer, timestamper=stamper
            ).getvalue()
        except Exception as error:  # of the PDF, of the key, of the certificate: pyHanko has no common one
            raise PdfError(f"the dossier cannot be signed: {error}") from error
    if added:
        raise PdfError(f"the dossier cannot be signed: {added[0]}")
    if not signed.startswith(pdf):
        raise PdfError("the dossier cannot be signed: its bytes would change")
    return signed


def check_signatures(pdf: bytes, trust: Sequence[Path] = ()) -> tuple[Signature, ...]:
    """Return all signatures of a dossier, in their order.

    The last one has to cover the whole file, and nothing but signatures that take no room on a page may have
    been added to the PDF as it was written: bytes behind a signature leave it intact and would show something
    else.

    Args:
        pdf: The file.
        trust: Certificates that are trusted, PEM; none: trust is not looked at.

    Raises:
        PdfError: The file is no PDF, or a certificate cannot be read.
    """
    roots = [certificate for path in trust for certificate in _trusted(path)]
    with _silent():
        try:
            reader = _reader.PdfFileReader(BytesIO(pdf))
            embedded: list[Any] = list(reader.embedded_signatures)
            if not embedded:
                return ()
            review = _diff.DEFAULT_DIFF_POLICY.review_file(reader, 0)
            added = getattr(review, "modification_level", None)
            spoilt = _additions(reader)
            if added is None or added > _diff.ModificationLevel.FORM_FILLING:
                spoilt.append("the file was changed otherwise than by signatures since it was written")
            return tuple(_signature(one, roots, one is embedded[-1], spoilt) for one in embedded)
        except Exception as error:  # whatever a damaged file makes the reader stumble over
            raise PdfError(f"the signatures cannot be read: {error}") from error


def _additions(reader: Any) -> list[str]:
    """Return what was added to a PDF besides signatures that cannot be seen."""
    found: list[str] = []
    signatures, revisions = len(reader.embedded_signatures), reader.xrefs.total_revisions
    if revisions > 1 + signatures:
        found.append(f"{revisions - 1 - signatures} changes of the file are without a signature")
    first = _metadata(reader, 0)
    for which, said in first.items():
        if any(_metadata(reader, revision)[which] != said for revision in range(1, revisions)):
            found.append(f"its metadata ({which}) was changed since it was written")
    fields = list(_entry(_entry(reader.root, "/AcroForm", {}), "/Fields", ()))
    while fields:
        field: Any = fields.pop().get_object()
        fields += _entry(field, "/Kids", ())
        name = _entry(field, "/T", "?")
        left, bottom, right, top = (float(each) for each in _entry(field, "/Rect", (0, 0, 0, 0)))
        if _entry(field, "/FT", "") != "/Sig" or "/V" not in field:
            found.append(f"field {name} of its form is no signature")
        elif left != right and bottom != top:
            found.append(f"field {name} of its form can be seen, over what the page says")
    return found


def _metadata(reader: Any, revision: int) -> dict[str, object]:
    """Return what readers show of a PDF beside its pages, title and subject among it, as of a revision."""

    def of(holder: Any, key: str) -> Any:
        value: Any = holder.raw_get(key) if key in holder else None
        is_reference: bool = isinstance(value, _generic.IndirectObject)
        return reader.get_object(value.reference, revision=revision) if is_reference else value

    trailer = reader.get_historical_resolver(revision).trailer_view
    info, xmp = of(trailer, "/Info"), of(of(trailer, "/Root"), "/Metadata")
    return {
        "/Info": {str(key): str(of(info, key)) for key in info} if info is not None else None,
        "XMP": xmp.data if xmp is not None else None,
    }


def _entry(found: Any, key: str, default: Any) -> Any:
    """Return an entry of a PDF's dictionary; its `get` does not follow references."""
    return found[key] if key in found else default  # noqa: SIM401


def _signature(one: Any, roots: Sequence[Any], last: bool, spoilt: Sequence[str]) -> Signature:
    found = judge(one, roots)
    status = found.status
    certificate: Any = one.signer_cert
    problems: list[str] = []
    if not status.intact:
        problems.append("what it covers was changed")
    elif not status.valid:
        problems.append("it was not made with the key of its certificate")
    if last and status.coverage != _validation.SignatureCoverageLevel.ENTIRE_FILE:
        problems.append("it does not cover the whole file")
    problems += spoilt
    if refused := no_signer(certificate):
        problems.append(refused)
    if roots and not found.trusted:
        problems.append("its certificate does not lead to one that is trusted")
    by = " (time stamp)" if found.is_proven else ""
    return Signature(
        signer=str(certificate.subject.human_friendly),
        certificate_sha256=str(certificate.sha256.hex()),
        time=f"{found.time.isoformat(timespec='seconds')}{by}" if found.time is not None else "",
        trusted=found.trusted if roots else None,
        problems=tuple(problems),
        remarks=found.remarks,
    )


def _trusted(path: Path) -> list[Any]:
    try:
        return list(_keys.load_certs_from_pemder_data(path.read_bytes()))
    except OSError as error:
        raise PdfError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise PdfError(f"{path}: {error}; need a certificate in PEM") from error


@contextmanager
def _silent() -> Generator[None]:
    """Keep pyHanko from printing what is returned or raised."""
    loggers = [logging.getLogger(name) for name in ("pyhanko", "pyhanko_certvalidator")]
    handler = logging.NullHandler()
    before = [logger.propagate for logger in loggers]
    for logger in loggers:
        logger.addHandler(handler)
        logger.propagate = False
    try:
        yield
    finally:
        for logger, propagate in zip(loggers, before, strict=True):
            logger.removeHandler(handler)
            logger.propagate = propagate
