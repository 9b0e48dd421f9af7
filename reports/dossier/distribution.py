# SPDX-License-Identifier: Apache-2.0
"""What the evidence says of a record's samples: extremes, mean, quantiles with their 95 % intervals."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from reports.clock_answers import read_clock_compare
from reports.clock_trial import FILTERED
from reports.dossier.model import Distribution, Percentile
from reports.errors import ReportError
from reports.histogram import Summary
from reports.quantities import has_distribution
from reports.read_latency import READINGS, load_cost, load_readings
from reports.read_latency_verdict import QUANTITY as READ_LATENCY
from reports.record import Measurement, Number
from reports.replay_evidence import ReplayEvidence, load_replay
from reports.sampling import RankInterval, quantile_ranks
from reports.timed_edges import TRIAL as EDGES
from reports.timed_edges import Delays, load_edge_trial

ONE_SIDED = (0.5, 0.99, 0.999)
"""Of what is never good when large."""
TWO_SIDED = (0.01, 0.5, 0.99)
"""Of what has a sign."""

Buckets = Sequence[Sequence[Number]]


@dataclass
class Distributions:
    """The distributions of one run folder; answers are read once each."""

    folder: Path
    _replays: dict[PurePosixPath, ReplayEvidence] = field(default_factory=dict[PurePosixPath, ReplayEvidence])

    def of(self, record: Measurement) -> Distribution | None:
        """Return what the evidence of a record holds; None: nothing of the kind, or nothing readable."""
        if not has_distribution(record.quantity):
            return None
        places = {PurePosixPath(each.path).name: PurePosixPath(each.path).parent for each in record.evidence}
        try:
            if record.quantity == "one_way_latency" and "recv.ndjson" in places:
                return self._stream(places["recv.ndjson"], record.subject.stream)
            if EDGES in places:
                delays = load_edge_trial(self.folder / places[EDGES]).delays
                return None if delays is None else _of_delays(delays)
            if record.quantity == READ_LATENCY and READINGS in places:
                return self._reading(places[READINGS], record)
            if FILTERED in places:
                offset = read_clock_compare(self.folder / places[FILTERED] / FILTERED).offset
                return _of_summary("offset, filtered reads", offset, TWO_SIDED)
        except (ReportError, OSError):
            return None
        return None

    def _stream(self, place: PurePosixPath, stream: str | None) -> Distribution | None:
        if place not in self._replays:
            self._replays[place] = load_replay(self.folder / place)
        recv = self._replays[place].recv
        for each in recv.streams if recv else ():
            if str(each.id) == stream:
                return _of_summary("received - scheduled", each.received_minus_scheduled, ONE_SIDED)
        return None

    def _reading(self, place: PurePosixPath, record: Measurement) -> Distribution | None:
        for reading in load_readings(self.folder / place).readings:
            if reading.place == "target" and reading.clock == record.subject.clock:
                cost = load_cost(self.folder / place, reading)
                return None if cost is None else _of_summary("cost of a reading", cost.undisturbed, ONE_SIDED)
        return None


def _of_summary(what: str, summary: Summary, shares: Sequence[float]) -> Distribution | None:
    if not summary.n or summary.min_ns is None or summary.max_ns is None:
        return None
    return Distribution(
        what=what,
        unit="ns",
        n=summary.n,
        minimum=summary.min_ns,
        mean=summary.mean_ns,
        maximum=summary.max_ns,
        percentiles=_percentiles(summary.buckets, summary.n, summary.min_ns, summary.max_ns, shares),
    )


def _of_delays(delays: Delays) -> Distribution:
    return Distribution(
        what="edge - reference, as measured",
        unit="ns",
        n=delays.count,
        minimum=delays.minimum_ns,
        mean=delays.mean_ns,
        maximum=delays.maximum_ns,
        percentiles=_percentiles(
            delays.buckets, delays.count, delays.minimum_ns, delays.maximum_ns, TWO_SIDED
        ),
    )


def _percentiles(
    buckets: Buckets, n: int, minimum: Number, maximum: Number, shares: Sequence[float]
) -> tuple[Percentile, ...]:
    """Return the quantiles whose interval the samples give on both sides; no other is printed.

    Bounds are the outer edges of their buckets, held inside the exact extremes.
    """
    cumulated = list(itertools.accumulate(int(count) for _, _, count in buckets))

    def edge(rank: int, share: float) -> Number:
        index = bisect_left(cumulated, rank)
        if index == len(buckets):
            return maximum
        low, width, _count = buckets[index]
        inside = low + (round(width * share) if isinstance(width, int) else width * share)
        return max(minimum, min(maximum, inside))

    found: list[Percentile] = []
    for share in shares:
        ranks: RankInterval = quantile_ranks(share, n)
        if ranks.lower is not None and ranks.upper is not None:
            found.append(
                Percentile(share, edge(ranks.rank, 0.5), edge(ranks.lower, 0.0), edge(ranks.upper, 1.0))
            )
    return tuple(found)
