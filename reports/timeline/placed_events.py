# SPDX-License-Identifier: Apache-2.0
"""A timeline as arrays: events of every node by lanes, each with its interval and U, and what caused what.

What exports and merges work on. An event has one place on the axis of its timeline; what has none is left
out before, and counted (`Timeline.left_out`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from reports.errors import RecordError
from reports.timeline.clock_record import LARGEST_NS, Times
from reports.timeline.global_time import Places

Axis = Literal["tai", "monotonic"]
"""`tai`: ns of TAI since 1970; `monotonic`: ns since the start of the one machine whose events these are."""
OWN_COLUMNS = ("tai_ns", "earliest_ns", "latest_ns", "u_ns", "duration_ns", "name", "tag")
TEXT_MAX_BYTES = 1 << 16
MERGED_AT_ONCE = 1 << 16
"""Events."""
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_NONE = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Track:
    """Events of one lane of a node, in the order of their times.

    Attributes:
        node: Whose.
        lane: Such as `CPU 0` or `stream 43`.
        names: What events are called; `name` counts in it.
        tai_ns: Shape (n,), on the axis of the timeline, 0 and more, ascending.
        earliest_ns: Shape (n,): the truth is not before.
        latest_ns: Shape (n,): the truth is not after.
        u_ns: Shape (n,): U (k = 2).
        duration_ns: Shape (n,); 0: an instant.
        name: Shape (n,): number in `names`.
        tag: Shape (n,): what goes together has one, such as the number of a message.
        columns: What else is known, shape (n,) each: int64, float64 or bytes (`S`).
    """

    node: str
    lane: str
    names: tuple[str, ...]
    tai_ns: Times
    earliest_ns: Times
    latest_ns: Times
    u_ns: Times
    duration_ns: Times
    name: Times
    tag: Times
    columns: Mapping[str, NDArray[Any]] = field(default_factory=dict[str, NDArray[Any]])

    def __post_init__(self) -> None:
        """Check the arrays; raises RecordError, which names node, lane and column."""
        where = f"{self.node}, {self.lane}"
        for key, column in self.all_columns.items():
            if column.ndim != 1 or column.shape != self.tai_ns.shape:
                raise RecordError(f"{where}: {key}: shape {column.shape}, must be that of tai_ns")
            own = key in OWN_COLUMNS
            is_further = not own and (column.dtype == np.float64 or column.dtype.kind == "S")
            if column.dtype != np.int64 and not is_further:
                kinds = "int64" if own else "int64, float64 or bytes"
                raise RecordError(f"{where}: {key}: {column.dtype}, must be {kinds}")
            if column.dtype.itemsize > TEXT_MAX_BYTES:
                raise RecordError(f"{where}: {key}: texts of more than {TEXT_MAX_BYTES} bytes")
        for key in self.columns:
            if key in OWN_COLUMNS or not _IDENTIFIER.fullmatch(key):
                raise RecordError(f"{where}: a column cannot be called {key!r}")
        if not len(self):
            return
        wrong = {
            "tai_ns": (self.tai_ns < 0) | (self.tai_ns > LARGEST_NS),
            "earliest_ns": (self.earliest_ns > self.tai_ns) | (self.earliest_ns < -LARGEST_NS),
            "latest_ns": (self.latest_ns < self.tai_ns) | (self.latest_ns > LARGEST_NS),
            "u_ns": self.u_ns < 0,
            "duration_ns": (self.duration_ns < 0) | (self.duration_ns > LARGEST_NS),
            "name": (self.name < 0) | (self.name >= len(self.names)),
        }
        for key, at in wrong.items():
            if at.any():
                found = getattr(self, key)[at.argmax()]
                raise RecordError(f"{where}: {key}[{at.argmax()}]: {found} cannot be")
        if (np.diff(self.tai_ns) < 0).any():
            raise RecordError(f"{where}: tai_ns: must ascend")

    def __len__(self) -> int:
        """Return how many events it has."""
        return len(self.tai_ns)

    @property
    def all_columns(self) -> dict[str, NDArray[Any]]:
        """Return all columns by name, the own ones first."""
        return {key: getattr(self, key) for key in OWN_COLUMNS} | dict(self.columns)


@dataclass(frozen=True, slots=True, eq=False)
class Flows:
    """What caused what: an event of one track to one of another, shape (m,) each.

    Attributes:
        from_track: Number of the track in its timeline.
        from_index: Number of the event in that track.
        to_track: As `from_track`, of the effect.
        to_index: As `from_index`.
    """

    from_track: Times = field(default_factory=_NONE.copy)
    from_index: Times = field(default_factory=_NONE.copy)
    to_track: Times = field(default_factory=_NONE.copy)
    to_index: Times = field(default_factory=_NONE.copy)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.from_track)


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """Events that have places on one axis.

    Attributes:
        place: What it is called, a path below the evidence; no two of a run are called alike.
        axis: Of all its times.
        by: By whose clock the axis is, for people.
        tracks: No two of one node and lane.
        flows: Between their events.
        left_out: How many events have no place, by the reason.
        tai_utc_s: TAI - UTC.
    """

    place: str
    axis: Axis
    by: str
    tracks: tuple[Track, ...]
    flows: Flows = field(default_factory=Flows)
    left_out: Mapping[str, int] = field(default_factory=dict[str, int])
    tai_utc_s: int = 37

    def __post_init__(self) -> None:
        """Check that flows are between events that exist; raises RecordError."""
        lanes = [(each.node, each.lane) for each in self.tracks]
        if len(set(lanes)) < len(lanes):
            raise RecordError(f"{self.place}: two tracks of one node and lane")
        sizes = np.array([len(each) for each in self.tracks], np.int64)
        flows = self.flows
        for side, track, index in (
            ("from", flows.from_track, flows.from_index),
            ("to", flows.to_track, flows.to_index),
        ):
            if track.shape != (len(flows),) or index.shape != (len(flows),):
                raise RecordError(f"{self.place}: flows: {side}: shapes differ")
            wrong = (track < 0) | (track >= len(sizes))
            if len(sizes):
                wrong |= (index < 0) | (index >= sizes[np.where(wrong, 0, track)])
            if wrong.any():
                raise RecordError(f"{self.place}: flows: {side} of flow {wrong.argmax()}: no such event")

    def __len__(self) -> int:
        """Return how many events it has."""
        return sum(map(len, self.tracks))

    def require_events(self) -> None:
        """Raise RecordError where there is nothing to export."""
        if not len(self):
            raise RecordError(f"{self.place}: no event has a place: there is nothing to export")

    @property
    def nodes(self) -> tuple[str, ...]:
        """Return the names of its nodes, in the order of their first tracks."""
        return tuple(dict.fromkeys(each.node for each in self.tracks))

    @property
    def offsets(self) -> Times:
        """Return before each track how many events those before it have, shape (tracks + 1,)."""
        return np.concatenate([[0], np.cumsum([len(each) for each in self.tracks], dtype=np.int64)]).astype(
            np.int64
        )

    def of_node(self, node: str) -> Timeline:
        """Return the tracks of one node, with the flows among them."""
        kept = [number for number, each in enumerate(self.tracks) if each.node == node]
        new = np.full(len(self.tracks), -1, np.int64)
        new[kept] = np.arange(len(kept))
        old = self.flows
        within = (new[old.from_track] >= 0) & (new[old.to_track] >= 0)
        flows = Flows(
            new[old.from_track[within]],
            old.from_index[within],
            new[old.to_track[within]],
            old.to_index[within],
        )
        tracks = tuple(self.tracks[number] for number in kept)
        return Timeline(self.place, self.axis, self.by, tracks, flows, tai_utc_s=self.tai_utc_s)


def merged_order(tracks: Sequence[Track] | Sequence[Times]) -> Times:
    """Return the order of all events by time; of one time the earlier track's are first.

    Args:
        tracks: Tracks, or their times.

    Returns:
        Numbers of events, those of all tracks behind each other, shape (n,).
    """
    times = [each.tai_ns if isinstance(each, Track) else each for each in tracks]
    n = sum(each.size for each in times)
    if n <= MERGED_AT_ONCE or any((each[1:] < each[:-1]).any() for each in times):
        return np.argsort(np.concatenate([_NONE, *times]), kind="stable")
    # Between two times of the longest track lies little enough of all of them to stay in the cache.
    longest = max(times, key=len)
    step = max(1, MERGED_AT_ONCE // len(times))
    cuts = longest[step::step]
    places = np.stack([np.searchsorted(each, cuts) for each in times], 1)
    sizes = np.array([each.size for each in times])
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    order, at = np.empty(n, np.int64), 0
    for begin, end in pairwise([0 * sizes, *places, sizes]):
        parts = [each[a:b] for each, a, b in zip(times, begin, end, strict=True)]
        own = np.argsort(np.concatenate(parts), kind="stable")
        behind = np.cumsum(end - begin)  # of the part that an event is of, and so of its track
        track = np.searchsorted(behind, own, side="right")
        order[at : at + own.size] = own + (first + begin - behind + (end - begin))[track]
        at += own.size
    return order


def placed_track(
    node: str,
    lane: str,
    names: tuple[str, ...],
    places: Places,
    name: Times,
    tag: Times,
    *,
    duration_ns: Times | None = None,
    columns: Mapping[str, NDArray[Any]] | None = None,
) -> tuple[Track, Times]:
    """Return the events that have a place as a track, and each one's number in it; -1: it has no place.

    Args:
        node: As of `Track`.
        lane: As of `Track`.
        names: As of `Track`.
        places: Of all events, shape (n,), in any order.
        name: Shape (n,).
        tag: Shape (n,).
        duration_ns: Shape (n,); None: instants.
        columns: Shape (n,) each.
    """
    if duration_ns is None:
        duration_ns = np.zeros(places.known.shape, np.int64)
    kept = np.flatnonzero(places.known)
    kept = kept[np.argsort(places.tai_ns[kept], kind="stable")]
    number = np.full(places.known.shape, -1, np.int64)
    number[kept] = np.arange(kept.size)
    own = (places.tai_ns, places.earliest_ns, places.latest_ns, places.u_ns, duration_ns, name, tag)
    tai, earliest, latest, u, duration, names_of, tags = (each[kept] for each in own)
    others = {key: column[kept] for key, column in (columns or {}).items()}
    track = Track(node, lane, names, tai, earliest, latest, u, duration, names_of, tags, others)
    return track, number
