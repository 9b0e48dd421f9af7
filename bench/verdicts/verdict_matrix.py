# SPDX-License-Identifier: Apache-2.0
"""What the cases of `bench_verdicts` come to: truth against verdict, with intervals. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from bench.lab.report import Bar
from bench.verdicts.verdict_faults import NONE, Truth
from reports.record.sampling import CONFIDENCE, binomial_cdf

VERDICTS = ("pass", "fail", "no verdict")
INVALID = "invalid"
"""Outcome of a case whose fault or disturbance did not happen: it counts nowhere."""
BARS = {
    "sound_fail": Bar(0),
    "faulty_pass": Bar(0),
    "undecidable_pass": Bar(0),
    "faulty_fail_share_quiet": Bar(0.95, at_least=True),
}
_BISECTIONS = 60


@dataclass(frozen=True)
class CaseResult:
    """One case; a line of the file of cases.

    Attributes:
        campaign: When its campaign began, UTC: cases of several campaigns share the file.
        seed: Of that campaign.
        case: Its number in it, from 1.
        part: What of the target the fault is in, and the verdict on: a producer's streams; empty: all.
        fault: Name of the target's fault.
        disturbance: Name of the machine's disturbance.
        target: Kind of the target.
        truth: What the verdict had to find.
        outcome: Of the replays: `pass`, `fail`, `inconclusive`, `unset`, `error`; or `INVALID`.
        first_passes: Whether the first replay alone was a pass.
        reason: Of a stream with that outcome.
        replays: How many there were.
        counted_s: How long each counted.
        steal_ms: What the machine's hypervisor took from its CPUs meanwhile, all CPUs together.
        seconds: From the fault's injection to its end.
        drawn: How severe fault and disturbance were.
        done: What fault and disturbance say that they did.
    """

    campaign: str
    seed: int
    case: int
    part: str
    fault: str
    disturbance: str
    target: str
    truth: str
    outcome: str
    first_passes: bool
    reason: str
    replays: int
    counted_s: int
    steal_ms: int
    seconds: float
    drawn: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]])
    done: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]])

    @property
    def verdict(self) -> str:
        """Return one of `VERDICTS`, or `INVALID`."""
        if self.outcome in ("pass", "fail", INVALID):
            return self.outcome
        return "no verdict"

    def to_json(self) -> dict[str, Any]:
        """Return what its line says."""
        return asdict(self)


def clopper_pearson(hits: int, n: int) -> tuple[float, float]:
    """Return the two-sided 95 % interval of a probability after `hits` of `n` (Clopper and Pearson, 1934).

    Of no trial nothing is known: 0 to 1.

    Raises:
        ValueError: Not 0 <= hits <= n.
    """
    if not 0 <= hits <= n:
        raise ValueError(f"{hits} of {n}: need 0 <= hits <= n")
    tail = 0.5 * (1.0 - CONFIDENCE)
    low = 0.0 if hits == 0 else _boundary(lambda p: 1.0 - binomial_cdf(hits - 1, n, p) < tail)
    high = 1.0 if hits == n else _boundary(lambda p: binomial_cdf(hits, n, p) > tail)
    return low, high


def _boundary(is_below: Callable[[float], bool]) -> float:
    """Return where a condition that holds for small p ends."""
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if is_below(middle) else (low, middle)
    return 0.5 * (low + high)


def counts(cases: Iterable[CaseResult]) -> dict[str, int]:
    """Return how many cases have each of `VERDICTS`."""
    found = dict.fromkeys(map(str, VERDICTS), 0)
    for case in cases:
        if case.verdict != INVALID:
            found[case.verdict] += 1
    return found


def cell(hits: int, n: int) -> str:
    """Return a count with its share of n and the interval of that: `3 of 40: 7.5 % (1.6 .. 20.4)`."""
    if n == 0:
        return "-"
    low, high = clopper_pearson(hits, n)
    return f"{hits} of {n}: {100 * hits / n:.1f} % ({100 * low:.1f} .. {100 * high:.1f})"


def matrix_text(cases: Sequence[CaseResult]) -> str:
    """Return the confusion matrix, a block of rows for each disturbance and one for all, as Markdown."""
    rows = [
        "| disturbance | truth | pass | fail | no verdict |",
        "|---|---|---|---|---|",
    ]
    disturbances = list(dict.fromkeys(case.disturbance for case in cases))
    disturbances.sort(key=lambda name: (name != NONE, name))
    for label, chosen in [
        *((name, [case for case in cases if case.disturbance == name]) for name in disturbances),
        ("all", list(cases)),
    ]:
        for truth in Truth:
            found = counts(case for case in chosen if case.truth == truth)
            n = sum(found.values())
            if n:
                cells = " | ".join(cell(found[verdict], n) for verdict in VERDICTS)
                rows.append(f"| {label} | {truth} | {cells} |")
    return "\n".join(rows)


def by_fault_text(cases: Sequence[CaseResult]) -> str:
    """Return verdicts by fault, as Markdown."""
    rows = ["| fault | truth | pass | fail | no verdict |", "|---|---|---|---|---|"]
    for fault in dict.fromkeys(case.fault for case in cases):
        chosen = [case for case in cases if case.fault == fault]
        found = counts(chosen)
        n = sum(found.values())
        cells = " | ".join(cell(found[verdict], n) for verdict in VERDICTS)
        rows.append(f"| {fault} | {chosen[0].truth} | {cells} |")
    return "\n".join(rows)


def figures(cases: Sequence[CaseResult]) -> dict[str, float]:
    """Return the figures of the benchmark; a share of nothing is NaN.

    Counts are of cases; `_upper_95` is the upper end of the two-sided 95 % interval of the count's share.
    """

    def of(truth: Truth, quiet: bool | None = None) -> dict[str, int]:
        return counts(
            case for case in cases if case.truth == truth and quiet in (None, case.disturbance == NONE)
        )

    def share(found: Mapping[str, int], verdict: str) -> float:
        n = sum(found.values())
        return found[verdict] / n if n else math.nan

    untouched = [
        case.first_passes
        for case in cases
        if case.truth == Truth.SOUND and case.disturbance == NONE and case.verdict != INVALID
    ]
    sound, faulty, undecidable = (of(truth) for truth in (Truth.SOUND, Truth.FAULTY, Truth.UNDECIDABLE))
    return {
        "cases": float(sum(sum(found.values()) for found in (sound, faulty, undecidable))),
        "invalid_cases": float(sum(case.verdict == INVALID for case in cases)),
        "sound_fail": float(sound["fail"]),
        "sound_fail_upper_95": clopper_pearson(sound["fail"], sum(sound.values()))[1],
        "sound_pass_share": share(sound, "pass"),
        "sound_pass_share_quiet": share(of(Truth.SOUND, quiet=True), "pass"),
        "sound_first_pass_share_quiet": math.nan if not untouched else sum(untouched) / len(untouched),
        "faulty_pass": float(faulty["pass"]),
        "faulty_pass_upper_95": clopper_pearson(faulty["pass"], sum(faulty.values()))[1],
        "faulty_fail_share": share(faulty, "fail"),
        "faulty_fail_share_quiet": share(of(Truth.FAULTY, quiet=True), "fail"),
        "faulty_fail_share_disturbed": share(of(Truth.FAULTY, quiet=False), "fail"),
        "undecidable_pass": float(undecidable["pass"]),
        "undecidable_fail": float(undecidable["fail"]),
    }
