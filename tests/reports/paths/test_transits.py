# SPDX-License-Identifier: Apache-2.0
"""Captures written by hand, whose truth is known first: what was read, and what became of each datagram."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

from reports.errors import ReportError
from reports.paths.datagrams import Datagrams, read_datagrams
from reports.paths.transits import LOST, Transits, transits
from tests.reports.paths.written_capture import MACS, MAGIC_NS, MAGIC_US, Datagram, write_capture

START_NS = 1_700_000_000_123_456_000
RTDIP = MACS + b"\x88\xb5" + bytes(46)
ARP = MACS + b"\x08\x06" + bytes(46)
Seen = list[tuple[int, Datagram | bytes]]


def matched(folder: Path, before: Seen, behind: Seen) -> Transits:
    """Write both captures, and match what is read of them."""
    files = (write_capture(folder / "before.pcap", before), write_capture(folder / "behind.pcap", behind))
    return transits(*map(read_datagrams, files))


def sent(count: int) -> Seen:
    """Return datagrams that go in, one a millisecond."""
    return [(START_NS + number * 1_000_000, Datagram(number)) for number in range(count)]


def test_times_inside(tmp_path: Path) -> None:
    before = sent(3)
    found = matched(tmp_path, before, [(at + 7 + n, what) for n, (at, what) in enumerate(before)])
    assert found.sent_ns.tolist() == [at for at, _ in before]
    assert found.inside_ns.tolist() == [7, 8, 9]
    assert found.count.tolist() == [1, 1, 1]
    assert found.place.tolist() == [0, 1, 2]
    assert not found.overtakes.any()
    assert (found.repeated, found.unsent) == (0, 0)


def test_lost_copied_and_overtaken(tmp_path: Path) -> None:
    before = sent(5)
    (_, zero), (_, one), (_, two), (_, three), _ = before
    behind = [(START_NS + at, what) for at, what in ((10, zero), (4_000_000, three), (5_000_000, one))]
    behind += [(START_NS + 5_100_000, three), (START_NS + 6_000_000, two), (START_NS + 6_000_001, three)]
    found = matched(tmp_path, before, behind)
    assert found.inside_ns.tolist() == [10, 4_000_000, 4_000_000, 1_000_000, LOST]
    assert found.count.tolist() == [1, 1, 1, 3, 0]
    assert found.is_lost.tolist() == [False, False, False, False, True]
    assert found.is_copied.tolist() == [False, False, False, True, False]
    assert found.place.tolist() == [0, 2, 3, 1, LOST]
    assert found.overtakes.tolist() == [False, False, False, True]
    assert found.arrived_ns.tolist() == [10, 4_000_000, 4_000_000, 1_000_000]


def test_equal_ones_before_are_left_out(tmp_path: Path) -> None:
    before = sent(3)
    again = (START_NS + 500, before[1][1])
    late = [(at + 9_000_000, what) for at, what in before]
    found = matched(tmp_path, [*before, again], [*late, (START_NS + 1, Datagram(77))])
    assert found.inside_ns.tolist() == [9_000_000, 9_000_000]
    assert (found.repeated, found.unsent) == (2, 1)


def test_what_comes_out_before_it_went_in_is_not_matched(tmp_path: Path) -> None:
    before = sent(2)
    found = matched(tmp_path, before, [(START_NS - 1, before[0][1]), (START_NS + 2_000_000, before[1][1])])
    assert found.count.tolist() == [0, 1]
    assert found.unsent == 1


def test_a_file_out_of_order_is_put_in_order(tmp_path: Path) -> None:
    before = sent(4)
    behind: Seen = [(at + 5, what) for at, what in before]
    found = matched(tmp_path, before[::-1], [behind[2], behind[0], behind[3], behind[1]])
    assert found.sent_ns.tolist() == [at for at, _ in before]
    assert found.place.tolist() == [0, 1, 2, 3]


def test_other_frames_are_left_out(tmp_path: Path) -> None:
    fragments: Seen = [(START_NS, Datagram(9, fragment=each)) for each in (0x2000, 0x2001, 0x0001)]
    whole = Datagram(1, fragment=0x4000)  # may not be split, and is whole
    short = whole.frame()[:38]
    seen: Seen = [*fragments, (START_NS, RTDIP), (START_NS, ARP), (START_NS, short), (START_NS, whole)]
    found = read_datagrams(write_capture(tmp_path / "file.pcap", seen))
    assert len(found.time_ns) == 1
    assert (found.fragments, found.others) == (3, 3)


def test_datagrams_in_a_vlan_are_the_same(tmp_path: Path) -> None:
    frame = Datagram(0).frame()
    behind: Seen = [(START_NS + 3, frame[:12] + b"\x81\0\0\5" + frame[12:])]
    assert matched(tmp_path, sent(1), behind).inside_ns.tolist() == [3]


def test_a_router_that_changes_headers_changes_no_key(tmp_path: Path) -> None:
    plain, with_options = Datagram(5), Datagram(6, options=bytes(8))
    found = matched(
        tmp_path,
        [(START_NS, plain), (START_NS + 1, with_options)],
        [(START_NS + 3, replace(plain, ttl=63)), (START_NS + 4, replace(with_options, ttl=63))],
    )
    assert found.inside_ns.tolist() == [3, 3]


@pytest.mark.parametrize(
    "other",
    [
        Datagram(6),
        Datagram(5, source="10.77.0.3"),
        Datagram(5, destination="10.77.0.3"),
        Datagram(5, ports=(5000, 5002)),
        Datagram(5, ports=(5002, 5001)),
        Datagram(5, payload_bytes=21),
        Datagram(5 + 65536),  # the IP identification is the same again
    ],
)
def test_others_are_not_the_same(tmp_path: Path, other: Datagram) -> None:
    found = matched(tmp_path, [(START_NS, Datagram(5))], [(START_NS + 3, other)])
    assert found.is_lost.tolist() == [True]
    assert found.unsent == 1


def test_more_than_65536_of_a_socket(tmp_path: Path) -> None:
    """The IP identification begins anew; what is lost is known first."""
    random = Random(65)
    before = [(START_NS + number * 1000, Datagram(number)) for number in range(100_000)]
    gone = {number for number in range(100_000) if random.random() < 0.01}
    behind: Seen = [(at + 5_000_000, what) for at, what in before if what.number not in gone]
    found = matched(tmp_path, [*before], behind)
    assert set(np.flatnonzero(found.is_lost).tolist()) == gone
    assert set(found.arrived_ns.tolist()) == {5_000_000}
    assert found.repeated == found.unsent == 0


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(("magic", "stamp_ns"), [(MAGIC_NS, START_NS + 789), (MAGIC_US, START_NS)])
def test_byte_orders_and_units(tmp_path: Path, order: str, magic: int, stamp_ns: int) -> None:
    seen: Seen = [(START_NS + 789, Datagram(1, source="192.168.7.9", ports=(1, 65535)))]
    found = read_datagrams(write_capture(tmp_path / "file.pcap", seen, order, magic))
    assert found.time_ns.tolist() == [stamp_ns]
    assert (found.source_port.tolist(), found.destination_port.tolist()) == ([1], [65535])
    assert len(found.chosen("192.168.7.9", "10.77.0.1", 65535).time_ns) == 1
    for nobody in (found.chosen("10.77.0.1"), found.chosen(destination="10.7.0.1"), found.chosen("", "", 1)):
        assert len(nobody.time_ns) == 0


def test_a_file_that_was_broken_off(tmp_path: Path) -> None:
    """At each byte: whole records are read, the last one is not."""
    whole = write_capture(tmp_path / "whole.pcap", sent(2)).read_bytes()
    part = tmp_path / "part.pcap"
    for end in range(24, len(whole) + 1):
        part.write_bytes(whole[:end])
        assert len(read_datagrams(part).time_ns) == (end - 24) // ((len(whole) - 24) // 2)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"x\.pcap: not a pcap file: 0 bytes"),
        (bytes(24), r"x\.pcap: not a pcap file: it begins with 00000000"),
        (struct.pack("<II", 0x0A0D0D0A, 28) + bytes(20), r"x\.pcap: is pcapng"),
        (struct.pack("<IHHiIII", MAGIC_NS, 2, 4, 0, 0, 128, 113), r"x\.pcap: link type must be 1"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "x.pcap"
    file.write_bytes(content)
    with pytest.raises(ReportError, match=message):
        read_datagrams(file)


def test_nothing_sent_or_nothing_came(tmp_path: Path) -> None:
    before = sent(3)
    assert matched(tmp_path, before, []).is_lost.all()
    nothing = matched(tmp_path, [], before)
    assert len(nothing.sent_ns) == len(nothing.overtakes) == 0
    assert nothing.unsent == 3


def test_what_a_capture_kept_is_enough(tmp_path: Path) -> None:
    """A payload longer than what is kept of it: the part that all captures keep tells datagrams apart."""
    long = Datagram(1, payload_bytes=1400)
    kept: list[Datagrams] = [
        read_datagrams(write_capture(tmp_path / "x.pcap", [(START_NS, long)], kept_bytes=kept_bytes))
        for kept_bytes in (128, 65535)
    ]
    assert kept[0].key == kept[1].key
