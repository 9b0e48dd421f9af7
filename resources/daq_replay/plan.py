# SPDX-License-Identifier: Apache-2.0
"""Plan files: the pattern, the bench and one agreed instant, in the words of docs/native-tools.md."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from hw.bench import BenchSpec, TargetSpec
from hw.errors import CapabilityError
from reports.clock_sync.tai_utc import TAI_UTC_S
from resources.clock_sync.lines import ClockLine
from resources.daq_replay.plan_file import PlanClock, PlanFile, PlanProducer


@dataclass(frozen=True)
class ReplaySettings:
    """What is replayed, and how long; times in milliseconds."""

    pattern: Path
    phase: str = "aligned-12"
    warmup_ms: int = 6000
    duration_ms: int = 60000
    grace_ms: int = 2000
    spin_us: int = 0
    correction: str = "two-way"
    tai_utc_s: int = TAI_UTC_S
    only_producers: tuple[int, ...] = ()
    """Producers that take part; empty: all of the pattern."""
    synchronised_to: str = ""
    """With correction `none`: the clock whose time the target has; empty: each producer's own."""
    consumer_clock: str = ""
    """What a target that is synchronised stamps with, as `bw-clock` names it; empty: the system's clock."""

    @property
    def total_ms(self) -> int:
        """Time from slot 0 to the end of what the consumer waits for."""
        return self.warmup_ms + self.duration_ms + self.grace_ms

    def shortened(self, warmup_ms: int, duration_ms: int) -> ReplaySettings:
        """Return the same replay over other times."""
        return replace(self, warmup_ms=warmup_ms, duration_ms=duration_ms)


def new_nonce() -> str:
    """Return 16 hex digits that tell the frames of this run from those of any other."""
    return secrets.token_hex(8)


def write_plan(
    spec: BenchSpec,
    target: TargetSpec,
    settings: ReplaySettings,
    lines: Mapping[str, ClockLine],
    start_reference_tai_ns: int,
    pattern_text: str,
    nonce: str = "",
    scale: ClockLine | None = None,
) -> str:
    """Return the text of a plan.

    Args:
        spec: The bench.
        target: The consumer.
        settings: What is replayed.
        lines: A line for each clock that a producer stamps with.
        start_reference_tai_ns: Instant of slot 0 on the reference clock.
        pattern_text: Text of the pattern file.
        nonce: The same in all plans of a replay; empty: a new one.
        scale: The clock on which all slots are given; None: each on its producer's own.

    Raises:
        CapabilityError: The bench lacks a producer.
    """
    numbers = settings.only_producers or tuple(sorted(spec.producers))
    missing = [number for number in numbers if number not in spec.producers]
    if missing:
        raise CapabilityError(
            f"bench {spec.name}: no producer {missing[0]}; add it under benchwright.producers"
        )
    clocks = sorted({spec.nodes[spec.producers[number].node].clock for number in numbers})
    plan = PlanFile(
        nonce=nonce or new_nonce(),
        phase=settings.phase,
        warmup_ms=settings.warmup_ms,
        duration_ms=settings.duration_ms,
        grace_ms=settings.grace_ms,
        spin_us=settings.spin_us,
        correction=settings.correction,
        tai_utc_s=settings.tai_utc_s,
        consumer=target.test_address,
        consumer_clock="" if scale is None else settings.consumer_clock,
        clocks=[PlanClock(name, spec.clocks[name].address, spec.clocks[name].port) for name in clocks],
        producers=[_producer(spec, number, lines, scale, start_reference_tai_ns) for number in numbers],
    )
    return plan.text(pattern_text)


def _producer(
    spec: BenchSpec, number: int, lines: Mapping[str, ClockLine], scale: ClockLine | None, start_tai_ns: int
) -> PlanProducer:
    """Return a producer of the bench with slot 0 on its clock, or on the one of all slots."""
    producer = spec.producers[number]
    clock = spec.nodes[producer.node].clock
    line = scale or lines[clock]
    return PlanProducer(number, producer.address, clock, line.local_ns(start_tai_ns), line.rate_ppb)
