# SPDX-License-Identifier: Apache-2.0
"""Whether raw data and pages are what the bench has signed (docs/reports.md, `The seal`)."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from reports.rejudge.answers import json_lines

SEAL = "seal.json"
RENEWAL = "renewal.json"
ADVICE = "evidence/history/advice.json"
PAGE = re.compile(r"qualification(-[A-Za-z0-9_.-]+)?\.html")


def sealed_by(run: Path) -> str:
    """Return the fingerprint of the key that sealed a run; empty: none did."""
    path = run / SEAL
    return str(json.loads(path.read_text("utf-8"))["key_sha256"]) if path.is_file() else ""


def pages_made_by(run: Path) -> tuple[dict[str, Any] | None, str]:
    """Return the commit and the renderers by which the pages of a run were made, and the folder's name then.

    None: no seal says so.
    """
    sealed = next((run / name for name in (RENEWAL, SEAL) if (run / name).is_file()), None)
    data: dict[str, Any] = json.loads(sealed.read_text("utf-8")) if sealed else {}
    found: object = data.get("made_by")
    return (cast("dict[str, Any]", found) if isinstance(found, dict) else None), str(data.get("folder", ""))


def seal_discrepancies(run: Path) -> Iterator[str]:
    """Say which files of a run are not what its seals say; nothing of a run without one.

    The set of files is exact. Seals of older runs have no pages: of those the names alone are looked at.

    Raises:
        KeyError, TypeError, ValueError: The seal is none.
    """
    present = {path.relative_to(run).as_posix() for path in run.rglob("*") if path.is_file()}
    if not (run / SEAL).is_file():
        if RENEWAL in present:
            yield f"{RENEWAL}: renews pages of a run that is not sealed"
        return
    sealed: dict[str, Any] = json.loads((run / SEAL).read_text("utf-8"))
    yield from _signed_wrongly(SEAL, sealed, "benchwright.seal/1")
    files: dict[str, str] = {**sealed["files"], **sealed.get("pages", {})}
    known = {SEAL, "SHA256SUMS"}
    if RENEWAL in present:
        renewed: dict[str, Any] = json.loads((run / RENEWAL).read_text("utf-8"))
        yield from _signed_wrongly(RENEWAL, renewed, "benchwright.renewal/1")
        if renewed["key_sha256"] != sealed["key_sha256"]:
            yield f"{RENEWAL}: sealed by {renewed['key_sha256']}, the run by {sealed['key_sha256']}"
        if renewed["seal_sha256"] != _sha256(run / SEAL):
            yield f"{RENEWAL}: is of another seal than this run's"
        for name, digest in renewed["files"].items():
            if name != ADVICE and not PAGE.fullmatch(name):
                yield f"{RENEWAL}: {name}: no page and no advice; nothing else is made anew"
            else:
                files[name] = digest
        known.add(RENEWAL)
    if "pages" not in sealed and RENEWAL not in present:
        known |= {ADVICE, *_pages_of_before(run)}
    for name in sorted({*files, *present} - known):
        if name not in files:
            yield f"{name}: was not there when the run was sealed"
        elif name not in present:
            yield f"{name}: was there when the run was sealed"
        elif _sha256(run / name) != files[name]:
            yield f"{name}: not as it was when the run was sealed"


def _signed_wrongly(name: str, sealed: dict[str, Any], schema: str) -> Iterator[str]:
    """Say what is wrong with the signature of a seal."""
    signed = {key: value for key, value in sealed.items() if key != "signature"}
    signature = base64.b64decode(sealed["signature"], validate=True)
    public = base64.b64decode(sealed["public_key"], validate=True)
    text = json.dumps(signed, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    if sealed["schema"] != schema or hashlib.sha256(public).hexdigest() != sealed["key_sha256"]:
        yield f"{name}: its key is not the one that it names"
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, text.encode())
    except InvalidSignature:
        yield f"{name}: was not signed by its key"


def _pages_of_before(run: Path) -> set[str]:
    """Return the pages that a run may have whose seal has none: its own, and one of each of its targets."""
    manifest = json.loads((run / "run.json").read_text("utf-8"))
    targets = {each["target"] for each in manifest.get("asked") or ()} | set(manifest["target"])
    for line in json_lines(run / "measurements.jsonl"):
        targets.add(json.loads(line)["subject"]["target"])
    plain = [re.sub(r"[^A-Za-z0-9_.-]", "_", target) for target in targets]
    numbered = [f"{name}-{number}" for name in plain for number in range(2, len(plain) + 1)]
    return {"qualification.html", *(f"qualification-{name}.html" for name in (*plain, *numbered))}


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
