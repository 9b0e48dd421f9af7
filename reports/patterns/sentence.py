# SPDX-License-Identifier: Apache-2.0
"""A pattern in one sentence, and its parameters with their intervals in one line."""

from __future__ import annotations

from collections.abc import Mapping

from reports.patterns.finding import Finding
from reports.units import MINUS, NS_PER_MS, NS_PER_S, format_value

NAMES = {
    "drifting_grid": "grid that drifts",
    "periodic_outlier": "outliers that come again",
    "level_change": "change of level",
    "two_levels": "two levels",
    "warm_up": "warm-up",
    "gap": "gaps that come again",
    "recovery": "recovery after gaps",
}
"""Of those whose kind is no word."""
DIGITS = 3
PPM_MAX = 500.0
"""Oscillators of two machines do not differ by more."""


def name_of(kind: str) -> str:
    """Return a kind in words."""
    return NAMES.get(kind, kind)


def sentence(finding: Finding, of_clock: bool = False) -> str:
    """Return what a pattern looks like, in one sentence.

    Args:
        finding: The pattern, of values in ms.
        of_clock: The values are a clock's error: ramps are not those of a poll.
    """
    of = {name: each.value for name, each in finding.parameters.items()}
    return _SENTENCES[finding.kind](of, of_clock)


def period_words(finding: Finding) -> str:
    """Return a kind and, of one that comes again, its period: `ramp, period 32.7 s`."""
    period = finding.parameters.get("period")
    return name_of(finding.kind) + (f", period {_s(period.value)}" if period else "")


def parameter_words(finding: Finding) -> str:
    """Return the parameters with their intervals of 95 %, the chance of noise, and what it says of clocks."""
    words = [
        f"{name} {_number(each.value)} ({_number(each.low)} … {_number(each.high)})"
        f" {each.unit.replace('value', 'ms')}"
        for name, each in finding.parameters.items()
    ]
    chance = f"{finding.false_alarms:.1g}" if finding.false_alarms > 1e-6 else "below 1e-6"
    says = f"; {finding.says}" if finding.says else ""
    return f"{name_of(finding.kind)}: {', '.join(words)}; false alarms {chance}{says}"


def _number(value: float) -> str:
    return f"{value:.5g}".replace("-", MINUS)


def _ms(value: float) -> str:
    return format_value(abs(value) * NS_PER_MS, "ns", DIGITS)


def _s(value: float) -> str:
    return format_value(value * NS_PER_S, "ns", DIGITS)


def _rise(of: Mapping[str, float]) -> str:
    return "rise" if of["slope"] > 0 else "fall"


def _ppm(of: Mapping[str, float]) -> float:
    return abs(of["slope"]) * 1000


def _ramp(of: Mapping[str, float], of_clock: bool) -> str:
    jumps = f"Values {_rise(of)} by {_ms(of['height'])} and jump back each {_s(of['period'])}"
    if of_clock or _ppm(of) > PPM_MAX:
        return f"{jumps}."
    return f"{jumps}: were it a grid, its two clocks would differ by {_ppm(of):.3g} ppm."


def _drifting_grid(of: Mapping[str, float], _of_clock: bool) -> str:
    jumps = f"Values {_rise(of)} by {_ms(of['width'])} and jump back each {_s(of['period'])}"
    return f"{jumps}: a grid whose two clocks differ by {float(f'{_ppm(of):.3g}'):g} ppm."


def _grid(of: Mapping[str, float], _of_clock: bool) -> str:
    return f"Values lie on lines {_ms(of['width'])} apart, as of a clock or a poll of that step."


def _gap(of: Mapping[str, float], _of_clock: bool) -> str:
    return f"Each {_s(of['period'])} values are missing for {_s(of['length'])}."


def _recovery(of: Mapping[str, float], _of_clock: bool) -> str:
    side = "late" if of["height"] > 0 else "early"
    then = f"{_s(of['decay'])} later by a third of that"
    return f"After each gap values are {side} by {_ms(of['height'])}, and {then}."


def _outlier(of: Mapping[str, float], _of_clock: bool) -> str:
    side = "above" if of["height"] > 0 else "below"
    if "length" in of:
        lasts = f"for {_s(of['length'])}, by up to {_ms(of['height'])}"
        return f"Each {_s(of['period'])} values are late {lasts}."
    return f"Each {_s(of['period'])} a single value lies {_ms(of['height'])} {side} the others."


def _level_change(of: Mapping[str, float], _of_clock: bool) -> str:
    side = "rises" if of["height"] > 0 else "falls"
    return f"The level {side} by {_ms(of['height'])} {_course(of)}."


def _two_levels(of: Mapping[str, float], _of_clock: bool) -> str:
    side = "higher" if of["height"] > 0 else "lower"
    return f"One level gives way {_course(of)} to another, {_ms(of['height'])} {side}; meanwhile both occur."


def _course(of: Mapping[str, float]) -> str:
    start, end = _s(max(of["start"], 0.0)), _s(of["end"])
    return f"at {start}" if start == end else f"between {start} and {end}"


def _warm_up(of: Mapping[str, float], _of_clock: bool) -> str:
    if "height" in of:
        side = "above" if of["height"] > 0 else "below"
        return f"The first {_s(of['end'])} lie {_ms(of['height'])} {side} the rest."
    return f"The first {_s(of['end'])} scatter more than the rest."


_SENTENCES = {
    "ramp": _ramp,
    "drifting_grid": _drifting_grid,
    "grid": _grid,
    "gap": _gap,
    "recovery": _recovery,
    "periodic_outlier": _outlier,
    "level_change": _level_change,
    "two_levels": _two_levels,
    "warm_up": _warm_up,
}
KINDS: Mapping[str, frozenset[str]] = {
    "ramp": frozenset({"period", "height", "slope"}),
    "drifting_grid": frozenset({"width", "period", "slope"}),
    "grid": frozenset({"width"}),
    "gap": frozenset({"period", "length"}),
    "recovery": frozenset({"height", "decay"}),
    "periodic_outlier": frozenset({"period", "height"}),
    "level_change": frozenset({"start", "end", "height"}),
    "two_levels": frozenset({"start", "end", "height"}),
    "warm_up": frozenset({"end"}),
}
"""Every kind, and the parameters that its sentence needs."""
