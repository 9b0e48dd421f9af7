# SPDX-License-Identifier: Apache-2.0
"""The share of changes to fields that have other evidence which the second judge names without the key."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bench.verdicts.bench_verify import hash_anew, is_named, list_anew
from bench.verdicts.bench_verify_fields import changes_of_fields


def unnamed_changes(
    sound: Path, work: Path, capability: str, seed: int = 1, every: int = 1
) -> tuple[list[str], int]:
    """Change each field of a capability by who makes list of files, hashes and seal anew.

    Args:
        sound: A run of which nothing is named.
        work: An empty folder.
        capability: By the name of its table.
        seed: Says which of several places is changed.
        every: Of so many changes one is made.

    Returns:
        What was not named, and how many changes there were.
    """
    key = Ed25519PrivateKey.generate()
    list_anew(sound)
    hash_anew(sound, key, "")
    assert not is_named(sound, None, pages=False)
    unnamed: list[str] = []
    count = 0
    for number, change in enumerate(changes_of_fields(sound, Random(seed))):
        if change.field.capability != capability or not change.field.held_by or number % every:
            continue
        run = work / str(number) / sound.name
        shutil.copytree(sound, run)
        change.make(run)
        if any(path.read_bytes() != (sound / path.relative_to(run)).read_bytes() for path in _files(run)):
            count += 1
            list_anew(run)
            hash_anew(run, key, "")
            unnamed += [] if is_named(run, None, pages=False) else [change.what]
        shutil.rmtree(run)
    return unnamed, count


def _files(run: Path) -> list[Path]:
    return [path for path in (run / "evidence").rglob("*") if path.is_file()]
