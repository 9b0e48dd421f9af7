# SPDX-License-Identifier: Apache-2.0
"""The filter that writes events for other tools, by the exports of timelines."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from reports.errors import RecordError
from reports.timeline.clock_record import Times
from reports.timeline.export_ctf import write_ctf
from reports.timeline.export_parquet import require_pyarrow, write_parquet
from reports.timeline.export_perfetto import write_perfetto
from reports.timeline.placed_events import Flows, Timeline
from reports.timeline.processing.data import LABELS, Events, Pairs, joined, to_timeline
from reports.timeline.processing.filters import Context, named_filter

_WRITERS = {"ctf": write_ctf, "perfetto": write_perfetto, "parquet": write_parquet}


@named_filter("export")
def export(context: Context, found: Events | Pairs, *, form: Literal["ctf", "perfetto", "parquet"]) -> None:
    """Write a folder in the format of other tools; of pairs with flows from cause to effect.

    Args:
        context: Of the step.
        found: What is the effect of one pair and the cause of another is there twice.
        form: The format.
    """
    if form == "parquet":
        require_pyarrow()
    timeline = (
        to_timeline(found, context.step)
        if isinstance(found, Events)
        else timeline_of_pairs(found, context.step)
    )
    if not len(timeline):
        raise RecordError("no event: there is nothing to export")
    _WRITERS[form](timeline, context.folder / context.step)


def timeline_of_pairs(pairs: Pairs, place: str) -> Timeline:
    """Return both ends of pairs as a timeline, with a flow from each cause to its effect."""
    both = joined([pairs.causes, pairs.effects])
    timeline = to_timeline(both, place)
    m = len(pairs)
    times = np.concatenate([pairs.causes.numbers["tai_ns"], pairs.effects.numbers["tai_ns"]])
    at = np.empty(2 * m, np.int64)  # of each end among both
    at[np.argsort(times, kind="stable")] = np.arange(2 * m)
    track, index = _places_in(both)
    return replace(timeline, flows=Flows(track[at[:m]], index[at[:m]], track[at[m:]], index[at[m:]]))


def _places_in(events: Events) -> tuple[Times, Times]:
    """Return the track of each event, and its number in that, as `to_timeline` makes them."""
    (_, node), (lanes, lane), _ = (events.labels[key] for key in LABELS)
    which = np.unique(node * max(len(lanes), 1) + lane, return_inverse=True)[1].astype(np.int64)
    order = np.argsort(which, kind="stable")
    begin = np.searchsorted(which[order], which)
    index = np.empty(len(events), np.int64)
    index[order] = np.arange(len(events))
    return which, index - begin
