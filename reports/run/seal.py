# SPDX-License-Identifier: Apache-2.0
"""The seal of a run: the hashes of its raw data, signed by the bench that measured it.

`SHA256SUMS` finds a changed byte until somebody makes it anew. What the raw data says twice, `verify` works
out again; what it says once (a serial number, the range of an instrument, the facts of a host) nobody can.
The seal, `seal.json`, is made at the end of a run with a key that stays on the bench: Ed25519 (RFC 8032) over
the hash of every file but the pages and the advice, which are made of these.

The key is made at its first use: `$BENCHWRIGHT_SEAL_KEY`, else `benchwright/seal.key` in `$XDG_CONFIG_HOME`
or `~/.config`. Whoever holds it can seal anything; a reader compares its fingerprint with the bench's.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Mapping
from fnmatch import fnmatch
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

SEAL = "seal.json"
SCHEMA = "benchwright.seal/1"
KEY_VARIABLE = "BENCHWRIGHT_SEAL_KEY"
UNSEALED = (SEAL, "qualification*.html", "evidence/history/*")
"""Files that may be made anew after a run."""


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
    names = [name for name in list_files(folder) if not any(fnmatch(name, each) for each in UNSEALED)]
    sealed = {
        "schema": SCHEMA,
        "key_sha256": fingerprint(key),
        "public_key": base64.b64encode(_public(key)).decode(),
        "files": {name: sha256_file(folder / name) for name in names},
    }
    signature = base64.b64encode(key.sign(canonical(sealed))).decode()
    text = json.dumps(sealed | {"signature": signature}, indent=1, ensure_ascii=False) + "\n"
    replace_file(folder / SEAL, text.encode())


def canonical(sealed: Mapping[str, object]) -> bytes:
    """Return what is signed: all but the signature, as JSON with sorted keys and nothing between."""
    return json.dumps(sealed, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def _public(key: Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
