# SPDX-License-Identifier: Apache-2.0
"""Keys and certificates for tests of signatures, made anew each time; none of them is worth anything."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import NameOID

BEGIN = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
END = datetime.datetime(2099, 1, 1, tzinfo=datetime.UTC)


@dataclass(frozen=True)
class Person:
    """Files of one signer: PKCS#12 with the key, the key in PEM, its certificate, that of its issuer."""

    p12: Path
    key: Path
    certificate: Path
    issuer: Path


def make_person(
    folder: Path,
    name: str,
    phrase: bytes,
    purpose: x509.ObjectIdentifier | None = None,
    end: datetime.datetime = END,
    is_rsa: bool = False,
) -> Person:
    """Make a signer with a key of her own, whose certificate an authority of her own has issued.

    Args:
        folder: Made for the files.
        name: Of the signer.
        phrase: Pass phrase of the PKCS#12.
        purpose: What the certificate is for; None: it does not say.
        end: Until when it holds.
        is_rsa: Whether the key is RSA's, else of an elliptic curve.
    """
    folder.mkdir()
    authority_key = ec.generate_private_key(ec.SECP256R1())
    key = rsa.generate_private_key(65537, 2048) if is_rsa else ec.generate_private_key(ec.SECP256R1())
    authority = _certificate(f"Authority of {name}", authority_key, None, authority_key)
    certificate = _certificate(name, key, authority, authority_key, purpose, end)
    files = Person(*(folder / file for file in ("key.p12", "key.pem", "certificate.pem", "issuer.pem")))
    locked = BestAvailableEncryption(phrase)
    files.p12.write_bytes(
        pkcs12.serialize_key_and_certificates(name.encode(), key, certificate, [authority], locked)
    )
    files.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    files.certificate.write_bytes(certificate.public_bytes(Encoding.PEM))
    files.issuer.write_bytes(authority.public_bytes(Encoding.PEM))
    return files


def _certificate(
    name: str,
    key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey,
    issuer: x509.Certificate | None,
    issuer_key: ec.EllipticCurvePrivateKey,
    purpose: x509.ObjectIdentifier | None = None,
    end: datetime.datetime = END,
) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    other = ("key_encipherment", "data_encipherment", "key_agreement")
    usage = dict.fromkeys((*other, "crl_sign", "encipher_only", "decipher_only"), False)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(BEGIN)
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(
            x509.KeyUsage(
                digital_signature=True, content_commitment=True, key_cert_sign=issuer is None, **usage
            ),
            critical=True,
        )
    )
    if purpose is not None:
        builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=True)
    return builder.sign(issuer_key, hashes.SHA256())
