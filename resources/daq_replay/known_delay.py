# SPDX-License-Identifier: Apache-2.0
"""The known-delay check: the bench delays one path by a known amount and must find it within its uncertainty.

One producer's streams are replayed through the impairment node: in the first section of the replay without a
delay, then with it, and without once more. The median of received - sent with it, less the mean of the other
two, is what the instrument finds. What passes while the delay is changed belongs to no section.
What the delay really was is seen by an independent capture at both ends of the impairment node, on this
machine's clock; where no such capture is possible, the delay that was set counts, with the tolerance of the
node. Offsets of clocks cancel in the difference; what their lines wander does not. A target that becomes
faster meanwhile, as an emulated one does while it warms up, is between the first and the last: half of what
those are apart enters U.
"""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median

from hw.bench import TargetSpec
from hw.errors import MeasurementError
from hw.open_bench import OpenBench
from hw.path_settings import PathSettings
from hw.paths import producer_path
from hw.router import PathDirection
from reports import Limit, Measurement, Uncertainty, UncertaintyPart, Verdict
from reports.daq_replay.known_delay import KnownDelay, judge_known_delay
from reports.record.context import Context, Sample, build_record
from reports.record.sampling import quantile_ranks
from reports.units import NS_PER_S
from resources.daq_replay.pattern import Pattern
from resources.daq_replay.plan import ReplaySettings
from resources.daq_replay.replay import Progress, Replay, ReplayAnswers
from resources.network_stack import NetworkStack
from resources.tools.capture import median_transits_ns

REQUIREMENT = "BENCH-KNOWN-DELAY"
SET_DELAY_TOLERANCE_NS = 1_000_000
"""What a delay that is only set, not seen, may be off: a timer tick of the impairment node."""
SAMPLES_REQUIRED = 20
SECTIONS = ("without", "with", "again")
SECTIONS_FILE = "sections.json"
CHANGE_S = 1.0
"""What changing the delay takes at most; where it takes longer, the last section has fewer messages."""
SETTLING_S = 0.5
"""After a change: what it has lost or held back has come by then."""
UNDER_WAY_NS = 100_000_000
"""A message that is scheduled so long before a change has passed the impairment node by then."""
WARMUP_MS = 3000
"""An emulated target translates its code when that first runs, and is slow at first."""


class _Sections:
    """The sections of a replay: who changes the delay between them notes when each began and ended."""

    def __init__(self, bench: OpenBench, path: PathDirection, delay_ns: int, section_ms: int) -> None:
        self._router = bench.router()
        self._path = path
        self._delays_ns: dict[str, int] = dict(zip(SECTIONS, (0, delay_ns, 0), strict=True))
        self._section_s = section_ms / 1000
        self.utc_ns: dict[str, tuple[int, int]] = {}
        """Begin and end of each by this machine's clock."""

    @property
    def counting_ms(self) -> int:
        """How long the replay has to count for all of them."""
        changes = (len(SECTIONS) - 1) * (CHANGE_S + SETTLING_S)
        return round(1000 * (len(SECTIONS) * self._section_s + changes))

    def begin(self) -> None:
        """Set the first delay, before the replay."""
        self._apply(SECTIONS[0])

    def go_through(self, sleep: Callable[[float], None]) -> None:
        """Wait for the end of each section and change the delay, while the replay goes on."""
        for name in SECTIONS:
            if name != SECTIONS[0]:
                self._apply(name)
                sleep(SETTLING_S)
            begin_ns = time.time_ns()
            sleep(self._section_s)
            self.utc_ns[name] = (begin_ns, time.time_ns() - UNDER_WAY_NS)

    def _apply(self, name: str) -> None:
        self._router.configure([self._path], PathSettings(delay_us=self._delays_ns[name] // 1000))

    def clear(self) -> None:
        """Take the delay away."""
        self._router.clear()


def find_known_delay(
    bench: OpenBench,
    target: TargetSpec,
    pattern: Pattern,
    section_ms: int,
    producer: int,
    delay_ns: int,
    folder: Path,
    progress: Progress,
    stack: tuple[str, NetworkStack] | None = None,
) -> KnownDelay:
    """Make a delay and find it.

    Args:
        bench: An open bench with an impairment node.
        target: The consumer.
        pattern: The pattern whose streams are used.
        section_ms: How long each of the three sections lasts.
        producer: Number of the producer whose link is delayed.
        delay_ns: The delay, a whole number of microseconds.
        folder: Evidence goes here.
        progress: Called with a line of text now and then.
        stack: Node and network stack of the target under test, which is on.

    Raises:
        CapabilityError: The bench cannot delay this producer, or the stack carries none of its streams.
        MeasurementError: Too few messages came through.
    """
    path = producer_path(bench.spec, producer, target.node)
    sections = _Sections(bench, path, delay_ns, section_ms)
    settings = ReplaySettings(
        pattern=Path(),
        phase="staggered",
        warmup_ms=WARMUP_MS,
        duration_ms=sections.counting_ms,
        grace_ms=1000,
        only_producers=(producer,),
    )
    if stack is not None:
        pattern = stack[1].carried(pattern, producer)
    replay = Replay(bench, target, pattern, settings, folder, lambda _line: None)
    replay.stack = stack
    replay.log_messages = True
    replay.capture_interfaces = bench.virtual.capture_ends(bench.spec.producers[producer].node, target)
    replay.during = lambda _counting_s: sections.go_through(replay.sleep)
    progress(f"known-delay check: producer {producer}, 0, {delay_ns / 1e6:g} and 0 ms")
    try:
        sections.begin()
        answers = replay.run()
    finally:
        sections.clear()
    shift_ns = replay.settings.tai_utc_s * NS_PER_S
    tai_ns = {name: (a + shift_ns, b + shift_ns) for name, (a, b) in sections.utc_ns.items()}
    (folder / SECTIONS_FILE).write_text(json.dumps({"scheduled_tai_ns": tai_ns}, indent=1) + "\n")
    return compare(
        producer,
        delay_ns,
        _received_minus_sent_ns(folder / "messages.csv", tai_ns),
        _transits_ns(answers.captures, sections.utc_ns),
        answers,
    )


def _transits_ns(
    captures: Sequence[Path], sections_ns: Mapping[str, tuple[int, int]]
) -> Mapping[str, int | None]:
    if len(captures) != 2:
        return dict.fromkeys(sections_ns)
    before, behind = captures
    return dict(zip(sections_ns, median_transits_ns(before, behind, [*sections_ns.values()]), strict=True))


def compare(
    producer: int,
    delay_ns: int,
    latencies: Mapping[str, Sequence[int]],
    transits: Mapping[str, int | None],
    answers: ReplayAnswers,
) -> KnownDelay:
    """Compare the section of a replay with the delay, and those without before and `again` after it.

    Args:
        producer: Number of the producer whose link was delayed.
        delay_ns: The delay that was set.
        latencies: received - sent of each message, of the sections `without`, `with` and `again`.
        transits: Time through the impairment node in each, where both its ends were seen.
        answers: Of the replay: how well the clocks were known.

    Raises:
        MeasurementError: Too few messages came through.
    """
    ordered = {name: sorted(each) for name, each in latencies.items()}
    n = min(map(len, ordered.values()))
    if n < SAMPLES_REQUIRED:
        raise MeasurementError(f"known-delay check: only {n} messages came, not {SAMPLES_REQUIRED}")
    without, with_delay, again = (median(ordered[name]) for name in SECTIONS)
    parts = [
        UncertaintyPart(
            "median_without", "bound", max(_half_interval_ns(ordered[name]) for name in ("without", "again"))
        ),
        UncertaintyPart("median_with", "bound", _half_interval_ns(ordered["with"])),
        UncertaintyPart("target_drift", "bound", round(abs(without - again) / 2)),
        UncertaintyPart("clock_wander", "bound", 2 * _clock_wander_ns(answers)),
    ]
    seen_without, seen_with, seen_again = (transits[name] for name in SECTIONS)
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

    They are renewed every second: one section's error may differ from the next one's.
    """
    clocks = [clock for clock in answer.recv["clocks"] if clock["bound_ns"] is not None]
    return max((int(clock["bound_ns"]) + int(clock["residual_ns"] or 0) for clock in clocks), default=0)


def _received_minus_sent_ns(
    path: Path, sections_tai_ns: Mapping[str, tuple[int, int]]
) -> dict[str, list[int]]:
    """Return received - sent of the messages that were scheduled in each section."""
    found: dict[str, list[int]] = {name: [] for name in sections_tai_ns}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            scheduled_tai_ns = int(row["scheduled_tai_ns"])
            for name, (begin_ns, end_ns) in sections_tai_ns.items():
                if begin_ns <= scheduled_tai_ns < end_ns:
                    found[name].append(int(row["received_minus_scheduled_ns"]) - int(row["lateness_ns"]))
    return found


def known_delay_record(found: KnownDelay, context: Context) -> Measurement:
    """Return the record: the error of the found delay against +-U, which has thereby been used up."""
    allowed_ns = found.uncertainty.expanded
    error_ns = found.error_ns
    limit = Limit(allowed_ns, -allowed_ns, "the bench's own expanded uncertainty of the difference")
    margin_ns = None if error_ns is None else allowed_ns - abs(error_ns)
    sample = Sample("known_delay_error", "median", error_ns, found.n, SAMPLES_REQUIRED)
    verdict = Verdict(found.outcome, margin_ns, found.reason)
    return build_record(REQUIREMENT, sample, limit, Uncertainty.from_parts([]), verdict, context)
