# SPDX-License-Identifier: Apache-2.0
"""The command line `python -m reports sign`: put a signature behind a dossier."""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path
from typing import Any

from reports.dossier.errors import DossierError
from reports.durable import replace_file

PDF_MAGIC = b"%PDF-"


def add_sign(commands: Any) -> None:
    """Add the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "sign", help="sign a dossier with a key of yours (PAdES; the pass phrase is never an argument)"
    )
    parser.add_argument("dossier", type=Path, help="PDF of a dossier; signatures that it has stay valid")
    parser.add_argument("--key", type=Path, required=True, metavar="FILE", help="PKCS#12, or a key in PEM")
    parser.add_argument(
        "--certificate", type=Path, metavar="FILE", help="certificate of a PEM key, its issuers behind it"
    )
    parser.add_argument(
        "--passphrase-file",
        type=Path,
        metavar="FILE",
        help="its first line is the key's pass phrase; else BENCHWRIGHT_KEY_PASSPHRASE is",
    )
    parser.add_argument("--reason", default="", help="such as: approved")
    parser.add_argument(
        "--stamp-server",
        default="",
        metavar="URL",
        help="time stamp server of the site (RFC 3161): proves when it was signed, after the key's end too",
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="else the dossier itself")
    parser.set_defaults(action=sign_dossier)


def sign_dossier(options: argparse.Namespace) -> int:
    """Sign the dossier that the command line names, and say who has signed it by now."""
    signature: Any = import_module("reports.dossier.signature")  # loads what encrypts: a second
    path: Path = options.dossier
    try:
        pdf = path.read_bytes()
    except OSError as error:
        raise DossierError(f"{path}: {error.strerror}") from error
    if not pdf.startswith(PDF_MAGIC):
        raise DossierError(f"{path}: no PDF; only the PDF of a dossier can be signed")
    spoilt = [problem for one in signature.check_signatures(pdf) for problem in one.problems]
    if spoilt:
        raise DossierError(f"{path}: an earlier signature does not hold: {spoilt[0]}")
    phrase = signature.passphrase(options.passphrase_file)
    signer = signature.load_signer(options.key, options.certificate, phrase)
    signed = signature.sign(pdf, signer, options.reason, options.stamp_server)
    output: Path = options.output or path
    replace_file(output, signed)
    print(output)
    for one in signature.check_signatures(signed):
        print(f"  signed by {one.signer}, {one.time}; certificate SHA-256 {one.certificate_sha256}")
    return 0
