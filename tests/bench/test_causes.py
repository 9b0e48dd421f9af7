# SPDX-License-Identifier: Apache-2.0
"""The benchmark of causes: how its runs are counted, and how it goes on where it was broken off."""

from __future__ import annotations

import json
from pathlib import Path

from bench.patterns.bench_causes import Outcome, figures_of, outcomes_of
from reports.record.codec import to_json

RIGHT = Outcome("hog", ("thread abc",), True, ("thread abc", "thread offset"), ("thread offset",))
SECOND = Outcome("hog", ("thread abc",), True, ("softirq NET_RX", "thread abc"), ("softirq NET_RX",))
SILENT = Outcome("loss", ("TCP, hop 2: a retransmission timer",), True, (), ())
EARLY = Outcome("loss", ("TCP, hop 2: a retransmission timer",), False, (), ())
QUIET = Outcome("nothing", (), True, (), ())
OWN = Outcome("nothing", (), True, ("thread offset",), ())


def test_only_runs_with_late_messages_are_judged() -> None:
    found = figures_of([RIGHT, SECOND, SILENT, EARLY, QUIET, OWN])
    assert (found["runs"], found["judged"]) == (6, 3)
    assert (found["judged_hog"], found["right_hog"], found["judged_loss"], found["right_loss"]) == (
        2,
        1,
        1,
        0,
    )
    assert round(found["right_first_percent"]) == 33
    assert found["nothing_named_percent"] == 50


def test_who_is_named_first_and_did_nothing_is_wrong() -> None:
    assert figures_of([RIGHT, SILENT, OWN])["wrong_first_percent"] == 0
    assert figures_of([RIGHT, SECOND, OWN])["wrong_first_percent"] == 50


def test_what_the_bench_does_by_itself_is_not_strange() -> None:
    assert figures_of([RIGHT, OWN])["strange_percent"] == 0
    assert figures_of([RIGHT, QUIET])["strange_percent"] == 100
    assert figures_of([RIGHT, OWN])["without_percent"] == 100
    assert figures_of([SECOND, OWN])["without_percent"] == 0


def test_a_benchmark_goes_on_behind_its_last_whole_run(tmp_path: Path) -> None:
    journal = tmp_path / "outcomes.ndjson"
    lines = [json.dumps(each) for each in ({"seed": "1"}, to_json(RIGHT), to_json(SILENT))]
    journal.write_text("\n".join([*lines, lines[-1][:40]]))
    assert outcomes_of(journal, {"seed": "2"}) == []
    assert outcomes_of(journal, {"seed": "1"}) == [RIGHT, SILENT]
    assert journal.read_text() == "\n".join(lines) + "\n"
    assert outcomes_of(tmp_path / "none", {}) == []
