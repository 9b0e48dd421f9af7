# SPDX-License-Identifier: Apache-2.0
"""Filters that bring cause and effect together, and that tell where an effect lies before its cause."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reports.errors import RecordError
from reports.timeline.clock_record import Times
from reports.timeline.contradictions import Messages, causality
from reports.timeline.global_time import Places
from reports.timeline.processing.data import LABELS, Bools, Column, Events, Pairs, Table
from reports.timeline.processing.filters import Names, named_filter
from reports.timeline.processing.pairs_in_order import match_in_order

TAG = Names(("tag",))


def _key(causes: Events, effects: Events, by: str) -> tuple[NDArray[Any], NDArray[Any], Bools, Bools]:
    """Return what both sides have of a column, texts as numbers, and which of them have it."""
    if by in LABELS:
        own, other = causes.texts(by), effects.texts(by)
        number = {text: at for at, text in enumerate(dict.fromkeys([*own, *other]))}
        codes = [np.array([number[text] for text in texts], np.int64) for texts in (own, other)]
        return codes[0], codes[1], np.ones(len(causes), np.bool_), np.ones(len(effects), np.bool_)
    (first, has), (second, other_has) = causes.column(by), effects.column(by)
    if (first.dtype.kind == "S") != (second.dtype.kind == "S"):
        raise RecordError(f"column {by!r}: texts on one side, numbers on the other")
    return first, second, has, other_has


@named_filter("match")
def match(causes: Events, effects: Events, *, by: Names = TAG, within_ns: int, least_ns: int = 0) -> Pairs:
    """Give pairs of what goes together, one to one, in the order of the causes' times.

    Args:
        causes: Such as what was sent.
        effects: Such as what came.
        by: Columns, or `node`, `lane`, `name`, that are alike at both ends; all of them.
        within_ns: An effect comes no later.
        least_ns: Nor earlier; below 0 where the clocks may contradict each other.
    """
    if (causes.axis, causes.by) != (effects.axis, effects.by):
        raise RecordError(f"events by {causes.by} and by {effects.by} have no common axis")
    if least_ns > within_ns:
        raise RecordError(f"least_ns: {least_ns} is more than within_ns, {within_ns}")
    n = len(causes)
    key: Times = np.zeros(n + len(effects), np.int64)
    there = np.ones(key.shape, np.bool_)
    for each in by:
        first, second, has, other_has = _key(causes, effects, each)
        there &= np.concatenate([has, other_has])
        values, own = np.unique(np.concatenate([first, second]), return_inverse=True)
        _, key = np.unique(key * max(values.size, 1) + own, return_inverse=True)
    at, to = np.flatnonzero(there[:n]), np.flatnonzero(there[n:])
    cause, effect = match_in_order(
        key[:n][at],
        causes.numbers["tai_ns"][at],
        key[n:][to],
        effects.numbers["tai_ns"][to],
        least_ns,
        within_ns,
    )
    order = np.argsort(at[cause], kind="stable")
    return Pairs(
        causes.take(at[cause][order]),
        effects.take(to[effect][order]),
        n - cause.size,
        len(effects) - effect.size,
    )


def _places(events: Events) -> Places:
    own = [events.numbers[key] for key in ("tai_ns", "earliest_ns", "latest_ns", "u_ns")]
    return Places(*own, known=np.ones(len(events), np.bool_))


@named_filter("contradictions")
def contradictions(pairs: Pairs, *, least_ns: int = 0) -> Table:
    """Give directions whose effects lie before their causes, and the nodes whose clock would explain it.

    Args:
        pairs: Of messages; those within a node are left out.
        least_ns: What each way takes at least.
    """
    if least_ns < 0:
        raise RecordError(f"least_ns: must be 0 or more, found {least_ns}")
    (senders, sender), (receivers, receiver) = pairs.causes.labels["node"], pairs.effects.labels["node"]
    ways: Times = sender * max(len(receivers), 1) + receiver
    directions: list[Messages] = []
    way: int
    for way in np.unique(ways).tolist():
        own, other = senders[way // len(receivers)], receivers[way % len(receivers)]
        if own != other:
            at = np.flatnonzero(ways == way)
            sent, received = _places(pairs.causes.take(at)), _places(pairs.effects.take(at))
            directions.append(Messages(own, other, sent, received, least_ns))
    found = causality(directions)
    keys = ("weight", "sender", "receiver", "count", "of", "worst_ns")
    columns: dict[str, list[Any]] = {"what": ["contradiction"] * len(found.contradictions)}
    columns |= {key: [getattr(each, key) for each in found.contradictions] for key in keys}
    ends: dict[str, list[Any]] = {"node": [], "put_back_least_ns": [], "put_back_most_ns": []}
    for each in ends.values():
        each += [None] * len(found.contradictions)
    for node, (low, high) in zip(found.suspects, found.shifts_ns, strict=True):
        columns["what"].append("suspect")
        for key in keys:
            columns[key].append(None)
        for key, value in zip(ends, (node, low, high), strict=True):
            ends[key].append(value)
    both: dict[str, Column] = {**columns, **ends}
    return Table(both)
