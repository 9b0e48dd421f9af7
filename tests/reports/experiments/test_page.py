# SPDX-License-Identifier: Apache-2.0
"""The page of an experiment, from a folder that is written by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reports.errors import RecordError
from reports.experiments.left import Condition, Span, read_experiment_folder
from reports.experiments.page import PAGE, render_experiment, write_experiment_page

T_NS = 1_796_000_000_000_000_000


def _point(folder: Path, name: str, lines: list[dict[str, Any]], delay: int) -> Path:
    point = folder / "points" / name
    point.mkdir(parents=True)
    (point / "point.json").write_text(json.dumps({"number": 1, "repeat": 1, "values": {"delay_ms": delay}}))
    said = "".join(json.dumps(line) + "\n" for line in lines)
    (point / "schedule.ndjson").write_text(said + '{"utc_ns": 17')  # torn, as by a full disk
    return point


def _line(at_s: float, what: str, phase: str, component: str = "", failed: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {"utc_ns": T_NS + round(at_s * 1e9), "what": what, "phase": phase}
    return found | ({"component": component} if component else {}) | ({"failed": failed} if failed else {})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give the folder of an experiment of two points, of which the second failed."""
    (tmp_path / "experiment.toml").write_text('name = "slow <path>"\nbench = "virtual"\n')
    (tmp_path / "plan.txt").write_text("experiment slow: 2 points, at most 9 s\n")
    (tmp_path / "versions.json").write_text('{"one kernel": "Linux 6.12"}')
    first = _point(
        tmp_path,
        "0001",
        [
            _line(0, "begin", "start", "server"), _line(0.25, "end", "start", "server"),
            _line(0.5, "begin", "send", "client"), _line(2, "end", "send", "client"),
            _line(2, "begin", "collect"), _line(2.5, "end", "collect"),
        ],
        0,
    )  # fmt: skip
    (first / "load").mkdir()
    known = {"value": 5.0, "source": "own"}
    nobody = {"value": None, "source": "no disk"}
    (first / "load/load.json").write_text(
        json.dumps(
            {
                "load": {"kind": "cpu", "node": "p01", "processors": 0},
                "over_s": 2.5,
                "cpu_s": known,
                **dict.fromkeys(("written_bytes", "sent_bit_s", "received_bit_s"), nobody),
                **{name: {"value": 12345, "source": "x"} for name in ("forks", "context_switches")},
            }
        )
    )
    realised = {"node": "impair", "interface": "test1", "settings": {"delay_us": 4999.0, "jitter_us": 0}}
    (first / "slow.json").write_text(
        json.dumps({"changes": [{"at_s": 0.0, "asked": {"delay_us": 5000}, "realised": realised}]})
    )
    _point(
        tmp_path,
        "0002.1",
        [_line(9, "begin", "start", "server"), _line(9.5, "end", "start", "server", "was ended by signal 9")],
        5,
    )
    return tmp_path


def test_what_was_left_is_read(folder: Path) -> None:
    found = read_experiment_folder(folder)
    first, second = found.points
    assert (found.planned, first.is_complete, second.is_complete) == (2, True, False)
    assert first.spans == (
        Span("start", "server", 0.0, 0.25, ""),
        Span("send", "client", 0.5, 2.0, ""),
        Span("collect", "", 2.0, 2.5, ""),
    )
    assert second.spans == (Span("start", "server", 0.0, 0.5, "was ended by signal 9"),)
    assert first.conditions == (
        Condition("load", "kind cpu, node p01", "5 s of CPU, 12,345 forks, 12,345 context switches in 2.5 s"),
        Condition("slow", "from 0 s: delay_us 5000", "impair, test1: delay_us 4999.0"),
    )


def test_the_page_says_it_and_is_the_same_again(folder: Path) -> None:
    page = render_experiment(folder)
    assert "Experiment: slow &lt;path&gt;" in page
    assert "1 of 2" in page
    assert "server, start: was ended by signal 9" in page
    assert page.count('role="img"') == 2
    assert write_experiment_page(folder).read_text() == page == render_experiment(folder)


@pytest.mark.parametrize("name", ["experiment.toml", "plan.txt", "points/0001/point.json"])
def test_a_damaged_folder_is_named(folder: Path, name: str) -> None:
    (folder / name).write_text("[")
    with pytest.raises(RecordError, match="not the folder of an experiment"):
        render_experiment(folder)
    assert not (folder / PAGE).exists()
