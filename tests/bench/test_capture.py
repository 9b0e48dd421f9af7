# SPDX-License-Identifier: Apache-2.0
"""Schedule errors out of captures that a second library wrote."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Packet
from scapy.utils import PcapWriter

from bench.traffic.capture import (
    Datagram,
    absolute_percentiles_ns,
    read_capture,
    schedule_errors_ns,
)

PERIOD_NS = 10_000_000
SECOND_NS = 1_000_000_000
DLT_EN10MB = 1


def flow(
    port: int, lateness_ns: dict[int, int], count: int = 20, delay_ns: int = 5_000_000
) -> list[Datagram]:
    """Make a flow behind a constant delay, of which some datagrams are late by so much more."""
    return [
        Datagram(SECOND_NS + delay_ns + sequence * PERIOD_NS + lateness_ns.get(sequence, 0), port, sequence)
        for sequence in range(count)
    ]


def write_pcap(path: Path, frames: list[tuple[int, Packet]], nano: bool = True) -> None:
    """Write frames with their times in ns."""
    with PcapWriter(str(path), nano=nano, sync=True, linktype=DLT_EN10MB) as writer:
        writer.write_header(None)
        for time_ns, frame in frames:
            writer.write_packet(
                bytes(frame), sec=time_ns // SECOND_NS, usec=time_ns % SECOND_NS // (1 if nano else 1000)
            )


def frame(port: int, payload: bytes, **ip: int) -> Packet:
    """Make a UDP frame."""
    return Ether() / IP(src="10.0.0.1", dst="10.0.0.2", **ip) / UDP(sport=7, dport=port) / payload


def test_reads_time_port_and_sequence(tmp_path: Path) -> None:
    path = tmp_path / "c.pcap"
    payload = struct.pack(">HBBII", 100, 4, 0, 9, 77) + bytes(40)
    write_pcap(
        path,
        [
            (SECOND_NS + 1, frame(20010, payload)),
            (SECOND_NS + 2, Ether() / ARP()),
            (SECOND_NS + 3, frame(20011, payload[:10])),
            (SECOND_NS + 999_999_999, frame(20012, payload)),
        ],
    )
    assert list(read_capture(path, 8)) == [
        Datagram(SECOND_NS + 1, 20010, 77),
        Datagram(SECOND_NS + 999_999_999, 20012, 77),
    ]
    assert [found.sequence for found in read_capture(path, 4)] == [9, 9, 9]


def test_refuses_microsecond_stamps(tmp_path: Path) -> None:
    path = tmp_path / "c.pcap"
    write_pcap(path, [(SECOND_NS, frame(1, bytes(20)))], nano=False)
    with pytest.raises(ValueError, match="nanosecond"):
        list(read_capture(path, 0))


def test_takes_the_end_of_a_cut_file(tmp_path: Path) -> None:
    path = tmp_path / "c.pcap"
    write_pcap(path, [(SECOND_NS + number, frame(1, bytes(20))) for number in range(3)])
    path.write_bytes(path.read_bytes()[:-19])
    assert len(list(read_capture(path, 0))) == 2


def test_a_constant_delay_is_no_error() -> None:
    errors = schedule_errors_ns(flow(1, {}) + flow(2, {}, delay_ns=9_000_000), PERIOD_NS, 0, 100)
    assert errors == {1: [0] * 20, 2: [0] * 20}


def test_late_and_early_datagrams_keep_their_sign() -> None:
    errors = schedule_errors_ns(flow(1, {3: 500, 4: -200}), PERIOD_NS, 0, 100)
    assert errors[1][3:5] == [500, -200]
    assert absolute_percentiles_ns(errors) == {
        "n": 20.0,
        "p50_ns": 0.0,
        "p99_ns": 500.0,
        "p999_ns": 500.0,
        "max_ns": 500.0,
    }


def test_a_wrong_rate_is_an_error() -> None:
    slow = [Datagram(sequence * (PERIOD_NS + 10), 1, sequence) for sequence in range(101)]
    errors = schedule_errors_ns(slow, PERIOD_NS, 0, 1000)
    assert (min(errors[1]), max(errors[1])) == (-500, 500)


def test_lost_datagrams_do_not_shift_the_grid() -> None:
    whole = flow(1, {})
    errors = schedule_errors_ns(whole[:5] + whole[9:], PERIOD_NS, 0, 100)
    assert errors == {1: [0] * 16}


def test_leaves_out_what_comes_before_and_after() -> None:
    errors = schedule_errors_ns(flow(1, {0: 10_000, 19: 10_000}), PERIOD_NS, 4, 10)
    assert errors == {1: [0] * 10}


def test_nothing_captured_is_no_result() -> None:
    with pytest.raises(ValueError, match="nothing"):
        absolute_percentiles_ns({})
