# SPDX-License-Identifier: Apache-2.0
"""Waivers: what a person decided about a requirement, a run or an attempt, and answers for by name.

    [waivers]
    schema = "benchwright.waivers/1"

    [[waiver]]
    id = "W-1"
    requirement = "DAQ-013"        # alone: accepted although it did not pass
    target = "linux-rt on hall-7"  # name and bench
    stack = "kernel"               # network stack
    run = "20261122T040556Z-…"     # with it, or alone: what was measured there decides nothing
    attempt = 1                    # with both: that attempt only
    reason = "…"
    approver = "…"
    date = 2026-11-22
    expires = 2027-03-31           # may be left out

A waiver is of one target and one network stack. One of a run says of which where the run measured several;
one that accepts a requirement always does, for it would hold for runs to come.

The date of the dossier decides whether a waiver has expired, not today's: the same waivers give the same
dossier on any day.
"""

from __future__ import annotations

import datetime
import hashlib
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import cast

from reports.dossier.errors import DossierError
from reports.record.measurement import Measurement, Subject

SCHEMA = "benchwright.waivers/1"
_KEYS = ("id", "requirement", "target", "stack", "run", "attempt", "reason", "approver", "date", "expires")
_ATTEMPT_MAX = 1000
_BLANK_LETTERS = "\u115f\u1160\u3164\uffa0"
"""Fillers of Hangul: letters to Unicode, and nothing is seen of them."""


def target_words(subject: Subject) -> str:
    """Return the target that something was measured of, as a waiver names it."""
    return f"{subject.target} on {subject.bench}"


@dataclass(frozen=True, slots=True)
class Waiver:
    """One waiver; requirement without run: a concession, else something is set aside."""

    id: str
    requirement: str | None
    target: str | None
    stack: str | None
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

    def accepts(self, requirement: str, target: str, stack: str | None) -> bool:
        """Say whether it accepts what did not pass with a stack, or, with None, without any."""
        ours = self.concedes and (self.requirement, self.target) == (requirement, target)
        return ours and stack in (None, self.stack)

    def sets_aside(self, record: Measurement, run_id: str, attempt: int) -> bool:
        """Say whether it takes an attempt out of what decides."""
        return (
            self.run == run_id
            and self.requirement in (None, record.requirement)
            and self.target in (None, target_words(record.subject))
            and self.stack in (None, record.subject.stack)
            and self.attempt in (None, attempt)
        )


@dataclass(frozen=True, slots=True)
class Trial:
    """What a waiver may be of: an attempt.

    Attributes:
        run: Id of its run; empty: the requirement was asked with this stack, and nobody measured it.
        target: As `target_words` has it.
        stack: Network stack; None: it is of none.
        number: Of the attempt in its run.
    """

    run: str
    requirement: str
    target: str
    stack: str | None
    number: int


@dataclass(frozen=True, slots=True)
class Scope:
    """What there is to be waived in a dossier.

    Attributes:
        requirements: Ids of those on each target, by its `target_words`.
        runs: Last day of each run, those that are left out among them; None: it is not known.
    """

    requirements: Mapping[str, Collection[str]]
    runs: Mapping[str, datetime.date | None]
    trials: Collection[Trial]


@dataclass(frozen=True, slots=True)
class Waivers:
    """A file of waivers, in its order; path and hash empty: there is none."""

    path: str
    sha256: str
    all: tuple[Waiver, ...]

    def conceding(self, requirement: str, target: str, stack: str | None) -> Waiver | None:
        """Return the waiver that accepts a requirement on a target; None: there is none."""
        return next((w for w in self.all if w.accepts(requirement, target, stack)), None)

    def leaving_out(self, run_id: str) -> Waiver | None:
        """Return the waiver of a whole run; None: there is none."""
        return next((w for w in self.all if w.run == run_id and w.requirement is None), None)

    def setting_aside(self, record: Measurement, run_id: str, attempt: int) -> Waiver | None:
        """Return the waiver that takes an attempt out of what decides; None: there is none."""
        return next((w for w in self.all if w.sets_aside(record, run_id, attempt)), None)

    def future(self, today: datetime.date) -> list[str]:
        """Return, in words, which waivers are dated after a day (UTC)."""
        return [
            f"{self.path}: waiver[{number}].date: {waiver.date} is in the future; today is {today} (UTC)"
            for number, waiver in enumerate(self.all, start=1)
            if waiver.date > today
        ]


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
        id=_name(table, "id", where),
        requirement=requirement,
        target=_optional_text(table, "target", where),
        stack=_optional_text(table, "stack", where),
        run=run,
        attempt=attempt,
        reason=_text(table, "reason", where),
        approver=_name(table, "approver", where),
        date=date,
        expires=expires,
    )


def _text(table: Mapping[str, object], key: str, where: str) -> str:
    value = table.get(key)
    if not isinstance(value, str) or not any(c.isalnum() and c not in _BLANK_LETTERS for c in value):
        raise DossierError(f"{where}.{key}: must be a text with a letter or digit that is seen")
    return value.strip()


def _name(table: Mapping[str, object], key: str, where: str) -> str:
    """Return a text of one line of which every character is seen."""
    found = _text(table, key, where)
    hidden = [c for c in found if c in _BLANK_LETTERS or not c.isprintable()]
    if hidden:
        raise DossierError(f"{where}.{key}: holds U+{ord(hidden[0]):04X}, which is not seen")
    return found


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


def check_waivers(waivers: Waivers, date: datetime.date, scope: Scope) -> None:
    """Refuse waivers that cannot apply, or are not of one target and stack.

    Args:
        waivers: The file.
        date: Of the dossier: what expired before it does not hold.
        scope: What there is to be waived.

    Raises:
        DossierError: Names file, waiver, field and what is allowed.
    """
    for number, waiver in enumerate(waivers.all, start=1):
        where = f"{waivers.path}: waiver[{number}]"
        requirements = sorted({one for of_target in scope.requirements.values() for one in of_target})
        if waiver.requirement is not None:
            _one_of(requirements, waiver.requirement, f"{where}.requirement")
        if waiver.run is not None:
            _one_of(scope.runs, waiver.run, f"{where}.run")
        trials = [
            each
            for each in scope.trials
            if waiver.run in (None, each.run) and waiver.requirement in (None, each.requirement)
        ]
        if waiver.run is not None and waiver.requirement is not None:
            tried = max((each.number for each in trials), default=0)
            if (waiver.attempt or 1) > tried:
                allowed = f"1 to {tried}" if tried else f"none: the run did not measure {waiver.requirement}"
                raise DossierError(f"{where}.attempt: found {waiver.attempt}, allowed: {allowed}")
        if waiver.concedes:
            targets = [name for name, of in scope.requirements.items() if waiver.requirement in of]
        else:
            targets = list(dict.fromkeys(each.target for each in trials))
        _check_which(targets, waiver.target, waiver, f"{where}.target")
        trials = [each for each in trials if waiver.target in (None, each.target)]
        stacks = list(dict.fromkeys(each.stack for each in trials if each.stack is not None))
        _check_which(stacks, waiver.stack, waiver, f"{where}.stack")
        runs = {waiver.run} if waiver.run is not None else {each.run for each in trials if each.run}
        _check_dates(waiver, date, [scope.runs[run] for run in runs], where)


def _one_of(known: Iterable[str], found: str, where: str) -> None:
    if found not in (names := list(known)):
        shown = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
        raise DossierError(f"{where}: {found!r} is not known; there are: {shown or 'none'}")


def _check_which(known: Collection[str], found: str | None, waiver: Waiver, where: str) -> None:
    """Refuse a waiver that does not say of which of several it is."""
    if found is not None:
        _one_of(known, found, where)
    elif len(known) > (0 if waiver.concedes else 1):
        raise DossierError(f"{where}: missing; the waiver is of one of: {', '.join(known)}")


def _check_dates(
    waiver: Waiver, date: datetime.date, run_days: Iterable[datetime.date | None], where: str
) -> None:
    last = max((day for day in run_days if day is not None), default=waiver.date)
    if waiver.date < last:
        raise DossierError(
            f"{where}.date: {waiver.date} is before {last} (UTC), when what it is of was measured"
        )
    if waiver.date > date:
        raise DossierError(f"{where}.date: {waiver.date} is after the dossier's date {date}")
    if waiver.expires is not None and waiver.expires < date:
        raise DossierError(f"{where}.expires: expired on {waiver.expires}; the dossier's date is {date}")
