# SPDX-License-Identifier: Apache-2.0
"""Captures made by hand of pictures of noise: each segment's pictures and bytes are known first."""

from __future__ import annotations

from pathlib import Path
from random import Random
from zlib import crc32

import numpy as np
import pytest

from reports.control_loops.picture import parse_header
from reports.control_loops.segments import NEVER, PictureStream, StreamEnd, read_picture_streams
from reports.errors import RecordError, ReportError
from reports.paths.tcp_streams import NONE
from tests.reports.control_loops.picture_capture import (
    START_NS,
    STEP_NS,
    Wire,
    end_of,
    picture,
    stream_of,
    write_frames,
)

ONE = len(picture(0))
"""A picture's bytes."""


def read(folder: Path, wire: Wire) -> PictureStream:
    """Write a capture and read the one stream in it, which has to have the bytes that were sent."""
    (found,) = read_picture_streams(wire.written(folder / "capture.pcap"), source_port=5000)
    holds_its_bytes(found, wire.stream)
    return found


def holds_its_bytes(found: PictureStream, sent: bytes) -> None:
    """Hold each segment's bytes against the pictures that it is assigned to, as they were sent."""
    content = found.stream.content
    for begin, end in found.stream.missing:
        assert content[begin:end] == bytes(end - begin)
    at = 0
    for begin, end in [*found.stream.missing.tolist(), [len(content), len(content)]]:
        assert content[at:begin] == sent[at:begin]
        at = end
    pictures = found.pictures
    for begin, number in zip(pictures.begin.tolist(), pictures.number.tolist(), strict=True):
        assert sent[begin:].startswith(picture(number))
    places = np.concatenate((found.stream.first_byte, found.stream.last_byte))
    of = np.concatenate((found.first_picture, found.last_picture))
    for place, which in zip(places.tolist(), of.tolist(), strict=True):
        if which != NONE:
            assert pictures.begin[which] <= place < pictures.begin[which] + ONE
        elif place != NONE:
            assert found.end is not None
            assert found.end.begin <= place < found.end.end


def at_ns(*frames: int) -> list[int]:
    """Return when these frames were seen."""
    return [START_NS + frame * STEP_NS for frame in frames]


def test_split_pictures(tmp_path: Path) -> None:
    found = read(tmp_path, Wire().syn().in_pieces(0, 3 * ONE, 500))
    assert found.stream.first_byte.tolist() == list(range(0, 3 * ONE, 500))
    assert found.stream.last_byte.tolist()[-1] == 3 * ONE - 1
    assert found.first_picture.tolist() == [0, 0, 0, 1, 1, 1, 2, 2]
    assert found.last_picture.tolist() == [0, 0, 1, 1, 1, 2, 2, 2]
    assert found.pictures.number.tolist() == [0, 1, 2]
    assert found.pictures.first_ns.tolist() == at_ns(1, 3, 6)
    assert found.pictures.complete_ns.tolist() == found.pictures.last_ns.tolist() == at_ns(3, 6, 8)
    assert not found.stream.is_retransmission.any()
    assert found.is_assigned.all()
    assert found.problems() == []


def test_joined_pictures(tmp_path: Path) -> None:
    """One segment with the end of a picture, two whole ones, and the beginning of another."""
    wire = Wire(stream_of(4)).syn().sent(0, 300).sent(300, 3 * ONE + 10).sent(3 * ONE + 10, 4 * ONE)
    found = read(tmp_path, wire)
    assert found.first_picture.tolist() == [0, 0, 3]
    assert found.last_picture.tolist() == [0, 3, 3]
    assert found.pictures.first_ns.tolist() == at_ns(1, 2, 2, 2)
    assert found.pictures.complete_ns.tolist() == found.pictures.last_ns.tolist() == at_ns(2, 2, 2, 3)


def test_a_joined_segment_without_a_length_in_its_ip_header(tmp_path: Path) -> None:
    wire = Wire().syn().sent(0, 3 * ONE)
    time_ns, frame = wire.frames[1]
    wire.frames[1] = (time_ns, frame[:16] + b"\0\0" + frame[18:])
    assert read(tmp_path, wire).last_picture.tolist() == [2]


@pytest.mark.parametrize("before", [0, 1, 39, 40, 700, ONE, 2 * ONE + 5])
def test_sequence_numbers_begin_anew(tmp_path: Path, before: int) -> None:
    found = read(tmp_path, Wire(isn=2**32 - 1 - before).syn().in_pieces(0, 3 * ONE, 700).sent(600, 1500))
    assert found.stream.first_byte.tolist() == [*range(0, 3 * ONE, 700), 600]
    assert found.stream.is_retransmission.tolist() == [False] * 6 + [True]
    assert found.problems() == []


def test_more_than_one_turn_of_the_sequence_numbers() -> None:
    """Five turns in steps of nearly the largest window: places alone, as no test writes 20 GB."""
    from reports.paths import tcp_streams
    from reports.paths.tcp_segments import TcpSegments

    truth = np.arange(0, 5 * 2**32, 2**30 - 3)
    zeros = np.zeros(len(truth), dtype=np.int64)
    none = zeros.astype(bool)
    flow = np.zeros((len(truth), 36), np.uint8)
    numbers = (truth + 77) % 2**32
    segments = TcpSegments(
        flow[0], zeros, flow, numbers, zeros, none, none, zeros, zeros + 1448, zeros, flow, flow
    )
    begin, _ = tcp_streams._places(segments, 77)  # pyright: ignore[reportPrivateUsage]
    assert begin.tolist() == truth.tolist()


def test_lost_and_sent_again(tmp_path: Path) -> None:
    """The capture sees the sender: what is sent again has been seen before."""
    wire = Wire().syn().in_pieces(0, 2 * ONE, 400).sent(400, 800).sent(2 * ONE, 3 * ONE)
    found = read(tmp_path, wire)
    assert found.stream.is_retransmission.tolist() == [False] * 7 + [True, False]
    assert found.stream.duplicate_bytes.tolist() == [0] * 7 + [400, 0]
    assert not found.stream.is_late.any()
    assert found.pictures.complete_ns.tolist() == at_ns(4, 7, 9)
    assert found.pictures.last_ns.tolist() == at_ns(8, 7, 9)


def test_lost_before_the_capture(tmp_path: Path) -> None:
    """The capture sees the receiver: the gap is filled later, and the picture is complete only then."""
    wire = Wire().syn().sent(0, 400).sent(800, 2 * ONE).sent(400, 800).sent(2 * ONE, 3 * ONE)
    found = read(tmp_path, wire)
    assert found.stream.is_late.tolist() == [False, False, True, False]
    assert not found.stream.is_retransmission.any()
    assert found.pictures.first_ns.tolist() == at_ns(1, 2, 4)
    assert found.pictures.complete_ns.tolist() == at_ns(3, 2, 4)
    assert found.problems() == []


def test_overlaps(tmp_path: Path) -> None:
    wire = Wire().syn().sent(0, 500).sent(300, 900).sent(1200, 1500).sent(800, 1400).sent(0, 3 * ONE)
    found = read(tmp_path, wire)
    assert found.stream.duplicate_bytes.tolist() == [0, 200, 0, 300, 1500]
    assert found.stream.is_retransmission.tolist() == [False, True, False, True, True]
    assert found.last_picture.tolist() == [0, 0, 1, 1, 2]
    assert found.pictures.complete_ns.tolist() == at_ns(4, 5, 5)
    assert found.problems() == []


def test_a_segment_with_other_bytes_is_named(tmp_path: Path) -> None:
    wire = Wire().syn().in_pieces(0, 3 * ONE, 500)
    wire.sent(1000, 1500, bytes([wire.stream[1000] ^ 1]) + wire.stream[1001:1500])
    found = read(tmp_path, wire)
    assert found.stream.is_different.tolist() == [False] * 8 + [True]
    assert found.problems() == [
        "10.0.0.1:5000 > 10.0.0.2:6000: segment 8, byte 1000: has other bytes than were seen there first"
    ]


def test_damaged_pixels_are_named(tmp_path: Path) -> None:
    stream = bytearray(stream_of(3))
    stream[ONE + 777] ^= 4
    wire = Wire(bytes(stream)).syn().in_pieces(0, 3 * ONE, 500)
    (found,) = read_picture_streams(wire.written(tmp_path / "c.pcap"), source_port=5000)
    assert found.pictures.is_damaged.tolist() == [False, True, False]
    assert found.problems() == [
        "10.0.0.1:5000 > 10.0.0.2:6000: picture 1 has damaged pixels: their CRC-32 differs"
    ]


def test_a_window_of_zero(tmp_path: Path) -> None:
    """The probe's byte is dropped and comes again: the picture is complete when it does."""
    wire = Wire().syn().sent(0, ONE - 1).window(0)
    wire.sent(ONE - 1, ONE).window(0).sent(ONE - 1, ONE).window(0).window(512).sent(ONE - 1, 3 * ONE)
    found = read(tmp_path, wire)
    assert found.stream.is_spare.tolist() == [False, True, True, False]
    assert found.stream.duplicate_bytes.tolist() == [0, 0, 1, 1]
    assert found.first_picture.tolist() == [0, 0, 0, 0]
    assert found.pictures.complete_ns.tolist() == at_ns(8, 8, 8)
    assert found.problems() == []


def test_a_probe_that_is_accepted(tmp_path: Path) -> None:
    wire = Wire().syn().sent(0, ONE - 1).window(0).sent(ONE - 1, ONE).window(512).sent(ONE, 3 * ONE)
    found = read(tmp_path, wire)
    assert found.pictures.complete_ns.tolist() == at_ns(3, 5, 5)
    assert not found.stream.duplicate_bytes.any()


def test_a_byte_into_an_open_window_is_no_probe(tmp_path: Path) -> None:
    wire = Wire().syn().window(0).window(7).sent(0, 1).sent(0, 3 * ONE)
    found = read(tmp_path, wire)
    assert not found.stream.is_spare.any()
    assert found.pictures.first_ns.tolist() == at_ns(3, 4, 4)


def test_keep_alives(tmp_path: Path) -> None:
    """With a byte of fill before what comes next, or before the first one; or without any."""
    wire = Wire().syn().sent(-1, 0, b"\0").in_pieces(0, ONE, 500).sent(ONE - 1, ONE, b"\xa5")
    wire.sent(ONE - 1, ONE - 1).in_pieces(ONE, 3 * ONE, 500)
    found = read(tmp_path, wire)
    assert found.stream.is_spare.tolist() == [True] + [False] * 3 + [True] + [False] * 6
    assert found.stream.first_byte.tolist()[:6] == [NONE, 0, 500, 1000, ONE - 1, ONE]
    assert found.first_picture.tolist()[:6] == [NONE, 0, 0, 0, 0, 1]
    assert found.is_assigned.all()
    assert found.problems() == []


def test_two_connections(tmp_path: Path) -> None:
    """Camera to tracker and tracker to display at once, and the commands back, which are not asked for."""
    camera = Wire()
    display = Wire(stream_of(3, 100), isn=5_000_000, ends=("10.0.0.2", 5000, "10.0.0.3", 7000))
    back = Wire(b"look 17 262144 196608 256\n", isn=9, ends=("10.0.0.2", 6000, "10.0.0.1", 5000))
    camera.syn().in_pieces(0, 3 * ONE, 500)
    display.syn().in_pieces(0, 3 * ONE, 333)
    back.syn().sent(0, 26)
    frames = sorted(camera.frames + display.frames + back.frames, key=lambda each: each[0])
    file = write_frames(tmp_path / "c.pcap", frames)
    one, other = read_picture_streams(file, source_port=5000)
    assert one.stream.name == "10.0.0.1:5000 > 10.0.0.2:6000"
    assert one.pictures.number.tolist() == [0, 1, 2]
    assert other.pictures.number.tolist() == [100, 101, 102]
    holds_its_bytes(one, camera.stream)
    holds_its_bytes(other, display.stream)
    for options in ({"source": "10.0.0.2"}, {"destination": "10.0.0.3"}, {"destination_port": 7000}):
        (alone,) = read_picture_streams(file, source_port=5000, **options)  # type: ignore[arg-type]
        assert alone.pictures.number.tolist() == [100, 101, 102]
    with pytest.raises(
        ReportError, match=r"10\.0\.0\.2:6000 > 10\.0\.0\.1:5000: byte 0: the first picture does not"
    ):
        read_picture_streams(file, source_port=6000)


def test_a_connection_made_anew(tmp_path: Path) -> None:
    """A SYN that is sent again begins nothing; one with another number does, at the same ports."""
    wire = Wire().syn().syn().in_pieces(0, 2 * ONE, 500)
    wire.syn(3_000_000_000).in_pieces(0, 3 * ONE, 500)
    one, other = read_picture_streams(wire.written(tmp_path / "c.pcap"), source_port=5000)
    assert (one.pictures.number.tolist(), other.pictures.number.tolist()) == ([0, 1], [0, 1, 2])
    assert other.stream.name == "10.0.0.1:5000 > 10.0.0.2:6000 (2)"
    assert one.problems() == other.problems() == []


def test_a_segment_of_the_connection_before(tmp_path: Path) -> None:
    wire = Wire().syn().in_pieces(0, ONE, 500)
    wire.syn(2_000_000_000).in_pieces(0, ONE, 500)
    wire.isn = 1000
    wire.sent(500, 1000)
    _, other = read_picture_streams(wire.written(tmp_path / "c.pcap"), source_port=5000)
    assert other.first_picture.tolist() == [0, 0, 0, NONE]
    assert other.is_assigned.tolist() == [True, True, True, False]
    assert [each.rpartition(": ")[2] for each in other.problems()] == ["lies outside of the stream"]


def test_a_capture_from_the_middle_is_refused(tmp_path: Path) -> None:
    wire = Wire().sent(ONE, 3 * ONE)
    with pytest.raises(ReportError, match=r"c\.pcap: .*: the capture has no SYN of it"):
        read_picture_streams(wire.written(tmp_path / "c.pcap"))
    with pytest.raises(ReportError, match="no SYN of it"):
        read_picture_streams(wire.syn().sent(0, ONE).written(tmp_path / "c.pcap"))


def test_frames_that_were_cut_are_refused(tmp_path: Path) -> None:
    wire = Wire().syn().sent(0, 1000)
    file = write_frames(tmp_path / "c.pcap", wire.frames, kept_bytes=128)
    with pytest.raises(ReportError, match="only 74 of 1000 bytes of a segment: capture whole frames"):
        read_picture_streams(file)


def test_what_is_no_stream_of_pictures_is_refused(tmp_path: Path) -> None:
    wire = Wire(picture(4) + bytes(100)).syn().sent(0, ONE + 100)
    reason = f"byte {ONE}: what follows picture 4 does not begin as a picture does: BWPI"
    with pytest.raises(ReportError, match=reason):
        read_picture_streams(wire.written(tmp_path / "c.pcap"))


def test_missing_pixels_are_named(tmp_path: Path) -> None:
    found = read(tmp_path, Wire().syn().sent(0, ONE + 100).sent(ONE + 300, 3 * ONE))
    assert found.pictures.missing_bytes.tolist() == [0, 200, 0]
    assert found.pictures.first_ns.tolist() == at_ns(1, 1, 2)
    assert found.pictures.complete_ns.tolist() == [*at_ns(1), NEVER, *at_ns(2)]
    assert [each.partition(": ")[2] for each in found.problems()] == [
        f"bytes {ONE + 100} to {ONE + 299} of the stream are missing",
        f"picture 1: 200 of {ONE} bytes are missing",
    ]


def test_a_missing_header_between_two_pictures_of_its_size(tmp_path: Path) -> None:
    found = read(tmp_path, Wire().syn().sent(0, ONE + 8).sent(ONE + 30, 3 * ONE))
    assert found.pictures.number.tolist() == [0, 1, 2]
    assert found.pictures.missing_bytes.tolist() == [0, 22, 0]
    assert found.is_assigned.all()


def test_bytes_behind_headers_that_are_missing_are_of_no_picture(tmp_path: Path) -> None:
    wire = Wire(stream_of(5)).syn().sent(0, ONE).sent(ONE + 30, 2 * ONE).sent(2 * ONE + 50, 5 * ONE)
    (found,) = read_picture_streams(wire.written(tmp_path / "c.pcap"))
    assert found.pictures.number.tolist() == [0, 3, 4]
    assert found.first_picture.tolist() == [0, NONE, NONE]
    assert found.last_picture.tolist() == [0, NONE, 2]
    assert found.is_assigned.tolist() == [True, False, False]
    assert sum("no known picture" in each for each in found.problems()) == 2


@pytest.mark.parametrize(("end", "number", "size"), [(2 * ONE + 39, 2, NONE), (3 * ONE - 1, 2, ONE)])
def test_a_stream_that_ends_within_a_picture(tmp_path: Path, end: int, number: int, size: int) -> None:
    wire = Wire().syn().in_pieces(0, end, 500)
    (found,) = read_picture_streams(wire.written(tmp_path / "c.pcap"))
    assert found.pictures.number.tolist()[-1] == number
    assert found.pictures.size_bytes.tolist()[-1] == size
    assert found.pictures.complete_ns.tolist()[-1] == NEVER
    assert found.is_assigned.all()
    assert len(found.problems()) == 1


ENDED = stream_of(3) + end_of(3)


def named(found: PictureStream) -> list[str]:
    """Return the problems without the stream's name."""
    return [each.partition("6000: ")[2] for each in found.problems()]


def test_the_end_of_a_stream(tmp_path: Path) -> None:
    """Alone in its segment, split, and joined to the last picture, the two before in the same one."""
    for cut in (3 * ONE, 3 * ONE + 17, 100):
        wire = Wire(ENDED).syn().sent(0, cut).sent(cut, len(ENDED))
        found = read(tmp_path, wire)
        assert found.end == StreamEnd(3 * ONE, 3 * ONE + 40, 3)
        assert found.pictures.number.tolist() == [0, 1, 2]
        assert found.first_picture.tolist() == [0, 0 if cut == 100 else NONE]
        assert found.last_picture.tolist() == [0 if cut == 100 else 2 if cut == 3 * ONE else NONE, NONE]
        assert found.pictures.last_ns.tolist() == at_ns(*[2 if cut == 100 else 1] * 3)
        assert found.is_assigned.all()
        assert found.problems() == []


def test_pictures_that_never_came_are_named(tmp_path: Path) -> None:
    pictures = b"".join(map(picture, (1, 2, 5, 7))) + end_of(10)
    assert named(read(tmp_path, Wire(pictures).syn().in_pieces(0, len(pictures), 900))) == [
        "picture 0 never came",
        "pictures 3 to 4 never came",
        "picture 6 never came",
        "pictures 8 to 9 never came",
    ]


def test_an_end_without_a_picture(tmp_path: Path) -> None:
    for count, problems in ((0, []), (4, ["pictures 0 to 3 never came"])):
        assert named(read(tmp_path, Wire(end_of(count)).syn().sent(0, 40))) == problems


def test_more_pictures_than_the_end_counts_and_bytes_behind_it(tmp_path: Path) -> None:
    stream = stream_of(3) + end_of(2) + picture(3)
    wire = Wire(stream).syn().sent(0, 3 * ONE + 40).sent(3 * ONE + 40, len(stream))
    (found,) = read_picture_streams(wire.written(tmp_path / "c.pcap"))
    assert named(found) == [
        "picture 2 is none of the 2 that there were, by the stream's end",
        f"{ONE} bytes follow the stream's end",
        f"segment 1, byte {3 * ONE + 40}: has bytes of no known picture",
    ]


def test_an_end_that_is_cut_or_behind_a_missing_header(tmp_path: Path) -> None:
    wire = Wire(ENDED).syn().sent(0, 3 * ONE + 39)
    (found,) = read_picture_streams(wire.written(tmp_path / "c.pcap"))
    assert found.end is None
    assert named(found) == ["the stream ends within the header of a picture"]
    found = read(tmp_path, Wire(ENDED).syn().sent(0, 2 * ONE + 8).sent(2 * ONE + 30, len(ENDED)))
    assert found.pictures.number.tolist() == [0, 1, 2]
    assert found.end == StreamEnd(3 * ONE, 3 * ONE + 40, 3)


def test_numbers_that_do_not_rise_are_named(tmp_path: Path) -> None:
    stream = b"".join(map(picture, (0, 5, 3, 3)))
    assert named(read(tmp_path, Wire(stream).syn().in_pieces(0, len(stream), 900))) == [
        "picture 3 comes behind picture 5",
        "picture 3 comes behind picture 3",
        "pictures 1 to 2 never came",
        "picture 4 never came",
    ]


def test_a_segment_between_bytes_of_no_picture_counts_for_those_within(tmp_path: Path) -> None:
    """Its first and last bytes are of headers that are missing in part; the whole picture within is sent."""
    wire = Wire(stream_of(5)).syn().sent(0, ONE + 8).sent(2 * ONE - 200, 4 * ONE + 8)
    wire.sent(4 * ONE + 30, 5 * ONE)
    (found,) = read_picture_streams(wire.written(tmp_path / "c.pcap"))
    lasts = dict(zip(found.pictures.number.tolist(), found.pictures.last_ns.tolist(), strict=True))
    assert [lasts[each] for each in (0, 2, 3)] == at_ns(1, 2, 2)


def test_ipv6(tmp_path: Path) -> None:
    wire = Wire(ends=("fd00::1", 5000, "fd00::2", 6000)).syn().in_pieces(0, 3 * ONE, 500)
    found = read(tmp_path, wire)
    assert found.stream.name == "[fd00::1]:5000 > [fd00::2]:6000"
    assert found.pictures.number.tolist() == [0, 1, 2]
    assert len(read_picture_streams(tmp_path / "capture.pcap", "fd00::1")) == 1
    assert len(read_picture_streams(tmp_path / "capture.pcap", "fd00::3")) == 0


FAMILIES = {4: ("10.0.0.1", 5000, "10.0.0.2", 6000), 6: ("fd00::1", 5000, "fd00::2", 6000)}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("tags", ["81000005", "88a80003 81000005", "91000001 81002005", "8100e000"])
def test_vlan_tags(tmp_path: Path, family: int, tags: str) -> None:
    wire = Wire(ENDED, ends=FAMILIES[family]).syn().in_pieces(0, len(ENDED), 500).window(512)
    found = read(tmp_path, wire.tagged(bytes.fromhex(tags)))
    assert found.pictures.number.tolist() == [0, 1, 2]
    assert found.pictures.complete_ns.tolist() == at_ns(3, 6, 8)
    assert found.problems() == []


@pytest.mark.parametrize(
    ("number", "extension"),
    [(0, "06000104 00000000"), (43, "06010000 00000000 0000000000000000"), (44, "06000000 00000009")],
    ids=["hop by hop", "routing", "fragment of one part"],
)
def test_extension_headers_of_ipv6(tmp_path: Path, number: int, extension: str) -> None:
    wire = Wire(ends=FAMILIES[6]).syn().in_pieces(0, 3 * ONE, 500)
    found = read(tmp_path, wire.with_extension(number, bytes.fromhex(extension)))
    assert found.pictures.complete_ns.tolist() == at_ns(3, 6, 8)


@pytest.mark.parametrize("family", FAMILIES)
def test_parts_of_ip_datagrams_are_refused(tmp_path: Path, family: int) -> None:
    """Of the stream; those of another connection, whose ports the first part has, do no harm."""
    ends = FAMILIES[family]
    wire = Wire(ends=ends).syn().sent(0, 1400).in_fragments(800)
    file = wire.written(tmp_path / "c.pcap")
    with pytest.raises(ReportError, match=r"c\.pcap: 2 of the stream's frames are parts of IP datagrams"):
        read_picture_streams(file, ends[0], 5000)
    whole = Wire(ends=(ends[0], 5001, ends[2], 6000)).syn().in_pieces(0, 3 * ONE, 500)
    write_frames(file, wire.frames + whole.frames)
    assert len(read_picture_streams(file, source_port=5001)) == 1
    # Whose the later part is nobody knows without the first one.
    write_frames(file, wire.frames[:1] + wire.frames[2:] + whole.frames)
    with pytest.raises(ReportError, match="1 of the stream's frames are parts"):
        read_picture_streams(file, source_port=5001)


@pytest.mark.parametrize("kept_bytes", [36, 53])
def test_frames_without_their_header_of_tcp_are_refused(tmp_path: Path, kept_bytes: int) -> None:
    wire = Wire().syn().in_pieces(0, 3 * ONE, 500)
    file = write_frames(tmp_path / "c.pcap", wire.frames, kept_bytes=kept_bytes)
    with pytest.raises(
        ReportError, match=r"c\.pcap: 9 of the stream's frames are without their whole header"
    ):
        read_picture_streams(file, source_port=5000)
    assert read_picture_streams(file, source="10.0.0.9") == ()


def test_stamps_of_microseconds_and_a_file_out_of_order(tmp_path: Path) -> None:
    wire = Wire().syn().in_pieces(0, 3 * ONE, 500)
    wire.frames.reverse()
    (found,) = read_picture_streams(wire.written(tmp_path / "c.pcap", nano=False))
    assert found.pictures.complete_ns.tolist() == at_ns(3, 6, 8)
    assert not found.stream.is_late.any()


@pytest.mark.parametrize("seed", range(8))
def test_any_order_of_any_segments(tmp_path: Path, seed: int) -> None:
    """Segments of random places and sizes, again and again: each byte's first one by a loop over bytes."""
    random = Random(seed)
    stream = stream_of(6)
    wire = Wire(stream, isn=random.randrange(2**32)).syn()
    seen: dict[int, int] = {}
    expected: list[int] = []
    pieces = [(at, at + 500) for at in range(0, len(stream), 500)]
    begins = [random.randrange(len(stream)) for _ in range(40)]
    pieces += [(at, at + random.choice([2, 40, 700, 1448, 3000])) for at in begins]
    random.shuffle(pieces)
    for begin, end in ((begin, min(end, len(stream))) for begin, end in pieces):
        expected.append(sum(place in seen for place in range(begin, end)))
        for place in range(begin, end):
            seen.setdefault(place, START_NS + len(wire.frames) * STEP_NS)
        wire.sent(begin, end)
    found = read(tmp_path, wire)
    spare = found.stream.is_spare
    assert found.stream.duplicate_bytes[~spare].tolist() == [
        each for each, is_spare in zip(expected, spare, strict=True) if not is_spare
    ]
    assert found.pictures.complete_ns.tolist() == [
        max(seen[place] for place in range(at, at + ONE)) for at in range(0, len(stream), ONE)
    ]
    assert found.pictures.first_ns.tolist() == [
        min(seen[place] for place in range(at, at + ONE)) for at in range(0, len(stream), ONE)
    ]
    assert found.problems() == []


GOOD = bytearray(picture(17)[:40])


@pytest.mark.parametrize(
    ("at", "value", "reason"),
    [
        (0, b"BWPJ", "does not begin as a picture does"),
        (4, b"\x02", "another version"),
        (5, b"\2", "a byte 5 that is neither 0 nor 1"),
        (5, b"\0\1\0", "not 0 where they have to be"),
        (5, b"\1", "is the end of the stream, and has pixels"),
        (8, b"\0\x1f", "another size"),
        (10, b"\x08\x01", "another size"),
        (16, b"\0\x20\0\1", "a pose beyond"),
        (20, b"\xff\xdf\xff\xff", "a pose beyond"),
        (24, b"\0\0\0\x3f", "another zoom"),
        (28, b"\0\0\0\0", "another exposure"),
    ],
)
def test_headers_beyond_their_limits(at: int, value: bytes, reason: str) -> None:
    wire = bytearray(GOOD)
    wire[at : at + len(value)] = value
    if at:
        with pytest.raises(RecordError, match="a damaged header: its CRC-32 differs" if at != 4 else reason):
            parse_header(bytes(wire))
    wire[36:] = crc32(wire[:36]).to_bytes(4, "big")
    with pytest.raises(RecordError, match=reason):
        parse_header(bytes(wire))


def test_the_header_of_the_documentation() -> None:
    wire = bytes.fromhex(
        "42575049 01000000 014000f0 00000011 00040000 00030000 00000100 00002710 35b9ef0c f0250b1b"
    )
    assert parse_header(wire) == (320, 240, 17, 262144, 196608, 256, 10_000, crc32(bytes(320 * 240)), False)
