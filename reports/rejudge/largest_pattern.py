# SPDX-License-Identifier: Apache-2.0
"""The largest pattern, worked out again from the replays of all its trials (docs/latency.md)."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from reports.rejudge.again import Record
from reports.rejudge.each import judge_each
from reports.rejudge.latency import REPLAYS_TO_FAIL, ReplayFolder, decided
from reports.rejudge.requirements import LOST, UPPER

QUANTITY = "largest_pattern"

Json = Mapping[str, Any]


def largest_pattern_discrepancies(run: Path, records: Sequence[Record]) -> tuple[list[str], int]:
    """Judge each trial again, and the number that follows; see `judge_each`."""

    def judge(record: Record, file: Path) -> list[str]:
        found: Json = json.loads(file.read_text("utf-8"))
        items = tomllib.loads((file.parent / "budgets.toml").read_text("utf-8"))["requirement"]
        limits = {int(item["stream"]): _limit(item) for item in items}
        return [
            *_trial_discrepancies(run, found["trials"], limits, record["simulated"]),
            *_number_discrepancies(record, found),
        ]

    return judge_each(run, records, QUANTITY, "largest_pattern.json", judge)


def _limit(item: Json) -> tuple[int, int]:
    """Return a stream's limit in ns and what it may lose, of a file of the form of today or of before."""
    limits = [item[name] * factor for name, factor in UPPER.items() if name in item]
    return limits[0], next(item[name] for name in LOST if name in item)


def _trial_discrepancies(
    run: Path, trials: Sequence[Json], limits: Mapping[int, tuple[int, int]], simulated: bool
) -> Iterator[str]:
    for number, trial in enumerate(trials, start=1):
        place = run / trial["place"]
        folders = sorted((place.parent if trial["is_own"] else place).glob("attempt-*"), key=_number)
        replays = [ReplayFolder(folder) for folder in folders]
        if len(replays) != trial["replays"]:
            yield f"trial {number}: {trial['replays']} replays, its folder has {len(replays)}"
        streams = [stream for stream in limits if stream // 10 in trial["producers"]]
        asked: dict[int, Record] = {
            stream: {
                "limit": {"upper": limits[stream][0]},
                "allowed_lost": limits[stream][1],
                "n_required": trial["n_required"],
            }
            for stream in streams
        }
        if not trial["is_own"]:  # the suite's own replay is looked at with the latencies
            yield from (f"trial {number}: {said}" for replay in replays for said in replay.discrepancies())
        yield from (
            f"trial {number}: stream {stream['id']}: {said}"
            for stream in trial["streams"]
            for said in _stream_discrepancies(stream, limits[stream["id"]][0], replays)
        )
        outcomes = {_outcome(replays, asked, place, simulated) for place in (0, -1)}
        if trial["outcome"] not in outcomes:
            yield f"trial {number}: {trial['outcome']}, its replays come to {' or '.join(sorted(outcomes))}"


def _stream_discrepancies(stream: Json, budget_ns: int, replays: Sequence[ReplayFolder]) -> Iterator[str]:
    """Say where what a trial lists of a stream is not what one of its replays has."""
    if "budget_ns" in stream and stream["budget_ns"] != budget_ns:
        yield f"budget_ns is {stream['budget_ns']}, its requirement has {budget_ns}"
    if "outcome" in stream and (stream["outcome"] == "pass") != (not stream["reason"]):
        yield f"{stream['outcome']} with the reason {stream['reason']!r}"
    said = {name: stream[name] for name in ("n", "lost", "over_budget", "max_ns") if name in stream}
    found: list[Json] = []
    for received in (replay.stream(stream["id"]) for replay in replays):
        whole = received["received_minus_scheduled"]
        of_replay = {"n": whole["n"], "lost": received["lost"], "over_budget": received["misses"]}
        found.append({name: (of_replay | {"max_ns": whole["max_ns"]})[name] for name in said})
    if said not in found:
        yield f"{said}, which none of its replays has"


def _outcome(
    replays: Sequence[ReplayFolder], asked: Mapping[int, Record], place: int, simulated: bool
) -> str:
    standings = [
        {stream: replay.found(stream, record)[place].standing for stream, record in asked.items()}
        for replay in replays
    ]
    over = sum("over" in of_replay.values() for of_replay in standings)
    needed = REPLAYS_TO_FAIL if simulated else 1
    words = {decided([of_replay[stream] for of_replay in standings], over, needed) for stream in asked}
    if "fail" in words:
        return "over"
    return "no verdict" if "no verdict" in words or not words else "within"


def _number_discrepancies(record: Record, found: Json) -> Iterator[str]:
    """Say where the number does not follow from the trials."""
    sizes = {len(trial["producers"]): trial for trial in found["trials"]}
    for trial in found["trials"]:
        if trial["producers"] != found["order"][: len(trial["producers"])]:
            yield "a trial did not add producers in their order"
    shown = [
        trial
        for trial in found["trials"]
        if len(trial["producers"]) == found["low"]
        and trial["outcome"] == "within"
        and trial["n_required"] >= found["n_required"]
    ]
    number = found["low"] if len(shown) >= found["boundary_trials"] else None
    if found["low"] == 0:
        number = found["found"]
    if found["found"] is not None:
        if found["high"] != found["found"] + 1 or found["low"] != found["found"]:
            yield f"found {found['found']} between {found['low']} and {found['high']}"
        is_all = found["high"] == len(found["order"]) + 1
        if not is_all and sizes.get(found["high"], {"outcome": ""})["outcome"] != "over":
            yield f"no trial shows {found['high']} over"
    if record["value"] is not None and record["value"] != number:
        yield f"value is {record['value']}, its trials show {number}"
    if record["outcome"] == "pass" and (number or 0) < (record["limit"]["lower"] or 0):
        yield f"pass with {number}, at least {record['limit']['lower']} are asked"
    counts: dict[int, int] = {}
    for stream in (stream for trial in shown for stream in trial["streams"]):
        counts[stream["id"]] = counts.get(stream["id"], 0) + stream["n"]
    if record["n"] != min(counts.values(), default=0):
        yield f"n is {record['n']}, the stream with fewest messages has {min(counts.values(), default=0)}"


def _number(folder: Path) -> int:
    return int(folder.name.rpartition("-")[2])
