# SPDX-License-Identifier: Apache-2.0
"""Turns of network stacks: the evidence, in `evidence/stacks/TARGET`.

The folder holds `stacks.json` (this file's dataclasses: stacks, types of streams, every turn in the order in
which they were made) and of each turn a table, a line for each message that came:
`type,latency_ns,taken_ns`. What was lost stands with the turn.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from reports.durable import replace_file
from reports.errors import RecordError, ReportError
from reports.record.codec import omit_none
from reports.record.document import read_document, write_document
from reports.stacks.turns import Turn, TypeMessages, check_stacks, check_turns

SCHEMA = "benchwright.stacks/1"
FOLDER = "stacks"
STACKS = "stacks.json"
COLUMNS = ("type", "latency_ns", "taken_ns")
LIMIT_NS = 2**63


@dataclass(frozen=True)
class StackNeeds:
    """What a stack asks of those who deploy it.

    Attributes:
        name: As `STACKS=` has it.
        needs_root: It is put on by an administrator.
        driver: What it needs in the kernel; empty: nothing.
        both_ends: It has to be at both ends.
    """

    name: str
    needs_root: bool
    driver: str
    both_ends: bool


@dataclass(frozen=True)
class StreamType:
    """Streams of one size and period, as the pattern has them.

    Attributes:
        name: Such as `type 0`.
        budget_ns: Of their messages.
    """

    name: str
    budget_ns: int


@dataclass(frozen=True)
class KeptTurn:
    """One turn, but for its messages; its place in the list is its order.

    Attributes:
        round: Counted from 0.
        condition: `idle`, `loaded`, `lossy_1000_ppm`, …
        stack: One of the stacks.
        file: Its table of messages.
        lost: Of each type that the stack carried, how many messages never came.
        target_cpu_ns: CPU time of the target's end over the turn; None: not measured.
        others_cpu_ns: Of the other ends together, likewise.
        frames: That came to a line that loses some, in both directions; None: it loses none.
        frames_lost: Of those.
    """

    round: int
    condition: str
    stack: str
    file: str
    lost: dict[str, int]
    target_cpu_ns: int | None = omit_none()
    others_cpu_ns: int | None = omit_none()
    frames: int | None = omit_none()
    frames_lost: int | None = omit_none()


@dataclass(frozen=True)
class StackTurns:
    """What `stacks.json` holds.

    Attributes:
        seed: By which the order of turns was drawn.
        stacks: At least two; the first named is the first of each pair.
        types: Of streams.
        turns: In the order in which they were made.
    """

    target: str
    seed: int
    stacks: tuple[StackNeeds, ...]
    types: tuple[StreamType, ...]
    turns: tuple[KeptTurn, ...]
    schema: str = SCHEMA

    @property
    def names(self) -> list[str]:
        """Return the names of the stacks."""
        return [each.name for each in self.stacks]

    def line_lost(self, condition: str, stack: str) -> tuple[int, int] | None:
        """Return how many frames a line lost in a stack's turns, and of how many; None: it loses none."""
        own = [each for each in self.turns if (each.condition, each.stack) == (condition, stack)]
        if not own or any(each.frames is None for each in own):
            return None
        return sum(each.frames_lost or 0 for each in own), sum(each.frames or 0 for each in own)

    @property
    def budgets_ns(self) -> dict[str, int]:
        """Return the budget of each type."""
        return {each.name: each.budget_ns for each in self.types}


def write_messages(folder: Path, name: str, messages: Mapping[str, TypeMessages]) -> Path:
    """Write the messages of a turn as the table `name`, by type, and return its path."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(COLUMNS)
    for kind, each in messages.items():
        pairs = zip(each.latency_ns.tolist(), each.taken_ns.tolist(), strict=True)
        rows.writerows((kind, latency_ns, taken_ns) for latency_ns, taken_ns in pairs)
    replace_file(folder / name, text.getvalue().encode())
    return folder / name


def write_stack_turns(folder: Path, kept: StackTurns) -> Path:
    """Write `stacks.json` and return its path."""
    return write_document(folder / STACKS, kept)


def load_stack_turns(folder: Path) -> tuple[StackTurns, list[Turn]]:
    """Read a folder; raises RecordError, which names file and field."""
    kept = read_document(StackTurns, folder / STACKS, SCHEMA)
    _check(kept)
    turns = [
        Turn(
            order,
            each.round,
            each.condition,
            each.stack,
            read_messages(folder, each.file, each.lost),
            each.target_cpu_ns,
            each.others_cpu_ns,
        )
        for order, each in enumerate(kept.turns)
    ]
    try:
        check_turns(kept.names, turns)
    except ReportError as error:
        raise RecordError(f"{STACKS}: turns: {error}") from error
    return kept, turns


def _check(kept: StackTurns) -> None:
    """Refuse facts that are none; raises RecordError: names the field."""
    try:
        check_stacks(kept.names)
    except ReportError as error:
        raise RecordError(f"{STACKS}: {error}") from error
    for where, names in (
        ("types.name", [each.name for each in kept.types]),
        ("turns.file", [each.file for each in kept.turns]),
    ):
        if double := [name for name, count in Counter(names).items() if count > 1]:
            raise RecordError(f"{STACKS}: {where}: {double[0]!r} stands twice")
    for place, each in enumerate(kept.types):
        if not 0 < each.budget_ns < LIMIT_NS:
            raise RecordError(f"{STACKS}: types[{place}].budget_ns: must be 1..2^63 - 1: {each.budget_ns}")
    for place, turn in enumerate(kept.turns):
        where = f"{STACKS}: turns[{place}]"
        if Path(turn.file).name != turn.file or not turn.file:
            raise RecordError(f"{where}.file: {turn.file!r} is no file of this folder")
        if unknown := sorted(turn.lost.keys() - kept.budgets_ns.keys()):
            allowed = ", ".join(kept.budgets_ns)
            raise RecordError(f"{where}.lost: {unknown[0]!r} is none of the types: {allowed}")
        counts = {f"lost.{name}": count for name, count in turn.lost.items()}
        counts |= {"round": turn.round, "target_cpu_ns": turn.target_cpu_ns or 0}
        counts |= {"others_cpu_ns": turn.others_cpu_ns or 0, "frames": turn.frames or 0}
        counts |= {"frames_lost": turn.frames_lost or 0}
        for name, count in counts.items():
            if not 0 <= count < LIMIT_NS:
                raise RecordError(f"{where}.{name}: must be 0..2^63 - 1: {count}")
        if (turn.frames is None) != (turn.frames_lost is None) or counts["frames_lost"] > counts["frames"]:
            raise RecordError(f"{where}.frames_lost: {turn.frames_lost} of {turn.frames} frames")


def read_messages(folder: Path, name: str, lost: Mapping[str, int]) -> dict[str, TypeMessages]:
    """Read the table of a turn.

    Args:
        folder: Where it lies.
        name: Of the file.
        lost: Of each type that it may have.

    Raises:
        RecordError: It is missing or damaged; names file, line and column.
    """
    found: dict[str, tuple[list[int], list[int]]] = {kind: ([], []) for kind in lost}
    try:
        with (folder / name).open(newline="", encoding="utf-8") as file:
            _read_rows(csv.reader(file), found)
    except RecordError as error:
        raise RecordError(f"{name}: {error}") from error
    except (OSError, ValueError, csv.Error) as error:
        raise RecordError(f"{name}: {error}") from error
    return {
        kind: TypeMessages(np.array(latency, np.int64), np.array(taken, np.int64), lost[kind])
        for kind, (latency, taken) in found.items()
    }


def _read_rows(rows: Iterable[Sequence[str]], found: Mapping[str, tuple[list[int], list[int]]]) -> None:
    lines = iter(rows)
    if tuple(next(lines, ())) != COLUMNS:
        raise RecordError(f"line 1: expected {','.join(COLUMNS)}")
    for line, row in enumerate(lines, start=2):
        if len(row) != len(COLUMNS):
            raise RecordError(f"line {line}: {len(row)} columns, need {len(COLUMNS)}")
        if row[0] not in found:
            raise RecordError(f"line {line}: type: {row[0]!r} is none that the turn carried")
        for place, low in ((1, -LIMIT_NS), (2, 0)):
            if not row[place].removeprefix("-").isdecimal() or not low <= int(row[place]) < LIMIT_NS:
                allowed = f"a whole number in {'-2^63' if low else 0}..2^63 - 1"
                raise RecordError(f"line {line}: {COLUMNS[place]}: must be {allowed}, found {row[place]!r}")
        found[row[0]][0].append(int(row[1]))
        found[row[0]][1].append(int(row[2]))
