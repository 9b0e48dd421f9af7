# SPDX-License-Identifier: Apache-2.0
"""Reading evidence back: exact errors for damaged answers, and nothing passes on what could not be read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reports.daq_replay.evidence import load_replay
from reports.daq_replay.known_delay import KnownDelay, judge_known_delay
from reports.daq_replay.verdict import judge_latency
from reports.errors import RecordError
from reports.record.measurement import Uncertainty, UncertaintyPart
from reports.tools.answers import last_result, read_misses, recv_result
from tests.reports.sample_run import Disturbance, requirement_of, write_evidence


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_evidence(tmp_path, Disturbance(path_delay_ns={33: 15_000_000}), seed=5)
    return tmp_path


def test_the_whole_evidence_is_read(folder: Path):
    found = load_replay(folder)
    assert found.problems == ()
    assert found.recv is not None
    assert found.witness is not None
    assert found.known_delay is not None
    assert len(found.sends) == 2
    assert len(found.misses) == found.recv.stream(33).misses > 0
    assert found.clock_of_producer[12] == "guest"
    assert found.low_latency_types == {3}


def result_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "recv.ndjson").read_text().splitlines()[-1])


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("streams", 0, "lost"), "0", r"recv.streams\[0\].lost: expected int, found '0'"),
        (("streams", 0, "lost"), True, r"recv.streams\[0\].lost: expected int"),
        (("streams", 3, "received_minus_sent"), None, r"recv.streams\[3\].received_minus_sent"),
        (
            ("streams", 3, "received_minus_sent", "n"),
            7,
            r"recv.streams\[3\].received_minus_sent: buckets hold",
        ),
        (("clocks", 1, "series"), [[1, 2]], r"recv.clocks\[1\].series\[0\]: expected three integers"),
        (("valid",), 1, "recv.valid: expected bool"),
    ],
)
def test_a_damaged_answer_is_refused_with_its_place(
    folder: Path, place: tuple[Any, ...], value: object, message: str
):
    data = result_of(folder)
    inner: Any = data
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    with pytest.raises(RecordError, match=message):
        recv_result(data)


def test_a_missing_key_is_named(folder: Path):
    data = result_of(folder)
    del data["clock_steps"]
    with pytest.raises(RecordError, match=r"recv\.clock_steps: missing"):
        recv_result(data)


def test_a_tool_that_was_killed_has_no_result(folder: Path):
    path = folder / "recv.ndjson"
    path.write_text(path.read_text()[:-40])
    with pytest.raises(RecordError, match="no result line"):
        last_result(path)
    found = load_replay(folder)
    assert found.recv is None
    with pytest.raises(RecordError, match="no result line"):
        found.replay()


@pytest.mark.parametrize("name", ["witness.ndjson", "misses.ndjson", "known_delay.json", "plan.toml"])
def test_nothing_passes_on_evidence_that_could_not_be_read(folder: Path, name: str):
    (folder / name).write_text("{\n}\nnot what it should be\n")
    found = load_replay(folder)
    assert len(found.problems) == 1
    assert name.split(".")[0] in found.problems[0]
    assert judge_latency(10, requirement_of(10), found.replay()).verdict.outcome == "inconclusive"


def test_a_producer_that_left_no_result_takes_its_own_streams(folder: Path):
    (folder / "send-12.ndjson").write_text('{"type": "ready"}\n{"type": "resu')
    found = load_replay(folder)
    assert found.problems == ("send-12.ndjson: no result: it did not come to its end",)
    outcomes = {each: judge_latency(each, requirement_of(each), found.replay()).verdict for each in (10, 120)}
    assert outcomes[10].outcome == "pass"
    assert outcomes[120].message == "INCONCLUSIVE: no producer says that it sent this stream"
    for path in folder.glob("send-*.ndjson"):
        path.write_text("")
    nothing = judge_latency(10, requirement_of(10), load_replay(folder).replay()).verdict
    assert nothing.outcome == "inconclusive"


def test_only_the_last_line_of_the_misses_may_be_torn(folder: Path):
    lines = (folder / "misses.ndjson").read_text().splitlines()
    assert len(read_misses([*lines[:-1], lines[-1][:30]])) == len(lines) - 1
    with pytest.raises(RecordError, match=r"misses\.ndjson:1:"):
        read_misses([lines[0][:30], *lines[1:]])


def uncertainty(value: int) -> Uncertainty:
    return Uncertainty.from_parts([UncertaintyPart("clock_offset", "bound", value)])


@pytest.mark.parametrize(
    ("found", "outcome"), [(5_100, "pass"), (4_900, "pass"), (5_101, "fail"), (None, "unset")]
)
def test_a_known_delay_has_to_be_found_within_u(found: int | None, outcome: str):
    assert judge_known_delay((5,), 5_000, found, 100, uncertainty(100)).outcome == outcome


@pytest.mark.parametrize(
    ("u", "found", "outcome"), [(4_999, 1, "pass"), (5_000, 0, "inconclusive"), (4_000, 0, "fail")]
)
def test_a_known_delay_that_is_not_told_from_none_shows_nothing(u: int, found: int, outcome: str):
    known = judge_known_delay((5,), 5_000, found, 100, uncertainty(u))
    assert known.outcome == outcome
    assert (
        outcome != "inconclusive"
    ) or known.reason == "5000 ns applied cannot be told from none: U = 5000 ns"


def test_a_known_delay_comes_back_from_its_file_and_cannot_claim_a_pass(tmp_path: Path):
    known = judge_known_delay((5,), 5_000, 5_050, 100, uncertainty(100))
    path = tmp_path / "known_delay.json"
    path.write_text(known.to_text())
    assert KnownDelay.read(path) == known
    path.write_text(known.to_text().replace("5050", "5200"))
    with pytest.raises(RecordError, match="pass with an error"):
        KnownDelay.read(path)
