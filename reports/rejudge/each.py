# SPDX-License-Identifier: Apache-2.0
"""Records of one quantity, and files of evidence that records share, each judged again once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar
from xml.etree.ElementTree import ParseError

from reports.rejudge.again import Record

T = TypeVar("T")
DAMAGE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    OSError,
    ParseError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What evidence of another form than ours comes to, wherever it is worked with."""


def judge_each(
    run: Path,
    records: Sequence[Record],
    quantity: str,
    file_name: str,
    judge: Callable[[Record, Path], Iterable[str] | None],
) -> tuple[list[str], int]:
    """Judge records again.

    Args:
        run: The run folder.
        records: All its records.
        quantity: Of those that are judged.
        file_name: Of the evidence that they have to name; it may be a pattern, of which the first counts.
        judge: Says what of a record differs, by that file; None: it cannot be worked out.

    Returns:
        What differs, and how many records were worked out.
    """
    problems: list[str] = []
    count = 0
    for record in records:
        paths = (run / each["path"] for each in record["evidence"])
        file = next((path for path in paths if path.match(file_name)), None)
        if record["quantity"] != quantity or file is None:
            continue
        try:
            told = judge(record, file)
            if told is not None:
                problems += [f"{record['requirement']}: {each}" for each in told]
                count += 1
        except DAMAGE as error:
            problems.append(f"{record['requirement']}: {type(error).__name__}: {error}")
    return problems, count


def judge_evidence(
    run: Path,
    records: Sequence[Record],
    file_name: str,
    read: Callable[[Path], T],
    facts: Callable[[Record, T], Iterable[str]],
    judges: Sequence[tuple[str, Callable[[Record, T], Iterable[str]]]],
) -> tuple[list[str], int]:
    """Judge records of several quantities again, by evidence of one form.

    Args:
        run: The run folder.
        records: All its records.
        file_name: Of the evidence that they have to name.
        read: Returns what a file and those beside it hold; called for each record.
        facts: Says where a record and its evidence do not go together.
        judges: A quantity, and what says what of a record of it differs.

    Returns:
        What differs, and how many records were worked out.
    """

    def told(record: Record, file: Path, judge: Callable[[Record, T], Iterable[str]]) -> Iterator[str]:
        found = read(file)
        yield from facts(record, found)
        yield from judge(record, found)

    problems: list[str] = []
    count = 0
    for quantity, judge in judges:
        differs, judged = judge_each(run, records, quantity, file_name, partial(told, judge=judge))
        problems, count = problems + differs, count + judged
    return problems, count


def judge_files(
    run: Path, records: Sequence[Record], file_name: str, judge: Callable[[Path], Iterable[str]]
) -> list[str]:
    """Judge each file of a name that records rest on; return what differs within it.

    Args:
        run: The run folder.
        records: All its records.
        file_name: Of the evidence.
        judge: Says what of a file differs.
    """
    problems: list[str] = []
    named = {each["path"] for record in records for each in record["evidence"]}
    for path in sorted(path for path in named if Path(path).name == file_name and (run / path).is_file()):
        try:
            problems += [f"{path}: {each}" for each in judge(run / path)]
        except DAMAGE as error:
            problems.append(f"{path}: {type(error).__name__}: {error}")
    return problems
