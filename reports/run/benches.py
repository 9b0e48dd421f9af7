# SPDX-License-Identifier: Apache-2.0
"""The benches whose seals a site relies on, and whether a run has the seal of one of them.

Whoever holds a key can seal anything, so that a seal is worth what is known of its key. A site lists its
benches once, in `benches.toml` beside the key of the seal, and nobody types a fingerprint after that:

    [benches]
    schema = "benchwright.benches/1"

    [[bench]]
    name = "hall-7"           # `bench` of its runs
    fingerprint = "3f7c…"     # `python -m reports key` on the bench
    since = 2026-01-01        # the day from which its runs count; until: the last one, left out: it is in use
"""

from __future__ import annotations

import datetime
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from reports.errors import RecordError, RunFolderError
from reports.record.measurement import parse_utc
from reports.rejudge.seal import SEAL, seal_discrepancies, sealed_by
from reports.run.manifest import Manifest
from reports.run.seal import key_file

BENCHES = "benches.toml"
SCHEMA = "benchwright.benches/1"
_KEYS = ("name", "fingerprint", "since", "until")
_FINGERPRINT = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Bench:
    """A bench of the site, and the days (both included) on which its runs have this seal; None: still so."""

    name: str
    fingerprint: str
    since: datetime.date
    until: datetime.date | None


@dataclass(frozen=True, slots=True)
class TrustedSeals:
    """What seals are held against.

    Attributes:
        fingerprints: Keys that were named by themselves.
        benches: Those of a list.
    """

    fingerprints: tuple[str, ...] = ()
    benches: tuple[Bench, ...] = ()

    def bench_of(self, fingerprint: str, manifest: Manifest) -> str:
        """Return the bench whose seal a run has, as the list names it; empty: none, or none is listed."""
        return next((each.name for each in self._listed(fingerprint) if _is_of(each, manifest)), "")

    def discrepancy(self, run: Path, manifest: Manifest) -> str:
        """Return why a run has no seal that counts, in words; empty: it has one.

        Raises:
            RunFolderError: Its seal cannot be read.
        """
        found = seal_of(run)
        if not found:
            return f"{SEAL}: missing; the run is not sealed"
        if broken := list(seal_discrepancies(run)):
            return broken[0]
        if found in self.fingerprints or self.bench_of(found, manifest):
            return ""
        listed = self._listed(found)
        if not listed:
            return f"{SEAL}: sealed by {found}, which is no key that was named or listed"
        allowed = "; ".join(f"{each.name}, {each.since} to {each.until or 'now'}" for each in listed)
        day = manifest.start_utc[:10]
        return f"{SEAL}: sealed by {found} on {day} for bench {manifest.bench}; the list allows: {allowed}"

    def _listed(self, fingerprint: str) -> list[Bench]:
        return [each for each in self.benches if each.fingerprint == fingerprint]


def seal_of(run: Path) -> str:
    """Return the fingerprint of the key that sealed a run; empty: none did.

    Raises:
        RunFolderError: The seal is none.
    """
    try:
        return sealed_by(run)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise RunFolderError(f"{run}: {SEAL}: {type(error).__name__}: {error}") from error


def default_list() -> Path | None:
    """Return the list of benches beside the key of the seal; None: there is none."""
    path = key_file().with_name(BENCHES)
    return path if path.exists() else None


def read_fingerprint(text: str) -> str:
    """Read a fingerprint; raises ValueError, which says what one is."""
    if not _FINGERPRINT.fullmatch(text.lower()):
        raise ValueError(f"{text!r} is no fingerprint; need 64 hex digits, as `python -m reports key` prints")
    return text.lower()


def read_benches(data: bytes, where: str) -> tuple[Bench, ...]:
    """Read a list of benches.

    Args:
        data: Its bytes.
        where: Its name, for errors.

    Raises:
        RunFolderError: Names file, bench, field and what is allowed.
    """
    try:
        document = tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise RunFolderError(f"{where}: {error}") from error
    unknown = sorted(set(document) - {"benches", "bench"})
    if unknown:
        raise RunFolderError(f"{where}: {unknown[0]}: unknown table (allowed: benches, bench)")
    if document.get("benches") != {"schema": SCHEMA}:
        raise RunFolderError(f'{where}: benches: must hold schema = "{SCHEMA}" and nothing else')
    items: object = document.get("bench", [])
    if not isinstance(items, list) or not items:
        raise RunFolderError(f"{where}: bench: must be an array of one table or more, [[bench]]")
    tables = cast("Sequence[object]", items)
    return tuple(_bench(item, f"{where}: bench[{number}]") for number, item in enumerate(tables, start=1))


def _bench(item: object, where: str) -> Bench:
    if not isinstance(item, dict):
        raise RunFolderError(f"{where}: must be a table")
    table = cast("dict[str, object]", item)
    unknown = sorted(set(table) - set(_KEYS))
    if unknown:
        raise RunFolderError(f"{where}.{unknown[0]}: unknown key (allowed: {', '.join(_KEYS)})")
    name, fingerprint = table.get("name"), table.get("fingerprint")
    if not isinstance(name, str) or not name.strip():
        raise RunFolderError(f"{where}.name: must be a text that is not empty, found {name!r}")
    try:
        key = read_fingerprint(fingerprint if isinstance(fingerprint, str) else "")
    except ValueError as error:
        raise RunFolderError(f"{where}.fingerprint: {error}") from error
    since, until = _date(table, "since", where), _date(table, "until", where)
    if since is None:
        raise RunFolderError(f"{where}.since: missing key; need a date YYYY-MM-DD without quotes")
    if until is not None and until < since:
        raise RunFolderError(f"{where}.until: {until} is before since = {since}")
    return Bench(name.strip(), key, since, until)


def _date(table: Mapping[str, object], key: str, where: str) -> datetime.date | None:
    value = table.get(key)
    if value is None:
        return None
    if not isinstance(value, datetime.date) or isinstance(value, datetime.datetime):
        raise RunFolderError(f"{where}.{key}: must be a date YYYY-MM-DD without quotes, found {value!r}")
    return value


def _is_of(bench: Bench, manifest: Manifest) -> bool:
    """Say whether a run is of a bench and of the days on which its seal counts."""
    try:
        first = parse_utc(manifest.start_utc).date()
        last = parse_utc(manifest.end_utc or manifest.start_utc).date()
    except RecordError:
        return False
    until = bench.until or datetime.date.max
    return manifest.bench == bench.name and bench.since <= first <= last <= until
