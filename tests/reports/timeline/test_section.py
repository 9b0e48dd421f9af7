# SPDX-License-Identifier: Apache-2.0
"""The section on the timeline: both legs beside the paper's, clocks, delays, and what cannot be read."""

from __future__ import annotations

from pathlib import Path

from reports.run.folder import RunFolder
from reports.section import TargetData
from reports.timeline.bulk_evidence import BULK_FOLDER
from reports.timeline.capability import FROM_TARGET, TO_TARGET
from reports.timeline.delayed_legs import DELAY_FOLDERS
from reports.timeline.legs_evidence import FOLDER, KnownDelay
from reports.timeline.place_errors import BESIDE_CARD
from reports.timeline.section import TimelineSection, gather_timeline
from reports.timeline.timelines import timelines_of
from reports.units import NO_VALUE
from tests.reports.pages import page_with, words_of
from tests.reports.timeline.bulk_sample import write_sample_bulk
from tests.reports.timeline.legs_sample import TARGET, Machine, write_sample_legs


def gathered(run: Path) -> TimelineSection:
    shown = gather_timeline(TargetData(run, target=TARGET))
    assert shown is not None
    return shown


def test_page_shows_legs_clocks_and_delays(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path / "results", "virtual", "ci", simulated=True, commit="0" * 40)
    folder = run.evidence_folder(FOLDER, TARGET)
    write_sample_legs(folder)
    for name, leg in DELAY_FOLDERS.items():
        write_sample_legs(folder / name, delay=KnownDelay(leg, 50, 50), put_ns=50_000)
    write_sample_legs(folder / BESIDE_CARD, card_off_ns=0)
    run.update(target={TARGET: {"hostname": TARGET}})
    run.close()
    page = page_with(run.path, "timeline")
    words = words_of(page)
    for row in (
        "to the target 40.30 µs 10 µs 40.30 µs 40.60 µs 67.44 µs 1190 0 0",
        "from the target 30.20 µs 10 µs 30.20 µs 30.40 µs 64.83 µs 1190 0 0",
        f"{TARGET} its CLOCK_REALTIME, two-way time transfer",
        "none",
        "2400 0 ns 10 µs 24 µs",
        "to the target to the target 50.0 µs 50.0 µs",
        "from the target to the target 0 ns",
    ):
        assert row in words, row
    assert page.count("<svg") == 3


def test_contradiction_is_said_first(tmp_path: Path) -> None:
    folder = tmp_path / "evidence" / FOLDER / TARGET
    write_sample_legs(folder, client=Machine(2_500_000_000, events_ahead_ns=-100_000))
    shown = gathered(tmp_path)
    assert "1190 of 1190 messages from p01" in shown.contradiction
    assert [row.missing for row in shown.rows] == [0, 0]


def test_evidence_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    folder = tmp_path / "evidence" / FOLDER / TARGET
    write_sample_legs(folder)
    (folder / "client.bwevents").unlink()
    shown = gathered(tmp_path)
    assert (shown.legs, shown.rows, shown.clocks, shown.figures) == (None, [], [], [])
    assert "client.bwevents" in shown.problems[0]
    assert gather_timeline(TargetData(tmp_path / "nothing", target=TARGET)) is None


def test_page_shows_bulk_data_alone(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path / "results", "virtual", "ci", simulated=True, commit="0" * 40)
    write_sample_bulk(run.evidence_folder(FOLDER, TARGET) / BULK_FOLDER, retransmissions=2)
    run.update(target={TARGET: {"hostname": TARGET}})
    run.close()
    words = words_of(page_with(run.path, "timeline"))
    for row in (
        "p01 sends random data over TCP to linux-rt, as fast as it goes, in calls of 65536 bytes",
        f"Sender 579200 134 {NO_VALUE} 2 1158 1.000 ms",
        f"Receiver 579200 134 {NO_VALUE} {NO_VALUE} 1158 1.000 ms",
        "Receiver's kernel 579200 400 0",
    ):
        assert row in words, row
    assert "stimuli" not in words


def test_bulk_data_without_a_verdict_says_why(tmp_path: Path) -> None:
    folder = tmp_path / "evidence" / FOLDER / TARGET
    write_sample_bulk(folder / BULK_FOLDER, dropped=3)
    write_sample_legs(folder)
    shown = gathered(tmp_path)
    assert shown.bulk is not None
    assert shown.bulk.why == "linux-rt: 3 events of the kernel had no room in its ring"
    assert (len(shown.rows), shown.problems) == (2, ())
    (folder / BULK_FOLDER / "sender-kernel.gz").unlink()
    shown = gathered(tmp_path)
    assert (shown.bulk, len(shown.rows)) == (None, 2)
    assert "sender-kernel.gz" in shown.problems[0]


def test_legs_are_a_timeline_with_flows(tmp_path: Path) -> None:
    folder = tmp_path / "evidence" / FOLDER / TARGET
    write_sample_legs(folder, count=100, leave_out=50)
    write_sample_legs(folder / "cut")
    (folder / "cut" / "server.bwevents").write_bytes(b"")
    (timeline,), problems = timelines_of(tmp_path)
    assert timeline.place == f"{FOLDER}/{TARGET}"
    assert [(each.node, each.lane) for each in timeline.tracks] == [
        ("p01", f"{TO_TARGET}: sent"),
        (TARGET, f"{TO_TARGET}: received"),
        (TARGET, f"{FROM_TARGET}: sent"),
        ("p01", f"{FROM_TARGET}: received"),
    ]
    assert len(timeline.flows) == 2 * 89
    assert timeline.left_out == {f"{leg}: no place at both ends": 1 for leg in (TO_TARGET, FROM_TARGET)}
    assert len(problems) == 1
    assert "server.bwevents" in problems[0]
