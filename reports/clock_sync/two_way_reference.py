# SPDX-License-Identifier: Apache-2.0
"""A target's clock by two-way time transfer alone: the reference of a target that has no timecard.

Evidence: the answers of `bw-traffic offset` that this machine has asked of the target
(`two-way-target.ndjson`) and of the time server (`two-way-server.ndjson`); without the latter the target is
held against this machine's clock, the bench's reference clock. Each exchange bounds the offset by half of its
round trip, whatever the two ways take. Exchanges of more than twice the median were held up: they are left
out and counted, by their width and never by what they say. What is left is judged as readings of a timecard.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from reports.clock_sync.answers import ClockCompare, SeriesPoint
from reports.errors import RecordError
from reports.record.histogram import Summary
from reports.tools.answers import Reader, last_result, triples

TWO_WAY = "two-way"
"""What `timecard.clock` of a trial is, where it has no timecard."""
TARGET_FILE = "two-way-target.ndjson"
SERVER_FILE = "two-way-server.ndjson"
HELD_UP = 2
"""An exchange whose half round trip is more than so many times the median was held up."""
GAP_NS = 1_000_000_000
PPB = 1_000_000_000


@dataclass(frozen=True)
class OffsetAnswer:
    """The answer of `bw-traffic offset --peer`: a clock against this machine's, positive: it is ahead.

    Attributes:
        bound_growth_ppb: By how much the bound of the line grows with the distance from its end.
        series: Local TAI, offset and half round trip of exchanges, in ns.
        steps: Local TAI and size of steps of either clock.
    """

    complete: bool
    valid: bool
    invalid_reasons: tuple[str, ...]
    peer: str
    exchanges: int
    at_local_tai_ns: int
    offset_ns: int
    rate_ppb: int
    bound_ns: int
    bound_growth_ppb: int
    tai_utc_s: int
    series: tuple[tuple[int, int, int], ...]
    steps: tuple[tuple[int, int], ...]

    def line_at(self, local_tai_ns: int) -> tuple[int, int]:
        """Return offset and bound of the line at a time, in ns."""
        distance_ns = local_tai_ns - self.at_local_tai_ns
        growth_ns = -(-abs(distance_ns) * self.bound_growth_ppb // PPB)
        return self.offset_ns + round(distance_ns * self.rate_ppb / PPB), self.bound_ns + growth_ns


def read_offset_answer(path: Path) -> OffsetAnswer:
    """Read it from its file; raises RecordError, which names the key."""
    reader = Reader(last_result(path), path.name)
    spec: dict[str, tuple[type, ...]] = {"complete": (bool,), "valid": (bool,), "peer": (str,)}
    whole = (
        "exchanges",
        "at_local_tai_ns",
        "offset_ns",
        "rate_ppb",
        "bound_ns",
        "bound_growth_ppb",
        "tai_utc_s",
    )
    spec |= dict.fromkeys(whole, (int,))
    return OffsetAnswer(
        invalid_reasons=reader.texts("invalid_reasons"),
        series=triples(reader, "series"),
        steps=tuple((step.time_tai_ns, step.step_ns) for step in reader.steps()),
        **reader.fields(spec),
    )


def read_two_way(folder: Path) -> ClockCompare:
    """Return what two-way transfer says of a target's clock, in the form of `bw-clock compare`.

    `discarded` are exchanges that were held up, `window` is the round trip, `reference_bound_ns` the bound of
    the time server's line, None without one.

    Raises:
        RecordError: A file is missing or damaged.
    """
    target = read_offset_answer(folder / TARGET_FILE)
    server = read_offset_answer(folder / SERVER_FILE) if (folder / SERVER_FILE).exists() else None
    answers = [answer for answer in (target, server) if answer is not None]
    if len({answer.tai_utc_s for answer in answers}) > 1:
        raise RecordError(f"{SERVER_FILE}: tai_utc_s: is another one than in {TARGET_FILE}")
    kept, points, bounds_ns = _kept(target), list[SeriesPoint](), list[int]()
    for time_ns, offset_ns, _bound_ns in kept:
        if server is not None:
            line_ns, bound_ns = server.line_at(time_ns)
            offset_ns -= line_ns
            bounds_ns.append(bound_ns)
        points.append(SeriesPoint(time_ns, 1, float(offset_ns), offset_ns, offset_ns))
    times_ns = [point.time_tai_ns for point in points]
    pairs = list(pairwise(times_ns))
    return ClockCompare(
        complete=all(answer.complete for answer in answers),
        valid=all(answer.valid for answer in answers),
        invalid_reasons=tuple(
            f"{answer.peer}: {why}" for answer in answers for why in answer.invalid_reasons
        ),
        device={"name": "realtime", "kind": "realtime", "tai_utc_s": target.tai_utc_s},
        reference={"name": TWO_WAY, "kind": TWO_WAY, "tai_utc_s": target.tai_utc_s},
        read=TWO_WAY,
        phc_read=None,
        iterations=len(target.series),
        discarded=len(target.series) - len(kept),
        elapsed_ns=times_ns[-1] - times_ns[0] if times_ns else 0,
        start_tai_ns=times_ns[0] if times_ns else target.at_local_tai_ns,
        offset=_summary([point.min_ns for point in points]),
        window=_summary([2 * bound_ns for _time_ns, _offset_ns, bound_ns in kept]),
        series_interval_ns=round(statistics.median(b - a for a, b in pairs)) if pairs else 0,
        series=tuple(points),
        steps=tuple(step for answer in answers for step in answer.steps),
        gaps=tuple((a, b) for a, b in pairs if b - a > GAP_NS),
        reference_bound_ns=max(bounds_ns, default=None),
    )


def _kept(answer: OffsetAnswer) -> list[tuple[int, int, int]]:
    """Return the exchanges that nothing has held up."""
    if not answer.series:
        return []
    longest_ns = HELD_UP * statistics.median(bound_ns for _time_ns, _offset_ns, bound_ns in answer.series)
    return [row for row in answer.series if row[2] <= longest_ns]


def _summary(values_ns: Sequence[int]) -> Summary:
    """Return the exact distribution: each value is a bucket."""
    counts = Counter(values_ns)
    return Summary(
        n=len(values_ns),
        min_ns=min(values_ns, default=None),
        max_ns=max(values_ns, default=None),
        mean_ns=statistics.fmean(values_ns) if values_ns else None,
        stddev_ns=statistics.stdev(values_ns) if len(values_ns) > 1 else None,
        overflow=0,
        buckets=tuple((value, 1, count) for value, count in sorted(counts.items())),
    )
