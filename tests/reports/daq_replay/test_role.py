# SPDX-License-Identifier: Apache-2.0
"""A target that produces has a heading of its own on its page, and a group of its own in the matrix."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from dashboards.points import run_points
from reports import RunFolder, judge_latency, latency_measurement
from reports.daq_replay.evidence import load_replay
from reports.daq_replay.role import REPLAY_ROLE, ReplayRole
from reports.daq_replay.section import LatencySection
from reports.daq_replay.stream_groups import StreamGroup
from reports.errors import RecordError
from reports.page.matrix import matrix_of
from reports.page.model import Report, gather_run
from reports.page.render import PAGE, render_pages, write_page
from reports.record.context import Context
from reports.record.measurement import Conditions, Subject
from tests.reports.sample_run import (
    Disturbance,
    ask,
    make_run_of_targets,
    requirement_of,
    write_evidence,
)

ROOT = Path(__file__).resolve().parents[3]
REQUIREMENTS = ROOT / "robot" / "daq_producer" / "requirements" / "daq_producer.toml"
STREAMS = (110, 111, 112, 113)
ROLE = ReplayRole("embedded", 11, "linux-rt")
TARGET_LATE_NS = 14_400_000
"""So much later than the others the target sends one of its streams."""


def _add_produced(run: RunFolder) -> None:
    """Add a replay in which the embedded target produced, judged and recorded."""
    folder = run.evidence_folder("daq_producer", ROLE.target, "attempt-1")
    write_evidence(folder, Disturbance(generator_delay_ns={110: TARGET_LATE_NS}), seed=9)
    ROLE.write(folder)
    files = tuple(run.evidence(folder / name) for name in ("recv.ndjson", REPLAY_ROLE))
    for stream in STREAMS:
        requirement = replace(requirement_of(stream), id=f"DAQ-P{stream}", of_sender=True)
        subject = Subject("virtual", ROLE.target, "kernel", "two-way", str(stream))
        context = Context(run.run_id, "a test", subject, Conditions("ci", "aligned-12"), True, files)
        replay = load_replay(folder).replay()
        judged = judge_latency(stream, requirement, replay)
        run.append(latency_measurement(stream, requirement, replay, judged, context))
    (run.evidence_folder("requirements") / REQUIREMENTS.name).write_bytes(REQUIREMENTS.read_bytes())
    ask(run, ROLE.target, "daq_producer", REQUIREMENTS)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run with three targets, one of which also produced."""
    made = make_run_of_targets(tmp_path_factory.mktemp("results"), close=False)
    _add_produced(made)
    made.close()
    return made


def _groups(report: Report) -> Sequence[StreamGroup]:
    shown = report.shown_in("streams")
    assert isinstance(shown, LatencySection)
    return shown.groups


def _streams(group: StreamGroup) -> Sequence[str | None]:
    return [row.record.subject.stream for row in group.rows]


def test_produced_streams_are_a_group_of_their_own(run: RunFolder) -> None:
    linux, _windows, embedded = gather_run(run.path).targets
    assert [group.role for group in _groups(linux)] == [None]
    received, sent = _groups(embedded)
    assert (received.role, sent.role) == (None, ROLE)
    assert sent.title.startswith("target embedded as producer 11 into linux-rt · stack kernel")
    assert _streams(sent) == [str(stream) for stream in STREAMS]
    assert set(_streams(received)) == {"10", "11", "12", "13"}
    [instrument] = sent.instruments
    assert [number for number, _, _ in instrument.lateness] == list(range(1, 13))
    assert embedded.problems == ()


def test_the_page_says_which_part_the_target_had(run: RunFolder) -> None:
    write_page(run.path)
    text = (run.path / "qualification-embedded.html").read_text()
    headings = re.findall(r"<h3>((?:Sent|Received) by the target.*?)</h3>", text)
    assert headings == [
        "Received by the target",
        "Sent by the target in the place of producer 11, into linux-rt",
    ]
    assert text.count('<th scope="row">11, the target</th>') == 1
    assert "by the target" not in (run.path / "qualification-linux-rt.html").read_text()


def test_what_the_target_sends_late_is_not_the_generators(run: RunFolder) -> None:
    embedded = gather_run(run.path).targets[2]
    received, sent = _groups(embedded)
    [replay], [produced] = received.instruments, sent.instruments
    assert produced.target_lateness_ns is not None
    assert produced.target_lateness_ns > TARGET_LATE_NS
    assert replay.target_lateness_ns is None
    for each in (replay, produced):
        assert each.worst_lateness_ns is not None
        assert each.worst_lateness_ns < TARGET_LATE_NS / 2
        assert each.generator_lateness_p99 is not None
        assert each.generator_lateness_p99.value_ns < TARGET_LATE_NS / 2
    points = run_points(run, "main").points
    [late] = [point.fields["lateness_max_ns"] for point in points if point.measurement == "hil_run"]
    assert isinstance(late, float)
    assert late < TARGET_LATE_NS / 2
    sent_by_target = [point for point in points if point.tags.get("requirement") == "DAQ-P110"]
    assert sent_by_target
    assert not any("lateness_max_ns" in point.fields for point in sent_by_target)
    pages = render_pages(run.path)
    for page in (PAGE, "qualification-embedded.html"):
        tiles = dict(re.findall(r'"name">([^<]*late by)</div><div class="figure">([^<]*)<', pages[page]))
        assert tiles["Target as producer at most late by"].startswith("14.")
        assert not tiles["Generator at most late by"].startswith("14.")


def test_the_matrix_tells_both_roles_apart(run: RunFolder) -> None:
    matrix = matrix_of(run.path, run.run_id, gather_run(run.path).targets)
    groups = {group.title: group for group in matrix.groups}
    assert [row.id for row in groups["One way latency: producer 11"].rows] == [
        f"DAQ-{stream}" for stream in STREAMS
    ]
    produced = groups["One way latency: producer 11, the target in its place"]
    for row, stream in zip(produced.rows, STREAMS, strict=True):
        assert row.id == f"DAQ-P{stream}"
        assert row.text.startswith(f"one way latency, max, of stream {stream}, sent by the target: at most")
        assert [cell.state for cell in row.cells] == ["not asked", "not asked", "pass"]


def test_a_damaged_role_lets_nothing_pass(tmp_path: Path) -> None:
    write_evidence(tmp_path, Disturbance(), seed=9)
    path = ROLE.write(tmp_path)
    assert ReplayRole.read(path) == ROLE
    path.write_text('{"schema": "benchwright.replay_role/1", "target": "embedded"}')
    with pytest.raises(RecordError, match=r"role\.json"):
        ReplayRole.read(path)
    assert any("role.json" in cause for cause in load_replay(tmp_path).replay().causes())
