# SPDX-License-Identifier: Apache-2.0
"""What the evidence says of a record's samples: extremes, mean, quantiles with their 95 % intervals."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path

from reports.dossier.model import Distribution, Percentile
from reports.errors import ReportError
from reports.quantities import has_distribution
from reports.record.measurement import Measurement, Number
from reports.record.sampling import RankInterval, quantile_ranks
from reports.section import SampleReader, Samples
from reports.sections import SECTIONS

ONE_SIDED = (0.5, 0.99, 0.999)
"""Of what is never good when large."""
TWO_SIDED = (0.01, 0.5, 0.99)
"""Of what has a sign."""

Buckets = Sequence[Sequence[Number]]


class Distributions:
    """The distributions of one run folder; evidence is read once."""

    def __init__(self, folder: Path) -> None:
        """Take a run folder."""
        self._readers: list[SampleReader] = [each.samples(folder) for each in SECTIONS if each.samples]

    def of(self, record: Measurement) -> Distribution | None:
        """Return what the evidence of a record holds; None: nothing of the kind, or nothing readable."""
        if not has_distribution(record.quantity):
            return None
        try:
            samples = next((found for read in self._readers if (found := read(record))), None)
        except (ReportError, OSError):
            return None
        return None if samples is None else _distribution_of(samples)


def _distribution_of(samples: Samples) -> Distribution:
    shares = TWO_SIDED if samples.has_sign else ONE_SIDED
    s = samples
    return Distribution(
        what=s.what,
        unit=s.unit,
        n=s.n,
        minimum=s.minimum,
        mean=s.mean,
        maximum=s.maximum,
        percentiles=_percentiles(s.buckets, s.n, s.minimum, s.maximum, shares),
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
