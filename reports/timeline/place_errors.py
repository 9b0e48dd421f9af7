# SPDX-License-Identifier: Apache-2.0
"""How far places are off, by a timecard in the target that took no part in them.

The card says what the target's own clock is off the reference, `bw-clock compare` all the while. So an event
of the target has a second place: what its clock showed, less that. It is as sure as the card is, some 0.1 us.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from reports.clock_sync.answers import read_clock_compare
from reports.errors import RecordError
from reports.timeline.clock_record import Times
from reports.timeline.event_stream_file import read_event_stream
from reports.timeline.global_time import Places, Reals
from reports.timeline.legs_evidence import load_legs
from reports.timeline.recorded_end import event_places

BESIDE_CARD = "beside-card"
"""Folder of the measurement, in that of the target."""
READINGS_MIN = 8
"""Intervals of the comparison, below which it says nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class PlaceErrors:
    """Places of the target's events against the card.

    Attributes:
        error_ns: Shape (n,): place less the card's.
        places: Shape (n,).
        card_ns: Shape (n,): by how much the card's own place may be off.
    """

    error_ns: Times
    places: Places
    card_ns: Times

    def __len__(self) -> int:
        """Return how many events both have."""
        return self.error_ns.size

    @property
    def beyond_u(self) -> int:
        """Return how many are off by more than U."""
        return int((np.abs(self.error_ns) - self.card_ns > self.places.u_ns).sum())

    @property
    def outside(self) -> int:
        """Return how many lie outside the hard interval for certain."""
        late = self.error_ns - self.card_ns > self.places.tai_ns - self.places.earliest_ns
        early = -self.error_ns - self.card_ns > self.places.latest_ns - self.places.tai_ns
        return int((late | early).sum())


def load_place_errors(folder: Path) -> PlaceErrors:
    """Hold the places of the target's events against the card; raises RecordError: names the file.

    Events before the card's first reading and after its last one do not count.
    """
    facts = load_legs(folder)
    if facts.card is None:
        raise RecordError("legs.json: card: there is none")
    compare = read_clock_compare(folder / facts.card.answer)
    # It is stopped when the messages are through and so never complete; what it says until then counts.
    if compare.steps or compare.tai_utc_s != facts.tai_utc_s:
        raise RecordError(f"{facts.card.answer}: a clock was stepped, or TAI - UTC is not {facts.tai_utc_s}")
    if len(compare.series) < READINGS_MIN:
        raise RecordError(f"{facts.card.answer}: {len(compare.series)} intervals, needs {READINGS_MIN}")
    stream = read_event_stream(folder / facts.client.events)
    places = event_places(stream, facts.client.time(folder, stream, facts.tai_utc_s))
    own = event_places(stream, facts.client.own_time(stream, facts.tai_utc_s))
    # A mean stands in the middle of its interval.
    begins_ns = np.array([each.time_tai_ns for each in compare.series], np.int64)
    first_ns = int(begins_ns[0]) + compare.series_interval_ns // 2
    at_ns: Reals = (begins_ns - begins_ns[0]).astype(np.float64)
    ahead_ns: Reals = np.array([each.mean_ns for each in compare.series])
    half_ns: Reals = np.array([each.max_ns - each.min_ns for each in compare.series]) / 2
    if (np.diff(at_ns) <= 0).any():
        raise RecordError(f"{facts.card.answer}: series: times must ascend")
    # What the clock was ahead by the card, at the moment that the card would show.
    since_ns: Reals = (own.tai_ns - first_ns).astype(np.float64)
    true_ns = since_ns - ahead_ns[0]
    for _ in range(2):
        true_ns: Reals = since_ns - np.interp(true_ns, at_ns, ahead_ns)
    within = (true_ns >= at_ns[0]) & (true_ns <= at_ns[-1])
    counts = places.known & own.known & within
    truth_ns = first_ns + np.rint(true_ns[counts]).astype(np.int64)
    card_ns: Reals = np.interp(true_ns[counts], at_ns, half_ns) + facts.card.bound_ns
    kept = Places(
        places.tai_ns[counts],
        places.earliest_ns[counts],
        places.latest_ns[counts],
        places.u_ns[counts],
        places.known[counts],
    )
    return PlaceErrors(kept.tai_ns - truth_ns, kept, np.ceil(card_ns).astype(np.int64) + own.bound_ns[counts])
