# SPDX-License-Identifier: Apache-2.0
"""The benchmarks' frame: turns, bars, the object that is printed and kept."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from bench.lab.processes import answer_of, last_object, peak_resident_bytes
from bench.lab.report import (
    Bar,
    alternate,
    bucket_quantile,
    median_ratio,
    medians,
    publish,
    say_runs,
    summarise,
)


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


def test_medians_are_of_each_figure() -> None:
    assert medians([{"a": 1, "b": 9}, {"a": 3, "b": 7}, {"a": 2, "b": 800}]) == {"a": 2, "b": 9}


def test_single_runs_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    say_runs({"one": [{"a": 1.25, "b": 2}], "other": []}, ".1f")
    assert capsys.readouterr().err == f"bench     {'one':16} a 1.2 b 2.0\n"


@pytest.mark.parametrize(("share", "edge"), [(0.5, 10), (0.51, 20), (0.99, 20), (0.991, 30), (1, 30)])
def test_a_quantile_is_the_edge_of_the_bucket_that_holds_its_rank(share: float, edge: float) -> None:
    assert bucket_quantile([(30, 1), (10, 50), (20, 49)], share) == edge


def test_a_quantile_of_nothing_is_infinite() -> None:
    assert bucket_quantile([], 0.99) == math.inf


def test_the_last_line_is_the_answer() -> None:
    assert last_object('{"type":"ready"}\n{"n":1}\n') == {"n": 1}
    program = "import json, os; print('x'); print(json.dumps({'own': os.environ.get('OWN')}))"
    assert answer_of([sys.executable, "-c", program], {"OWN": "set"}) == {"own": "set"}
    with pytest.raises(subprocess.CalledProcessError):
        answer_of(["false"])


def test_peak_memory_holds_what_was_given_back() -> None:
    size_bytes = 64 << 20
    program = (
        "import json, bench.lab.processes as p\n"
        f"bytearray(b'x') * {size_bytes}\n"
        "print(json.dumps({'bytes': p.peak_resident_bytes('self')}))"
    )
    assert answer_of([sys.executable, "-c", program])["bytes"] > size_bytes
    with subprocess.Popen(["true"]) as ended:
        pass
    assert peak_resident_bytes(ended.pid) == 0
