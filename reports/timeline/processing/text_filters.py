# SPDX-License-Identifier: Apache-2.0
"""Filters that write text: narration, CSV, JSON lines."""

from __future__ import annotations

import csv as csv_format
import json
from pathlib import Path

import numpy as np

from reports.durable import write_error
from reports.errors import RecordError
from reports.timeline.processing.data import Events, Histogram, Pairs, Table, Values
from reports.timeline.processing.filters import Context, Names, Range, named_filter
from reports.timeline.processing.select_filters import within
from reports.units import NS_PER_MS

LINES_MAX = 10_000
_UNPRINTED = str.maketrans({chr(code): "?" for code in [*range(32), *range(127, 160), 0x2028, 0x2029]})


def _write(path: Path, text: str) -> None:
    try:
        path.write_bytes(text.encode(errors="replace"))
    except OSError as error:
        raise write_error(path, error) from error


def _ms(ns: int) -> str:
    """Return a time in ms, to the nanosecond."""
    whole, rest = divmod(abs(ns), NS_PER_MS)
    return f"{'-' if ns < 0 else '+'}{whole}.{rest:06d}"


@named_filter("narration")
def narration(
    context: Context,
    events: Events | Pairs,
    *,
    zero_name: Names | None = None,
    zero_tag: int | None = None,
    lines: int = LINES_MAX,
) -> None:
    """Write events as text, one a line, in ms from the first one, or from the first of a name and tag.

    Args:
        context: Of the step.
        events: Or pairs: then each line has a cause, and how long after it the effect came.
        zero_name: What the event is called from which times count.
        zero_tag: Its tag.
        lines: So many at most; how many more there are is the last line.
    """
    if not 1 <= lines <= LINES_MAX:
        raise RecordError(f"lines: must be from 1 to {LINES_MAX}, found {lines}")
    first = events.causes if isinstance(events, Pairs) else events
    texts, codes = first.labels["name"]
    possible = np.ones(len(first), np.bool_)
    if zero_name is not None and texts:
        possible &= np.array([zero_name.match(text) for text in texts])[codes]
    if zero_tag is not None:
        possible &= within(first.numbers["tag"], Range(zero_tag, zero_tag))
    if len(first) and not possible.any():
        raise RecordError("zero_name, zero_tag: no such event")
    zero_ns = int(first.numbers["tai_ns"][possible.argmax()]) if len(first) else 0
    shown = first.take(np.arange(min(lines, len(first))))
    said = _said(shown, zero_ns)
    if isinstance(events, Pairs):
        effects = events.effects.take(np.arange(len(shown)))
        away = effects.numbers["tai_ns"] - shown.numbers["tai_ns"]
        said = [
            f"{cause}  ->  {_ms(ns)} ms {effect}"
            for cause, ns, effect in zip(said, away.tolist(), _words(effects), strict=True)
        ]
        said.append(f"{events.unmatched_causes} causes without effect")
        said.append(f"{events.unmatched_effects} effects without cause")
    if len(first) > lines:
        said.append(f"and {len(first) - lines} more")
    _write(context.folder / f"{context.step}.txt", "".join(f"{line}\n" for line in said))


def _said(events: Events, zero_ns: int) -> list[str]:
    at = [_ms(ns) for ns in (events.numbers["tai_ns"] - zero_ns).tolist()]
    width = max(map(len, at), default=0)
    return [f"{ms:>{width}} ms  {words}" for ms, words in zip(at, _words(events), strict=True)]


def _words(events: Events) -> list[str]:
    """Return node, lane, name, tag, length and U of each."""
    columns = [events.texts(key) for key in ("node", "lane", "name")]
    numbers = [events.numbers[key].tolist() for key in ("tag", "duration_ns", "u_ns")]
    found: list[str] = []
    for node, lane, name, tag, ns, u in zip(*columns, *numbers, strict=True):
        lasts = f", for {_ms(ns)[1:]} ms" if ns else ""
        found.append(f"{node}, {lane}: {name}, tag {tag}{lasts}, U {_ms(u)[1:]} ms".translate(_UNPRINTED))
    return found


@named_filter("csv")
def csv(context: Context, found: Events | Pairs | Values | Histogram | Table) -> None:
    """Write a table in CSV with a line of names; what is not there is empty.

    Args:
        context: Of the step.
        found: Any.
    """
    rows = found.rows()
    path = context.folder / f"{context.step}.csv"
    try:
        with path.open("w", encoding="utf-8", errors="replace", newline="") as file:
            writer = csv_format.writer(file, lineterminator="\n")
            writer.writerow(rows)
            writer.writerows(zip(*rows.values(), strict=True))
    except OSError as error:
        raise write_error(path, error) from error


@named_filter("jsonl")
def jsonl(context: Context, found: Events | Pairs | Values | Histogram | Table) -> None:
    """Write an object of JSON a line; what is not there, and what is no number, is null.

    Args:
        context: Of the step.
        found: Any.
    """
    rows = found.rows()
    columns = [
        [None if isinstance(each, float) and not np.isfinite(each) else each for each in column]
        for column in rows.values()
    ]
    lines = [json.dumps(dict(zip(rows, row, strict=True))) + "\n" for row in zip(*columns, strict=True)]
    _write(context.folder / f"{context.step}.jsonl", "".join(lines))
