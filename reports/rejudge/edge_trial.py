# SPDX-License-Identifier: Apache-2.0
"""One trial of timed edges as its folder holds it, and whether its files agree with each other.

`edges.json` has the delays as a histogram with extremes and moments, what each statistic is uncertain by, and
what became of all edges; docs/timed-edges.md. Beside it lie the software's own answer and some waveforms.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from reports.rejudge.edge_budget import budget_discrepancies
from reports.rejudge.edge_traces import traced_delays
from reports.rejudge.latency import read_result
from reports.rejudge.rounding import alike, slack_of

TRIAL = "edges.json"
BUDGETS = {"mean": "mean", "standard_deviation": "deviation", "peak_to_peak": "peak_to_peak"}
"""Name of the budget of a statistic."""
AVERAGED = ("noise", "clock_jitter", "jitter")
"""Parts of a mean that single edges have a share in."""
PEAKS_MIN = 100
SOFTWARE = {"method": "method", "period_ns": "period_ns", "correlation_error_ns": "correlation_error_ns"}
"""What the software says again, by its name in the trial."""

SEEN_BY = ("oscilloscope", "capture")
FILES = ("software_file", "waveforms_file")
"""Of a trial: what lies beside it."""

Json = Mapping[str, Any]
Part = tuple[str, str, float]
"""Name, kind and size in ns of one part of U."""


class EdgeTrial:
    """A trial; delays are edge - reference, as measured."""

    def __init__(self, folder: Path) -> None:
        """Read it; raises OSError, ValueError or KeyError."""
        self.folder = folder
        self.data: Json = json.loads((folder / TRIAL).read_text("utf-8"))
        self.delays: Json | None = self.data["delays"]
        self.counts: Json = self.data["counts"]
        self.lost: int = self.counts["missing"] + self.counts["runt"]
        self.at_border: int = self.counts["at_border"]
        self.correction_ns: float = self.data.get("correction_ns", 0)
        self.is_doubtful = bool(self.data.get("doubts") or self.data.get("failed"))

    @property
    def n(self) -> int:
        """Delays."""
        return 0 if self.delays is None else int(self.delays["count"])

    def value(self, statistic: str, n_required: int) -> tuple[float | None, int]:
        """Return a statistic of the delays, and of how many."""
        if self.delays is None:
            return None, 0
        if statistic == "mean":
            return self.delays["mean_ns"] - self.correction_ns, self.n
        if statistic == "standard_deviation":
            return self.delays["deviation_ns"], self.n
        first = self.delays["peak_to_peak_ns"].get(str(n_required))
        if first is not None:
            return first, n_required
        return self.delays["maximum_ns"] - self.delays["minimum_ns"], self.n

    def offset(self, statistic: str) -> float | None:
        """Return the offset of the clock that makes the edges; an early edge is of a clock that is ahead."""
        if self.delays is None:
            return None
        if statistic == "mean":
            return self.correction_ns - self.delays["mean_ns"]
        ends = (self.delays["minimum_ns"], self.delays["maximum_ns"])
        return max(abs(self.correction_ns - end) for end in ends)

    def parts(self, statistic: str) -> list[Part] | None:
        """Return what a statistic is uncertain by.

        Of the offset farthest from 0 (`max_abs`) it is what all edges share, and half of what a peak to peak
        has: one extreme's own.
        """
        if statistic in BUDGETS:
            return self._budget(BUDGETS[statistic])
        mean, peak = self._budget("mean"), self._budget("peak_to_peak")
        if mean is None or peak is None:
            return None
        own = [(name, kind, value / 2) for name, kind, value in peak if name != "time_base"]
        shared = [part for part in mean if part[0] not in (*AVERAGED, "time_base")]
        bases = [value for name, _, value in (*mean, *peak) if name == "time_base"]
        return [*own, *shared, *([("time_base", "bound", math.fsum(bases))] if bases else [])]

    def _budget(self, name: str) -> list[Part] | None:
        parts = self.data["budgets"].get(name)
        return None if parts is None else [(part["name"], part["kind"], part["value_ns"]) for part in parts]

    @cached_property
    def software(self) -> Json | None:
        """What the software said at its end; None: nothing."""
        name = self.data.get("software_file")
        return read_result(self.folder / name) if name else None

    def discrepancies(self) -> Iterator[str]:
        """Say where the files of the trial contradict themselves or each other."""
        for key in FILES:
            if (name := self.data.get(key)) and not (self.folder / name).exists():
                yield f"{key} is {name!r}, and there is no such file"
        if self.data["seen_by"] not in SEEN_BY:
            yield f"seen_by is {self.data['seen_by']!r}"
        for name in BUDGETS.values():
            below = [part for part, _, value in self._budget(name) or () if value < 0]
            yield from (f"{part} of {name} is below 0" for part in below)
        yield from self._software_discrepancies()
        if self.delays is None:
            return
        is_captured = self.data["seen_by"] == "capture"
        if self.counts["pairs"] != self.n:
            yield f"{self.counts['pairs']} pairs, {self.n} delays"
        yield from delay_discrepancies(self.delays, rounded=is_captured)
        yield from budget_discrepancies(self.data, self.delays)
        if is_captured:
            yield from self._latch_discrepancies(self.delays)
        else:
            yield from self._trace_discrepancies(self.delays)

    def _software_discrepancies(self) -> Iterator[str]:
        """Hold the trial against what the software said of itself."""
        if not self.data.get("software_file"):
            return
        answer = self.software
        if answer is None or answer.get("valid") is not True:
            if not self.is_doubtful:
                yield "the software came to no valid result, and the trial has no doubts"
            return
        for name, own in SOFTWARE.items() if self.data["seen_by"] != "capture" else ():
            if own in answer and answer[own] != self.data[name]:
                yield f"{name} is {self.data[name]}, the software had {answer[own]}"
        fired = answer.get("fired")
        if isinstance(fired, int) and answer.get("complete") and self.n > fired:
            yield f"{self.n} delays of {fired} edges that were made"

    def _latch_discrepancies(self, delays: Json) -> Iterator[str]:
        """Hold delays that software and a capture found by themselves against the software's answer."""
        found = None if self.software is None else self.software.get("delay")
        if found is None or self.software is None:
            return
        peaks: dict[str, Any] = dict(self.software.get("peak_to_peak_ns") or {})
        peaks[str(found["n"])] = found["max_ns"] - found["min_ns"]
        for name, worked_out in (
            ("count", found["n"]),
            ("mean_ns", found["mean_ns"]),
            ("deviation_ns", found["stddev_ns"] or 0),
            ("minimum_ns", found["min_ns"]),
            ("maximum_ns", found["max_ns"]),
            ("peak_to_peak_ns", peaks),
            ("buckets", found["buckets"]),
            ("blocks", self.software.get("blocks")),
        ):
            if delays.get(name) != worked_out:
                yield f"{name} of the delays is not that of the software's answer"

    def _trace_discrepancies(self, delays: Json) -> Iterator[str]:
        """Say where the waveforms show a delay that was not counted; clipped ones are not."""
        name = self.data.get("waveforms_file")
        if not name or not (self.folder / name).exists():
            return
        buckets: Sequence[Sequence[float]] = delays["buckets"]
        strange = [
            shown
            for shown, slack in traced_delays(json.loads((self.folder / name).read_text("utf-8")))
            if not any(low - slack <= shown <= low + width + slack for low, width, _ in buckets)
        ]
        if len(strange) > self.counts["clipped"] + self.counts["holes"]:
            yield f"the waveforms show a delay of {strange[0]:.1f} ns, and no such was counted"


def delay_discrepancies(delays: Json, *, rounded: bool) -> Iterator[str]:
    """Say where moments, extremes and histogram of delays differ; `rounded`: to whole ns."""
    buckets: Sequence[Sequence[float]] = delays["buckets"]
    n, mean, deviation = delays["count"], delays["mean_ns"], delays["deviation_ns"]
    counted = sum(bucket[2] for bucket in buckets)
    if counted != n or n < 1:
        yield f"{n} delays, their buckets hold {counted}"
        return
    least, most = delays["minimum_ns"], delays["maximum_ns"]
    step = 1.0 if rounded else 0.0
    low = math.fsum(bucket[0] * bucket[2] for bucket in buckets) / n
    width = math.fsum(bucket[1] * bucket[2] for bucket in buckets) / n
    if not low - step - slack_of(low) <= mean <= low + width + step + slack_of(low):
        yield f"mean_ns is {mean}, the buckets allow {low:.6g} to {low + width:.6g}"
    for name, value, (start, wide, _) in (
        ("minimum_ns", least, buckets[0]),
        ("maximum_ns", most, buckets[-1]),
    ):
        if not start - slack_of(start) <= value <= start + wide + slack_of(start):
            yield f"{name} is {value}, its bucket {start:.6g} + {wide:.6g}"
    yield from _deviation_discrepancies(buckets, n, deviation, step)
    if "kurtosis" in delays:
        yield from _kurtosis_discrepancies(buckets, n, delays["kurtosis"])
    if "blocks" in delays:
        yield from _block_discrepancies(delays["blocks"], delays)
    yield from _peak_discrepancies(delays["peak_to_peak_ns"], n, most - least)


def _deviation_discrepancies(
    buckets: Sequence[Sequence[float]], n: int, deviation: float, step: float
) -> Iterator[str]:
    """The deviation differs from that of the buckets' middles by half of the widest at most."""
    middles = [(low + width / 2, count) for low, width, count in buckets]
    mean = math.fsum(middle * count for middle, count in middles) / n
    squares = math.fsum(count * (middle - mean) ** 2 for middle, count in middles)
    found = math.sqrt(squares / (n - 1)) if n > 1 else 0.0
    enlarged = math.sqrt(n / (n - 1)) if n > 1 else 1.0
    slack = max(width for _, width, _ in buckets) / 2 * enlarged + step + (found / n if step else 0.0)
    if abs(deviation - found) > slack + slack_of(found):
        yield f"deviation_ns is {deviation}, that of the buckets {found:.6g}"


def _kurtosis_discrepancies(buckets: Sequence[Sequence[float]], n: int, kurtosis: float) -> Iterator[str]:
    """The kurtosis is that of the buckets' middles; of a single one it is 1."""
    middles = [(low + width / 2, count) for low, width, count in buckets]
    mean = math.fsum(middle * count for middle, count in middles) / n
    second, fourth = (
        math.fsum((middle - mean) ** power * count for middle, count in middles) / n for power in (2, 4)
    )
    found = fourth / second**2 if second else 1.0
    if not alike(float(kurtosis), found):
        yield f"kurtosis is {kurtosis}, that of the buckets {found:.6g}"


def _block_discrepancies(blocks: Json, delays: Json) -> Iterator[str]:
    """The means of blocks, with less than a block behind them, are those of delays with these moments."""
    size, means, n = blocks["size"], blocks["means_ns"], delays["count"]
    whole, deviation = delays["mean_ns"], delays["deviation_ns"]
    if size < 1 or len(means) != n // size:
        yield f"{len(means)} blocks of {size}, of {n} delays"
        return
    ends = delays["minimum_ns"], delays["maximum_ns"]
    rest = n - size * len(means)
    own = [*means, (n * whole - size * math.fsum(means)) / rest] if rest else means
    slack = slack_of(max(map(abs, ends)))
    if not all(ends[0] - slack <= each <= ends[1] + slack for each in own):
        said = f"blocks have means of {min(own):.6g} to {max(own):.6g}"
        yield f"{said}, the delays lie from {ends[0]:.6g} to {ends[1]:.6g}"
    if not rest and not alike(math.fsum(means) / len(means), whole):
        yield f"the mean of the blocks is {math.fsum(means) / len(means):.6g}, of the delays {whole}"
    among = size * math.fsum((each - whole) ** 2 for each in means)
    inside = (n - 1) * deviation**2
    if among > inside + slack_of(inside) or (size == 1 and among < inside - slack_of(inside)):
        yield f"blocks scatter by {among:.6g} ns^2 in all, delays by {inside:.6g}"


def _peak_discrepancies(peaks: Mapping[str, float], n: int, whole: float) -> Iterator[str]:
    """A peak to peak of more delays is no smaller; that of all is theirs."""
    by_count = sorted((int(count), peak) for count, peak in peaks.items())
    if not by_count or by_count[-1][0] != n or not alike(by_count[-1][1], whole):
        yield f"the peak to peak of all {n} is {whole}, {by_count[-1:]} is noted"
    for (count, fewer), (_, more) in itertools.pairwise(by_count):
        if fewer > more + slack_of(more) or count < PEAKS_MIN:
            yield f"the peak to peak of the first {count} is {fewer}, of more {more}"
