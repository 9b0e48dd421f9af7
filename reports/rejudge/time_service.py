# SPDX-License-Identifier: Apache-2.0
"""What readers of the time service were told, held against the service's own log: docs/time-service.md.

Readers add to what was published and take nothing away, so what they are told is never less than what the
log says: a U is at least the least U of a batch, unless the interval cut it; an interval has the root
distance of the server to either side. When a reading was, the server's own stamps say beside the machine's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from reports.rejudge.answers import json_lines

FORMAT = "bw-timed"
HOLD = "hold"
NS_PER_S = 1_000_000_000
APART_NS = 3_600 * NS_PER_S
"""A server's stamp and the end of its batch lie far less apart, and a pause or step of the bench, too."""
WITHOUT_TIME = ("monotonic-raw", "tsc")
"""Kinds of reference that count from some start and show no time."""

Json = Mapping[str, Any]


def service_discrepancies(answer: Json, facts: Json, folder: Path) -> Iterator[str]:
    """Say where an answer is not of what the service in the trial's folder has published, or of that time.

    Args:
        answer: Of `bw-clock compare`, whose device tells its bound.
        facts: Of the trial.
        folder: Of the trial.
    """
    told = answer.get("device_bound")
    if not told:
        return
    yield from _size_discrepancies(answer, told)
    if facts.get("servo_format") != FORMAT:
        return
    log = folder / facts["servo_log"]
    lines = [line for text in json_lines(log) if (line := _object(text)) is not None] if log.exists() else []
    syncs = [line for line in lines if line.get("type") == "sync" and line.get("bound_ns") is not None]
    for sync in syncs:
        yield from (f"{log.name}: {each}" for each in _sync_discrepancies(sync))
    began_ns = answer.get("start_monotonic_ns")
    servers = [len(line["servers"]) for line in lines if line.get("type") == "ready" and "servers" in line]
    is_whole = began_ns is not None and any(sync["monotonic_ns"] < began_ns for sync in syncs)
    if told["bound_checked"] and servers == [1] and is_whole:
        yield from _published_discrepancies(told, syncs, lines)
    yield from _time_discrepancies(answer, list(_served(lines)))


def _object(text: str) -> Json | None:
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return cast("Json", found) if isinstance(found, dict) else None


def _size_discrepancies(answer: Json, told: Json) -> Iterator[str]:
    """U is never more than the interval, and an error that was inside is no larger than what was told.

    A single reading may have more: a handle's time that stands is ahead of the line, and U has that besides.
    """
    if "u" not in told or not told["bound_checked"]:
        return
    for name in ("p50_ns", "p90_ns"):
        if told["u"][name] > told["bound"][name]:
            yield f"device_bound.u.{name} is {told['u'][name]}, that of the interval {told['bound'][name]}"
    farthest_ns = max(abs(answer["offset"]["min_ns"]), abs(answer["offset"]["max_ns"]))
    for form in ("bound", "u"):
        if not told[f"{form}_missed"] and farthest_ns > told[form]["max_ns"]:
            yield f"{form}_missed is 0, an offset of {farthest_ns} ns is beyond {told[form]['max_ns']}"


def _sync_discrepancies(sync: Json) -> Iterator[str]:
    """Hold what a batch published against the line that it was made of; older logs have no line."""
    at = f"sync at {sync['monotonic_ns']}"
    if sync["u_ns"] > sync["bound_ns"]:
        yield f"{at}: u_ns is {sync['u_ns']}, bound_ns {sync['bound_ns']}"
    if "line_u_ns" not in sync:
        return
    least_ns = max(sync["line_low_ns"], sync["line_high_ns"])
    if sync["bound_ns"] < least_ns:
        yield f"{at}: bound_ns is {sync['bound_ns']}, its line has {least_ns}"
    if sync["u_ns"] < min(sync["bound_ns"], sync["line_u_ns"]):
        yield f"{at}: u_ns is {sync['u_ns']}, its line has {sync['line_u_ns']}"


def _published_discrepancies(told: Json, syncs: Sequence[Json], lines: Sequence[Json]) -> Iterator[str]:
    """With one server nothing but a batch gives a smaller U, and each exchange counts with its R."""
    if "u" in told:
        least_ns = min(told["bound"]["min_ns"], *(sync["u_ns"] for sync in syncs))
        if told["u"]["min_ns"] < least_ns:
            yield f"device_bound.u.min_ns is {told['u']['min_ns']}, the service published {least_ns} and more"
    distances_ns = _root_distances_ns(lines)
    if distances_ns and told["bound"]["min_ns"] < min(distances_ns):
        yield (
            f"device_bound.bound.min_ns is {told['bound']['min_ns']}, the server's root distance"
            f" {min(distances_ns)} and more"
        )


def _root_distances_ns(lines: Sequence[Json]) -> list[int]:
    """Return each root distance; it is told where it changes, and is 0 at first."""
    exchanges = [line for line in lines if line.get("type") == "exchange"]
    if not exchanges or "root_distance_ns" not in exchanges[0]:
        return []
    return [line["root_distance_ns"] for line in exchanges if "root_distance_ns" in line]


def _time_discrepancies(answer: Json, served: Sequence[tuple[int, int]]) -> Iterator[str]:
    """Hold the answer's times against each other and the server's stamps.

    Args:
        answer: Of `bw-clock compare`.
        served: Of each batch its end by the machine's monotonic clock, and the server's last stamp, UTC; ns.
    """
    begin_ns, began_ns = answer["start_tai_ns"], answer.get("start_monotonic_ns")
    rows = answer["series"]["rows"]
    if rows and not begin_ns <= rows[-1][0] <= begin_ns + answer["elapsed_ns"] + APART_NS:
        yield f"its series ends at {rows[-1][0]}, it began at {begin_ns} and took {answer['elapsed_ns']} ns"
    if began_ns is None or not served or answer["reference"]["kind"] in WITHOUT_TIME:
        return
    monotonic_ns, utc_ns = min(served, key=lambda each: abs(each[0] - began_ns))
    tai_ns = utc_ns + (answer["device"].get("tai_utc_s") or 0) * NS_PER_S + began_ns - monotonic_ns
    if abs(tai_ns - begin_ns) > APART_NS:
        yield f"start_tai_ns is {begin_ns}, the server showed {tai_ns} then"


def _served(lines: Sequence[Json]) -> Iterator[tuple[int, int]]:
    stamp_ns: int | None = None
    for line in lines:
        if line.get("type") == "exchange":
            stamp_ns = line["t2_utc_ns"]
        elif line.get("type") == "sync" and line.get("state") != HOLD and stamp_ns is not None:
            yield line["monotonic_ns"], stamp_ns
