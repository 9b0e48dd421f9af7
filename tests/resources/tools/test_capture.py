# SPDX-License-Identifier: Apache-2.0
"""Captures: packets are matched between two links by their headers, whatever else is on them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Raw

from hw.errors import MeasurementError
from resources.tools.capture import both_ways_ns, median_transits_ns, read_packets

BEGIN_NS = 1_790_000_000_123_456_789
MS = 1_000_000

Seen = tuple[int, Any]
"""Time in ns since BEGIN_NS, and a frame."""


def _write(path: Path, seen: Sequence[Seen], kept_bytes: int = 65_535) -> Path:
    """Write a capture as tcpdump does: nanosecond stamps, Ethernet."""
    content = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65_535, 1)
    for at_ns, frame in seen:
        data = bytes(frame)
        kept = data[:kept_bytes]
        content += struct.pack("<IIII", *divmod(BEGIN_NS + at_ns, 10**9), len(kept), len(data)) + kept
    path.write_bytes(content)
    return path


def _udp(number: int, size_bytes: int = 100) -> Any:
    return (
        Ether()
        / IP(src="10.77.0.3", dst="10.77.0.100", id=number)
        / UDP(sport=40000, dport=20032)
        / Raw(bytes(size_bytes))
    )


def _tcp(sequence: int, size_bytes: int = 100, flags: str = "PA") -> Any:
    ip = IP(src="10.77.0.3", dst="10.77.0.100", id=1)
    return (
        Ether()
        / ip
        / TCP(sport=40001, dport=20031, seq=sequence, ack=7, flags=flags)
        / Raw(bytes(size_bytes))
    )


def test_reads_times_to_the_nanosecond_and_sizes_without_headers(tmp_path: Path) -> None:
    path = _write(
        tmp_path / "a.pcap", [(0, _udp(1)), (1, _tcp(5, 1000)), (2, Ether() / ARP()), (3, _tcp(9, 0, "A"))]
    )
    packets = list(read_packets(path))
    assert [packet.time_ns - BEGIN_NS for packet in packets] == [0, 1, 3]
    assert [packet.payload_bytes for packet in packets] == [100, 1000, 0]
    assert [packet.destination_port for packet in packets] == [20032, 20031, 20031]
    assert {packet.source for packet in packets} == {"10.77.0.3"}


def test_sizes_are_those_on_the_wire_where_the_capture_kept_less(tmp_path: Path) -> None:
    path = _write(tmp_path / "cut.pcap", [(0, _tcp(5, 1400)), (1, _udp(1, 1400))], kept_bytes=128)
    assert [packet.payload_bytes for packet in read_packets(path)] == [1400, 1400]


def test_finds_the_transit_between_two_links(tmp_path: Path) -> None:
    """Acknowledgements, retransmissions, losses and packets of others change nothing."""
    sent = [(number * MS, _udp(number)) for number in range(30)] + [
        (number * MS, _tcp(number * 100)) for number in range(30)
    ]
    received = [(at_ns + 5 * MS + index % 3, frame) for index, (at_ns, frame) in enumerate(sent) if index % 7]
    noise_before = [(40 * MS, _tcp(2900)), (41 * MS, _tcp(0, 0, "A")), (42 * MS, _udp(1000))]
    noise_behind = [(900 * MS, _tcp(2900)), (901 * MS, _udp(2000)), (902 * MS, Ether() / ARP())]
    before = _write(tmp_path / "before.pcap", sent + noise_before)
    behind = _write(tmp_path / "behind.pcap", received + noise_behind)
    assert median_transits_ns(before, behind, [(None, None)]) == [5 * MS + 1]


def test_finds_how_much_longer_one_way_takes_by_the_packets_that_took_least(tmp_path: Path) -> None:
    """Both ways in both captures; nine of ten packets of one way are late by a millisecond."""
    there = [(number * 2 * MS, _udp(number)) for number in range(30)]
    back = [(number * 2 * MS, _udp(1000 + number)) for number in range(30)]
    one = _write(tmp_path / "one.pcap", there + [(at_ns + 3 * MS, frame) for at_ns, frame in back])
    late = [
        (at_ns + 5 * MS + (MS if index % 10 > 3 else index), frame)
        for index, (at_ns, frame) in enumerate(there)
    ]
    other = _write(tmp_path / "other.pcap", late + back)
    assert both_ways_ns(one, other)[1] == 2 * MS + 3
    assert both_ways_ns(other, one) == (3 * MS, -2 * MS - 3)
    with pytest.raises(MeasurementError, match="only 0 packets are in both"):
        both_ways_ns(_write(tmp_path / "a.pcap", there), _write(tmp_path / "b.pcap", late))


def _rtdip(sequence: int, size_bytes: int = 100) -> Any:
    header = struct.pack(">HBBHHI", 20032, 0, 1, size_bytes, 40000, sequence)
    return Ether(src="02:00:00:00:00:03", dst="02:00:00:00:00:64", type=0x88B5) / Raw(
        header + bytes(size_bytes)
    )


def test_frames_of_rtdip_are_packets_too(tmp_path: Path) -> None:
    before = _write(tmp_path / "before.pcap", [(number * MS, _rtdip(number)) for number in range(20)])
    behind = _write(tmp_path / "behind.pcap", [(n * MS + 3 * MS, _rtdip(n)) for n in range(5, 25)])
    assert median_transits_ns(before, behind, [(None, None)]) == [3 * MS]
    packet = next(read_packets(before))
    assert (packet.destination_port, packet.payload_bytes, packet.source) == (20032, 100, "02:00:00:00:00:03")
    short = Ether(type=0x88B5) / Raw(bytes(11))
    assert not list(read_packets(_write(tmp_path / "short.pcap", [(0, short)])))


def test_too_few_packets_in_both_are_no_measurement(tmp_path: Path) -> None:
    before = _write(tmp_path / "before.pcap", [(number, _udp(number)) for number in range(9)])
    behind = _write(tmp_path / "behind.pcap", [(number + MS, _udp(number)) for number in range(50)])
    with pytest.raises(MeasurementError, match=r"before\.pcap, behind\.pcap: only 9 packets are in both"):
        median_transits_ns(before, behind, [(None, None)])


def test_a_capture_that_broke_off_gives_what_it_has(tmp_path: Path) -> None:
    path = _write(tmp_path / "a.pcap", [(number, _udp(number)) for number in range(20)])
    whole, packets = path.read_bytes(), list(read_packets(path))
    for cut in range(1, 158):  # anywhere in the last packet
        path.write_bytes(whole[:-cut])
        assert list(read_packets(path)) == packets[:19]


@pytest.mark.parametrize("content", [b"", b"no capture", b"\xd4\xc3\xb2\xa1"])
def test_what_is_no_capture_is_no_measurement(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(content)
    with pytest.raises(MeasurementError, match=r"a\.pcap: not a packet capture"):
        list(read_packets(path))
    with pytest.raises(MeasurementError, match="absent"):
        list(read_packets(tmp_path / "absent.pcap"))
