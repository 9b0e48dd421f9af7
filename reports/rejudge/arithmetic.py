# SPDX-License-Identifier: Apache-2.0
"""What a record has to be by itself: U of its parts, margin, and the outcomes that its numbers allow."""

from __future__ import annotations

import math
from collections.abc import Iterator

from reports.rejudge.again import Record, checks, kinds

RULE = "guard-band-U"
SCHEMA = "benchwright.measurement/1"
TOLERANCE = 1e-9
"""Relative, of floating-point sums."""


def discrepancies(record: Record) -> Iterator[str]:
    """Say what of a record contradicts itself; docs/reports.md, `Measurement record`, docs/latency.md."""
    for name, wanted in (("schema", SCHEMA), ("rule", RULE)):
        if record[name] != wanted:
            yield f"{name} is {record[name]!r}"
    known = kinds().get(record["quantity"])
    unit, statistics = (known.unit, known.statistics) if known else (record["unit"], (record["statistic"],))
    if record["unit"] != unit:
        yield f"unit is {record['unit']!r}, a {record['quantity']} is in {unit!r}"
    if record["statistic"] not in statistics:
        yield f"statistic is {record['statistic']!r}, of a {record['quantity']} {' or '.join(statistics)}"
    if record["quantity"] in checks() and record["allowed_lost"]:
        yield f"allowed_lost is {record['allowed_lost']}, a check of the bench may lose nothing"
    u = expanded(record["uncertainty"]["parts"])
    said = record["uncertainty"]["expanded"]
    if not _alike(said, u, slack=1 if isinstance(said, int) else 0):
        yield f"U is {said}, of its parts {u:g}"
    margin = margin_of(record)
    if (margin is None) != (record["margin"] is None) or (
        margin is not None and abs(record["margin"] - margin) > _margin_slack(record)
    ):
        yield f"margin is {record['margin']}, limit and U leave {margin}"
    if record["outcome"] not in allowed_outcomes(record):
        yield f"{record['outcome']}, which value {record['value']}, n {record['n']} and loss do not allow"


def expanded(parts: list[Record]) -> float:
    """Return U = sum of the bounds + 2 * root of the sum of the squared standard deviations."""
    bounds = math.fsum(part["value"] for part in parts if part["kind"] == "bound")
    return bounds + 2 * math.sqrt(
        math.fsum(part["value"] ** 2 for part in parts if part["kind"] == "standard")
    )


def margin_of(record: Record) -> float | None:
    """Return what is left to the nearer limit after U; None without a value."""
    value, limit, u = record["value"], record["limit"], record["uncertainty"]["expanded"]
    if value is None:
        return None
    sides = [limit["upper"] - value - u] if limit["upper"] is not None else []
    sides += [value - limit["lower"] - u] if limit["lower"] is not None else []
    return min(sides, default=None)


def allowed_outcomes(record: Record) -> set[str]:
    """Return the outcomes that the numbers allow: a cause on the bench's side may always leave it open."""
    allowed = {"inconclusive", "error"}
    value, limit, u = record["value"], record["limit"], record["uncertainty"]["expanded"]
    is_lossy = record["lost"] > record["allowed_lost"]
    if is_lossy:
        return allowed | {"fail", "unset"}
    if value is None or record["n"] == 0:
        allowed |= {"unset"}
    if value is None:
        return allowed
    slack = _margin_slack(record)
    over = limit["upper"] is not None and value - limit["upper"] > u - slack
    under = limit["lower"] is not None and limit["lower"] - value > u - slack
    if over or under:
        allowed |= {"fail"}
    margin = margin_of(record)
    if margin is not None and margin >= -slack and record["n"] >= record["n_required"]:
        allowed |= {"pass"}
    return allowed


def _margin_slack(record: Record) -> float:
    """Return by how much a margin may differ in another order: of its terms' size, whole numbers not at all.

    What is left of large terms may be as small as their rounding.
    """
    limit = record["limit"]
    terms = [record["value"], limit["upper"], limit["lower"], record["uncertainty"]["expanded"]]
    known: list[float] = [term for term in terms if term is not None]
    if all(isinstance(term, int) for term in known):
        return 0
    return TOLERANCE * max(map(abs, known))


def _alike(said: float, found: float, slack: float = 0) -> bool:
    return abs(said - found) <= max(slack, TOLERANCE * max(abs(said), abs(found)))
