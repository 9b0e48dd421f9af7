# SPDX-License-Identifier: Apache-2.0
"""Whether the certificate of a signature may sign, and leads to one that is trusted, as of when it signed.

RFC 5280, 4.2.1.3 and 4.2.1.12 say what a certificate is for; RFC 9336 has the purpose of signing documents.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

_validation: Any = import_module("pyhanko.sign.validation")
_certvalidator: Any = import_module("pyhanko_certvalidator")

SIGNING_USES = {"digital_signature", "non_repudiation"}
DOCUMENT_PURPOSES = {
    "any_extended_key_usage",
    "email_protection",
    "microsoft_document_signing",
    "1.3.6.1.5.5.7.3.36",  # documentSigning, RFC 9336
    "1.2.840.113583.1.1.5",  # Adobe's
}
"""What a certificate is for that signs documents; many authorities say `client_auth` of persons instead."""


@dataclass(frozen=True, slots=True)
class CertificateStatus:
    """What is known of a signature's certificate.

    Attributes:
        status: pyHanko's, of the signature as of `moment`.
        trusted: Whether the certificate led to one that is trusted, at that time.
        time: When the signature was made, as well as it is known; None: nobody says.
        is_proven: Whether a time stamp that is trusted says so; else the signer's machine did.
        remarks: What a reader has to know of a signature that holds.
    """

    status: Any
    trusted: bool
    time: datetime.datetime | None
    is_proven: bool
    remarks: tuple[str, ...]


def no_signer(certificate: Any) -> str:
    """Return why a certificate may not sign a document; empty: it may."""
    uses: Any = certificate.key_usage_value
    if uses is not None and not SIGNING_USES & uses.native:
        return "its certificate is not one for signatures"
    purposes: Any = certificate.extended_key_usage_value
    if purposes is None or DOCUMENT_PURPOSES & set(purposes.native):
        return ""
    found = set(purposes.native)
    if "server_auth" in found:
        return "its certificate is that of a TLS server, not of a signer"
    return "" if "client_auth" in found else f"its certificate is for {', '.join(sorted(found))} alone"


def judge(one: Any, roots: Sequence[Any], now: datetime.datetime | None = None) -> CertificateStatus:
    """Validate a signature as of the time at which it was made.

    A certificate expires; what was signed before stays signed. The time is that of a time stamp (RFC 3161)
    which leads to a trusted certificate itself, else what the signer's machine said.

    Args:
        one: pyHanko's embedded signature.
        roots: Certificates that are trusted.
        now: The time of judging.
    """
    now = now or datetime.datetime.now(datetime.UTC)
    stamped = _stamped(one, roots, now)
    moment = stamped or one.self_reported_timestamp
    status: Any = _validation.validate_pdf_signature(
        one, _context(roots, moment or now), ts_validation_context=_context(roots, moment or now)
    )
    certificate = one.signer_cert
    remarks: list[str] = []
    if certificate.not_valid_after < now:
        remark = f"its certificate has expired since, on {certificate.not_valid_after.date().isoformat()}"
        if stamped is None:
            remark += "; that it was made before is what the signer's machine said, no time stamp"
        remarks.append(remark)
    return CertificateStatus(status, bool(status.trusted), moment, stamped is not None, tuple(remarks))


def _stamped(one: Any, roots: Sequence[Any], now: datetime.datetime) -> datetime.datetime | None:
    """Return the time of a trusted time stamp; None without one.

    One whose own certificate has expired is judged as of the time that it states: only its authority could
    have made it.
    """
    if not one.signer_info["unsigned_attrs"]:
        return None
    found: Any = _validation.validate_pdf_signature(one, _context(roots, now)).timestamp_validity
    if found is not None and not found.trusted:
        context = _context(roots, found.timestamp)
        found = _validation.validate_pdf_signature(one, context).timestamp_validity
    if found is None or not (found.intact and found.valid and found.trusted):
        return None
    time: datetime.datetime = found.timestamp
    return time


def _context(roots: Sequence[Any], moment: datetime.datetime) -> Any:
    return _certvalidator.ValidationContext(trust_roots=list(roots), allow_fetching=False, moment=moment)
