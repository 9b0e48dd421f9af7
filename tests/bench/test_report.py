# SPDX-License-Identifier: Apache-2.0
"""The benchmarks' frame: turns, bars, the object that is printed and kept."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from bench.lab.report import Bar, alternate, median_ratio, publish, summarise


def test_variants_take_turns_in_changing_order() -> None:
    order: list[str] = []
    results = alternate({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, runs=5)
    assert "".join(order) == "abbaabbaab"
    assert {name: len(runs) for name, runs in results.items()} == {"a": 5, "b": 5}


def test_refuses_too_few_runs() -> None:
    with pytest.raises(ValueError, match="at least 5"):
        alternate({"a": lambda: 1}, runs=4)


def test_median_ratio_ignores_one_outlier_on_each_side() -> None:
    assert median_ratio([1, 1, 1, 1, 1000], [2, 2, 2, 2, 0.001]) == 0.5
    assert math.isnan(median_ratio([1], [0]))


@pytest.mark.parametrize(
    ("figure", "bar", "met"),
    [
        (0.2, Bar(0.2), True),
        (0.21, Bar(0.2), False),
        (8, Bar(8, at_least=True), True),
        (7, Bar(8, at_least=True), False),
        (math.nan, Bar(0.2), False),
        (math.nan, Bar(8, at_least=True), False),
    ],
)
def test_bars(figure: float, bar: Bar, met: bool) -> None:
    assert summarise("x", {"figure": figure, "other": 1.0}, {"figure": bar})["met"] is met


def test_refuses_a_bar_without_a_figure() -> None:
    with pytest.raises(ValueError, match="schedule_p99_ratio"):
        summarise("x", {}, {"schedule_p99_ratio": Bar(0.2)})


def test_prints_and_keeps_one_object(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert publish("x", {"ratio": 0.3, "lost": math.nan}, {"ratio": Bar(0.2)}, {"runs": [1]}, tmp_path) == 0
    printed = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert printed == {
        "bench": "x",
        "figures": {"ratio": 0.3, "lost": None},
        "bars": {"ratio": 0.2},
        "met": False,
    }
    kept = json.loads((tmp_path / "x.json").read_text())
    assert {key: kept[key] for key in printed} == printed
    assert len(kept["commit"]) == 40
    assert kept["machine"]["processors"] >= 1
