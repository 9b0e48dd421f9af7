# SPDX-License-Identifier: Apache-2.0
"""What each quantity takes in a file of requirements, whose form is one for suites and dossier.

For users: docs/requirements.md. A run keeps every file that its suites ask by as
`evidence/requirements/NAME.toml`.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from reports.clock_read import verdict as clock_read
from reports.clock_read.readings import CLOCKS
from reports.clock_sync import told_bound
from reports.errors import RequirementsError
from reports.largest_pattern import search as largest_pattern
from reports.latency.stream_groups import STREAM_QUANTITY
from reports.provisioning import verdict as provisioning
from reports.quantities import AXES
from reports.realtime_ethernet import verdict as realtime_ethernet
from reports.record.measurement import Limit
from reports.requirements import ROLES, Requirement, RequirementSet
from reports.run.asked import KEPT
from reports.software_latency.verdict import QUANTITY as SOFTWARE_LATENCY
from reports.timed_edges import verdict as timed_edges
from reports.timed_edges.trial import METHODS
from reports.units import NS_PER_S, NS_PER_US

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
}
"""Unit of the record that a limit is for, and how many of them one is."""


@dataclass(frozen=True, slots=True)
class _Key:
    """What a key may hold, in words and as a check, and whether it has to be there."""

    wanted: str
    fits: Callable[[Any], bool]
    is_required: bool = True


_Keys = dict[str, _Key]


def _text(*choices: str) -> _Key:
    if choices:
        return _Key(f"one of {', '.join(choices)}", lambda value: value in choices)
    return _Key("a text that is not empty", lambda value: isinstance(value, str) and bool(value))


def _whole(low: int, high: int) -> _Key:
    return _Key(f"a whole number in {low}..{high}", lambda value: type(value) is int and low <= value <= high)


def _number(low: float, high: float) -> _Key:
    return _Key(
        f"a number in {low:g}..{high:g}", lambda value: type(value) in (int, float) and low <= value <= high
    )


def _optional(**keys: _Key) -> _Keys:
    return {name: replace(key, is_required=False) for name, key in keys.items()}


def _is_size(value: object) -> bool:
    digits, space, unit = value.partition(" ") if isinstance(value, str) else ("", "", "")
    is_whole = bool(re.fullmatch("[1-9][0-9]{0,4}", digits)) and (space, unit) == (" ", "B")
    return is_whole and 4 <= int(digits) <= 65_507


def _time(low_ns: int, high_ns: int) -> _Keys:
    us = _whole(max(1, low_ns // NS_PER_US), high_ns // NS_PER_US)
    return _optional(upper_us=us, upper_ns=_whole(low_ns, high_ns))


_NAME = _Key("a text or a whole number", lambda value: type(value) in (str, int) and value != "")
_COUNT = _whole(0, 1_000_000_000)
_SAMPLES = _whole(1, 1_000_000_000)
_EDGES = _whole(4, 1_000_000_000)
_LOST_PERCENT = _optional(lost_percent=_number(0, 100))
_MASK = _optional(mask=_text(), mask_from_tau_s=_number(0, 1e6), mask_to_tau_s=_number(0, 1e6))
_SIZE = _Key("a size such as '64 B', 4..65507", lambda value: _is_size(value))
_TO_A_SECOND = _time(1, NS_PER_S)
_HEAD = {"schema": _text(), "name": _text()}
_HEAD_OF_STREAMS = {"pattern": _text()} | _optional(producers=_text("all", "required"), role=_text(*ROLES))
_COMMON = {key: _text() for key in ("id", "quantity", "source")}

TAKEN: dict[str, tuple[_Keys, ...]] = {
    STREAM_QUANTITY: (
        {"stream": _whole(10, 6559), "statistic": _text("max"), "lost": _COUNT}
        | _time(NS_PER_US, 3600 * NS_PER_S),
    ),
    largest_pattern.QUANTITY: ({"statistic": _text("max"), "lower_producers": _whole(0, 655)},),
    "sync_offset": (
        {"clock": _text(), "statistic": _text("max_abs"), "lock_within_s": _whole(1, 86_400)}
        | _TO_A_SECOND
        | _MASK,
        {"clock": _text(), "statistic": _text(*timed_edges.OFFSET_STATISTICS), "samples": _EDGES}
        | _TO_A_SECOND
        | _LOST_PERCENT,
    ),
    **{
        quantity: (
            {"clock": _text(), "statistic": _text(told_bound.STATISTICS[quantity])}
            | {"samples": _whole(1, 10_000_000_000), limit: _whole(least, most)},
        )
        for quantity, limit, least, most in (
            (told_bound.MISSED, "upper_ppm", 0, 1_000_000),
            (told_bound.WIDTH, "upper_ratio", 1, 1000),
            (told_bound.U_MISSED, "upper_ppm", 0, 1_000_000),
            (told_bound.U_WIDTH, "upper_ratio", 1, 1000),
            (told_bound.LEFT_OUT, "upper_ppm", 1, 1_000_000),
            (told_bound.HOLDOVER, "upper_ppb", 1, 1_000_000),
        )
    },
    clock_read.QUANTITY: (
        {"clock": _text(*CLOCKS), "statistic": _text(*clock_read.STATISTICS)}
        | {"samples": _whole(1, 10_000_000_000)}
        | _TO_A_SECOND,
    ),
    timed_edges.QUANTITY: (
        {"method": _text(*METHODS), "statistic": _text(*timed_edges.STATISTICS), "samples": _EDGES}
        | _TO_A_SECOND
        | _LOST_PERCENT,
    ),
    SOFTWARE_LATENCY: (
        {"device": _text(), "statistic": _text("mean"), "samples": _whole(100, 1_000_000_000)} | _TO_A_SECOND,
    ),
    realtime_ethernet.MESSAGE_LATENCY: (
        {"size": _SIZE, "statistic": _text(*realtime_ethernet.QUANTILES), "samples": _SAMPLES, "lost": _COUNT}
        | _TO_A_SECOND,
    ),
    **{
        rise: (
            {"statistic": _text(*realtime_ethernet.QUANTILES), "samples": _SAMPLES, "lost": _COUNT}
            | {"upper_percent": _whole(1, 1_000_000)},
        )
        for rise in realtime_ethernet.RISES
    },
    realtime_ethernet.MESSAGE_THROUGHPUT: (
        {"size": _SIZE, "statistic": _text(realtime_ethernet.MEAN), "samples": _SAMPLES}
        | {"lower_bytes_per_s": _whole(1, 10**12)},
    ),
    provisioning.QUANTITY: (
        {"method": _text(*provisioning.Event), "statistic": _text(provisioning.STATISTIC)}
        | {"upper_facts": _whole(0, 1_000_000)},
    ),
}
"""What a quantity takes besides `_COMMON`; of several forms that which lacks least."""
_ANY: _Keys = (
    {"statistic": _text()}
    | _optional(samples=_COUNT, lost=_COUNT, **dict.fromkeys(AXES, _NAME))
    | _optional(lock_within_s=_COUNT, **dict.fromkeys(_LIMITS, _whole(0, 10**18)))
    | _LOST_PERCENT
    | _MASK
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


def _check(table: Mapping[str, Any], keys: _Keys, where: str) -> None:
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
    rest = ("samples", "lost", "lost_percent", "lock_within_s", *_MASK)
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
