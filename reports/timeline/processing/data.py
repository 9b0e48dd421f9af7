# SPDX-License-Identifier: Apache-2.0
"""What flows between the filters of a graph: events, pairs, values, histograms and tables: arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reports.errors import RecordError
from reports.timeline.clock_record import Times
from reports.timeline.global_time import Reals
from reports.timeline.placed_events import Axis, Timeline, Track, merged_order

Bools = NDArray[np.bool_]
Column = Sequence[Any]
Columns = Mapping[str, Column]
"""What a writer writes, a row an event or value."""
LABELS = ("node", "lane", "name")
NUMBERS = ("tai_ns", "earliest_ns", "latest_ns", "u_ns", "duration_ns", "tag")


@dataclass(frozen=True, slots=True, eq=False)
class Events:
    """Events of any lanes, in the order of their times.

    Attributes:
        axis: As of `Timeline`.
        by: As of `Timeline`.
        labels: By `node`, `lane` and `name`: the texts that occur, and of each event, shape (n,), which.
        numbers: `tai_ns`, `earliest_ns`, `latest_ns`, `u_ns`, `duration_ns`, `tag`, shape (n,) each.
        columns: What else is known, shape (n,) each: int64, float64 or bytes.
        there: Shape (n,): which events have a column at all; a column that is not in here: all.
        tai_utc_s: TAI - UTC.
    """

    axis: Axis
    by: str
    labels: Mapping[str, tuple[tuple[str, ...], Times]]
    numbers: Mapping[str, Times]
    columns: Mapping[str, NDArray[Any]] = field(default_factory=dict[str, NDArray[Any]])
    there: Mapping[str, Bools] = field(default_factory=dict[str, Bools])
    tai_utc_s: int = 37

    def __len__(self) -> int:
        """Return how many there are."""
        return self.numbers["tai_ns"].size

    def take(self, at: Times | Bools) -> Events:
        """Return some of them, in the order of the numbers."""
        return replace(
            self,
            labels={key: (texts, codes[at]) for key, (texts, codes) in self.labels.items()},
            numbers={key: column[at] for key, column in self.numbers.items()},
            columns={key: column[at] for key, column in self.columns.items()},
            there={key: column[at] for key, column in self.there.items()},
        )

    def texts(self, key: str) -> list[str]:
        """Return node, lane or name of each."""
        known, codes = self.labels[key]
        return [known[code] for code in codes.tolist()]

    def column(self, key: str) -> tuple[NDArray[Any], Bools]:
        """Return a column of numbers or texts, and which events have it.

        Raises:
            RecordError: No event has one of this name; it names those that there are.
        """
        if key in self.numbers:
            return self.numbers[key], np.ones(len(self), np.bool_)
        if key not in self.columns:
            allowed = ", ".join([*NUMBERS, *sorted(self.columns)])
            raise RecordError(f"column {key!r}: there is none (allowed: {allowed})")
        return self.columns[key], self.there.get(key, np.ones(len(self), np.bool_))

    def rows(self) -> Columns:
        """Return all columns, what an event does not have as None."""
        found: dict[str, Column] = {key: self.numbers[key].tolist() for key in NUMBERS[:5]}
        found |= {key: self.texts(key) for key in LABELS}
        found["tag"] = self.numbers["tag"].tolist()
        for key in sorted(self.columns):
            column, there = self.column(key)
            if column.dtype.kind == "S":
                values: list[Any] = [each.decode(errors="replace") for each in column.tolist()]
            else:
                values = column.tolist()
            found[key] = [value if has else None for value, has in zip(values, there.tolist(), strict=True)]
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Causes, and the effect of each.

    Attributes:
        causes: Shape (m,).
        effects: Shape (m,), of the same order.
        unmatched_causes: How many causes have no effect.
        unmatched_effects: How many effects have no cause.
    """

    causes: Events
    effects: Events
    unmatched_causes: int
    unmatched_effects: int

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.causes)

    def rows(self) -> Columns:
        """Return the columns of both ends."""
        sides = (("cause", self.causes), ("effect", self.effects))
        return {f"{side}_{key}": column for side, events in sides for key, column in events.rows().items()}


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """Numbers over time.

    Attributes:
        unit: `ns` of times; empty: none.
        at_ns: Shape (n,): when, on the axis of the events.
        tag: Shape (n,): of the event, or of the effect.
        value: Shape (n,): int64 or float64, finite.
        u: Shape (n,): U (k = 2), in the unit.
        lowest: Shape (n,): the truth is not below.
        highest: Shape (n,): the truth is not above.
        left_out: How many have no value, or none that is finite.
    """

    unit: str
    at_ns: Times
    tag: Times
    value: NDArray[Any]
    u: NDArray[Any]
    lowest: NDArray[Any]
    highest: NDArray[Any]
    left_out: int = 0

    def __len__(self) -> int:
        """Return how many there are."""
        return self.value.size

    def rows(self) -> Columns:
        """Return all columns."""
        names = ("at_ns", "tag", "value", "u", "lowest", "highest")
        return {name: getattr(self, name).tolist() for name in names}


@dataclass(frozen=True, slots=True, eq=False)
class Histogram:
    """How many values lie where.

    Attributes:
        unit: Of the values.
        edges: Shape (buckets + 1,), ascending; the last bucket has its upper edge in it.
        counts: Shape (buckets,).
        below: How many are less than the first edge.
        above: How many are more than the last one.
    """

    unit: str
    edges: Reals
    counts: Times
    below: int
    above: int

    def rows(self) -> Columns:
        """Return a row a bucket, those below before it and those above behind; an open end is None."""
        edges = self.edges.tolist()
        return {
            "from": [None, *edges],
            "to": [*edges, None],
            "count": [self.below, *self.counts.tolist(), self.above],
        }


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Rows of figures, with the same columns each."""

    columns: Columns

    def rows(self) -> Columns:
        """Return the columns."""
        return self.columns


Data = Events | Pairs | Values | Histogram | Table


def joined(parts: Sequence[Events]) -> Events:
    """Return events of several sources in the order of their times; of one time the earlier source's first.

    Args:
        parts: One or more.

    Raises:
        RecordError: They are on different axes, by different clocks, or a column is of different kinds.
    """
    first = parts[0]
    for each in parts[1:]:
        if (each.axis, each.by, each.tai_utc_s) != (first.axis, first.by, first.tai_utc_s):
            raise RecordError(f"events by {first.by} and by {each.by} have no common axis")
    order = merged_order([each.numbers["tai_ns"] for each in parts])
    labels: dict[str, tuple[tuple[str, ...], Times]] = {}
    for key in LABELS:
        known = tuple(dict.fromkeys(text for each in parts for text in each.labels[key][0]))
        number = {text: at for at, text in enumerate(known)}
        codes = [
            np.array([number[text] for text in texts], np.int64)[own] if texts else own
            for texts, own in (each.labels[key] for each in parts)
        ]
        labels[key] = known, np.concatenate(codes)[order]
    numbers = {key: np.concatenate([each.numbers[key] for each in parts])[order] for key in NUMBERS}
    columns: dict[str, NDArray[Any]] = {}
    there: dict[str, Bools] = {}
    for key in dict.fromkeys(key for each in parts for key in each.columns):
        kinds = {each.columns[key].dtype.kind for each in parts if key in each.columns}
        if len(kinds) > 1:
            raise RecordError(f"column {key!r}: numbers in one source and others in another")
        like = next(each.columns[key].dtype for each in parts if key in each.columns)
        has = [
            each.column(key)[1] if key in each.columns else np.zeros(len(each), np.bool_) for each in parts
        ]
        own = [each.columns[key] if key in each.columns else np.zeros(len(each), like) for each in parts]
        columns[key] = np.concatenate(own)[order]
        there[key] = np.concatenate(has)[order]
    kept = {key: column for key, column in there.items() if not column.all()}
    return Events(first.axis, first.by, labels, numbers, columns, kept, first.tai_utc_s)


def no_events(axis: Axis, by: str, tai_utc_s: int = 37) -> Events:
    """Return none at all."""
    nothing = np.empty(0, np.int64)
    labels: dict[str, tuple[tuple[str, ...], Times]] = dict.fromkeys(LABELS, ((), nothing))
    return Events(axis, by, labels, dict.fromkeys(NUMBERS, nothing), tai_utc_s=tai_utc_s)


def of_track(track: Track, timeline: Timeline) -> Events:
    """Return the events of one track of a timeline."""
    zero = np.zeros(len(track), np.int64)
    return Events(
        timeline.axis,
        timeline.by,
        {"node": ((track.node,), zero), "lane": ((track.lane,), zero), "name": (track.names, track.name)},
        {key: getattr(track, key) for key in NUMBERS},
        track.columns,
        tai_utc_s=timeline.tai_utc_s,
    )


def of_timeline(timeline: Timeline) -> Events:
    """Return all events of a timeline; raises RecordError: a column is of two kinds."""
    parts = [of_track(each, timeline) for each in timeline.tracks]
    return joined(parts) if parts else no_events(timeline.axis, timeline.by, timeline.tai_utc_s)


def to_timeline(events: Events, place: str) -> Timeline:
    """Return events as a timeline, a track for each lane of a node in which there are any.

    Args:
        events: In the order of their times.
        place: What it is called.
    """
    (nodes, node), (lanes, lane), (names, name) = (events.labels[key] for key in LABELS)
    which: Times = node * max(len(lanes), 1) + lane
    tracks: list[Track] = []
    one: int
    for one in np.unique(which).tolist():
        at = np.flatnonzero(which == one)
        columns: dict[str, NDArray[Any]] = {}
        for key in events.columns:
            column, there = events.column(key)
            if there[at].any():
                columns[key] = column[at]
        own = [events.numbers[key][at] for key in NUMBERS]
        tracks.append(
            Track(
                nodes[one // len(lanes)],
                lanes[one % len(lanes)],
                names,
                *own[:5],
                name=name[at],
                tag=own[5],
                columns=columns,
            )
        )
    return Timeline(place, events.axis, events.by, tuple(tracks), tai_utc_s=events.tai_utc_s)
