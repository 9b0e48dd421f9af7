# SPDX-License-Identifier: Apache-2.0
"""Witnesses of one clock that have to agree, worked out again: docs/timed-edges.md, docs/reports.md.

E_n of two is worked out from `witnesses.json`; each witness from what it saw, where that lies beside it: the
edges that a network card captured, the comparison with the reference meanwhile, the edges on the
oscilloscope.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from reports.rejudge.again import Record
from reports.rejudge.arithmetic import expanded
from reports.rejudge.edge_budget import ART_TICK_NS, CARD_TICK_NS
from reports.rejudge.edge_trial import TRIAL, EdgeTrial, Part
from reports.rejudge.latency import read_result
from reports.rejudge.rounding import alike, slack_of

WITNESSES = "witnesses.json"
SAMPLES_MIN = 4
NS_PER_S = 1_000_000_000

Json = Mapping[str, Any]


def witness_discrepancies(record: Record, file: Path) -> Iterator[str]:
    """Say what of a record the witnesses contradict, and where they are not what they saw."""
    document = json.loads(file.read_text("utf-8"))
    witnesses = {each["name"]: each for each in document["witnesses"]}
    if record["subject"].get("clock") != document["clock"]:
        yield f"is of the clock {record['subject'].get('clock')}, the witnesses of {document['clock']}"
    for each in witnesses.values():
        yield from (
            f"{part['name']} of {each['name']} is below 0" for part in each["parts"] if part["value_ns"] < 0
        )
    first, _, second = str(record["subject"].get("method")).partition("/")
    if first not in witnesses or second not in witnesses or first == second:
        yield f"is of {first} and {second}, the witnesses are {', '.join(witnesses)}"
        return
    both = [witnesses[first], witnesses[second]]
    value = _en(both[0], both[1])
    n = 0 if value is None else min(each["n"] for each in both)
    if not alike(record["value"], value) or record["n"] != n:
        yield f"E_n is {record['value']} of {record['n']}, the witnesses say {value} of {n}"
    if (record["limit"]["upper"], record["limit"]["lower"]) != (1, None) or record["uncertainty"]["parts"]:
        yield "is not held against 1, or has parts of U"
    allowed = _outcomes(record, value, n, is_doubtful=any(each.get("doubts") for each in both))
    if record["outcome"] not in allowed:
        yield f"{record['outcome']}, the witnesses come to {' or '.join(sorted(allowed))}"
    for found in _seen_again(file.parent):
        if found["name"] in (first, second):
            yield from _differences(witnesses[found["name"]], found)


def _en(one: Json, other: Json) -> float | None:
    """Return E_n = |x1 - x2| / sqrt(U1² + U2²); None: it has no value."""
    if one["offset_ns"] is None or other["offset_ns"] is None:
        return None
    both = math.hypot(*(expanded(_of_u(each["parts"])) for each in (one, other)))
    apart = abs(one["offset_ns"] - other["offset_ns"])
    if not both:
        return None if apart else 0.0
    return apart / both


def _of_u(parts: Sequence[Json]) -> list[Json]:
    return [{"kind": part["kind"], "value": part["value_ns"]} for part in parts]


def _outcomes(record: Record, value: float | None, n: int, *, is_doubtful: bool) -> set[str]:
    """Witnesses that contradict each other leave it open: it is the bench that does."""
    if value is None or not n:
        return {"unset"}
    if n < record["n_required"]:
        return {"inconclusive"}
    slack = slack_of(value)
    passes = {each <= 1 and not is_doubtful for each in (value - slack, value, value + slack)}
    return {"pass" if each else "inconclusive" for each in passes}


def _seen_again(folder: Path) -> Iterator[Json]:
    """Yield what witnesses come to by the files beside theirs, as far as these are there."""
    captures = sorted(folder.glob("edge-capture-*.ndjson"))
    if not (folder / TRIAL).exists():
        return
    trial = EdgeTrial(folder)
    answer = read_result(captures[-1]) if captures else None
    instants = [int(instant) for _, instant in answer["captures"]] if answer else []
    period_ns = trial.data["period_ns"]
    offsets = [_offset_of(instant, period_ns) for instant in instants]
    if captures:
        yield _captured(offsets)
    points = _points(folder / "compare", instants)
    if points is not None:
        yield _compared(folder / "compare", points)
    if instants:
        yield _on_oscilloscope(trial, instants, offsets)
    elif points is not None:
        yield _on_oscilloscope(trial, [int(row[0]) for row in points], [row[2] for row in points])


def _offset_of(instant: int, period_ns: int) -> int:
    """Return how far a clock is ahead that made an edge at the nearest of its full periods."""
    late = instant % period_ns
    return -late if late < period_ns - late else period_ns - late


def _captured(offsets: Sequence[int]) -> Json:
    n = len(offsets)
    if n < SAMPLES_MIN:
        return _witness("captured-edge", None, n, ())
    parts: list[Part] = [
        ("jitter", "standard", stdev(offsets) / math.sqrt(n)),
        ("resolution", "bound", CARD_TICK_NS),
        ("pin_resolution", "bound", ART_TICK_NS / 2),
    ]
    return _witness("captured-edge", fmean(offsets), n, parts)


def _points(compare: Path, instants: Sequence[int]) -> list[Sequence[float]] | None:
    """Return the rows of the comparison while edges were captured; None: there is no comparison."""
    answer = read_result(compare / "filtered.ndjson")
    if answer is None:
        return None
    rows: list[Sequence[float]] = answer["series"]["rows"]
    return [row for row in rows if instants[0] <= row[0] <= instants[-1]] if instants else rows


def _compared(compare: Path, points: Sequence[Sequence[float]]) -> Json:
    answer: Json = read_result(compare / "filtered.ndjson") or {}
    facts: Json = json.loads((compare / "trial.json").read_text("utf-8"))
    n = sum(int(row[1]) for row in points)
    parts: list[Part] = []
    if answer["reference_bound_ns"] is not None:
        parts.append(("reference", "bound", answer["reference_bound_ns"]))
    if facts["timecard"]["bound_ns"]:
        parts.append(("timecard_certificate", "bound", facts["timecard"]["bound_ns"]))
    parts.append(("bracket", "bound", (answer["window"]["max_ns"] or 0) // 2))
    if not n:
        return _witness("cross-timestamps", None, 0, ())
    return _witness("cross-timestamps", math.fsum(row[1] * row[2] for row in points) / n, n, parts)


def _on_oscilloscope(trial: EdgeTrial, times: Sequence[int], offsets: Sequence[float]) -> Json:
    """The oscilloscope is blind while it is read: the clock's wander meanwhile is part of its U."""
    parts = trial.parts("mean")
    if parts is None or trial.delays is None:
        return _witness("oscilloscope", None, trial.n, ())
    wander = 0.0
    if len(offsets) > 1:
        wander = stdev(offsets) / math.sqrt(max(1.0, (times[-1] - times[0]) / NS_PER_S))
    return _witness("oscilloscope", trial.offset("mean"), trial.n, [*parts, ("wander", "standard", wander)])


def _witness(name: str, offset: float | None, n: int, parts: Sequence[Part]) -> Json:
    return {
        "name": name,
        "offset_ns": offset,
        "n": n,
        "parts": [{"name": name, "kind": kind, "value_ns": value} for name, kind, value in parts],
    }


def _differences(said: Json, found: Json) -> Iterator[str]:
    if not alike(said["offset_ns"], found["offset_ns"]) or said["n"] != found["n"]:
        yield (
            f"{said['name']} says {said['offset_ns']} ns by {said['n']}, it saw {found['offset_ns']} by"
            f" {found['n']}"
        )
    parts = [
        {part["name"]: (part["kind"], part["value_ns"]) for part in each["parts"]} for each in (said, found)
    ]
    if parts[0].keys() != parts[1].keys() or not all(
        parts[0][name][0] == kind and alike(float(parts[0][name][1]), value)
        for name, (kind, value) in parts[1].items()
    ):
        yield f"parts of U of {said['name']} are {parts[0]}, it saw {parts[1]}"
