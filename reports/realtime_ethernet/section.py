# SPDX-License-Identifier: Apache-2.0
"""The section on single messages: each network stack of the run beside the others, and beside the paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from reports.errors import RecordError
from reports.realtime_ethernet.capability import MEAN, QUANTILES, RISES
from reports.realtime_ethernet.evidence import (
    ALONE,
    BESIDE,
    FOLDER,
    LATENCY,
    MESSAGES,
    THROUGHPUT,
    Messages,
    load_bulk,
    load_messages,
    load_round_trips,
    load_thread_shares,
    load_transfers,
)
from reports.realtime_ethernet.thread_shares import ThreadShares
from reports.realtime_ethernet.verdict import (
    QUANTITIES,
    Finding,
    bulk_share,
    find_latency,
    find_rise,
    find_throughput,
)
from reports.record.histogram import Quantile, merge
from reports.record.measurement import Measurement
from reports.section import Section, TargetData, TargetView

REFERENCE_STACK = "kernel"
"""The stack that the others are compared with, as in the paper."""
PAPER = {
    LATENCY: "59 % less than UDP",
    THROUGHPUT: "155 % more than UDP, 5234 kbit/s (654 KB/s)",
    BESIDE: "less than 2 %, UDP: 532 %",
}
"""Jin, Lee and Yun, of RTDiP on a slow processor (ARM): by kind of trial."""


@dataclass(frozen=True)
class OfSize:
    """What was found of one size with one stack.

    Attributes:
        found: By statistic.
        windows_lost: That were not acknowledged; of throughput alone.
        against_percent: First statistic, of that with REFERENCE_STACK, less 100; None: nothing to compare.
    """

    size_bytes: int
    found: dict[str, Finding]
    windows_lost: int = 0
    against_percent: float | None = None

    @property
    def value(self) -> float | None:
        """Return the value of the first statistic."""
        return next(iter(self.found.values())).value


@dataclass(frozen=True)
class OfStack:
    """What was found with one network stack.

    Attributes:
        latencies: By size, in ns.
        throughputs: By size, in bytes/s.
        rise: By quantity and statistic, in percent.
        alone: Median of the probes' round trips, all rounds together.
        beside: The same beside a bulk receiver.
        share: What that reached beside the probe, of what it reaches alone; None: not known.
        threads: Who had the echo's CPU while messages were on their way; None: nothing was traced.
        untraced: Why that is not known; empty: it is, or the run is older.
    """

    messages: Messages
    latencies: tuple[OfSize, ...]
    throughputs: tuple[OfSize, ...]
    rise: dict[tuple[str, str], Finding]
    alone: Quantile | None
    beside: Quantile | None
    share: float | None
    threads: ThreadShares | None = None
    untraced: str = ""

    @property
    def stolen_share(self) -> float:
        """Return what the machine's host took of the time of all trials."""
        ticks = sum(each.ticks for each in self.messages.trials)
        return sum(each.stolen_ticks for each in self.messages.trials) / ticks if ticks else 0.0

    @property
    def disturbed(self) -> int:
        """Return how many trials do not count for that."""
        return sum(each.is_disturbed for each in self.messages.trials)


@dataclass(frozen=True)
class MessageSection(TargetView):
    """What the section shows.

    Attributes:
        stacks: In the order of their folders, REFERENCE_STACK first.
        problems: Why evidence could not be read.
    """

    judged: tuple[Measurement, ...]
    stacks: tuple[OfStack, ...]
    problems: tuple[str, ...] = ()

    @property
    def records(self) -> Sequence[Measurement]:
        """Return the records that it shows."""
        return self.judged

    @property
    def paper(self) -> dict[str, str]:
        """Return the paper's figures by kind of trial."""
        return PAPER


def gather_messages(measured: TargetData) -> MessageSection | None:
    """Return the section of a target; None: nothing was measured."""
    place = measured.evidence(FOLDER)
    folders = sorted(each.parent for each in (*place.glob(MESSAGES), *place.glob(f"*/{MESSAGES}")))
    judged = tuple(each for each in measured.records if each.quantity in QUANTITIES)
    if not folders and not judged:
        return None
    loaded: list[tuple[Messages, Path]] = []
    stacks: list[OfStack] = []
    problems: list[str] = []
    for folder in folders:
        try:
            loaded.append((load_messages(folder), folder))
        except RecordError as error:
            problems.append(str(error))
    reference: OfStack | None = None
    for messages, folder in sorted(loaded, key=lambda each: each[0].stack != REFERENCE_STACK):
        try:
            stacks.append(_of_stack(messages, folder, reference))
        except RecordError as error:
            problems.append(f"{messages.stack}: {error}")
            continue
        if messages.stack == REFERENCE_STACK:
            reference = stacks[-1]
    return MessageSection(judged, tuple(stacks), tuple(problems))


def _of_stack(messages: Messages, folder: Path, reference: OfStack | None) -> OfStack:
    latencies: list[OfSize] = []
    for size_bytes in messages.sizes_bytes(LATENCY):
        found = {each: find_latency(messages, folder, size_bytes, each) for each in QUANTILES}
        latencies.append(_compared(OfSize(size_bytes, found), reference.latencies if reference else ()))
    throughputs: list[OfSize] = []
    for size_bytes in messages.sizes_bytes(THROUGHPUT):
        own = load_transfers(folder, messages.of(THROUGHPUT, size_bytes))
        found = {MEAN: find_throughput(messages, folder, size_bytes)}
        row = OfSize(size_bytes, found, sum(each.windows_lost for each in own))
        throughputs.append(_compared(row, reference.throughputs if reference else ()))
    alone, beside = (
        merge([each.round_trip for each in load_round_trips(folder, messages.of(kind))]).quantile(0.5)
        for kind in (ALONE, BESIDE)
    )
    threads, untraced = _threads(messages, folder)
    return OfStack(
        messages,
        tuple(latencies),
        tuple(throughputs),
        {(of, each): find_rise(of, messages, folder, each) for of in RISES for each in QUANTILES},
        alone,
        beside,
        bulk_share(messages, folder, load_bulk(folder, messages.of(BESIDE))),
        threads,
        untraced,
    )


def _threads(messages: Messages, folder: Path) -> tuple[ThreadShares | None, str]:
    """Return who had the CPU, or why it is not known."""
    if messages.traced is None or messages.traced.missing:
        return None, messages.traced.missing if messages.traced else ""
    try:
        return load_thread_shares(folder, messages.traced), ""
    except RecordError as error:
        return None, str(error)


def _compared(row: OfSize, reference: Sequence[OfSize]) -> OfSize:
    """Return a row with what its value is of that of the reference's row of the same size."""
    other = next((each.value for each in reference if each.size_bytes == row.size_bytes), None)
    if row.value is None or not other:
        return row
    return OfSize(row.size_bytes, row.found, row.windows_lost, 100 * (row.value / other - 1))


SECTION = Section(
    (("single-messages", "Single messages"),), "realtime_ethernet/section.html.j2", gather_messages
)
