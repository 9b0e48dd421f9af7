# SPDX-License-Identifier: Apache-2.0
"""The seal of a run: the hashes of its raw data, signed by the bench that measured it.

`SHA256SUMS` finds a changed byte until somebody makes it anew. What the raw data says twice, `verify` works
out again; what it says once (a serial number, the range of an instrument, the facts of a host) nobody can.
The seal, `seal.json`, is made at the end of a run with a key that stays on the bench: Ed25519 (RFC 8032) over
the hash of every file, the pages among them, with commit and renderers that made the pages.

Pages that are made anew later, with the advice of the history, have a seal of their own, `renewal.json`, by
the same key. It names the run's seal, so that none of another run fits.

The key is made at its first use: `$BENCHWRIGHT_SEAL_KEY`, else `benchwright/seal.key` in `$XDG_CONFIG_HOME`
or `~/.config`. Whoever holds it can seal anything; a reader compares its fingerprint with the bench's.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from reports.durable import draft_of, replace_file
from reports.errors import RunFolderError
from reports.run.integrity import list_files, sha256_file
from reports.run.provenance import commit_of

SEAL = "seal.json"
SCHEMA = "benchwright.seal/1"
KEY_VARIABLE = "BENCHWRIGHT_SEAL_KEY"
RENEWAL = "renewal.json"
RENEWAL_SCHEMA = "benchwright.renewal/1"
ADVICE = "evidence/history/advice.json"
RENDERERS = ("jinja2", "markupsafe", "numpy")
"""Packages that the bytes of a page follow from."""
_PAGE = re.compile(r"qualification(-[A-Za-z0-9_.-]+)?\.html")


def key_file(environment: Mapping[str, str] = os.environ) -> Path:
    """Return where this bench has its key; it need not exist."""
    named = environment.get(KEY_VARIABLE)
    if named:
        return Path(named)
    base = environment.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base, "benchwright", "seal.key")


def fingerprint(key: Ed25519PrivateKey) -> str:
    """Return the SHA-256 of a key's public half, in hex digits."""
    return hashlib.sha256(_public(key)).hexdigest()


def bench_key(path: Path) -> Ed25519PrivateKey:
    """Return the key of a file; where there is none it is made, for its owner alone.

    Raises:
        RunFolderError: The file is no Ed25519 key, or cannot be read or made.
    """
    try:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            made = Ed25519PrivateKey.generate()
            pem = made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
            draft = draft_of(path)
            try:
                draft.touch(mode=0o600, exist_ok=False)
                draft.write_bytes(pem)
                os.link(draft, path)  # two runs that end at once have one key
            except FileExistsError:
                pass
            finally:
                draft.unlink(missing_ok=True)
        found = load_pem_private_key(path.read_bytes(), None)
    except (OSError, ValueError, TypeError) as error:
        raise RunFolderError(f"{path}: {error}; {KEY_VARIABLE} names another file") from error
    if not isinstance(found, Ed25519PrivateKey):
        raise RunFolderError(f"{path}: not an Ed25519 key; {KEY_VARIABLE} names another file")
    return found


def seal(folder: Path, key: Ed25519PrivateKey) -> None:
    """Write the seal of a run folder that is at its end; raises RunFolderError."""
    apart = {SEAL, RENEWAL, ADVICE}
    names = [name for name in list_files(folder) if name not in apart]
    pages = {name for name in names if _PAGE.fullmatch(name)}
    sealed = {
        "schema": SCHEMA,
        **_signatory(key),
        "files": {name: sha256_file(folder / name) for name in names if name not in pages},
        "pages": {name: sha256_file(folder / name) for name in sorted(pages)},
        "made_by": made_by(),
        "folder": folder.resolve().name,
    }
    _sign(folder / SEAL, sealed, key)


def seal_renewal(folder: Path, names: Iterable[str], key: Ed25519PrivateKey) -> None:
    """Write the seal of pages and advice that were made anew after the run; raises RunFolderError."""
    sealed = {
        "schema": RENEWAL_SCHEMA,
        **_signatory(key),
        "seal_sha256": sha256_file(folder / SEAL),
        "files": {name: sha256_file(folder / name) for name in sorted(names)},
        "made_by": made_by(),
        "folder": folder.resolve().name,
    }
    _sign(folder / RENEWAL, sealed, key)


def made_by() -> dict[str, str | None]:
    """Return the commit of this installation and the versions of what renders pages; None: not known."""
    found = {"commit": commit_of(Path(__file__).parent)}
    for package in RENDERERS:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return found


def _signatory(key: Ed25519PrivateKey) -> dict[str, str]:
    return {"key_sha256": fingerprint(key), "public_key": base64.b64encode(_public(key)).decode()}


def _sign(path: Path, sealed: Mapping[str, object], key: Ed25519PrivateKey) -> None:
    signature = base64.b64encode(key.sign(canonical(sealed))).decode()
    text = json.dumps({**sealed, "signature": signature}, indent=1, ensure_ascii=False) + "\n"
    replace_file(path, text.encode())


def canonical(sealed: Mapping[str, object]) -> bytes:
    """Return what is signed: all but the signature, as JSON with sorted keys and nothing between."""
    return json.dumps(sealed, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def _public(key: Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
