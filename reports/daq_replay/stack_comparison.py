# SPDX-License-Identifier: Apache-2.0
"""The streams of a target beside each other by network stack, where a run has replayed them with several."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from reports.daq_replay.stream_groups import StreamGroup, StreamRow


@dataclass(frozen=True, slots=True)
class ComparedStream:
    """A stream, its upper limit in ns, and its row with each stack; None: it was not measured with it."""

    stream: str
    budget_ns: float | None
    cells: tuple[StreamRow | None, ...]


@dataclass(frozen=True, slots=True)
class StackComparison:
    """The same streams under the same conditions with several stacks.

    Attributes:
        heading: The target's part in words.
        tail: Share of the messages up to the quantile that is shown beside the maximum: 0.999 where every
            stack has a stream with samples enough for it, else 0.99.
    """

    heading: str
    stacks: tuple[str, ...]
    tail: float
    rows: tuple[ComparedStream, ...]


def compare_stacks(groups: Iterable[StreamGroup]) -> tuple[StackComparison, ...]:
    """Return the comparisons of groups that differ by their network stack alone; without such ones empty."""
    alike: dict[object, dict[str, StreamGroup]] = {}
    for group in groups:
        record = group.rows[0].record
        setting = (str(group.role or ""), record.subject.clock, record.conditions)
        alike.setdefault(setting, {})[record.subject.stack or "-"] = group
    return tuple(_comparison(by_stack) for by_stack in alike.values() if len(by_stack) > 1)


def _comparison(by_stack: dict[str, StreamGroup]) -> StackComparison:
    rows = {stack: {row.record.subject.stream: row for row in each.rows} for stack, each in by_stack.items()}
    streams = dict.fromkeys(stream or "" for each in rows.values() for stream in each)
    groups = list(by_stack.values())
    return StackComparison(
        heading=groups[0].heading,
        stacks=tuple(by_stack),
        tail=0.999 if all(group.has_tail for group in groups) else 0.99,
        rows=tuple(_stream(stream, [each.get(stream) for each in rows.values()]) for stream in streams),
    )


def _stream(stream: str, cells: Iterable[StreamRow | None]) -> ComparedStream:
    found = tuple(cells)
    budget_ns = next(cell.record.limit.upper for cell in found if cell is not None)
    return ComparedStream(stream, budget_ns, found)
