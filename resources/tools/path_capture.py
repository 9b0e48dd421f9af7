# SPDX-License-Identifier: Apache-2.0
"""Both ends of a path captured by one clock, and what the path did to datagrams beside what was asked of it.

The switch's own tcpdump says it, which asks neither netem nor the router. Any other tool gives the same
figures from the same files.
"""

from __future__ import annotations

import re
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from hw.errors import MeasurementError
from hw.open_bench import Nodes
from hw.path_settings import GilbertElliott, PathSettings, RandomLoss
from reports.errors import ReportError
from reports.paths.bursts import Chain, burst_conditions
from reports.paths.condition import Condition
from reports.paths.datagrams import Integers, read_datagrams
from reports.paths.delay import delay_condition
from reports.paths.jitter import Jitter, JitterFound, judge_jitter
from reports.paths.shares import copies_condition, loss_condition, reordering_condition
from reports.paths.transits import Transits, transits
from resources.tools.capture import capture_file, start_capture
from resources.tools.jobs import end_and_fetch

SETTLES_S = 1.5
"""What tcpdump has not read yet when it ends is gone; its kernel buffer waits a second for more."""
NOT_SEEN = re.compile(r"(\d+) packets? dropped by (?:kernel|interface)")


@dataclass(frozen=True)
class PathEnds:
    """The switch's interfaces where a path begins and ends, and a capture of each in a folder."""

    first: str
    second: str
    folder: Path

    def there(self, source: str, destination_port: int = 0) -> Transits:
        """Return what became of datagrams on their way from the first to the second.

        Args:
            source: Address that sent them: both directions are in both captures.
            destination_port: Of one flow; 0: of all.

        Raises:
            MeasurementError: A capture cannot be read.
        """
        return _transits(self.folder, (self.first, self.second), source, destination_port)

    def back(self, source: str, destination_port: int = 0) -> Transits:
        """Return what became of datagrams on their way from the second to the first; likewise."""
        return _transits(self.folder, (self.second, self.first), source, destination_port)


@contextmanager
def captured_path(
    bench: Nodes, first: str, second: str, folder: Path, but_port: int = 0
) -> Generator[PathEnds]:
    """Capture both ends of a path; afterwards the files are there.

    What was sent must have come out, or be lost, before the end: wait as long as the path's delay. What comes
    from or goes to `but_port` is left out.

    Raises:
        CapabilityError: The bench has no capture node.
        BenchError: A capture does not begin.
        MeasurementError: A capture did not see all packets.
    """
    folder.mkdir(parents=True, exist_ok=True)
    ends = PathEnds(first, second, folder)
    with ExitStack() as stack:
        for interface in (first, second):
            stack.callback(end_and_fetch, start_capture(bench, interface, folder, but_port))
        yield ends
        time.sleep(SETTLES_S)
    for interface in (first, second):
        said = (folder / f"capture-{interface}.err").read_text(errors="replace")
        gone = sum(int(count) for count in NOT_SEEN.findall(said))
        if gone or not NOT_SEEN.search(said):
            why = f"{gone} packets are missing" if gone else f"does not say what it missed: {said[-200:]!r}"
            raise MeasurementError(f"capture of {interface}: {why}")


@dataclass(frozen=True)
class Achieved:
    """What a path did in one direction, beside what was asked."""

    conditions: tuple[Condition, ...]
    jitter: JitterFound | None
    """Where one was asked for; its percentiles are among the conditions."""

    @property
    def marked(self) -> tuple[Condition, ...]:
        """Return those that are not as asked."""
        return tuple(each for each in self.conditions if each.is_off)

    def __str__(self) -> str:
        """Return sentences."""
        of_jitter = (*self.jitter.percentiles, self.jitter.correlation) if self.jitter else ()
        said = [str(each) for each in self.conditions if each not in of_jitter]
        return "; ".join([*said, *([str(self.jitter)] if self.jitter else [])])


def achieved(asked: PathSettings, found: Transits, without_ns: Sequence[Integers]) -> Achieved:
    """Return what a path did, each condition that a capture can tell.

    Of a path with a rate neither delay nor jitter is judged, as datagrams wait for each other; of one with
    jitter no order, as they overtake each other by themselves.

    Args:
        asked: What the path was set to.
        found: Datagrams that went through it.
        without_ns: Times inside without delay, of each section; the first is jitter's.

    Raises:
        MeasurementError: Too few datagrams.
    """
    try:
        conditions = [*_loss(asked, found)]
        dependent = bool(asked.duplicate_correlation_percent)
        conditions.append(copies_condition(asked.duplicate_percent, found, is_dependent=dependent))
        if not asked.jitter_us:
            dependent = bool(asked.reorder_correlation_percent)
            conditions.append(reordering_condition(asked.reorder_percent, found, is_dependent=dependent))
        jitter = None
        if asked.rate_kbps is None and asked.jitter_us:
            about = (asked.jitter_distribution.value, asked.jitter_correlation_percent)
            wanted = Jitter(asked.delay_us, asked.jitter_us, *about)
            jitter = judge_jitter(wanted, found.arrived_ns, without_ns[0])
            conditions += jitter.percentiles
            conditions += [jitter.correlation] if jitter.correlation else []
        elif asked.rate_kbps is None:
            conditions.append(delay_condition(asked.delay_us, found.arrived_ns, without_ns))
    except ReportError as error:
        raise MeasurementError(f"path: {error}") from error
    return Achieved(tuple(conditions), jitter)


def _loss(asked: PathSettings, found: Transits) -> Sequence[Condition]:
    if isinstance(asked.loss, GilbertElliott):
        loss = asked.loss
        percents = (loss.p_percent, loss.r_percent, loss.bad_loss_percent, loss.good_loss_percent)
        return burst_conditions(Chain(*(each / 100 for each in percents)), found.is_lost)
    loss = asked.loss or RandomLoss(0)
    return (loss_condition(loss.percent, found, is_dependent=bool(loss.correlation_percent)),)


def _transits(folder: Path, way: tuple[str, str], source: str, destination_port: int) -> Transits:
    try:
        before, behind = (read_datagrams(capture_file(folder, each)) for each in way)
    except ReportError as error:
        raise MeasurementError(str(error)) from error
    return transits(
        *(each.chosen(source=source, destination_port=destination_port) for each in (before, behind))
    )
