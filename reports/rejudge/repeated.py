# SPDX-License-Identifier: Apache-2.0
"""Whether a replay that no record names was one that needs none: docs/latency.md, `Several replays`.

A simulated bench replays for every stream without a verdict, the load's too, which have no record. A stream
that had its verdict before gets no further record, unless the replay has it over or says why it lost it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from reports.rejudge.again import Record
from reports.rejudge.each import DAMAGE
from reports.rejudge.latency import QUANTITY, ReplayFolder, against_pattern, attempt_number, decided

AGAINST = ("over", "marginal", "undecided")


def needs_no_record(place: Path, run: Path, records: Sequence[Record]) -> bool:
    """Say whether a replay of a simulated bench was made for others than the streams that have records.

    Args:
        place: Folder of the replay.
        run: The run folder.
        records: All its records.
    """
    own: dict[int, list[Record]] = {}
    folder = place.parent.relative_to(run).as_posix()
    for record in records:
        named = (Path(each["path"]).parent.parent.as_posix() for each in record["evidence"])
        if record["quantity"] == QUANTITY and record["simulated"] and folder in named:
            own.setdefault(int(record["subject"]["stream"]), []).append(record)
    if not own:
        return False
    try:
        places = sorted(place.parent.glob("attempt-*"), key=lambda path: attempt_number(path.name))
        replays = [ReplayFolder(each) for each in places]
        at = places.index(place)
        judged: dict[int, list[list[str]]] = {}
        for stream in replays[at].recv["streams"]:
            asked = own[stream["id"]][0] if stream["id"] in own else against_pattern(stream)
            judged[stream["id"]] = _standings(replays, stream["id"], asked)
    except DAMAGE:
        return False
    is_asked_for = any(_verdict(each[:at]) != "pass" for either in judged.values() for each in either)
    return (
        is_asked_for
        and own.keys() <= judged.keys()
        and all(any(not _owes(each, at, own[stream]) for each in judged[stream]) for stream in own)
    )


def _standings(replays: Sequence[ReplayFolder], stream: int, asked: Record) -> list[list[str]]:
    """Return how a stream stands replay by replay, by either end of what rounding allows."""
    found = [replay.found(stream, asked) for replay in replays]
    return [[each[end].standing for each in found] for end in (0, -1)]


def _verdict(standings: Sequence[str]) -> str:
    """Return what replays come to, but for a fail, of which each replay has a record."""
    return decided(standings, replays_over=0, needed=1)


def _owes(standings: Sequence[str], at: int, records: Sequence[Record]) -> bool:
    """Say whether a stream has to have a record of replay `at`."""
    if standings[at] == "over" or not any(_verdict(standings[:n]) == "pass" for n in range(1, at + 1)):
        return True
    if _verdict(standings) == "pass" or any(record["outcome"] == "fail" for record in records):
        return False
    for wanted in (AGAINST, ("explained",)):
        found = [number for number, standing in enumerate(standings) if standing in wanted]
        if found:
            return found[-1] == at
    return True
