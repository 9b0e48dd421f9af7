# SPDX-License-Identifier: Apache-2.0
"""Bulk data by user and kernel: what was made up comes out, and what leaves no verdict leaves none."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reports.errors import RecordError
from reports.record.context import Context
from reports.record.measurement import Conditions, Limit, Measurement, Subject
from reports.requirements import Requirement
from reports.timeline.bulk import Bulk, load_bulk_transfer
from reports.timeline.bulk_evidence import BULK_FILE, load_bulk
from reports.timeline.bulk_verdict import bulk_measurement
from reports.timeline.capability import BULK_DIFFERENCE, BULK_UNMATCHED
from tests.reports.timeline.bulk_sample import (
    SEGMENT_BYTES,
    TARGET,
    Call,
    Segment,
    calls_of,
    segments_of,
    write_sample_bulk,
)

LIMIT = Limit(0, None, "a test")
DIFFERENCE = Requirement("D", BULK_DIFFERENCE, "total", LIMIT, "bytes", samples=100)
UNMATCHED = Requirement("U", BULK_UNMATCHED, "count", LIMIT, "segments", samples=100)


def judged(found: Bulk) -> tuple[Measurement, Measurement]:
    """Return the records of both quantities."""
    context = Context("r", "t", Subject("native", TARGET), Conditions("ci"), simulated=True, evidence=())
    return bulk_measurement(found, DIFFERENCE, context), bulk_measurement(found, UNMATCHED, context)


def outcomes(folder: Path) -> tuple[str, str]:
    """Return the outcomes of both quantities."""
    one, other = judged(load_bulk_transfer(folder))
    return one.outcome, other.outcome


@pytest.mark.parametrize("addresses", [("10.77.0.1", "10.77.0.100"), ("fd77::1", "fd77::100")])
def test_what_was_made_up_comes_out(tmp_path: Path, addresses: tuple[str, str]) -> None:
    write_sample_bulk(tmp_path, addresses=addresses)
    found = load_bulk_transfer(tmp_path)
    assert found.segments is not None
    assert (found.segments.time_ns.size, found.segments.bytes) == (400, 400 * SEGMENT_BYTES)
    assert (found.read.bytes, found.read.end_bytes.size) == (400 * SEGMENT_BYTES, 134)
    assert (found.difference_bytes, found.unmatched, found.retransmissions, found.why) == (0, 0, 0, "")
    assert [each.value for each in judged(found)] == [0, 0]
    assert outcomes(tmp_path) == ("pass", "pass")


def test_other_connections_and_acknowledgements_do_not_count(tmp_path: Path) -> None:
    own = segments_of(200)
    others = [
        Segment(5_000, 700, source="10.77.0.2"),
        Segment(6_000, 700, port=22),
        Segment(7_000, 0),
    ]
    write_sample_bulk(tmp_path, segments=own, seen=[*own, *others])
    found = load_bulk_transfer(tmp_path)
    assert (found.difference_bytes, found.unmatched) == (0, 0)


def test_merged_segments_match(tmp_path: Path) -> None:
    write_sample_bulk(tmp_path, segments=segments_of(150, 65_160))
    assert outcomes(tmp_path) == ("pass", "pass")


def test_segment_that_the_kernel_does_not_tell_fails(tmp_path: Path) -> None:
    came = segments_of(400)
    soon = [Call(each.at_ns + 5_000, each.payload_bytes) for each in came]
    write_sample_bulk(tmp_path, segments=came, calls=soon, seen=[*came[:100], *came[101:]])
    found = load_bulk_transfer(tmp_path)
    assert found.difference_bytes == SEGMENT_BYTES
    # Each one behind it seems to be in the place of the one before, whose call had returned before it came.
    assert found.unmatched == 299
    one, other = judged(found)
    assert (one.outcome, one.value, other.outcome) == ("fail", SEGMENT_BYTES, "fail")
    assert one.reason == "the user has read 579200 bytes, the kernel counts 577752 of payload"
    assert other.reason == "299 of 399 segments were read by no call, or before they came"


def test_retransmission_does_not_explain_what_the_kernel_lacks(tmp_path: Path) -> None:
    came = segments_of(400)
    write_sample_bulk(tmp_path, segments=came, seen=came[:-1], retransmissions=1)
    assert outcomes(tmp_path)[0] == "fail"


def test_retransmission_that_came_once_passes(tmp_path: Path) -> None:
    write_sample_bulk(tmp_path, retransmissions=3)
    found = load_bulk_transfer(tmp_path)
    assert found.retransmissions == 3
    assert outcomes(tmp_path) == ("pass", "pass")


def test_retransmission_that_came_twice_leaves_no_verdict(tmp_path: Path) -> None:
    came = segments_of(400)
    twice = [*came[:50], replace(came[49], at_ns=came[49].at_ns + 1_000), *came[50:]]
    write_sample_bulk(tmp_path, segments=came, seen=twice, retransmissions=1)
    found = load_bulk_transfer(tmp_path)
    assert found.difference_bytes == -SEGMENT_BYTES
    one, other = judged(found)
    assert (one.outcome, other.outcome) == ("inconclusive", "inconclusive")
    assert "1 segments were sent again, and the kernel counts 1448 bytes more" in one.reason


def test_segment_too_many_fails_where_nothing_was_sent_again(tmp_path: Path) -> None:
    came = segments_of(400)
    write_sample_bulk(tmp_path, segments=came, seen=[*came, Segment(5_000_000, 100)])
    found = load_bulk_transfer(tmp_path)
    assert (found.difference_bytes, found.unmatched) == (-100, 1)
    assert outcomes(tmp_path) == ("fail", "fail")


def test_merged_segments_beyond_the_field_of_their_length_leave_no_verdict(tmp_path: Path) -> None:
    """As over loopback: 16 bits hold the length of a segment that the kernel has merged of two."""
    came = segments_of(200, 65_160)
    longer = [*came[:50], replace(came[50], payload_bytes=100_000), *came[51:]]
    seen = [*came[:50], replace(came[50], payload_bytes=100_000 - 65_536), *came[51:]]
    write_sample_bulk(tmp_path, segments=longer, calls=calls_of(longer), seen=seen)
    found = load_bulk_transfer(tmp_path)
    assert found.difference_bytes == 65_536
    one, _ = judged(found)
    assert one.outcome == "inconclusive"
    assert "65536 bytes less than the user, 1 times 65536" in one.reason


def test_call_that_read_before_the_segment_came_is_no_partner(tmp_path: Path) -> None:
    came = segments_of(400)
    calls = calls_of(came)
    early = [*calls[:200], Call(came[200].at_ns - 1_000, SEGMENT_BYTES), *calls[201:]]
    write_sample_bulk(tmp_path, segments=came, calls=early)
    found = load_bulk_transfer(tmp_path)
    assert (found.difference_bytes, found.unmatched) == (0, 1)
    assert outcomes(tmp_path) == ("pass", "fail")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"dropped": 7}, f"{TARGET}: 7 events of the kernel had no room in its ring"),
        ({"lost_in_ring": 4}, f"{TARGET}: CPU 3: its ring has lost events"),
        ({"lost_events": 2}, f"{TARGET}: 2 events of the program had no room in a ring"),
        ({"answers": {"sender": {"complete": False}}}, "p01: the program was stopped before its end"),
        ({"answers": {"receiver": {"calls": 133}}}, "its points 579200 in 134"),
        ({"answers": {"receiver": {"checksum": "0"}}}, "received, checksum 0"),
    ],
)
def test_what_is_not_whole_leaves_no_verdict(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    write_sample_bulk(tmp_path, **change)
    records = judged(load_bulk_transfer(tmp_path))
    assert [each.outcome for each in records] == ["inconclusive", "inconclusive"]
    assert all(said in each.reason for each in records)


def test_overrun_leaves_no_verdict_on_what_would_fail(tmp_path: Path) -> None:
    came = segments_of(400)
    write_sample_bulk(tmp_path, segments=came, seen=came[:300], dropped=100)
    assert outcomes(tmp_path) == ("inconclusive", "inconclusive")


def test_stream_that_is_cut_leaves_no_verdict(tmp_path: Path) -> None:
    write_sample_bulk(tmp_path)
    path = tmp_path / "receiver.bwevents"
    path.write_bytes(path.read_bytes()[:-1_000])
    found = load_bulk_transfer(tmp_path)
    assert found.why == f"{TARGET}: the stream of its points is cut"
    assert outcomes(tmp_path) == ("inconclusive", "inconclusive")


def test_kernel_that_cannot_be_recorded_is_said(tmp_path: Path) -> None:
    write_sample_bulk(tmp_path, refused="linux-rt: no tracefs that may be mounted")
    found = load_bulk_transfer(tmp_path)
    assert (found.segments, found.retransmissions, found.unmatched) == (None, None, None)
    for record in judged(found):
        assert (record.outcome, record.value, record.n) == ("unset", None, 0)
        assert record.reason == "linux-rt: no tracefs that may be mounted"


def test_kernel_that_saw_nothing_is_said(tmp_path: Path) -> None:
    write_sample_bulk(tmp_path, seen=[])
    assert {each.reason for each in judged(load_bulk_transfer(tmp_path))} == {
        "the kernel saw no segment with payload"
    }


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"bytes": 0}, "need bytes"),
        ({"port": 65_536}, "port"),
        ({"rate_mbit": -1}, "rate_mbit"),
        ({"schema": "benchwright.timeline_bulk/2"}, "schema"),
        ({"sender": {"node": TARGET, "address": "::", "answer": "a", "events": "b", "kernel": "c"}}, "both"),
        (
            {"sender": {"node": "p01", "address": "::", "answer": "a", "events": "../b", "kernel": "c"}},
            "no file",
        ),
        ({"sender": {"node": "p01", "address": "::", "answer": "a", "events": "a", "kernel": "c"}}, "twice"),
        (
            {"sender": {"node": "p01", "address": "x", "answer": "a", "events": "b", "kernel": "c"}},
            "p01: 'x'",
        ),
        (
            {"sender": {"node": "p01", "address": "::", "answer": "a", "events": "b"}},
            "refused does not say why",
        ),
    ],
)
def test_document_that_cannot_be_is_refused(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    write_sample_bulk(tmp_path)
    document = json.loads((tmp_path / BULK_FILE).read_text())
    (tmp_path / BULK_FILE).write_text(json.dumps(document | change))
    with pytest.raises(RecordError, match=said):
        load_bulk(tmp_path)


def test_answers_that_are_exchanged_are_refused(tmp_path: Path) -> None:
    write_sample_bulk(tmp_path, answers={"sender": {"role": "receiver"}})
    with pytest.raises(RecordError, match=r"sender\.ndjson: of the receiver"):
        load_bulk_transfer(tmp_path)


@pytest.mark.parametrize(
    "name", ["receiver.bwevents", "sender.ndjson", "receiver-kernel.gz", "sender-kernel.gz"]
)
@pytest.mark.parametrize("size_bytes", [0, 7, 100])
def test_file_that_is_cut_is_named(tmp_path: Path, name: str, size_bytes: int) -> None:
    write_sample_bulk(tmp_path)
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:size_bytes])
    with pytest.raises(RecordError):
        load_bulk_transfer(tmp_path)
