# SPDX-License-Identifier: Apache-2.0
"""Variables and macros become what Grafana makes of them."""

from __future__ import annotations

import pytest

from tests.dashboards.grafana.interpolation import Span, Value, interpolate

SPAN = Span(1_000_000_000_000_000_000, 1_000_086_400_000_000_000)
DAY_NS = 86_400_000_000_000


def test_time_and_interval() -> None:
    text = interpolate("SELECT x WHERE $timeFilter GROUP BY time($__interval)", SPAN, {}, points_max=100)
    assert text == "SELECT x WHERE time >= 1000000000000ms and time <= 1000086400000ms GROUP BY time(15m)"
    assert interpolate("$__from $__to $__interval_ms", SPAN, {}, points_max=100) == (
        "1000000000000 1000086400000 900000"
    )


@pytest.mark.parametrize(
    ("days", "points_max", "least", "text"),
    [
        (731, 100, "1h", "7d"),
        (731, 1000, "1h", "12h"),
        (90, 100, "1h", "12h"),
        (1, 1000, "1h", "1h"),
        (1, 1000, "", "1m"),
        (3650, 100, "", "30d"),
    ],
)
def test_interval_is_rounded_as_in_grafana(days: int, points_max: int, least: str, text: str) -> None:
    span = Span(0, days * DAY_NS)
    assert interpolate("$__interval", span, {}, points_max=points_max, least=least) == text


def test_several_values_become_a_regular_expression() -> None:
    values = {"a": Value(("x.y", "Q35 + ICH9 (2009)", "-/idle")), "b": Value(("one",)), "c": Value(None)}
    assert interpolate("/^$a$/ /^$b$/ /^$c$/", SPAN, values) == (
        r"/^(x\.y|Q35 \+ ICH9 \(2009\)|-\/idle)$/ /^(one)$/ /^.*$/"
    )


def test_one_value_stays_as_it_is() -> None:
    assert interpolate("'$run'", SPAN, {"run": Value(("2025.1-a",), several=False)}) == "'2025.1-a'"


def test_unknown_variable_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"\$nobody: no such variable"):
        interpolate("SELECT x WHERE a =~ /^$nobody$/", SPAN, {})
