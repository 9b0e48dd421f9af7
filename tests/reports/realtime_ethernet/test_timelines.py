# SPDX-License-Identifier: Apache-2.0
"""A kernel recording on a timeline of its own: threads last until the next one, unless events are lost."""

from __future__ import annotations

from pathlib import Path

from reports.realtime_ethernet.timelines import timelines_of
from reports.timeline.placed_events import Timeline
from tests.reports.realtime_ethernet.sample import write_ring_sample
from tests.reports.timeline.ring_pages import Machine, Page

T0_NS = 5_000_000_000


def _of(tmp_path: Path, pages: bytes) -> tuple[Timeline, list[str]]:
    write_ring_sample(tmp_path / "evidence" / "realtime_ethernet" / "linux", pages)
    [found], problems = timelines_of(tmp_path)
    return found, problems


def test_threads_last_until_the_next_one_and_other_events_are_instants(tmp_path: Path) -> None:
    it = Machine()
    page = Page(it, T0_NS).event(0, it.switch(b"a", 7)).event(10, it.number(1, pid=7))
    page.event(20, it.switch(b"swapper/3", 0)).event(5, it.switch(b"a", 7))
    timeline, problems = _of(tmp_path, page.packed())
    assert problems == []
    assert (timeline.place, timeline.axis) == ("realtime_ethernet/linux/traced-64", "monotonic")
    [track] = timeline.tracks
    assert (track.node, track.lane) == ("target", "CPU 3")
    assert [track.names[k] for k in track.name.tolist()] == ["a", "test/number", "swapper/3", "a"]
    assert track.tai_ns.tolist() == [T0_NS, T0_NS + 10, T0_NS + 30, T0_NS + 35]
    assert track.duration_ns.tolist() == [30, 0, 5, 0]
    assert track.tag.tolist() == [7, 7, 0, 7]
    assert not track.u_ns.any()


def test_a_thread_before_lost_events_has_no_end(tmp_path: Path) -> None:
    it = Machine()
    first = Page(it, T0_NS).event(0, it.switch(b"a", 7)).event(10, it.switch(b"b", 8))
    second = Page(it, T0_NS + 100).event(0, it.switch(b"c", 9)).event(10, it.switch(b"d", 10))
    timeline, _ = _of(tmp_path, first.packed() + second.packed(lost=4))
    assert timeline.tracks[0].duration_ns.tolist() == [10, 0, 10, 0]
    assert timeline.left_out == {"CPU 3: its buffer had no room": 3}


def test_what_is_damaged_is_told_and_the_rest_is_there(tmp_path: Path) -> None:
    it = Machine()
    page = Page(it, T0_NS).event(0, it.switch(b"a", 7)).packed()
    timeline, [problem] = _of(tmp_path, page + page[:100])
    assert len(timeline) == 1
    assert problem.startswith("realtime_ethernet/linux/traced-64: traced-64-ring.gz: CPU 3: byte 4096: ")


def test_a_ring_without_events_is_an_empty_timeline(tmp_path: Path) -> None:
    timeline, problems = _of(tmp_path, b"")
    assert (len(timeline), problems) == (0, [])


def test_a_recording_that_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    folder = write_ring_sample(tmp_path / "evidence" / "realtime_ethernet" / "linux")
    (folder / "traced-64-ring.gz").write_bytes(b"no gzip")
    assert timelines_of(tmp_path)[0] == []
    assert "traced-64-ring.gz" in timelines_of(tmp_path)[1][0]
