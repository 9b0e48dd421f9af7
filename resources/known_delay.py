# SPDX-License-Identifier: Apache-2.0
"""The known-delay check: the bench delays one path by a known amount and must find it within its uncertainty.

One producer's streams are replayed through the impairment node without a delay, with it, and without once
more. The median of received - sent with it, less the mean of the other two, is what the instrument finds.
What the delay really was is seen by an independent capture at both ends of the impairment node, on this
machine's clock; where no such capture is possible, the delay that was set counts, with the tolerance of the
node. Offsets of clocks cancel in the difference; what their lines wander does not. A target that becomes
faster meanwhile, as an emulated one does while it warms up, is between the first and the last: half of what
those are apart enters U.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from hw.bench import TargetSpec
from hw.errors import MeasurementError
from hw.session import Bench
from reports import Limit, Measurement, Uncertainty, UncertaintyPart, Verdict
from reports.known_delay import KnownDelay, judge_known_delay
from reports.record_context import Context, Sample, build_record
from reports.sampling import quantile_ranks
from resources.capture import median_transit_ns
from resources.pattern import Pattern
from resources.plan import ReplaySettings
from resources.replay import Progress, Replay, ReplayAnswers

REQUIREMENT = "BENCH-KNOWN-DELAY"
SET_DELAY_TOLERANCE_NS = 1_000_000
"""What a delay that is only set, not seen, may be off: a timer tick of the impairment node."""
SAMPLES_REQUIRED = 20
WARMUP_MS = 3000
"""An emulated target translates its code when that first runs, and is slow at first."""


def find_known_delay(
    bench: Bench,
    target: TargetSpec,
    pattern: Pattern,
    duration_ms: int,
    producer: int,
    delay_ns: int,
    folder: Path,
    progress: Progress,
) -> KnownDelay:
    """Make a delay and find it.

    Args:
        bench: An open bench with an impairment node.
        target: The consumer.
        pattern: The pattern whose streams are used.
        duration_ms: How long each of the three replays counts.
        producer: Number of the producer whose link is delayed.
        delay_ns: The delay, a whole number of microseconds.
        folder: Evidence goes here.
        progress: Called with a line of text now and then.

    Raises:
        CapabilityError: The bench cannot delay this producer.
        MeasurementError: Too few messages came through.
    """
    impairment = bench.impairment()
    settings = ReplaySettings(
        pattern=Path(),
        phase="staggered",
        warmup_ms=WARMUP_MS,
        duration_ms=duration_ms,
        grace_ms=1000,
        only_producers=(producer,),
        measures_clocks_after=False,
    )
    latencies: dict[str, list[int]] = {}
    transits: dict[str, int | None] = {}
    answers: list[ReplayAnswers] = []
    try:
        for name, delay in (("without", 0), ("with", delay_ns), ("again", 0)):
            impairment.apply([producer], delay // 1000, 0.0)
            progress(f"known-delay check: producer {producer}, {delay / 1e6:g} ms")
            replay = Replay(bench, target, pattern, settings, folder / name, lambda _line: None)
            replay.log_messages = True
            replay.capture_interfaces = bench.capture_ends(bench.spec.producers[producer].node, target)
            result = replay.run()
            answers.append(result)
            latencies[name] = _received_minus_sent_ns(folder / name / "messages.csv")
            transits[name] = _transit_ns(result.captures)
    finally:
        impairment.clear()
    return compare(producer, delay_ns, latencies, transits, answers)


def _transit_ns(captures: Sequence[Path]) -> int | None:
    return median_transit_ns(captures[0], captures[1]) if len(captures) == 2 else None


def compare(
    producer: int,
    delay_ns: int,
    latencies: dict[str, list[int]],
    transits: dict[str, int | None],
    answers: Sequence[ReplayAnswers],
) -> KnownDelay:
    """Compare a replay with the delay, and one without before and `again` after it.

    Args:
        producer: Number of the producer whose link was delayed.
        delay_ns: The delay that was set.
        latencies: received - sent of each message, of the replays `without`, `with` and `again`.
        transits: Time through the impairment node in each, where both its ends were seen.
        answers: Of the replays: how well the clocks were known.

    Raises:
        MeasurementError: Too few messages came through.
    """
    ordered = {name: sorted(each) for name, each in latencies.items()}
    n = min(map(len, ordered.values()))
    if n < SAMPLES_REQUIRED:
        raise MeasurementError(f"known-delay check: only {n} messages came, not {SAMPLES_REQUIRED}")
    without, with_delay, again = (median(ordered[name]) for name in ("without", "with", "again"))
    parts = [
        UncertaintyPart(
            "median_without", "bound", max(_half_interval_ns(ordered[name]) for name in ("without", "again"))
        ),
        UncertaintyPart("median_with", "bound", _half_interval_ns(ordered["with"])),
        UncertaintyPart("target_drift", "bound", round(abs(without - again) / 2)),
        UncertaintyPart("clock_wander", "bound", 2 * max(_clock_wander_ns(answer) for answer in answers)),
    ]
    seen_without, seen_with, seen_again = (transits[name] for name in ("without", "with", "again"))
    if seen_without is not None and seen_with is not None and seen_again is not None:
        known_ns = round(seen_with - (seen_without + seen_again) / 2)
    else:
        known_ns = delay_ns
        parts.append(UncertaintyPart("set_delay", "bound", SET_DELAY_TOLERANCE_NS))
    found_ns = round(with_delay - (without + again) / 2)
    return judge_known_delay((producer,), known_ns, found_ns, n, Uncertainty.from_parts(parts))


def _half_interval_ns(ordered_ns: Sequence[int]) -> int:
    """Return how far the median may lie from the truth: the larger side of its 95 % interval by ranks."""
    ranks = quantile_ranks(0.5, len(ordered_ns))
    if ranks.lower is None or ranks.upper is None:
        raise MeasurementError(f"known-delay check: {len(ordered_ns)} messages are too few for a median")
    middle = median(ordered_ns)
    return round(max(middle - ordered_ns[ranks.lower - 1], ordered_ns[ranks.upper - 1] - middle))


def _clock_wander_ns(answer: ReplayAnswers) -> int:
    """Return how far the clocks' lines may have been off: half a round trip, and what the fit left over.

    Within one replay an offset's error is a constant up to its bound, and the next replay may have another.
    """
    clocks = [clock for clock in answer.recv["clocks"] if clock["bound_ns"] is not None]
    return max((int(clock["bound_ns"]) + int(clock["residual_ns"] or 0) for clock in clocks), default=0)


def _received_minus_sent_ns(path: Path) -> list[int]:
    with path.open(newline="") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: int(row["received_local_tai_ns"]))
    return [int(row["received_minus_scheduled_ns"]) - int(row["lateness_ns"]) for row in rows]


def known_delay_record(found: KnownDelay, context: Context) -> Measurement:
    """Return the record: the error of the found delay against +-U, which has thereby been used up."""
    allowed_ns = found.uncertainty.expanded
    error_ns = found.error_ns
    limit = Limit(allowed_ns, -allowed_ns, "the bench's own expanded uncertainty of the difference")
    margin_ns = None if error_ns is None else allowed_ns - abs(error_ns)
    sample = Sample("known_delay_error", "median", error_ns, found.n, SAMPLES_REQUIRED)
    verdict = Verdict(found.outcome, margin_ns, found.reason)
    return build_record(REQUIREMENT, sample, limit, Uncertainty.from_parts([]), verdict, context)
