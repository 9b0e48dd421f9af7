# SPDX-License-Identifier: Apache-2.0
"""What each quantity takes in a file of requirements, whose form is one for suites and dossier.

For users: docs/requirements.md. A run keeps every file that its suites ask by as
`evidence/requirements/NAME.toml`.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from reports.capabilities import CAPABILITIES
from reports.daq_replay.capability import STREAM_QUANTITY
from reports.errors import RequirementsError
from reports.quantities import AXES
from reports.record.measurement import Limit
from reports.requirement_keys import COUNT, LOST_PERCENT, MASK, Key, Keys, optional, text, whole
from reports.requirements import ROLES, Requirement, RequirementSet
from reports.run.selected import KEPT
from reports.units import NS_PER_US

SCHEMA = "benchwright.requirements/2"
_BEFORE = "requirements/1"
"""How the schemas of older files end, one for each capability."""
_RENAMED = {
    "limit_ns": "upper_ns",
    "allowed_lost": "lost",
    "n_required": "samples",
    "reads_min": "samples",
    "lost_percent_max": "lost_percent",
}
"""Keys of older files."""
_LIMITS = {
    "upper_us": ("ns", NS_PER_US),
    "upper_ns": ("ns", 1),
    "upper_facts": ("facts", 1),
    "lower_producers": ("producers", 1),
    "upper_ppm": ("ppm", 1),
    "upper_ppb": ("ppb", 1),
    "upper_ratio": ("", 1),
    "upper_percent": ("%", 1),
    "lower_bytes_per_s": ("bytes/s", 1),
    "upper_bytes": ("bytes", 1),
    "upper_segments": ("segments", 1),
}
"""Unit of the record that a limit is for, and how many of them one is."""


_NAME = Key("a text or a whole number", lambda value: type(value) in (str, int) and value != "")
_HEAD = {"schema": text(), "name": text()}
_HEAD_OF_STREAMS = {"pattern": text()} | optional(producers=text("all", "required"), role=text(*ROLES))
_COMMON = {key: text() for key in ("id", "quantity", "source")}


def _taken() -> dict[str, tuple[Keys, ...]]:
    every: dict[str, tuple[Keys, ...]] = {}
    for capability in CAPABILITIES.values():
        for quantity, forms in capability.requirements.items():
            every[quantity] = (*every.get(quantity, ()), *forms)
    return every


TAKEN = _taken()
"""What a quantity takes besides `_COMMON`; of several forms that which lacks least."""
_ANY: Keys = (
    {"statistic": text()}
    | optional(samples=COUNT, lost=COUNT, **dict.fromkeys(AXES, _NAME))
    | optional(lock_within_s=COUNT, **dict.fromkeys(_LIMITS, whole(0, 10**18)))
    | LOST_PERCENT
    | MASK
)
"""What a quantity takes that is not in the table: one of a site, or of a capability to come."""


def read_set(data: bytes, shown: str) -> RequirementSet:
    """Read a requirements file.

    Args:
        data: Its bytes.
        shown: What a reader knows it by; stands in errors and in the dossier.

    Raises:
        RequirementsError: Names file, requirement, field and what is allowed there.
    """
    try:
        document = tomllib.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise RequirementsError(f"{shown}: {error}") from error
    if unknown := sorted(set(document) - {"requirements", "requirement"}):
        raise RequirementsError(
            f"{shown}: {unknown[0]}: unknown table; known here: requirements, requirement"
        )
    where = f"{shown}: requirements"
    head = _table(document.get("requirements"), where)
    schema = str(head.get("schema"))
    is_old = schema.startswith("benchwright.") and schema.endswith(_BEFORE)
    if schema != SCHEMA and not is_old:
        raise RequirementsError(f"{where}.schema: must be {SCHEMA}, found {schema!r}")
    tables: object = document.get("requirement")
    if not isinstance(tables, list) or not tables:
        raise RequirementsError(f"{shown}: requirement: there must be at least one, [[requirement]]")
    found: list[Requirement] = []
    for number, each in enumerate(cast("list[object]", tables), start=1):
        place = f"{shown}: requirement[{number}]"
        table = _table(each, place)
        one = _requirement(_renamed(table, place) if is_old else table, place)
        _refuse_double(one, found, place)
        found.append(replace(one, of_sender=head.get("role") == "producer"))
    is_of_streams = any(each.quantity == STREAM_QUANTITY for each in found)
    _check(head, _HEAD | (_HEAD_OF_STREAMS if is_of_streams else {}), where)
    return RequirementSet(
        path=shown,
        name=head["name"],
        schema=schema,
        sha256=hashlib.sha256(data).hexdigest(),
        requirements=tuple(found),
        pattern=head.get("pattern", ""),
        is_partial=head.get("producers") == "required",
        role=head.get("role", ROLES[0]),
    )


def _table(found: object, where: str) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise RequirementsError(f"{where}: must be a table")
    return cast("dict[str, Any]", found)


def _renamed(table: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return a requirement of an older file by the names of now."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        name = _RENAMED.get(key, key)
        if name in found:
            raise RequirementsError(f"{where}.{key}: {name} stands twice, by two names")
        found[name] = value
    return found


def _check(table: Mapping[str, Any], keys: Keys, where: str) -> None:
    """Refuse what is missing, wrong or unknown."""
    for name, key in keys.items():
        if name not in table:
            if key.is_required:
                raise RequirementsError(f"{where}.{name}: missing")
        elif not key.fits(table[name]):
            raise RequirementsError(f"{where}.{name}: must be {key.wanted}, found {table[name]!r}")
    if unknown := sorted(set(table) - set(keys)):
        raise RequirementsError(f"{where}.{unknown[0]}: unknown key; known here: {', '.join(sorted(keys))}")


def _requirement(table: Mapping[str, Any], where: str) -> Requirement:
    forms = TAKEN.get(str(table.get("quantity")), (_ANY,))
    keys = _COMMON | min(
        forms, key=lambda form: sum(key.is_required and name not in table for name, key in form.items())
    )
    _check(table, keys, where)
    limits = [name for name in _LIMITS if name in table]
    if not limits:
        known = " or ".join(name for name in _LIMITS if name in keys)
        raise RequirementsError(f"{where}.{known}: missing")
    subjects = [(name, str(table[name])) for name in AXES if name in table]
    for several in (limits, [name for name, _value in subjects]):
        if len(several) > 1:
            raise RequirementsError(f"{where}.{several[1]}: cannot stand beside {several[0]}")
    [limit] = limits
    unit, factor = _LIMITS[limit]
    bound, source = table[limit] * factor, table["source"]
    rest = ("samples", "lost", "lost_percent", "lock_within_s", *MASK)
    one = Requirement(
        id=table["id"],
        quantity=table["quantity"],
        statistic=table["statistic"],
        limit=Limit(None, bound, source) if limit.startswith("lower") else Limit(bound, None, source),
        unit=unit,
        subject=subjects[0] if subjects else None,
        **{name: table[name] for name in rest if name in table},
    )
    from_s, to_s = one.mask_from_tau_s, one.mask_to_tau_s
    if not one.mask and (from_s, to_s) != (None, None):
        raise RequirementsError(f"{where}.mask: missing; mask_from_tau_s and mask_to_tau_s are of a mask")
    if from_s is not None and to_s is not None and from_s >= to_s:
        raise RequirementsError(
            f"{where}.mask_to_tau_s: must be above mask_from_tau_s = {from_s:g}, found {to_s:g}"
        )
    return one


def _refuse_double(one: Requirement, others: Iterable[Requirement], where: str) -> None:
    """Refuse an id, or what a quantity of the table is asked for, that stands twice."""
    for other in others:
        if one.id == other.id:
            raise RequirementsError(f"{where}.id: {one.id!r} stands twice")
        same = (one.quantity, one.statistic, one.subject)
        if one.quantity in TAKEN and same == (other.quantity, other.statistic, other.subject):
            key = one.subject[0] if one.subject else "quantity"
            asked = f"{one.statistic} of {one.of or one.quantity}"
            raise RequirementsError(f"{where}.{key}: {asked} has a requirement already, {other.id}")


def sets_of_run(folder: Path, run_id: str) -> list[RequirementSet]:
    """Return the requirements files that a run kept, by name."""
    files = sorted((folder / KEPT).glob("*.toml"))
    found = [read_set(file.read_bytes(), (KEPT / file.name).as_posix()) for file in files]
    return [replace(each, run_ids=(run_id,)) for each in found]
