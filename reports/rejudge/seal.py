# SPDX-License-Identifier: Apache-2.0
"""Whether the raw data is what the bench has signed at the end of the run (docs/reports.md, `The seal`)."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

SEAL = "seal.json"
MADE_ANEW = ("SHA256SUMS", "seal.json", "qualification*.html", "evidence/history/*")


def sealed_by(run: Path) -> str:
    """Return the fingerprint of the key that sealed a run; empty: none did."""
    path = run / SEAL
    return str(json.loads(path.read_text())["key_sha256"]) if path.is_file() else ""


def seal_objections(run: Path) -> Iterator[str]:
    """Say which files of a run are not what its seal says; nothing of a run without one.

    Raises:
        KeyError, TypeError, ValueError: The seal is none.
    """
    if not (run / SEAL).is_file():
        return
    sealed: dict[str, Any] = json.loads((run / SEAL).read_text())
    signature = base64.b64decode(sealed.pop("signature"), validate=True)
    public = base64.b64decode(sealed["public_key"], validate=True)
    text = json.dumps(sealed, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    if sealed["schema"] != "benchwright.seal/1" or hashlib.sha256(public).hexdigest() != sealed["key_sha256"]:
        yield f"{SEAL}: its key is not the one that it names"
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, text.encode())
    except InvalidSignature:
        yield f"{SEAL}: was not signed by its key"
    files: dict[str, str] = sealed["files"]
    present = {path.relative_to(run).as_posix() for path in run.rglob("*") if path.is_file()}
    for name in sorted({*files, *present}):
        if any(fnmatch(name, each) for each in MADE_ANEW):
            continue
        if name not in files:
            yield f"{name}: was not there when the run was sealed"
        elif name not in present:
            yield f"{name}: was there when the run was sealed"
        elif hashlib.sha256((run / name).read_bytes()).hexdigest() != files[name]:
            yield f"{name}: not as it was when the run was sealed"
