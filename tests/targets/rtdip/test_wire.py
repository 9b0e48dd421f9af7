# SPDX-License-Identifier: Apache-2.0
"""Frames of RTDiP as scapy makes them, tshark dissects them, and the tools send them: the same fields."""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from scapy.layers.l2 import Ether
from scapy.utils import rdpcap, wrpcap

from resources.daq_replay.plan_file import BASE_PORT
from targets.embedded.rtdip.python.rtdip_scapy import Rtdip, RtdipFragment, RtdipGrant
from tests.targets.rtdip.lab import HIGH, LOW, MEDIUM, RtdipLab, bw_rtdip, header
from tests.traffic_gen.lab import Stream

HEADER = ("destination_port", "priority", "version", "length", "source_port", "sequence")
FRAGMENT = ("message", "offset")
ENDS = {"src": "02:00:00:00:00:01", "dst": "02:00:00:00:00:02"}
REPLAYED = 20010


def dissect(repository: Path, capture: Path, *names: str, options: Sequence[str] = ()) -> list[list[str]]:
    """Return fields of each frame of a capture by the dissector, as text; empty where there is none."""
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed: apt-get install --no-install-recommends tshark")
    script = repository / "targets" / "embedded" / "rtdip" / "rtdip.lua"
    wanted = [part for name in names for part in ("-e", name)]
    # Wireshark 4.4 and later loads no script as root: here somebody else runs it, who may read copies.
    other = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory() as name:
        copies = Path(name)
        copies.chmod(0o755)
        for file in (script, capture):
            shutil.copyfile(file, copies / file.name)
            (copies / file.name).chmod(0o644)
        argv = [*other, "tshark", "-X", f"lua_script:{copies / script.name}", *options]
        argv += ["-r", str(copies / capture.name), "-T", "fields", "-E", "separator=,", "-E", "quote=d"]
        done = subprocess.run(
            [*argv, *wanted],
            check=True,
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, "HOME": name},
        )
    assert "lua" not in done.stderr.lower(), done.stderr
    return list(csv.reader(done.stdout.splitlines()))


def of_rtdip(names: Sequence[str]) -> list[str]:
    return [f"rtdip.{name}" for name in names]


def test_scapy_makes_and_reads_the_frame() -> None:
    made = Ether(**ENDS) / Rtdip(destination_port=7000, priority="low", source_port=9, sequence=5) / b"data"
    assert bytes(made)[12:] == b"\x88\xb5" + header(7000, LOW, 4, 9, 5) + b"data"
    read = Ether(bytes(made) + bytes(30))[Rtdip]
    assert [read.getfieldval(name) for name in HEADER] == [7000, LOW, 1, 4, 9, 5]
    assert (bytes(read.payload)[:4], len(read.payload.payload)) == (b"data", 30), "and Ethernet's padding"
    part = Rtdip(destination_port=REPLAYED) / RtdipFragment(message=3, offset=1480) / b"x"
    assert bytes(part)[4:6] == b"\x00\x09"
    again = Rtdip(bytes(part))[RtdipFragment]
    assert (again.message, again.offset, bytes(again.payload)) == (3, 1480, b"x")


def test_every_field_is_dissected(repository: Path, tmp_path: Path) -> None:
    frames = [
        Ether(**ENDS)
        / Rtdip(destination_port=port, priority=priority, source_port=source, sequence=sequence)
        / bytes(number % 251 for number in range(size))
        for port, priority, source, sequence, size in [
            (1, HIGH, 0, 0, 0),
            (7000, MEDIUM, 7001, 1, 1),
            (65535, LOW, 65535, 2**32 - 1, 34),
            (7000, LOW, 1, 2**31, 8988),
        ]
    ]
    padded = [frame / bytes(max(0, 60 - len(frame))) for frame in frames]
    for frame, with_padding in zip(frames, padded, strict=True):
        with_padding[Rtdip].length = len(frame) - 26
    wrpcap(str(tmp_path / "a.pcap"), padded)
    rows = dissect(
        repository, tmp_path / "a.pcap", *of_rtdip(HEADER), "rtdip.data", "rtdip.padding", "_ws.expert",
        "_ws.col.Protocol",
    )  # fmt: skip
    for row, frame, sent in zip(rows, frames, padded, strict=True):
        layer = frame[Rtdip].__class__(bytes(frame[Rtdip]))
        assert row[:6] == [str(layer.getfieldval(name)) for name in HEADER]
        assert bytes.fromhex(row[6]) == bytes(frame)[26:]
        assert len(bytes.fromhex(row[7])) == len(sent) - len(frame)
        assert row[8:] == ["", "RTDiP"]


def test_fragments_are_dissected(repository: Path, tmp_path: Path) -> None:
    """On ports of a replay, or on those that the preference says."""
    part = RtdipFragment(message=2**32 - 1, offset=2960) / b"part"
    frames = [Ether(**ENDS) / Rtdip(destination_port=port) / part for port in (REPLAYED, 26559, 7000)]
    frames.append(Ether(**ENDS) / Rtdip(destination_port=REPLAYED) / b"short")
    wrpcap(str(tmp_path / "a.pcap"), frames)
    names = [*of_rtdip([f"fragment.{name}" for name in (*FRAGMENT, "data")]), "_ws.expert"]
    yes, no = [str(2**32 - 1), "2960", b"part".hex(), ""], [""] * 4
    assert dissect(repository, tmp_path / "a.pcap", *names) == [yes, yes, no, no]
    asked = ["-o", "rtdip.fragment_ports:7000-7999"]
    assert dissect(repository, tmp_path / "a.pcap", *names, options=asked) == [no, no, yes, no]


def test_grants_are_dissected(repository: Path, tmp_path: Path) -> None:
    """From ports of a replay, and only of their length."""
    grant = RtdipGrant(run=0x89ABCDEF, message=7, limit=2**32 - 1)
    frames = [
        Ether(**ENDS) / Rtdip(destination_port=50000, source_port=port) / grant for port in (REPLAYED, 7000)
    ]
    frames.append(Ether(**ENDS) / Rtdip(destination_port=50000, source_port=REPLAYED) / b"another length")
    wrpcap(str(tmp_path / "a.pcap"), frames)
    names = of_rtdip(["grant.run", "grant.message", "grant.limit"])
    yes, no = ["0x89abcdef", "7", str(2**32 - 1)], [""] * 3
    assert dissect(repository, tmp_path / "a.pcap", *names) == [yes, no, no]
    read = Ether(bytes(frames[0]) + bytes(30))[RtdipGrant]
    assert (read.run, read.message, read.limit) == (0x89ABCDEF, 7, 2**32 - 1)


@pytest.mark.parametrize(
    ("frame", "expert"),
    [
        (Rtdip(destination_port=7000, length=100) / bytes(50), "rtdip.short"),
        (Rtdip(destination_port=7000, priority=3) / b"x", "rtdip.malformed"),
        (Rtdip(destination_port=7000, version=2) / b"x", "rtdip.malformed"),
        (Rtdip(destination_port=0) / b"x", "rtdip.malformed"),
        (Rtdip(destination_port=7000, length=8989) / b"x", "rtdip.malformed"),
        (b"\x1b\x58\x00\x01", "rtdip.short"),
    ],
)
def test_what_a_receiver_drops_is_marked(
    repository: Path, tmp_path: Path, frame: Rtdip | bytes, expert: str
) -> None:
    wrpcap(str(tmp_path / "a.pcap"), [Ether(**ENDS, type=0x88B5) / frame])
    ((_, *marks),) = dissect(repository, tmp_path / "a.pcap", "_ws.expert", "rtdip.short", "rtdip.malformed")
    assert [bool(mark) for mark in marks] == [expert == "rtdip.short", expert == "rtdip.malformed"]


def test_a_capture_of_heads_is_not_malformed(repository: Path, tmp_path: Path) -> None:
    """Frames of which a capture has the beginning alone: `tcpdump -s 128`."""
    whole = bytes(Ether(**ENDS) / Rtdip(destination_port=7000) / bytes(1400))
    head = Ether(whole[:128])
    head.wirelen = len(whole)
    wrpcap(str(tmp_path / "a.pcap"), [head])
    ((length, data, expert),) = dissect(
        repository, tmp_path / "a.pcap", "rtdip.length", "rtdip.data", "_ws.expert"
    )
    assert (length, len(data) // 2, expert) == ("1400", 128 - 26, "")


def test_what_the_tools_send_is_dissected(repository: Path, tmp_path: Path) -> None:
    with RtdipLab(bw_rtdip(repository), tmp_path) as lab:
        lab.tool(lab.far, "echo", "--local", "7000").wait_ready()
        with lab.capture(lab.near) as asked, lab.capture(lab.far) as answered:
            for packets, size in (("high", 4), ("medium", 64), ("low", 1488)):
                options = ["--packets", packets, "--size-bytes", str(size), "--count", "20"]
                peer = ["--peer", f"{lab.mac(lab.far)}/7000", "--interval-us", "1000"]
                assert lab.tool(lab.near, "latency", *options, *peer).result()["lost"] == 0
    names = [*of_rtdip(HEADER), "eth.src", "rtdip.data", "_ws.malformed", "_ws.expert"]
    requests, replies = (dissect(repository, capture, *names) for capture in (asked, answered))
    sent = [(priority, size) for priority, size in ((HIGH, 4), (MEDIUM, 64), (LOW, 1488)) for _ in range(20)]
    assert [row[:4] for row in requests] == [["7000", str(level), "1", str(size)] for level, size in sent]
    assert [int(row[5]) for row in replies] == list(range(len(sent))), "an echo counts what it sends"
    for capture, rows in ((asked, requests), (answered, replies)):
        for row, frame in zip(rows, rdpcap(str(capture)), strict=True):
            assert row[:6] == [str(frame[Rtdip].getfieldval(name)) for name in HEADER]
            data = bytes(frame[Rtdip].payload)[: frame[Rtdip].length]
            assert row[6:] == [frame.src, data.hex(), "", ""]


def test_a_replay_is_dissected(repository: Path, tmp_path: Path) -> None:
    streams = [Stream(11, "udp", 100), Stream(12, "tcp", 20_000, 200_000, low_latency=True)]
    with RtdipLab(bw_rtdip(repository), tmp_path) as lab, lab.capture(lab.near) as capture:
        lab.replay(repository, *streams, duration_ms=1000)
    names = [*of_rtdip(["destination_port", "priority", "length", "fragment.message", "fragment.offset"])]
    rows = dissect(repository, capture, *names, "_ws.malformed", "_ws.expert")
    assert {tuple(row[5:]) for row in rows} == {("", "")}
    for stream, priority in zip(streams, (LOW, HIGH), strict=True):
        parts = [[int(value) for value in row[1:5]] for row in rows if int(row[0]) == BASE_PORT + stream.id]
        assert {part[0] for part in parts} == {priority}
        lengths = [min(1480, stream.size_bytes - offset) for offset in range(0, stream.size_bytes, 1480)]
        messages = len(parts) // len(lengths)
        assert [part[1:] for part in parts] == [
            [8 + length, message, place * 1480]
            for message in range(messages)
            for place, length in enumerate(lengths)
        ]
        assert messages >= 1000 // (stream.period_us // 1000)
