# SPDX-License-Identifier: Apache-2.0
"""How benchmarks run and what they leave: alternating runs, medians, one JSON object.

A benchmark is a module `bench/FOLDER/bench_NAME.py`, run by `make bench-NAME`. Its `main` ends with
`publish()`, which prints one JSON object as the last line and keeps the same, with date, commit and machine,
in `results/bench/NAME.json`.
"""

from __future__ import annotations

import json
import math
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from hw.steal import stolen_s

Result = TypeVar("Result")

REPOSITORY = Path(__file__).resolve().parents[2]
RESULTS = REPOSITORY / "results" / "bench"
RUNS_MIN = 5


def say(text: str) -> None:
    """Tell whoever watches."""
    print(f"bench     {text}", file=sys.stderr, flush=True)


def say_runs(results: Mapping[str, Sequence[Mapping[str, float]]], form: str) -> None:
    """Tell the figures of every single run; `form` as of `format`: `.2f`."""
    for name, runs in results.items():
        for run in runs:
            say(f"{name:16} {' '.join(f'{key} {value:{form}}' for key, value in run.items())}")


def medians(runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the median of each figure over some runs."""
    return {key: statistics.median(run[key] for run in runs) for key in runs[0]}


def steal_ms() -> int:
    """Return what the hypervisor has taken from this machine's CPUs since boot, all of them together."""
    return round(1000 * sum(stolen_s()))


@dataclass(frozen=True)
class Bar:
    """What a figure has to reach: at most `value`, or at least it."""

    value: float
    at_least: bool = False

    def met_by(self, figure: float) -> bool:
        """Say whether a figure reaches the bar; NaN never does."""
        return figure >= self.value if self.at_least else figure <= self.value


def alternate(
    variants: Mapping[str, Callable[[], Result]], runs: int = RUNS_MIN, of: str = ""
) -> dict[str, list[Result]]:
    """Run all variants by turns, so that what drifts on the machine meets all of them alike.

    The order is turned round in every other round.

    Args:
        variants: What to run, by name.
        runs: Runs of each variant; at least 5.
        of: What is compared, for the progress of a benchmark that compares several things.

    Returns:
        The results of each variant, in the order of its runs.

    Raises:
        ValueError: Fewer runs than 5.
    """
    if runs < RUNS_MIN:
        raise ValueError(f"runs: {runs}; a median needs at least {RUNS_MIN}")
    results: dict[str, list[Result]] = {name: [] for name in variants}
    for turn in range(runs):
        names = list(variants)
        for name in names if turn % 2 == 0 else reversed(names):
            say(f"{of}{of and ', '}run {turn + 1} of {runs}: {name}")
            results[name].append(variants[name]())
    return results


def median_ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return the median of ours over the median of theirs; NaN where the latter is 0."""
    denominator = statistics.median(theirs)
    return statistics.median(ours) / denominator if denominator else math.nan


def bucket_quantile(buckets: Iterable[tuple[float, float]], share: float) -> float:
    """Return the edge of the bucket that holds a rank, such as 0.99 of all counts; infinity: of nothing.

    Args:
        buckets: An edge and a count each.
        share: The rank, of 1.
    """
    ordered = sorted(buckets)
    wanted = share * sum(count for _, count in ordered)
    seen = 0.0
    for edge, count in ordered:
        seen += count
        if seen >= wanted:
            return edge
    return math.inf


def summarise(name: str, figures: Mapping[str, float], bars: Mapping[str, Bar]) -> dict[str, object]:
    """Build the object that a benchmark prints.

    Raises:
        ValueError: A bar without a figure.
    """
    unknown = sorted(bars.keys() - figures.keys())
    if unknown:
        raise ValueError(f"{name}: bars without a figure: {', '.join(unknown)}")
    return {
        "bench": name,
        "figures": {key: value if math.isfinite(value) else None for key, value in figures.items()},
        "bars": {key: bar.value for key, bar in bars.items()},
        "met": all(bar.met_by(figures[key]) for key, bar in bars.items()),
    }


def publish(
    name: str,
    figures: Mapping[str, float],
    bars: Mapping[str, Bar],
    detail: object = None,
    folder: Path = RESULTS,
) -> int:
    """Write `folder/NAME.json` and print the object as the last line; return 0, bars met or not.

    Args:
        name: The benchmark's name, as in `make bench-NAME`.
        figures: What was measured; a name that is not a ratio or a count ends in its unit.
        bars: What some of the figures have to reach.
        detail: Kept in the file beside them: single runs, settings. Must be fit for JSON.
        folder: Where the file goes.
    """
    summary = summarise(name, figures, bars)
    kept = {
        **summary,
        "schema": "benchwright.bench-result/1",
        "date_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        **_commit(),
        "machine": machine_facts(),
        "detail": detail,
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(kept, indent=2, allow_nan=False) + "\n")
    print(json.dumps(summary, separators=(",", ":"), allow_nan=False), flush=True)
    return 0


def machine_facts() -> dict[str, object]:
    """Return what of this machine a figure depends on."""
    cpuinfo = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.partition(":")[2].strip() for line in cpuinfo if line.startswith("model name")]
    source = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    return {
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "processor": models[0] if models else platform.processor(),
        "processors": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "clocksource": source.read_text().strip() if source.exists() else "",
        "hypervisor": any("hypervisor" in line.split() for line in cpuinfo if line.startswith("flags")),
    }


def _commit() -> dict[str, object]:
    """Return the commit of the source tree and whether files differ from it."""

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", "-C", str(REPOSITORY), *arguments], check=True, capture_output=True, text=True
        ).stdout.strip()

    return {"commit": git("rev-parse", "HEAD"), "modified": bool(git("status", "--porcelain"))}
