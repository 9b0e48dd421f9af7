# SPDX-License-Identifier: Apache-2.0
"""What statistics of delays are uncertain by, held against the delays.

docs/timed-edges.md, *Where U comes from*: what the instrument adds to one delay is told from the budget of
the peak to peak; the other two have to follow from it, from the deviation, from the number of delays and from
the shape of their histogram.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from reports.rejudge.dependence import variance_of_mean
from reports.rejudge.rounding import alike, slack_of

PAIRS_MIN = 4
INSTRUMENT = ("noise", "sample_interval", "clock_jitter")
ART_TICK_NS = 1e9 / 38.4e6
"""TGPIO fires and latches at ticks of the Always Running Timer."""
PIN_TICKS = {"tgpio-filtered-read": 0.5, "tgpio-latch": 1.0, "clock-edge": 0.5}
CARD_TICK_NS = 8.0
"""A network card stamps at 125 MHz."""
KINDS = {
    "mean": {
        **dict.fromkeys((*INSTRUMENT, "jitter", "trigger", "threshold"), "standard"),
        "time_base": "bound",
    },
    "deviation": {"repeatability": "standard", **dict.fromkeys((*INSTRUMENT, "time_base"), "bound")},
    "peak_to_peak": dict.fromkeys((*INSTRUMENT, "time_base"), "bound"),
}
"""Parts that each budget of an oscilloscope has."""

Json = Mapping[str, Any]


def budget_discrepancies(trial: Json, delays: Json) -> Iterator[str]:
    """Say what of a trial's budgets does not follow from its delays; a doubtful trial may have none."""
    budgets = {name: trial["budgets"].get(name) for name in KINDS}
    n = delays["count"]
    if n < PAIRS_MIN or any(parts is None for parts in budgets.values()):
        is_told = n < PAIRS_MIN or trial.get("doubts") or trial.get("failed")
        if not is_told or any(parts is not None for parts in budgets.values()):
            told = [name for name, parts in budgets.items() if parts is not None]
            yield f"of {n} delays {', '.join(told) or 'nothing'} has a budget"
        return
    values = {name: {part["name"]: part["value_ns"] for part in parts} for name, parts in budgets.items()}
    if trial["seen_by"] == "capture":
        yield from _differing(values, _captured(delays))
        return
    for name, parts in budgets.items():
        kinds = {part["name"]: part["kind"] for part in parts}
        wrong = [each for each, kind in KINDS[name].items() if kinds.get(each) != kind]
        if wrong:
            yield f"the budget of {name} has no {', '.join(wrong)}, or of another kind"
            return
    yield from _oscilloscope_discrepancies(trial, delays, values)


def _repeatability(delays: Json) -> float:
    """Return what the deviation scatters by itself, in ns: of the shape that is noted, else as normal delays.

    Trials of an earlier version note no kurtosis: there every delay counted as normal.
    """
    n = delays["count"]
    variance_share = max(2 * n / (n - 1), delays.get("kurtosis", 0.0) - 1)
    return delays["deviation_ns"] / 2 * math.sqrt(variance_share / n)


def _mean_variance(delays: Json) -> float:
    """Return the variance of the mean, in ns^2: what blocks show, no less than of independent delays.

    Delays without blocks are of an earlier version, and count as independent. Where blocks do not show for
    how long delays depend on each other, all of them tell one.
    """
    n = delays["count"]
    alone = delays["deviation_ns"] ** 2 * (n - 1) / (n - 3)
    blocks = delays.get("blocks")
    if blocks is None:
        return alone / n
    seen = variance_of_mean([float(mean) for mean in blocks["means_ns"]])
    return alone if seen is None else max(alone / n, seen)


def _captured(delays: Json) -> dict[str, dict[str, float]]:
    """Return the budgets of delays that a counter has captured."""
    return {
        "mean": {
            "jitter": math.sqrt(_mean_variance(delays)),
            "resolution": CARD_TICK_NS,
        },
        "deviation": {
            "repeatability": _repeatability(delays),
            "resolution": CARD_TICK_NS / math.sqrt(12),
        },
        "peak_to_peak": {"resolution": CARD_TICK_NS},
    }


def _oscilloscope_discrepancies(
    trial: Json, delays: Json, values: Mapping[str, Mapping[str, float]]
) -> Iterator[str]:
    n, deviation = delays["count"], delays["deviation_ns"]
    mean, peak = values["mean"], values["peak_to_peak"]
    reach = 2 * math.sqrt(2 * math.log(n))
    whole = math.fsum(peak[name] for name in INSTRUMENT)
    adds = {name: math.sqrt(peak[name] * whole) / reach for name in INSTRUMENT}
    found: dict[str, dict[str, float]] = {
        "mean": {name: adds[name] / math.sqrt(n) for name in ("noise", "clock_jitter")} | {"trigger": 0.0},
        "deviation": _of_deviation(deviation, _repeatability(delays), adds),
    }
    ticks = PIN_TICKS.get(trial["method"])
    if ticks is not None:
        found["mean"]["pin_resolution"] = ticks * ART_TICK_NS
    yield from _differing(values, found)
    if not any(name == "skew" or name.startswith("channel_skew") for name in mean):
        yield "the budget of mean has no skew"
    if mean["sample_interval"] + slack_of(mean["sample_interval"]) < adds["sample_interval"] / math.sqrt(n):
        yield f"sample_interval of mean is {mean['sample_interval']}, less than of {n} delays"
    seen = n * _mean_variance(delays) - adds["noise"] ** 2 - adds["clock_jitter"] ** 2
    least, most = (math.sqrt(max(0.0, seen - free) / n) for free in (adds["sample_interval"] ** 2, 0.0))
    if not least - slack_of(deviation) <= mean["jitter"] <= most + slack_of(deviation):
        yield f"jitter of mean is {mean['jitter']}, the deviation leaves {least:.6g} to {most:.6g}"
    yield from _time_base_discrepancies(delays, values)


def _of_deviation(deviation: float, repeatability: float, adds: Mapping[str, float]) -> dict[str, float]:
    """Return the budget of a deviation: what the instrument adds at most, where that weighs most."""
    least = max(0.0, deviation - 2 * repeatability)
    known = math.hypot(*adds.values())
    bound = least - math.sqrt(max(0.0, least**2 - known**2))
    shares = {name: bound * (value / known) ** 2 if known else 0.0 for name, value in adds.items()}
    return {"repeatability": repeatability, **shares}


def _time_base_discrepancies(delays: Json, values: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """One relative error of the time base makes the part of each statistic."""
    sizes = {
        "mean": abs(delays["mean_ns"]),
        "deviation": delays["deviation_ns"],
        "peak_to_peak": delays["maximum_ns"] - delays["minimum_ns"],
    }
    for name in ("mean", "deviation"):
        crossed = values[name]["time_base"] * sizes["peak_to_peak"]
        if not alike(crossed, values["peak_to_peak"]["time_base"] * sizes[name]):
            yield f"time_base of {name} is {values[name]['time_base']}, not as that of peak_to_peak"


def _differing(
    values: Mapping[str, Mapping[str, float]], found: Mapping[str, Mapping[str, float]]
) -> Iterator[str]:
    for budget, parts in found.items():
        for name, worked_out in parts.items():
            said = values[budget].get(name)
            if said is None or not alike(float(said), worked_out):
                yield f"{name} of {budget} is {said}, the delays give {worked_out:.6g}"
