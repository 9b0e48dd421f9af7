# SPDX-License-Identifier: Apache-2.0
"""The decision rule over one value, and what a record says beside it; docs/latency.md, `The decision`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from reports.rejudge.again import Record

EXTREMES = ("max", "min", "max_abs", "peak_to_peak")
"""Statistics of which one sample alone shows that a limit is broken."""


def outcome_of(record: Record, value: float | None, n: int) -> str:
    """Return what a value comes to by limit, U, samples and losses of its record.

    Args:
        record: Its own value and n do not count.
        value: As worked out, in the unit of the record; None: there is none.
        n: Samples that it was worked out from.
    """
    if record["lost"] > record["allowed_lost"]:
        return "fail"
    if value is None or not n:
        return "unset"
    u, is_short = record["uncertainty"]["expanded"], n < record["n_required"]
    if beyond(record, value) > u and (not is_short or record["statistic"] in EXTREMES):
        return "fail"
    if is_short or not _has_room(record["limit"], u):
        return "inconclusive"
    return "pass" if beyond(record, value) <= -u else "inconclusive"


def outcome_problems(record: Record, n: int, says: str = "its value comes to") -> Iterator[str]:
    """Say whether a record's outcome is another than its own value's; `says`: by what, with its verb."""
    outcome = outcome_of(record, record["value"], n)
    if record["outcome"] != outcome:
        yield f"{record['outcome']}, {says} {outcome}"


def beyond(record: Record, value: float) -> float:
    """Return by how much a value lies over the upper or under the lower limit; negative: inside both."""
    upper, lower = record["limit"]["upper"], record["limit"]["lower"]
    sides = [value - upper] if upper is not None else []
    sides += [lower - value] if lower is not None else []
    return max(sides)


def _has_room(limit: Mapping[str, float | None], u: float) -> bool:
    """Say whether any value at all could pass; one limit alone counts from 0."""
    upper, lower = limit["upper"], limit["lower"]
    if upper is not None and lower is not None:
        return upper - lower > 2 * u
    if upper is not None:
        return upper > u or upper == u == 0
    return lower is None or lower >= 0 or -lower > u


def value_discrepancies(
    record: Record, value: float | None, n: int, says: str, unit: str = "ns"
) -> Iterator[str]:
    """Say where value, samples, losses or unit are not those worked out; `says`: by what, with its verb."""
    for name, said, found in (("value", record["value"], value), ("n", record["n"], n)):
        if said != found:
            yield f"{name} is {said}, {says} {found}"
    if record.get("unit", unit) != unit:
        yield f"unit is {record['unit']}, must be {unit}"
    if record["lost"] or record["allowed_lost"]:
        yield f"{record['lost']} lost, {record['allowed_lost']} allowed: nothing can be lost here"


def part_discrepancies(
    record: Record, wanted: Mapping[str, float], says: str, standard: Collection[str] = ()
) -> Iterator[str]:
    """Say where the parts of U are not those worked out.

    Args:
        record: Its parts are looked at.
        wanted: Name → value.
        says: What they were worked out from, with its verb.
        standard: Names of those that are standard deviations; the others are bounds.
    """
    parts = record["uncertainty"]["parts"]
    said = {part["name"]: part["value"] for part in parts}
    if said != wanted or len(said) != len(parts):
        yield f"parts of U are {said}, {says} {dict(wanted)}"
    for part in parts:
        if (part["kind"] == "standard") != (part["name"] in standard):
            yield f"part {part['name']} of U is of kind {part['kind']}"


def number_discrepancies(record: Record, wanted: Mapping[str, float]) -> Iterator[str]:
    """Say where numbers among a record's conditions are not those worked out; runs of before lack some."""
    for each in record["conditions"]["numbers"]:
        here = wanted.get(each["name"], each["value"])
        if each["value"] != here:
            yield f"{each['name']} is {each['value']}, the evidence says {here}"


def limit_discrepancies(record: Record, upper: float, lower: float, says: str) -> Iterator[str]:
    """Say where the limits are not those worked out, in whole ns; rounding may differ by one."""
    for name, found in (("upper", upper), ("lower", lower)):
        said = record["limit"][name]
        if said is None or abs(said - found) > 1:
            yield f"{name} limit is {said}, {says} {found:g}"
