# SPDX-License-Identifier: Apache-2.0
"""Each device's software latency, worked out again from every round trip (docs/software-latency.md).

Value, n, and what other devices and quarters of the time add to U, exactly. The scatter of the trips is
worked out another way, by means of blocks of turns, so that U agrees within a factor. Where the pairs
contradict each other grossly the part for it has to be there.
"""

from __future__ import annotations

import csv
import itertools
import json
import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean, variance
from typing import Any

from reports.rejudge.again import Record
from reports.rejudge.each import judge_each, judge_files
from reports.rejudge.latency import read_result
from reports.rejudge.machine import Pause, less_target
from reports.rejudge.path_shift import student_t
from reports.rejudge.round_trip_series import series_discrepancies
from reports.rejudge.version import WITH_EVERY_CYCLE, version_of

DEVICE, SUMS = "software_latency", "software_latency_closure"
FILE = "round_trips.json"
PPB = 1_000_000_000
QUARTERS = 4
TRIPS_MIN = 25
"""Of a pair in a quarter of the time."""
REPLIES_MIN, HEARD_SHARE = 100, 0.75
"""A direction with fewer is silent, and one whose last reply came before that share of the turns."""
U_FACTOR = 4.0
"""Two ways to tell the scatter of few blocks differ by less."""
BLOCKS = 16
COVERAGE = 0.9545
GROSS = 12.0
"""Sums that contradict each other by so many standard uncertainties do so whatever way these were found."""

Json = Mapping[str, Any]
Kind = tuple[str, str]
Vector = list[float]


@dataclass(frozen=True)
class Pair:
    """One direction.

    Attributes:
        asker: Name of the device that asked.
        reflector: Name of the other.
        trips_ns: Round trips that count.
        turns: Turn of each; None: one direction was measured after the other.
        last_turn: Of all its trips.
        hardware_ns: By how much each cable and switch may be off in what was taken off, by its name.
    """

    asker: str
    reflector: str
    trips_ns: list[int]
    turns: list[int] | None
    last_turn: int
    hardware_ns: Mapping[str, int]


class Pauses:
    """When the machine was away: asked whether an interval touches one."""

    def __init__(self, pauses: Sequence[Pause]) -> None:
        """Take in the start and the end of each; of several processors they overlap."""
        ordered = sorted(pauses)
        self._starts = [start for start, _end in ordered]
        self._ends = list(itertools.accumulate((end for _start, end in ordered), max))

    def touch(self, begin_ns: int, end_ns: int) -> bool:
        """Say whether one begins before the end, and ends after the beginning."""
        before = bisect_left(self._starts, end_ns)
        return before > 0 and self._ends[before - 1] > begin_ns


def software_latency_discrepancies(run: Path, records: Sequence[Record]) -> tuple[list[str], int]:
    """Work out value, n, U and what adds to it; see `judge_each`."""
    told = judge_files(run, records, FILE, series_discrepancies)
    count = 0
    every_cycle = any(record["quantity"] == DEVICE for record in records) and _counts_every_cycle(run)
    for quantity, judge in ((DEVICE, partial(_judge_device, every_cycle)), (SUMS, _judge_sums)):
        found, worked_out = judge_each(run, records, quantity, FILE, judge)
        told += found
        count += worked_out
    return told, count


def _counts_every_cycle(run: Path) -> bool:
    """Say whether the version that wrote a run held contradictions in all cycles; no version: the newest."""
    version = version_of(run, json.loads((run / "run.json").read_text("utf-8")))
    return not version or version >= WITH_EVERY_CYCLE


def _judge_device(every_cycle: bool, record: Record, file: Path) -> Iterator[str]:
    facts, pairs = _read(file)
    kinds = {each["name"]: (str(each["hardware"]), str(each["software"])) for each in facts["devices"]}
    yield from _silence_discrepancies(facts, file.parent)
    yield from _size_discrepancies(record, facts)
    device = next(
        (axis["value"] for axis in record["subject"].get("axes", ()) if axis["axis"] == "device"), ""
    )
    told = _told(pairs, kinds)
    if kinds.get(device) in told:
        heard = [each for each in pairs if {kinds[each.asker], kinds[each.reflector]} <= told]
        own = {k: v for k, v in kinds.items() if v in told}
        yield from _of_device(record, kinds[device], own, heard, every_cycle)
    elif device in kinds:
        if record["value"] is not None or record["outcome"] != "inconclusive":
            yield f"{device!r} is not told by those round trips that had replies"
    elif record["value"] is not None or record["outcome"] != "unset":
        yield f"is of the device {device!r}, which made no round trips"


def _judge_sums(record: Record, file: Path) -> Iterator[str]:
    facts, pairs = _read(file)
    yield from _size_discrepancies(record, facts)
    waiting = {each.get(key) for each in facts["injected"] for key in ("device", "control")}
    left_out = set(facts.get("left_out_of_sums") or ()) & waiting
    yield from _of_sums(record, pairs, [not {each.asker, each.reflector} & left_out for each in pairs])


def _silence_discrepancies(facts: Json, folder: Path) -> Iterator[str]:
    """Say which direction is called silent although its series has replies, up to the end of its turns."""
    clocks = {each["device"]: each for each in facts["clocks"]}
    for each in facts["exchanges"]:
        if not each.get("silent") or not (folder / each["series"]).exists():
            continue
        pair = _pair(folder, facts, each, clocks.get(each["asker"]), Pauses(()))
        grid = facts.get("turns")
        is_heard = not grid or pair.last_turn + 1 > grid["count"] * HEARD_SHARE
        if is_heard and len(pair.trips_ns) >= REPLIES_MIN:
            names = f"{each['asker']} and {each['reflector']}"
            yield f"{names} are called silent, and {len(pair.trips_ns)} replies are there"


def _size_discrepancies(record: Record, facts: Json) -> Iterator[str]:
    said = {each["name"]: each["value"] for each in record["conditions"].get("numbers", ())}
    if said.get("size_bytes") != facts["size_bytes"]:
        yield f"is of {said.get('size_bytes')} bytes, the round trips of {facts['size_bytes']}"


def _read(file: Path) -> tuple[Json, list[Pair]]:
    facts: Json = json.loads(file.read_text("utf-8"))
    witness = file.parent / "witness.ndjson"
    pauses = _pauses(witness) if witness.exists() else Pauses(())
    clocks = {each["device"]: each for each in facts["clocks"]}
    return facts, [
        _pair(file.parent, facts, each, clocks.get(each["asker"]), pauses)
        for each in facts["exchanges"]
        if not each.get("silent")
    ]


def _told(pairs: Sequence[Pair], kinds: Mapping[str, Kind]) -> set[Kind]:
    """Return the kinds that pairs tell: those joined to two ends that no two colours can part."""
    links = [(kinds[each.asker], kinds[each.reflector]) for each in pairs]
    told: set[Kind] = set()
    colours: dict[Kind, int] = {}
    for first in {kind for link in links for kind in link}:
        if first in colours:
            continue
        colours[first] = 0
        part, is_odd = [first], False
        for kind in part:  # which grows
            for link in links:
                if kind in link:
                    other = link[1] if link[0] == kind else link[0]
                    if other not in colours:
                        colours[other] = 1 - colours[kind]
                        part.append(other)
                    is_odd |= colours[other] == colours[kind]
        told |= set(part) if is_odd else set()
    return told


def _pauses(witness: Path) -> Pauses:
    answer = read_result(witness)
    if answer is None:
        raise ValueError(f"{witness.name}: no result")
    return Pauses(less_target(answer, 0, claimed=True))


def _pair(folder: Path, facts: Json, exchange: Json, clock: Json | None, pauses: Pauses) -> Pair:
    """Read the trips of a direction that had a reply and no pause of the machine."""
    grid = facts.get("turns")
    trips_ns: list[int] = []
    turns: list[int] = []
    last_turn = 0
    with (folder / exchange["series"]).open(newline="") as file:
        for row in csv.DictReader(file):
            if not row["round_trip_ns"]:
                continue
            whole_ns = int(row["round_trip_ns"])
            sent_ns, bound_ns = _by_reference(int(row["t1_local_tai_ns"]), clock)
            turn = (sent_ns - grid["first_tai_ns"]) // (grid["every_us"] * 1000) if grid else 0
            last_turn = max(last_turn, turn)
            if clock is not None and pauses.touch(sent_ns - bound_ns, sent_ns + whole_ns + bound_ns):
                continue
            trips_ns.append(whole_ns - int(row["residence_ns"]) - exchange["hardware_ns"])
            turns.append(turn)
    bounds_ns = {each["name"]: each["ns"] for each in exchange.get("hardware_bounds") or ()}
    names = exchange["asker"], exchange["reflector"]
    return Pair(*names, trips_ns, turns if grid else None, last_turn, bounds_ns)


def _by_reference(local_ns: int, clock: Json | None) -> tuple[int, int]:
    """Return an instant by the reference clock, and how far that may be off."""
    if clock is None:
        return local_ns, 0
    apart_ns = local_ns - clock["offset_ns"] - clock["at_reference_tai_ns"]
    lag_ns = apart_ns * clock["rate_ppb"] // (PPB + clock["rate_ppb"])
    return clock["at_reference_tai_ns"] + apart_ns - lag_ns, clock["bound_ns"]


def _of_device(
    record: Record, kind: Kind, kinds: Mapping[str, Kind], pairs: Sequence[Pair], every_cycle: bool
) -> Iterator[str]:
    order = list(dict.fromkeys(kinds.values()))
    place = order.index(kind)
    rows = [[float([kinds[p.asker], kinds[p.reflector]].count(each)) for each in order] for p in pairs]
    means = [fmean(each.trips_ns) for each in pairs]
    weights = [len(each.trips_ns) / max(variance(each.trips_ns), 1e-9) for each in pairs]
    share = [weights_of[place] for weights_of in _solver(rows, weights)]
    value = _sum(share, means)
    n = min(len(p.trips_ns) for p, row in zip(pairs, rows, strict=True) if row[place])
    # Without turns, as in runs of before, pairs were weighed by what random numbers said.
    slack = 1 if pairs[0].turns is not None else record["uncertainty"]["expanded"]
    if record["value"] is None or abs(record["value"] - value) > slack or record["n"] != n:
        yield f"S is {record['value']} of {record['n']}, the round trips say {value:.0f} of {n}"
        return
    parts = {each["name"]: each["value"] for each in record["uncertainty"]["parts"]}
    standard = _scatter(share, pairs)
    if standard and not standard / U_FACTOR <= parts.get("round_trips", 0) <= standard * U_FACTOR:
        yield f"scatter is {parts.get('round_trips')}, blocks of the round trips say {standard:.0f}"
    yield from _hardware_discrepancies(share, pairs, parts)
    found = _parts(place, rows, means, share, value, pairs)
    if every_cycle:
        left_over = math.ceil(_left_over(place, rows, weights, means))
        found["device_dependence"] = max(found["device_dependence"], float(left_over))
    for name, said in parts.items():
        if name not in ("round_trips", "hardware") and (name not in found or abs(said - found[name]) > 1.5):
            yield f"part {name} of U is {said}, the round trips say {found.get(name)}"
    if every_cycle:
        have_to_be_zero = _residuals(rows, weights)
    else:  # pairs of one kind close in more ways than the contrasts of devices
        is_plain = len(order) == len(kinds) < len(pairs)
        have_to_be_zero = _contrasts(pairs) if is_plain else []
    if "device_dependence" not in parts and _is_gross(have_to_be_zero, means, pairs):
        yield "the pairs contradict each other, and U has no part for it"


def _hardware_discrepancies(
    share: Vector, pairs: Sequence[Pair], parts: Mapping[str, float]
) -> Iterator[str]:
    """Hold the part for cables and switches against what the pairs leave of each: it may cancel."""
    names = {name for each in pairs for name in each.hardware_ns}
    left = [_sum(share, [each.hardware_ns.get(name, 0) for each in pairs]) for name in names]
    bound = math.fsum(map(abs, left))
    if abs(parts.get("hardware", 0) - bound) > 1.5:
        yield f"part hardware of U is {parts.get('hardware')}, cables and switches say {bound:.0f}"


def _parts(
    place: int, rows: list[Vector], means: Vector, share: Vector, value: float, pairs: Sequence[Pair]
) -> dict[str, float]:
    """Return what other devices and quarters of the time add to U, in ns."""
    farthest = 0.0
    two = [index for index, row in enumerate(rows) if max(row) == 1]
    for index, row in enumerate(rows):
        if row[place] == 2:
            farthest = max(farthest, abs(means[index] / 2 - value))
    for three in itertools.combinations(two, 3):
        ends = [frozenset(kind for kind, times in enumerate(rows[index]) if times) for index in three]
        every = frozenset[int]().union(*ends)
        if len(set(ends)) == len(every) == 3 and place in every:
            signed = [
                means[index] * (1 if place in own else -1) for index, own in zip(three, ends, strict=True)
            ]
            farthest = max(farthest, abs(sum(signed) / 2 - value))
    found = {"device_dependence": float(math.ceil(farthest))}
    if all(each.turns is not None for each in pairs):
        last = max(each.last_turn for each in pairs)
        moved = 0.0
        for quarter in range(QUARTERS):
            own: Vector = []
            for each in pairs:
                both = zip(each.turns or [], each.trips_ns, strict=True)
                part = [trip for turn, trip in both if turn * QUARTERS // (last + 1) == quarter]
                if len(part) < TRIPS_MIN:
                    return found
                own.append(fmean(part))
            moved = max(moved, abs(_sum(share, own) - value))
        found["block_variation"] = float(math.ceil(moved))
    return found


def _left_over(place: int, rows: list[Vector], weights: Vector, means: Vector) -> float:
    """Return how far S may be off by what pairs contradict each other in cycles of any length, in ns.

    The farthest of S without each pair in turn, and of Student's t for the scatter of the residuals of the
    pairs that are joined to the device.
    """
    solver = _solver(rows, weights)
    share = [each[place] for each in solver]
    value = _sum(share, means)
    farthest = 0.0
    for index in range(len(rows)):
        rest = [i for i in range(len(rows)) if i != index]
        try:
            without = _solver([rows[i] for i in rest], [weights[i] for i in rest])
        except ArithmeticError:
            continue  # it alone tells a device, and contradicts nothing
        other = _sum([each[place] for each in without], [means[i] for i in rest])
        farthest = max(farthest, abs(other - value))
    joined = {place}
    for _ in rows:
        joined |= {
            kind for row in rows if any(row[k] for k in joined) for kind, times in enumerate(row) if times
        }
    own = [index for index, row in enumerate(rows) if any(row[k] for k in joined)]
    freedom = len(own) - len(joined)
    if freedom < 1:
        return farthest
    signs = _residuals(rows, weights)
    squares = sum(_sum(signs[i], means) ** 2 for i in own) / sum(_sum(signs[i], signs[i]) for i in own)
    return max(farthest, student_t(freedom, COVERAGE) * math.sqrt(squares * _sum(share, share)))


def _residuals(rows: list[Vector], weights: Vector) -> list[Vector]:
    """Return of each pair the weighted sum of all that least squares leave over of it."""
    solver = _solver(rows, weights)
    return [[float(i == j) - _sum(row, each) for j, each in enumerate(solver)] for i, row in enumerate(rows)]


def _of_sums(record: Record, pairs: Sequence[Pair], counted: Sequence[bool]) -> Iterator[str]:
    """Hold the differences of sums that have to agree against the record, which is of the worst of them."""
    means = [fmean(each.trips_ns) for each in pairs]
    differences = [(abs(_sum(signs, means)), signs) for signs in _contrasts(pairs, counted)]
    if not differences:
        if record["outcome"] != "unset":
            yield "no two sums of these round trips have to agree"
        return
    n = min(len(each.trips_ns) for each in pairs)
    value = math.inf if record["value"] is None else record["value"]
    nearest, signs = min(differences, key=lambda each: abs(each[0] - value))
    if abs(nearest - value) > 1 or record["n"] != n:
        said = f"{record['value']} of {record['n']}"
        yield f"the difference is {said}, the round trips say {nearest:.0f} of {n}"
        return
    if record["outcome"] == "pass":
        yield from _no_pass(differences, pairs, record["limit"]["upper"])
    parts = {each["name"]: each["value"] for each in record["uncertainty"]["parts"]}
    standard, said = _scatter(signs, pairs), parts.get("round_trips", 0)
    if standard and not standard / U_FACTOR <= said <= standard * U_FACTOR:
        yield f"its scatter is {said}, blocks of the round trips say {standard:.0f}"
    yield from _hardware_discrepancies(signs, pairs, parts)


def _no_pass(
    differences: Sequence[tuple[float, Vector]], pairs: Sequence[Pair], limit_ns: float
) -> Iterator[str]:
    """Say which sums are no pass, even with the least U that blocks of their round trips may come to."""
    for difference, signs in differences:
        least_u = 2 * (_scatter(signs, pairs) or 0.0) / U_FACTOR
        if difference + least_u > limit_ns + 1:
            yield f"pass, though two sums differ by {difference:.0f}, U at least {least_u:.0f}"
            return


def _sum(weights: Vector, values: Vector) -> float:
    return math.fsum(weight * value for weight, value in zip(weights, values, strict=True))


def _contrasts(pairs: Sequence[Pair], counted: Sequence[bool] | None = None) -> list[Vector]:
    """Return sums of pairs that have to be zero: roles swapped, and two ways to add four devices."""
    roles: dict[tuple[str, str], list[int]] = {}
    for index, each in enumerate(pairs):
        if counted is None or counted[index]:
            roles.setdefault((each.asker, each.reflector), []).append(index)

    def of_role(role: tuple[str, str]) -> Vector:
        own = roles[role]
        return [1 / len(own) if index in own else 0.0 for index in range(len(pairs))]

    links: dict[frozenset[str], Vector] = {}
    found: list[Vector] = []
    for asker, reflector in roles:
        one = of_role((asker, reflector))
        if (reflector, asker) in roles:
            other = of_role((reflector, asker))
            if asker < reflector:
                found.append([a - b for a, b in zip(one, other, strict=True)])
            one = [(a + b) / 2 for a, b in zip(one, other, strict=True)]
        links[frozenset((asker, reflector))] = one
    names = sorted(frozenset[str]().union(*links))
    for four in itertools.combinations(names, 4):
        a, b, c, d = four
        ways = (((a, b), (c, d)), ((a, c), (b, d)), ((a, d), (b, c)))
        whole = [
            [links[frozenset(pair)] for pair in way]
            for way in ways
            if all(frozenset(p) in links for p in way)
        ]
        for (p, q), (r, s) in itertools.combinations(whole, 2):
            found.append([w + x - y - z for w, x, y, z in zip(p, q, r, s, strict=True)])
    return found


def _is_gross(have_to_be_zero: list[Vector], means: Vector, pairs: Sequence[Pair]) -> bool:
    """Say whether sums contradict each other by far more than any way to tell their scatter leaves open."""
    scatters = ((abs(_sum(signs, means)), _scatter(signs, pairs)) for signs in have_to_be_zero)
    return any(standard and apart > GROSS * standard and apart > 1 for apart, standard in scatters)


def _scatter(share: Vector, pairs: Sequence[Pair]) -> float:
    """Return the standard uncertainty of a weighted sum of means, by means of blocks; 0: too few trips."""
    blocks = [_blocks(each, pairs) for each in pairs]
    if any(len(each) < BLOCKS for each in blocks):
        return 0.0
    if all(each.turns is not None for each in pairs):
        sums = [_sum(share, [block[k] for block in blocks]) for k in range(BLOCKS)]
        return math.sqrt(variance(sums) / BLOCKS)
    return math.sqrt(sum(s * s * variance(block) / BLOCKS for s, block in zip(share, blocks, strict=True)))


def _blocks(pair: Pair, pairs: Sequence[Pair]) -> Vector:
    """Return the means of a pair in blocks: of the turns of all, else of its own trips."""
    if pair.turns is None:
        size = len(pair.trips_ns) // BLOCKS
        return [fmean(pair.trips_ns[k * size : (k + 1) * size]) for k in range(BLOCKS)] if size else []
    last = max(each.last_turn for each in pairs)
    own: dict[int, list[int]] = {}
    for turn, trip in zip(pair.turns, pair.trips_ns, strict=True):
        own.setdefault(max(turn, 0) * BLOCKS // (last + 1), []).append(trip)
    return [fmean(own[k]) for k in sorted(own)]


def _solver(rows: list[Vector], weights: Vector) -> list[Vector]:
    """Return of each pair by how much it makes each kind: (AᵀWA)⁻¹AᵀW, transposed."""
    size = len(rows[0])
    normal = [
        [sum(w * row[i] * row[j] for row, w in zip(rows, weights, strict=True)) for j in range(size)]
        for i in range(size)
    ]
    inverse = _inverse(normal)
    return [
        [sum(inverse[i][j] * row[j] for j in range(size)) * w for i in range(size)]
        for row, w in zip(rows, weights, strict=True)
    ]


def _inverse(matrix: list[Vector]) -> list[Vector]:
    """Invert by elimination with pivots; raises ArithmeticError where the pairs do not tell every kind."""
    size = len(matrix)
    work = [[*row, *(float(i == k) for k in range(size))] for i, row in enumerate(matrix)]
    for column in range(size):
        pivot = max(range(column, size), key=lambda row: abs(work[row][column]))
        if abs(work[pivot][column]) < 1e-12 * max(map(abs, work[pivot])):
            raise ArithmeticError("the pairs do not tell every device")
        work[column], work[pivot] = work[pivot], work[column]
        head = work[column][column]
        work[column] = [each / head for each in work[column]]
        for row in range(size):
            if row != column and (factor := work[row][column]):
                work[row] = [a - factor * b for a, b in zip(work[row], work[column], strict=True)]
    return [row[size:] for row in work]
