# SPDX-License-Identifier: Apache-2.0
"""Differences of network stacks, worked out again from the tables of turns: docs/stacks.md.

All arithmetic is of whole and rational numbers but for Student's quantile, which scipy integrates here by its
distribution.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from importlib import import_module
from itertools import combinations
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from reports.rejudge.again import Record
from reports.rejudge.each import judge_each
from reports.rejudge.rule import outcome_of

Json = Mapping[str, Any]
DOCUMENT = "stacks.json"
QUANTITIES = "stack_latency_difference", "stack_over_budget_difference"
STATISTICS = "median", "p99", "share"
PERCENT = {"median": 50, "p99": 99}
LEVEL, ROUNDS, TAKEN_PERCENT = 0.05, 8, 10
LOSS = Path("condition", "loss.json")
"""Below the folder of a turn."""
LOSSY = re.compile(r"lossy_(\d+)_ppm")
CHANCE = 6
"""Standard deviations by which chance alone does not lose more, or fewer, frames than were asked."""
SLACK = 1e-6
"""Relative, of sums in another order, of the value and of U."""

Message = tuple[int, int]
"""Latency and what the machine took, in ns."""
Turn = tuple[Sequence[Message], int]
"""Messages that came, and how many did not."""
Key = tuple[str, str, str, str]
"""Pair, condition, type, statistic."""
Found = tuple[int, float | None, float]
"""Messages, value, standard uncertainty times Student's quantile; no value: no verdict."""


def stack_discrepancies(run: Path, records: Sequence[Record]) -> tuple[list[str], int]:
    """Work out value, U, samples and outcome; see `judge_each`."""
    problems: list[str] = []
    count = 0
    for quantity in QUANTITIES:
        found, judged = judge_each(run, records, quantity, DOCUMENT, _judge)
        problems, count = problems + found, count + judged
    return problems, count


def _judge(record: Record, file: Path) -> Iterator[str]:
    facts: Json = json.loads(file.read_text("utf-8"))
    if record["subject"]["target"] != facts["target"]:
        yield f"target is {record['subject']['target']}, {DOCUMENT} is of {facts['target']}"
    named = {Path(each["path"]).name for each in record["evidence"]}
    for turn in facts["turns"]:
        if turn["file"] not in named:
            yield f"{turn['file']} is not among its evidence"
    yield from _line_problems(file, file.stat().st_mtime_ns)
    axes = {each["axis"]: each["value"] for each in record["subject"].get("axes") or ()}
    key = axes.get("pair", ""), axes.get("under", ""), axes.get("message_type", ""), record["statistic"]
    found = _all_of(file, file.stat().st_mtime_ns).get(key)
    if found is None:
        yield f"the turns have no comparison of {', '.join(key)}"
        return
    yield from _differences(record, *found)


def _differences(record: Record, n: int, value: float | None, u: float) -> Iterator[str]:
    if record["n"] != n:
        yield f"n is {record['n']}, the turns say {n}"
    if record["lost"] or record["allowed_lost"]:
        yield f"{record['lost']} lost, {record['allowed_lost']} allowed: lost messages are in the value"
    said = record["value"]
    is_whole = record["quantity"] == QUANTITIES[0]
    if value is None or said is None:
        if value is not None or said is not None:
            yield f"value is {said}, the turns say {value}"
        if value is None and record["outcome"] != "inconclusive":
            yield f"{record['outcome']}, its turns come to inconclusive"
        return
    slack = SLACK * (abs(value) + u)
    if abs(said - value) > slack + (0.5 if is_whole else 0):
        yield f"value is {said}, the turns say {value:.9g}"
    parts = [(part["name"], part["kind"]) for part in record["uncertainty"]["parts"]]
    if parts != [("rounds_together", "standard")]:
        yield f"parts of U are {parts}, must be rounds_together alone, a standard deviation"
    elif not -slack <= record["uncertainty"]["expanded"] - u <= slack + (2 if is_whole else 0):
        yield f"U is {record['uncertainty']['expanded']}, the turns say {u:.9g}"
    outcome = outcome_of(record, said, n)
    if record["outcome"] != outcome:
        yield f"{record['outcome']}, its turns come to {outcome}"


@lru_cache(maxsize=4)
def _line_problems(file: Path, _written_ns: int) -> tuple[str, ...]:
    """Hold what turns say that a line lost against what lost it, and against what was asked."""
    facts: Json = json.loads(file.read_text("utf-8"))
    problems: list[str] = []
    seeds: dict[tuple[int, str], set[int]] = {}
    for turn in facts["turns"]:
        asked = LOSSY.fullmatch(turn["condition"])
        where = f"{turn['file']}: {turn['condition']}"
        told = turn.get("frames_lost"), turn.get("frames")
        if asked is None:
            problems += [f"{where}: {told[0]} frames lost by a line that loses none"] if any(told) else []
            continue
        own = file.parent / Path(turn["file"]).stem / LOSS
        if not own.is_file():
            problems.append(f"{where}: its {LOSS.name} is missing")
            continue
        loss: Json = json.loads(own.read_text("utf-8"))
        lost = sum(port["dropped"] for port in loss["ports"]), sum(port["seen"] for port in loss["ports"])
        seeds.setdefault((turn["round"], turn["condition"]), set()).add(loss["seed"])
        if told != lost:
            problems.append(
                f"{where}: {told[0]} of {told[1]} frames, its {LOSS.name} says {lost[0]} of {lost[1]}"
            )
        if loss["asked_ppm"] != int(asked[1]):
            problems.append(f"{where}: {LOSS.name} was asked for {loss['asked_ppm']} ppm")
        expected = lost[1] * int(asked[1]) / 1e6
        if abs(lost[0] - expected) > CHANCE * math.sqrt(expected + 1):
            problems.append(f"{where}: {lost[0]} of {lost[1]} frames is no chance of {asked[1]} ppm")
    problems += [
        f"round {round_}: {condition}: stacks met other losses, by seeds {sorted(some)}"
        for (round_, condition), some in seeds.items()
        if len(some) > 1
    ]
    return tuple(problems)


@lru_cache(maxsize=4)
def _all_of(file: Path, _written_ns: int) -> dict[Key, Found]:
    """Return all comparisons of a document: each one's U goes by how many there are."""
    facts: Json = json.loads(file.read_text("utf-8"))
    sides: dict[tuple[str, str, str], dict[int, Turn]] = {}
    for turn in facts["turns"]:
        rows = _rows(file.parent / turn["file"])
        for kind, lost in turn["lost"].items():
            mine = [(latency_ns, taken_ns) for own, latency_ns, taken_ns in rows if own == kind]
            sides.setdefault((turn["condition"], turn["stack"], kind), {})[turn["round"]] = mine, lost
    names = [each["name"] for each in facts["stacks"]]
    pairs = {
        (f"{second} less {first}", condition, each["name"], statistic): (
            sides[condition, first, each["name"]],
            sides[condition, second, each["name"]],
            each["budget_ns"],
        )
        for first, second in combinations(names, 2)
        for condition in {turn["condition"] for turn in facts["turns"]}
        for each in facts["types"]
        for statistic in STATISTICS
        if {(condition, first, each["name"]), (condition, second, each["name"])} <= sides.keys()
    }
    return {
        key: _compared(
            one, other, partial(_value, statistic=key[3], budget_ns=budget_ns), len(pairs), budget_ns
        )
        for key, (one, other, budget_ns) in pairs.items()
    }


def _rows(path: Path) -> list[tuple[str, int, int]]:
    with path.open(newline="", encoding="utf-8") as file:
        return [(row["type"], int(row["latency_ns"]), int(row["taken_ns"])) for row in csv.DictReader(file)]


def _value(turn: Turn, statistic: str, budget_ns: int) -> float | None:
    """Return the value of a turn, a share in percent; infinite: a lost message; None: it does not count."""
    came, lost = turn
    kept = sorted(latency_ns for latency_ns, taken_ns in came if not taken_ns)
    n = len(kept) + lost
    if 100 * (len(came) - len(kept)) > TAKEN_PERCENT * len(came) or not n:
        return None
    if statistic == "share":
        return 100 * (sum(each > budget_ns for each in kept) + lost) / n
    at = n * PERCENT[statistic] - 50
    low, rest = divmod(at, 100)
    high = low + (rest > 0)
    if low < 0 or high >= n:
        return None
    if high >= len(kept):
        return math.inf
    return kept[low] + (kept[high] - kept[low]) * rest / 100


def _compared(
    one: Mapping[int, Turn], other: Mapping[int, Turn], value: Any, comparisons: int, budget_ns: int
) -> Found:
    """Return a comparison.

    Args:
        one: Turns of the pair's first stack by round.
        other: Of its second.
        value: From a turn to its value; its statistic is bound to it.
        comparisons: Of the run.
        budget_ns: Of the type.
    """
    both = [(one[number], other[number]) for number in sorted(one.keys() & other.keys())]
    told = [(pair, value(pair[0]), value(pair[1])) for pair in both]
    good = [each for each in told if None not in each[1:]]
    of = [[_counts(pair[end], budget_ns) for pair, _, _ in good] for end in (0, 1)]
    sums = [(sum(n for n, _ in side), sum(beyond for _, beyond in side)) for side in of]
    messages = sums[0][0] + sums[1][0]
    if len(good) < ROUNDS or any(math.inf in each[1:] for each in good):
        return messages, None, 0.0
    apart = [later - earlier for _, earlier, later in good]
    standard = stdev(apart) / math.sqrt(len(apart))
    if value.keywords["statistic"] == "share":
        more = [((beyond + 1) / (n + 2), n + 2) for n, beyond in sums]
        standard = max(standard, 100 * math.sqrt(sum(p * (1 - p) / n for p, n in more)))
    if not standard:
        return messages, None, 0.0
    student: Any = import_module("scipy.stats")  # a second, of every start; its types are incomplete
    factor = float(student.t.isf(LEVEL / comparisons / 2, len(apart) - 1))
    return messages, fmean(apart), factor * standard


def _counts(turn: Turn, budget_ns: int) -> Message:
    """Return how many messages of a turn count, and how many of those are beyond their budget."""
    came, lost = turn
    kept = [latency_ns for latency_ns, taken_ns in came if not taken_ns]
    return len(kept) + lost, sum(each > budget_ns for each in kept) + lost
