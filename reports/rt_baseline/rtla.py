# SPDX-License-Identifier: Apache-2.0
"""What rtla (Linux, tools/tracing/rtla) prints: the table of hwnoise, timerlat's histogram.

All of it is in whole microseconds, cut off.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from reports.errors import RecordError

IRQ, THREAD = "IRQ", "Thr"
CONTEXTS = {IRQ: 0, THREAD: 1}
"""Of a sample of timerlat, as the kernel counts them."""
LATENESS_MAX_US = 1 << 40

_NOISE = re.compile(
    r"^\s*(?P<cpu>\d{1,5}) #(?P<periods>\d{1,12})\s+(?P<runtime>\d{1,15})\s+(?P<noise>\d{1,15})"
    r"\s+[\d.]{1,12}\s+\d{1,15}\s+(?P<single>\d{1,15})\s+(?P<hardware>\d{1,12})\s+(?P<nmi>\d{1,12})\s*$",
    re.MULTILINE,
)
_ROW = re.compile(r"^(?P<us>\d{1,12})(?P<counts>(?:\s+\d{1,12})+)\s*$")
_COLUMN = re.compile(r"(IRQ|Thr)-(\d{1,5})")


@dataclass(frozen=True, slots=True)
class CpuNoise:
    """A row of hwnoise.

    Attributes:
        periods: That it has measured.
        runtime_us: In which the CPU looked for noise, of all periods.
        noise_us: Of it, what somebody took.
        single_us: The longest one.
        count: How many there were, by hardware and by NMIs.
    """

    cpu: int
    periods: int
    runtime_us: int
    noise_us: int
    single_us: int
    count: int


def read_noise(path: Path) -> tuple[CpuNoise, ...]:
    """Read what hwnoise prints at its end; raises RecordError: no CPU came to a period."""
    try:
        text = path.read_text("utf-8", errors="replace")
    except OSError as error:
        raise RecordError(f"{path.name}: {error}") from error
    rows = [{key: int(value) for key, value in each.groupdict().items()} for each in _NOISE.finditer(text)]
    found = tuple(
        CpuNoise(r["cpu"], r["periods"], r["runtime"], r["noise"], r["single"], r["hardware"] + r["nmi"])
        for r in rows
    )
    if not found or any(each.periods < 1 or each.runtime_us < 1 for each in found):
        raise RecordError(f"{path.name}: no CPU came to the end of a period")
    if len({each.cpu for each in found}) < len(found):
        raise RecordError(f"{path.name}: has a CPU twice")
    return found


@dataclass(frozen=True, slots=True)
class Column:
    """Samples of one context of a CPU.

    Attributes:
        counts: Latency in µs and how many.
        over: Beyond the histogram.
    """

    counts: Mapping[int, int]
    over: int

    @property
    def total(self) -> int:
        """Return how many samples it has."""
        return sum(self.counts.values()) + self.over


def read_histogram(path: Path) -> dict[tuple[int, str], Column]:
    """Return the columns of timerlat's histogram, by CPU and IRQ or THREAD.

    Raises:
        RecordError: It has no columns, or its rows do not sum up to what it says below them.
    """
    try:
        lines = path.read_text("utf-8", errors="replace").splitlines()
    except OSError as error:
        raise RecordError(f"{path.name}: {error}") from error
    heads: list[tuple[int, str]] = []
    counts: list[dict[int, int]] = []
    said: dict[str, list[int]] = {}
    for line in lines:
        if line.startswith("Index"):
            heads = [(int(cpu), kind) for kind, cpu in _COLUMN.findall(line)]
            counts = [{} for _ in heads]
        elif (row := _ROW.match(line)) and heads:
            values = [int(each) for each in row["counts"].split()]
            if len(values) != len(heads):
                raise RecordError(f"{path.name}: a row of {len(values)} columns, not {len(heads)}")
            for column, value in zip(counts, values, strict=True):
                if value:
                    column[int(row["us"])] = value
        elif line.startswith("ALL"):
            break
        elif line.startswith(("over:", "count:")):
            name, _, numbers = line.partition(":")
            said[name] = [int(each) for each in numbers.split() if each.isdigit()]
    if not heads or len(set(heads)) < len(heads):
        raise RecordError(f"{path.name}: no histogram of timerlat")
    if any(len(said.get(name, ())) != len(heads) for name in ("over", "count")):
        raise RecordError(f"{path.name}: ends before it says how many samples it has")
    found = {
        head: Column(column, over) for head, column, over in zip(heads, counts, said["over"], strict=True)
    }
    totals = [each.total for each in found.values()]
    # rtla counts what is over once more where it sums up, or not at all, by its version.
    if said["count"] not in (totals, [each.total - each.over for each in found.values()]):
        raise RecordError(f"{path.name}: its rows sum up to {totals}, it says {said['count']}")
    return found
