# SPDX-License-Identifier: Apache-2.0
"""The verdicts on single messages through a network stack.

A value is that of all rounds together. By how much any two neighbours among the rounds are off it is a bound
of U. If one round of five is slower than the others, seven rounds have none of those with 21 %, fourteen with
4 %, and nothing in them tells of it. Two together, because a p99 of one short round is mostly chance.
Half of a round trip is the latency, as in the paper: no exchange tells how it divides.
What a bulk receiver adds has two parts. Frames that came before stand in the card's queue, whatever the
stack does; from the driver on it is the stack's: `receive_rise` is that part alone, of the same latency.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from reports.realtime_ethernet.capability import (
    BULK_RISE,
    MESSAGE_LATENCY,
    MESSAGE_THROUGHPUT,
    QUANTILES,
    RECEIVE_RISE,
    RISES,
)
from reports.realtime_ethernet.evidence import (
    ALONE,
    BESIDE,
    LATENCY,
    THROUGHPUT,
    Messages,
    RoundTrips,
    Transfer,
    Trial,
    bytes_per_s,
    load_bulk,
    load_round_trips,
    load_transfers,
)
from reports.record.context import Context, Sample, build_record
from reports.record.histogram import Summary, merge
from reports.record.measurement import Limit, Measurement, Number, Uncertainty, UncertaintyPart
from reports.record.verdict import Verdict, judge

QUANTITIES = (MESSAGE_LATENCY, *RISES, MESSAGE_THROUGHPUT)
ROUNDS_MIN = 14
"""Of which no trial is left out: below there is no verdict."""
TOGETHER = 2
"""Neighbours among the rounds of which the value is compared with that of all; the last may have one more."""
BULK_SHARE_MIN = 0.8
"""What the bulk receiver has to reach beside the probe, of what it reaches alone."""
BUCKET_SHARE = 0.001
"""Largest width of a bucket of the tools' histograms, of its value: docs/native-tools.md."""

T = TypeVar("T")


def size_of_bytes(size_bytes: int) -> str:
    """Return a size as the axis `size` has it: `64 B`."""
    return f"{size_bytes} B"


def bytes_of_size(size: str) -> int:
    """Return the bytes of a size of the axis, which a requirements file has checked."""
    return int(size.removesuffix(" B"))


@dataclass(frozen=True)
class Demand:
    """What a requirement asks."""

    requirement: str
    statistic: str
    limit: Limit
    samples: int
    lost: int


@dataclass(frozen=True)
class Finding:
    """A value, in the unit of its quantity, with U, and why there may be no verdict on it.

    Attributes:
        value: None: nothing was measured.
        n: Round trips, or windows; of a rise the fewer of its two sets.
        rounds: That count.
        causes: Empty: nothing speaks against a verdict.
    """

    value: Number | None
    uncertainty: Uncertainty
    n: int
    lost: int
    rounds: int
    causes: tuple[str, ...] = ()


def find_latency(messages: Messages, folder: Path, size_bytes: int, statistic: str) -> Finding:
    """Return the latency of messages of a size, in ns; raises RecordError: names file and key."""
    trials = [each for each in messages.of(LATENCY, size_bytes) if not each.is_disturbed]
    rounds = load_round_trips(folder, trials)

    def half_ns(some: Sequence[RoundTrips]) -> float | None:
        whole_ns = _quantile_ns([each.round_trip for each in some], statistic)
        return None if whole_ns is None else whole_ns / 2

    value_ns, apart_ns = of_all_rounds(rounds, half_ns)
    parts = _parts_ns(value_ns, apart_ns)
    found = Finding(
        value=None if value_ns is None else round(value_ns),
        uncertainty=Uncertainty.from_parts(parts),
        n=sum(each.round_trip.n for each in rounds),
        lost=sum(each.lost for each in rounds),
        rounds=len(rounds),
    )
    return _with_causes(found, messages, [each.over for each in rounds], messages.of(LATENCY, size_bytes))


def find_rise(quantity: str, messages: Messages, folder: Path, statistic: str) -> Finding:
    """Return by how much a bulk receiver beside raises the latency, in percent of it without.

    Args:
        quantity: BULK_RISE: the whole of it; RECEIVE_RISE: from the driver to the echo alone.
        messages: What was measured.
        folder: Of the answers.
        statistic: One of QUANTILES.

    Raises:
        RecordError: Evidence is damaged; names file and key.
    """
    disturbed = {each.round for each in (*messages.of(ALONE), *messages.of(BESIDE)) if each.is_disturbed}
    alone, beside = (
        [each for each in messages.of(kind) if each.round not in disturbed] for kind in (ALONE, BESIDE)
    )
    trips = [load_round_trips(folder, each) for each in (alone, beside)]
    pairs = list(zip(*trips, strict=True))
    rise = _Rise(quantity, statistic)
    value, apart = of_all_rounds(pairs, rise.percent)
    parts: list[UncertaintyPart] = []
    if value is not None:
        parts = [
            UncertaintyPart("rounds", "bound", apart),
            UncertaintyPart("buckets", "bound", rise.buckets_percent(pairs)),
        ]
    n = min(sum(rise.distribution(each).n for each in some) for some in trips)
    lost = sum(each.lost for some in trips for each in some)
    found = Finding(value, Uncertainty.from_parts(parts), n, lost, len(pairs))
    bulk = load_bulk(folder, beside)
    over = [each.over for each in (*trips[0], *trips[1], *bulk)]
    found = _with_causes(found, messages, over, messages.of(BESIDE))
    share = bulk_share(messages, folder, bulk)
    if share is None or share < BULK_SHARE_MIN:
        reached = "an unknown share" if share is None else f"{share:.0%}"
        why = f"the bulk receiver reached {reached} of what it reaches alone, {BULK_SHARE_MIN:.0%} are needed"
        found = replace(found, causes=(*found.causes, why))
    return found


@dataclass(frozen=True)
class _Rise:
    """How a rise follows from pairs of trials, without and with a bulk receiver."""

    quantity: str
    statistic: str

    def distribution(self, trial: RoundTrips) -> Summary:
        """Return of what the quantiles are taken; empty, where an older tool does not say."""
        return trial.round_trip if self.quantity == BULK_RISE else trial.receiving or merge([])

    def percent(self, some: Sequence[tuple[RoundTrips, RoundTrips]]) -> float | None:
        """Return the rise of some rounds together; None: not known."""
        whole_ns, before_ns, after_ns = self._quantiles_ns(some)
        if not whole_ns or before_ns is None or after_ns is None:
            return None
        return 100 * (after_ns - before_ns) / whole_ns

    def buckets_percent(self, some: Sequence[tuple[RoundTrips, RoundTrips]]) -> float:
        """Return by how much the widths of buckets may move the rise."""
        whole_ns, before_ns, after_ns = self._quantiles_ns(some)
        compared_ns = after_ns or 0
        if self.quantity == RECEIVE_RISE:
            compared_ns += before_ns or 0
        return 2 * BUCKET_SHARE * 100 * compared_ns / (whole_ns or 1)

    def _quantiles_ns(self, some: Sequence[tuple[RoundTrips, RoundTrips]]) -> tuple[float | None, ...]:
        """Return the latency without a bulk receiver, and what is compared without and with it.

        The whole of a rise is of round trips, of which both halves count; receiving is half of one.
        """
        alone_ns = _quantile_ns([pair[0].round_trip for pair in some], self.statistic)
        compared = [
            _quantile_ns([self.distribution(pair[k]) for pair in some], self.statistic) for k in (0, 1)
        ]
        half = 1 if self.quantity == BULK_RISE else 2
        return None if alone_ns is None else alone_ns / half, *compared


def bulk_share(messages: Messages, folder: Path, bulk: Sequence[Transfer]) -> float | None:
    """Return what the bulk receiver reached beside the probe, of what it reaches alone; None: not known."""
    alone = load_transfers(folder, messages.of(THROUGHPUT, messages.bulk_bytes))
    alone_bytes_per_s = bytes_per_s(alone)
    return bytes_per_s(bulk) / alone_bytes_per_s if alone_bytes_per_s and bulk else None


def find_throughput(messages: Messages, folder: Path, size_bytes: int) -> Finding:
    """Return the throughput of messages of a size, in bytes/s; raises RecordError: names file and key."""
    trials = [each for each in messages.of(THROUGHPUT, size_bytes) if not each.is_disturbed]
    rounds = load_transfers(folder, trials)
    value, apart = of_all_rounds(rounds, bytes_per_s)
    parts = [] if value is None else [UncertaintyPart("rounds", "bound", math.ceil(apart))]
    n = sum(each.windows for each in rounds)
    whole = None if value is None else round(value)
    found = Finding(whole, Uncertainty.from_parts(parts), n, 0, len(rounds))
    return _with_causes(found, messages, [each.over for each in rounds], messages.of(THROUGHPUT, size_bytes))


def of_all_rounds(
    rounds: Sequence[T], value_of: Callable[[Sequence[T]], float | None]
) -> tuple[float | None, float]:
    """Return the value of all rounds together, and how far that of neighbours is off it at most.

    Args:
        rounds: What was measured in each that counts, in their order.
        value_of: The value of some rounds together; None: there is none.
    """
    value = value_of(rounds) if rounds else None
    if value is None:
        return None, 0.0
    last = max(len(rounds) // TOGETHER, 1) - 1
    parts = [rounds[k * TOGETHER : None if k == last else (k + 1) * TOGETHER] for k in range(last + 1)]
    own = [one for each in parts if (one := value_of(each)) is not None]
    return value, max(abs(one - value) for one in own)


def message_measurement(quantity: str, found: Finding, asked: Demand, context: Context) -> Measurement:
    """Judge what was found and return the record."""
    numbers = {"n": found.n, "n_required": asked.samples, "lost": found.lost, "allowed_lost": asked.lost}
    sample = Sample(quantity, asked.statistic, found.value, **numbers)
    judged = judge(
        found.value,
        asked.limit,
        found.uncertainty,
        **numbers,
        statistic=asked.statistic,
        unit=sample.unit,
    )
    if found.causes and judged.outcome in ("pass", "fail"):
        judged = Verdict("inconclusive", judged.margin, "; ".join(found.causes))
    return build_record(asked.requirement, sample, asked.limit, found.uncertainty, judged, context)


def _quantile_ns(rounds: list[Summary], statistic: str) -> int | None:
    quantile = merge(rounds).quantile(QUANTILES[statistic])
    return None if quantile is None else quantile.value_ns


def _parts_ns(value_ns: float | None, apart_ns: float) -> list[UncertaintyPart]:
    if value_ns is None:
        return []
    return [
        UncertaintyPart("rounds", "bound", math.ceil(apart_ns)),
        UncertaintyPart("buckets", "bound", math.ceil(value_ns * BUCKET_SHARE) + 1),
    ]


def _with_causes(found: Finding, messages: Messages, over: Sequence[str], trials: Sequence[Trial]) -> Finding:
    """Add why there may be no verdict: too few rounds, or messages that went another way."""
    causes: list[str] = []
    if found.rounds < ROUNDS_MIN:
        taken = f"the machine's host took the time of {len(trials) - found.rounds}"
        causes.append(f"{found.rounds} of {len(trials)} rounds count, {ROUNDS_MIN} are needed: {taken}")
    if wrong := sorted(set(over) - {messages.over}):
        causes.append(f"not carried by the stack {messages.stack}: messages went over {', '.join(wrong)}")
    return replace(found, causes=tuple(causes))
