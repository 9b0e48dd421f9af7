# SPDX-License-Identifier: Apache-2.0
"""What reading a clock costs, worked out again from the answer of `bw-clock latency`: docs/clock-sync.md."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from reports.rejudge.again import Record
from reports.rejudge.answers import read_result
from reports.rejudge.dependence import variance_of_mean
from reports.rejudge.each import judge_each
from reports.rejudge.rule import outcome_of, part_discrepancies, value_discrepancies
from reports.rejudge.summary import summary_discrepancies
from reports.rejudge.trial import is_doubtful

QUANTITY = "clock_read_latency"
READINGS = "readings.json"
PLACE = "target"
NAMES_ITS_DEVICE = ("realtime", "tai", "monotonic-raw", "tsc", "phc:")
"""Clocks that the tool names as it was told; a timecard has a name of its own."""
PHC = "phc-"
SAYS = "the readings say"
BLOCKED_MIN = 4
ROUNDED_NS = 2
"""What two means can be off by the rounding of each reading and of the means."""

Json = Mapping[str, Any]


def read_latency_discrepancies(run: Path, records: Sequence[Record]) -> tuple[list[str], int]:
    """Work out mean or maximum, readings, U and outcome; see `judge_each`."""
    return judge_each(run, records, QUANTITY, READINGS, _judge)


def _judge(record: Record, file: Path) -> list[str]:
    readings: Json = json.loads(file.read_text("utf-8"))
    name = record["subject"]["clock"]
    told: list[str] = []
    for what, said, found in (
        ("target", record["subject"]["target"], readings["target"]),
        ("load", record["conditions"].get("load", readings["load"]), readings["load"]),
    ):
        if said != found:
            told.append(f"{what} is {said}, {READINGS} is of {found}")
    own = [each for each in readings["readings"] if (each["place"], each["clock"]) == (PLACE, name)]
    if len(own) != 1:
        return [*told, f"{name}: {len(own)} readings of the target's"]
    return [*told, *(f"{name}: {each}" for each in _reading_discrepancies(record, own[0], file.parent))]


def _reading_discrepancies(record: Record, reading: Json, folder: Path) -> Iterator[str]:
    if not reading["file"]:
        yield from value_discrepancies(record, None, 0, SAYS)
        yield from part_discrepancies(record, {}, SAYS)
        if record["outcome"] != "unset":
            yield f"{record['outcome']}, it was not read"
        return
    if reading["file"] not in {Path(each["path"]).name for each in record["evidence"]}:
        yield f"{reading['file']} is not among its evidence"
    answer = read_result(folder / reading["file"])
    if answer is None:
        raise ValueError(f"{reading['file']}: no result")
    if len(answer["clocks"]) != 1:
        raise ValueError(f"{reading['file']}: {len(answer['clocks'])} clocks")
    clock: Json = answer["clocks"][0]
    yield from _answer_discrepancies(answer, clock, reading)
    yield from _differences(record, answer, clock)


def _answer_discrepancies(answer: Json, clock: Json, reading: Json) -> Iterator[str]:
    """Say where the answer is of another clock, or contradicts itself."""
    if reading["device"].startswith(NAMES_ITS_DEVICE) and clock["name"] != reading["device"]:
        yield f"{reading['file']} is of {clock['name']}, not of {reading['device']}"
    if reading["clock"].startswith(PHC) and clock["phc_read"] != reading["clock"].removeprefix(PHC):
        yield f"{reading['file']} was read by {clock['phc_read']}"
    whole, net, kept = clock["latency"], clock.get("net"), clock["kept"]
    for name, summary in (("latency", whole), ("net", net), ("kept", kept)):
        if summary is not None:
            yield from (f"{name}: {each}" for each in summary_discrepancies(summary))
    if clock["n"] != whole["n"]:
        yield f"n is {clock['n']}, its distribution is of {whole['n']}"
    if net is not None:
        yield from _net_discrepancies(whole, net, answer["pair_cost_ns"])
    if "blocks" in clock:
        yield from _block_discrepancies(clock["blocks"], whole if kept is None else kept)
    if (kept is None) != (clock["interrupted"] is None):
        yield f"interrupted is {clock['interrupted']}, kept is {'missing' if kept is None else 'there'}"
    elif kept is not None:
        if kept["n"] + clock["interrupted"] != whole["n"]:
            yield f"{kept['n']} kept and {clock['interrupted']} interrupted of {whole['n']}"
        counts = {(low, width): count for low, width, count in whole["buckets"]}
        if any(count > counts.get((low, width), 0) for low, width, count in kept["buckets"]):
            yield "kept has readings that latency has not"


def _net_discrepancies(whole: Json, net: Json, pair_cost_ns: float) -> Iterator[str]:
    """Each reading of `net` is one of `latency` less what two of the counter cost."""
    if net["n"] != whole["n"]:
        yield f"net is of {net['n']} readings, latency of {whole['n']}"
        return
    for name in ("min_ns", "mean_ns", "max_ns"):
        if whole["n"] and abs(whole[name] - net[name] - pair_cost_ns) > ROUNDED_NS:
            yield f"{name} is {whole[name]}, net {net[name]}, two readings of the counter {pair_cost_ns:g}"


def _scatter(counting: Json, blocks: Json | None) -> float:
    """Return what the mean scatters by; a tool of an earlier version tells no blocks of readings."""
    n, deviation = counting["n"], counting["stddev_ns"]
    if blocks is None or n < BLOCKED_MIN:
        return deviation / math.sqrt(n)
    alone = deviation**2 * (n - 1) / (n - 3)
    seen = variance_of_mean([float(each) for each in blocks["means_ns"]])
    return math.sqrt(alone if seen is None else max(alone / n, seen))


def _block_discrepancies(blocks: Json, counting: Json) -> Iterator[str]:
    """The means of blocks are those of the readings that count, but for less than a block at the end."""
    size, means, n = blocks["size"], blocks["means_ns"], counting["n"]
    if size < 1 or len(means) != n // size:
        yield f"{len(means)} blocks of {size}, of {n} readings that count"
        return
    if not means:
        return
    least, most = counting["min_ns"] - ROUNDED_NS, counting["max_ns"] + ROUNDED_NS
    rest = n - size * len(means)
    # What is in no block may be as far off as any.
    low, high = (size * math.fsum(means) + rest * end for end in (least, most))
    if not least <= min(means) <= max(means) <= most:
        yield f"blocks have means of {min(means):.6g} to {max(means):.6g}, beyond the readings"
    elif not low - n * ROUNDED_NS <= n * counting["mean_ns"] <= high + n * ROUNDED_NS:
        yield f"the mean of the blocks is {math.fsum(means) / len(means):.6g}, not {counting['mean_ns']}"


def _differences(record: Record, answer: Json, clock: Json) -> Iterator[str]:
    """Say where a record differs; readings that are known to be interrupted do not count."""
    counting: Json = clock["latency"] if clock["kept"] is None else clock["kept"]
    is_mean = record["statistic"] == "mean"
    if not is_mean and record["statistic"] != "max":
        yield f"statistic is {record['statistic']}"
        return
    value, n = counting["mean_ns" if is_mean else "max_ns"], counting["n"]
    yield from value_discrepancies(record, value, n, SAYS)
    parts: dict[str, float] = {
        "counter_pair": math.ceil(answer["pair_cost_ns"]),
        "counter_resolution": math.ceil(1e9 / answer["tsc_hz"]) + 1,
    }
    if is_mean and n and counting["stddev_ns"] is not None:
        parts["scatter"] = math.ceil(_scatter(counting, clock.get("blocks")))
    yield from part_discrepancies(record, parts, SAYS, standard=("scatter",))
    wanted = outcome_of(record, value, n)
    # A maximum that an interruption may have made is no fail; an answer that is not valid decides nothing.
    is_open = is_doubtful(answer) or (wanted == "fail" and not is_mean and clock["kept"] is None)
    if is_open and wanted != "unset":
        wanted = "inconclusive"
    if record["outcome"] != wanted:
        yield f"{record['outcome']}, its readings come to {wanted}"
