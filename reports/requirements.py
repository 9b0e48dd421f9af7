# SPDX-License-Identifier: Apache-2.0
"""Which requirements there are: read from the files that the runs kept, or that the command line names.

A run keeps every requirements file that its suites read as `evidence/requirements/NAME.toml`. The five forms
of these files (docs/latency.md, docs/clock-sync.md, docs/timed-edges.md) are read by what they share: an id,
a quantity, a statistic, what it is of, a limit, its source.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from reports.clock_sync.mask_verdict import MASK_QUANTITIES
from reports.errors import RequirementsError
from reports.record.measurement import Measurement, Number
from reports.run.asked import KEPT
from reports.units import NS_PER_US, format_value

_SUBJECTS = ("stream", "clock", "method")
_SAMPLES = ("n_required", "reads_min")
_LIMITS_NS = {"upper_us": NS_PER_US, "limit_ns": 1}
_UPPER = "upper_facts"
_LOWER = "lower_producers"
LOCK_TIME = "lock_time"


@dataclass(frozen=True, slots=True)
class Part:
    """Something that a requirement asks to be measured: any of some quantities, by a statistic.

    Attributes:
        name: In words, for what is missing.
        statistic: Empty: any.
        upper: Upper limit in the unit of the record; None: it is not in the file.
        lower: Likewise a lower limit.
        allowed_lost: What may be lost at most; None: it is not in the file, or not as a number.
        n_required: Samples that are needed; None: the profile says so.
        subject: What it is of: `stream`, `clock` or `method`, and which; None: the target as such.
    """

    name: str
    quantities: tuple[str, ...]
    statistic: str
    upper: Number | None
    lower: Number | None = None
    allowed_lost: int | None = None
    n_required: int | None = None
    subject: tuple[str, str] | None = None

    def covers(self, record: Measurement) -> bool:
        """Say whether a record is a measurement of this part."""
        return record.quantity in self.quantities and self.statistic in ("", record.statistic)

    def objection(self, record: Measurement) -> str:
        """Return why a record was judged by less than the file asks; empty: it was not."""
        limit = record.limit.upper
        if self.upper is not None and (limit is None or limit > self.upper):
            return f"judged against {limit} {record.unit}, the requirement is {self.upper}"
        least = record.limit.lower
        if self.lower is not None and (least is None or least < self.lower):
            return f"judged against {least} {record.unit} at least, the requirement is {self.lower}"
        if self.allowed_lost is not None and record.allowed_lost > self.allowed_lost:
            return f"judged with {record.allowed_lost} lost allowed, the requirement is {self.allowed_lost}"
        if self.n_required is not None and record.n_required < self.n_required:
            return f"judged from {record.n_required} samples, the requirement is {self.n_required}"
        if self.subject is not None:
            name, wanted = self.subject
            found = getattr(record.subject, name)
            if found != wanted:
                return f"measured of {name} {found}, the requirement is on {name} {wanted}"
        return ""


@dataclass(frozen=True, slots=True)
class Requirement:
    """A requirement as its file has it.

    Attributes:
        of_sender: Whether it is asked of a target that sends: the file's role is `producer`.
    """

    id: str
    text: str
    source: str
    parts: tuple[Part, ...]
    of_sender: bool = False


@dataclass(frozen=True, slots=True)
class RequirementSet:
    """A file of requirements.

    Attributes:
        path: As a reader knows it: in the run folder, or as named on the command line.
        run_ids: Runs that kept it; empty: it was named on the command line.
    """

    path: str
    name: str
    schema: str
    sha256: str
    requirements: tuple[Requirement, ...]
    run_ids: tuple[str, ...] = ()


def read_set(data: bytes, shown: str) -> RequirementSet:
    """Read a requirements file.

    Args:
        data: Its bytes.
        shown: What a reader knows it by; stands in errors and in the dossier.

    Raises:
        RequirementsError: Names file, requirement and field.
    """
    try:
        document = tomllib.loads(data.decode())
    except ValueError as error:
        raise RequirementsError(f"{shown}: {error}") from error
    head = document.get("requirements")
    items: object = document.get("requirement")
    if not isinstance(head, dict) or not isinstance(items, list) or not items:
        raise RequirementsError(f"{shown}: need a table [requirements] and at least one [[requirement]]")
    texts = {
        key: _text(cast("dict[str, object]", head), key, f"{shown}: requirements")
        for key in ("schema", "name")
    }
    of_sender = cast("dict[str, object]", head).get("role") == "producer"
    found = tuple(
        _requirement(item, f"{shown}: requirement[{number}]", of_sender)
        for number, item in enumerate(cast("list[object]", items), start=1)
    )
    ids = [requirement.id for requirement in found]
    twice = sorted({each for each in ids if ids.count(each) > 1})
    if twice:
        raise RequirementsError(f"{shown}: requirement.id: {twice[0]!r} stands twice")
    return RequirementSet(shown, texts["name"], texts["schema"], hashlib.sha256(data).hexdigest(), found)


def _requirement(item: object, where: str, of_sender: bool) -> Requirement:
    if not isinstance(item, dict):
        raise RequirementsError(f"{where}: must be a table")
    table = cast("dict[str, object]", item)
    texts = {key: _text(table, key, where) for key in ("id", "quantity", "statistic", "source")}
    subject = next(((key, str(table[key])) for key in _SUBJECTS if table.get(key)), None)
    limits = [_whole(table, key, where) * factor for key, factor in _LIMITS_NS.items() if key in table]
    counted = _whole(table, _UPPER, where) if _UPPER in table else None
    upper = limits[0] if limits else counted
    lower = _whole(table, _LOWER, where) if _LOWER in table else None
    lost = _whole(table, "allowed_lost", where) if "allowed_lost" in table else None
    needed = [_whole(table, key, where) for key in _SAMPLES if key in table]
    name = f"{texts['quantity']} {texts['statistic']}"
    parts = [
        Part(
            name=name,
            quantities=(texts["quantity"],),
            statistic=texts["statistic"],
            upper=upper,
            lower=lower,
            allowed_lost=lost,
            n_required=needed[0] if needed else None,
            subject=subject,
        )
    ]
    spoken = f"{texts['quantity']}, {texts['statistic']}".replace("_", " ")
    of = f"of {' '.join(subject) if subject else 'the target'}"
    words = [f"{spoken}, {of}{', sent by the target' if of_sender else ''}"]
    words += [f"at most {format_value(limits[0], 'ns')}"] if limits else []
    words += [f"at most {counted} {_UPPER.partition('_')[2]}"] if counted is not None else []
    words += [f"at least {lower} {_LOWER.partition('_')[2]}"] if lower is not None else []
    words += [f"at most {lost} lost" if lost else "none lost"] if lost is not None else []
    words += [f"from {needed[0]} samples"] if needed else []
    percent = table.get("lost_percent_max")
    words += [f"at most {percent:g} % lost"] if isinstance(percent, int | float) else []
    if "lock_within_s" in table:
        lock_s = _whole(table, "lock_within_s", where)
        parts.append(Part(LOCK_TIME, (LOCK_TIME,), "", lock_s, subject=subject))
        words.append(f"locked within {lock_s} s")
    if table.get("mask"):
        parts.append(Part(f"mask {table['mask']}", tuple(sorted(MASK_QUANTITIES)), "", None, subject=subject))
        words.append(f"mask {table['mask']}")
    text = f"{words[0]}: {', '.join(words[1:])}"
    return Requirement(texts["id"], text, texts["source"], tuple(parts), of_sender)


def _text(table: dict[str, object], key: str, where: str) -> str:
    value = table.get(key)
    if not isinstance(value, str) or not value:
        raise RequirementsError(f"{where}.{key}: must be a text that is not empty")
    return value


def _whole(table: dict[str, object], key: str, where: str) -> int:
    value = table.get(key)
    if not isinstance(value, int) or isinstance(value, bool):
        raise RequirementsError(f"{where}.{key}: must be a whole number, found {value!r}")
    return value


def sets_of_run(folder: Path, run_id: str) -> list[RequirementSet]:
    """Return the requirements files that a run kept, by name."""
    files = sorted((folder / KEPT).glob("*.toml"))
    found = [read_set(file.read_bytes(), (KEPT / file.name).as_posix()) for file in files]
    return [RequirementSet(s.path, s.name, s.schema, s.sha256, s.requirements, (run_id,)) for s in found]


def merged(sets: Iterable[RequirementSet]) -> list[RequirementSet]:
    """Return files of equal bytes and path as one, with all runs that kept it."""
    by_content: dict[tuple[str, str], RequirementSet] = {}
    for each in sets:
        key = (each.path, each.sha256)
        known = by_content.get(key)
        runs = (*known.run_ids, *each.run_ids) if known else each.run_ids
        by_content[key] = RequirementSet(
            each.path, each.name, each.schema, each.sha256, each.requirements, runs
        )
    return list(by_content.values())


def requirements_for(
    sets: Sequence[RequirementSet], run_ids: Iterable[str]
) -> list[tuple[RequirementSet, Requirement]]:
    """Return the requirements on a target that some runs measured, in the order of the files.

    A file of the command line goes before what a run kept.

    Raises:
        RequirementsError: Two files ask different things by one id, and the command line does not decide.
    """
    runs = set(run_ids)
    asked = [each for each in sets if not each.run_ids]
    kept = [each for each in sets if runs & set(each.run_ids)]
    chosen: dict[str, tuple[RequirementSet, Requirement]] = {}
    for each in (*asked, *kept):
        for requirement in each.requirements:
            known = chosen.setdefault(requirement.id, (each, requirement))
            if known[1] == requirement or (not known[0].run_ids and each.run_ids):
                continue
            raise RequirementsError(
                f"requirement {requirement.id}: {_origin(known[0])} and {_origin(each)} differ;"
                " name the file that holds with --requirements"
            )
    return list(chosen.values())


def _origin(found: RequirementSet) -> str:
    return f"{found.path} of run {found.run_ids[0]}" if found.run_ids else found.path
