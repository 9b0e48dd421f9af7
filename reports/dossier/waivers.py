# SPDX-License-Identifier: Apache-2.0
"""Waivers: what a person decided about a requirement, a run or an attempt, and answers for by name.

    [waivers]
    schema = "benchwright.waivers/1"

    [[waiver]]
    id = "W-1"
    requirement = "DAQ-013"        # alone: accepted although it did not pass
    run = "20261122T040556Z-…"     # with it, or alone: what was measured there decides nothing
    attempt = 1                    # with both: that attempt only
    reason = "…"
    approver = "…"
    date = 2026-11-22
    expires = 2027-03-31           # may be left out

The date of the dossier decides whether a waiver has expired, not today's: the same waivers give the same
dossier on any day.
"""

from __future__ import annotations

import datetime
import hashlib
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import cast

from reports.dossier.errors import DossierError

SCHEMA = "benchwright.waivers/1"
_KEYS = ("id", "requirement", "run", "attempt", "reason", "approver", "date", "expires")
_ATTEMPT_MAX = 1000


@dataclass(frozen=True, slots=True)
class Waiver:
    """One waiver; requirement without run: a concession, else something is set aside."""

    id: str
    requirement: str | None
    run: str | None
    attempt: int | None
    reason: str
    approver: str
    date: datetime.date
    expires: datetime.date | None

    @property
    def concedes(self) -> bool:
        """Say whether it accepts a requirement that did not pass, instead of setting attempts aside."""
        return self.run is None

    def sets_aside(self, requirement: str, run_id: str, attempt: int) -> bool:
        """Say whether it takes an attempt out of what decides."""
        return (
            self.run == run_id and self.requirement in (None, requirement) and self.attempt in (None, attempt)
        )


@dataclass(frozen=True, slots=True)
class Waivers:
    """A file of waivers, in its order; path and hash empty: there is none."""

    path: str
    sha256: str
    all: tuple[Waiver, ...]

    def conceding(self, requirement: str) -> Waiver | None:
        """Return the waiver that accepts a requirement; None: there is none."""
        return next((w for w in self.all if w.concedes and w.requirement == requirement), None)

    def leaving_out(self, run_id: str) -> Waiver | None:
        """Return the waiver of a whole run; None: there is none."""
        return next((w for w in self.all if w.run == run_id and w.requirement is None), None)

    def setting_aside(self, requirement: str, run_id: str, attempt: int) -> Waiver | None:
        """Return the waiver that takes an attempt out of what decides; None: there is none."""
        return next((w for w in self.all if w.sets_aside(requirement, run_id, attempt)), None)


NONE = Waivers("", "", ())


def read_waivers(data: bytes, where: str) -> Waivers:
    """Read a file of waivers.

    Args:
        data: Its bytes.
        where: Its name, for errors.

    Raises:
        DossierError: Names file, waiver, field and what is allowed.
    """
    try:
        document = tomllib.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise DossierError(f"{where}: {error}") from error
    unknown = sorted(set(document) - {"waivers", "waiver"})
    if unknown:
        raise DossierError(f"{where}: {unknown[0]}: unknown table; known here: waivers, waiver")
    head: object = document.get("waivers")
    if not isinstance(head, dict) or head != {"schema": SCHEMA}:
        raise DossierError(f'{where}: waivers: must hold schema = "{SCHEMA}" and nothing else')
    items: object = document.get("waiver", [])
    if not isinstance(items, list):
        raise DossierError(f"{where}: waiver: must be an array of tables, [[waiver]]")
    found: list[Waiver] = []
    for number, item in enumerate(cast("list[object]", items), start=1):
        waiver = _waiver(item, f"{where}: waiver[{number}]")
        if waiver.id in {known.id for known in found}:
            raise DossierError(f"{where}: waiver[{number}].id: {waiver.id!r} stands twice")
        found.append(waiver)
    return Waivers(where, hashlib.sha256(data).hexdigest(), tuple(found))


def _waiver(item: object, where: str) -> Waiver:
    if not isinstance(item, dict):
        raise DossierError(f"{where}: must be a table")
    table = cast("dict[str, object]", item)
    unknown = sorted(set(table) - set(_KEYS))
    if unknown:
        raise DossierError(f"{where}.{unknown[0]}: unknown key (allowed: {', '.join(_KEYS)})")
    requirement, run = _optional_text(table, "requirement", where), _optional_text(table, "run", where)
    attempt = _attempt(table, where)
    if requirement is None and run is None:
        raise DossierError(f"{where}.requirement: missing; need requirement, run, or both")
    if attempt is not None and (requirement is None or run is None):
        raise DossierError(f"{where}.attempt: only with both requirement and run")
    date, expires = _date(table, "date", where), _date(table, "expires", where)
    if date is None:
        raise DossierError(f"{where}.date: missing key; need a date YYYY-MM-DD without quotes")
    if expires is not None and expires < date:
        raise DossierError(f"{where}.expires: {expires} is before date = {date}")
    return Waiver(
        id=_text(table, "id", where),
        requirement=requirement,
        run=run,
        attempt=attempt,
        reason=_text(table, "reason", where),
        approver=_text(table, "approver", where),
        date=date,
        expires=expires,
    )


def _text(table: Mapping[str, object], key: str, where: str) -> str:
    value = table.get(key)
    if not isinstance(value, str) or not value.strip():
        raise DossierError(f"{where}.{key}: must be a text that is not empty")
    return value.strip()


def _optional_text(table: Mapping[str, object], key: str, where: str) -> str | None:
    return _text(table, key, where) if key in table else None


def _attempt(table: Mapping[str, object], where: str) -> int | None:
    value = table.get("attempt")
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _ATTEMPT_MAX:
        raise DossierError(
            f"{where}.attempt: must be a whole number from 1 to {_ATTEMPT_MAX}, found {value!r}"
        )
    return value


def _date(table: Mapping[str, object], key: str, where: str) -> datetime.date | None:
    value = table.get(key)
    if value is None:
        return None
    if not isinstance(value, datetime.date) or isinstance(value, datetime.datetime):
        raise DossierError(f"{where}.{key}: must be a date YYYY-MM-DD without quotes, found {value!r}")
    return value


def check_waivers(
    waivers: Waivers,
    date: datetime.date,
    requirements: Collection[str],
    attempts: Mapping[str, Mapping[str, int]],
) -> None:
    """Refuse waivers that cannot apply.

    Args:
        waivers: The file.
        date: Of the dossier: what expired before it does not hold.
        requirements: Ids of all requirements.
        attempts: By run id and requirement, the largest number of an attempt.

    Raises:
        DossierError: Names file, waiver, field and what is allowed.
    """
    for number, waiver in enumerate(waivers.all, start=1):
        where = f"{waivers.path}: waiver[{number}]"
        if waiver.requirement is not None and waiver.requirement not in requirements:
            shown = ", ".join(sorted(requirements)[:8]) + (", …" if len(requirements) > 8 else "")
            raise DossierError(
                f"{where}.requirement: {waiver.requirement!r} is not known; there are: {shown or 'none'}"
            )
        if waiver.run is not None and waiver.run not in attempts:
            raise DossierError(f"{where}.run: {waiver.run!r} is not known; there are: {', '.join(attempts)}")
        if waiver.run is not None and waiver.requirement is not None:
            tried = attempts[waiver.run].get(waiver.requirement, 0)
            if (waiver.attempt or 1) > tried:
                allowed = f"1 to {tried}" if tried else f"none: the run did not measure {waiver.requirement}"
                raise DossierError(f"{where}.attempt: found {waiver.attempt}, allowed: {allowed}")
        if waiver.date > date:
            raise DossierError(f"{where}.date: {waiver.date} is after the dossier's date {date}")
        if waiver.expires is not None and waiver.expires < date:
            raise DossierError(f"{where}.expires: expired on {waiver.expires}; the dossier's date is {date}")
