# SPDX-License-Identifier: Apache-2.0
"""A real stream of pictures between two namespaces, lossy or not, captured at both ends."""

from __future__ import annotations

import ctypes
import os
import shutil
import socket
import struct
import subprocess
import threading
from collections.abc import Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest

from reports.control_loops.segments import PictureStream, StreamEnd, read_picture_streams
from reports.paths.tcp_streams import NONE
from tests.link import End, Link, capture, run_in
from tests.namespace import in_namespace
from tests.patience import HANG_S, wait_until
from tests.reports.control_loops.picture_capture import end_of, picture
from tests.traffic_gen.two_ends import Json, ended
from tests.traffic_gen.two_ends import end as begun

pytestmark = pytest.mark.simulated

ADDRESS = "10.77.9.1"
CAMERA = End(f"bwx-{os.getpid()}-camera", "pica", (f"{ADDRESS}/24",))
TRACKER = End(f"bwx-{os.getpid()}-tracker", "picb", ("10.77.9.2/24",))
PORT = 5700
SO_ATTACH_FILTER, SO_DETACH_FILTER = 26, 27
COUNT = 40
SIZE_PX = {"width_px": 320, "height_px": 240}
ONE = 40 + 320 * 240


@pytest.fixture(scope="module")
def link() -> Generator[Link]:
    """Give two namespaces with a link between them."""
    found = Link(CAMERA, TRACKER)
    found.make()
    yield found
    found.remove()


def lose_some(reader: socket.socket, one_in: int) -> None:
    """Make the reader's kernel drop segments behind the capture; not every kernel here knows netem.

    A filter of classic BPF: load a random number, and accept where it is higher than so much.
    """
    drop_below = 2**32 // one_in
    program = [(0x20, 0, 0, 0xFFFFF038), (0x25, 1, 0, drop_below), (0x06, 0, 0, 0), (0x06, 0, 0, 1 << 31)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *each) for each in program))
    reader.setsockopt(
        socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("@HP", len(program), ctypes.addressof(code))
    )


@contextmanager
def connection() -> Generator[tuple[socket.socket, socket.socket]]:
    """Give the camera's socket and that of who reads, with small buffers."""
    with ExitStack() as stack:
        listener = stack.enter_context(in_namespace(CAMERA.namespace, socket.socket))
        reader = stack.enter_context(in_namespace(TRACKER.namespace, socket.socket))
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((ADDRESS, PORT))
        listener.listen()
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        for each in (listener, reader):
            each.settimeout(HANG_S)
        reader.connect((ADDRESS, PORT))
        camera = stack.enter_context(listener.accept()[0])
        camera.settimeout(HANG_S)
        camera.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
        yield camera, reader


def transfer(camera: socket.socket, reader: socket.socket, content: bytes, *, waits: bool) -> None:
    """Send bytes and read them; who waits reads only when the camera can write no more."""
    left = memoryview(content)
    if waits:
        camera.setblocking(False)
        with suppress(BlockingIOError):
            while left:
                left = left[camera.send(left) :]
        camera.settimeout(HANG_S)
    sender = threading.Thread(target=camera.sendall, args=(left,))
    sender.start()
    got = bytearray()
    while len(got) < len(content):
        got += reader.recv(1 << 20)
    sender.join()
    assert got == content


def holds(found: PictureStream, pictures: list[bytes]) -> None:
    """Hold every segment against the bytes of the pictures that it is assigned to."""
    count = len(pictures)
    sent = b"".join(pictures) + end_of(count, **SIZE_PX)
    assert found.end == StreamEnd(count * ONE, count * ONE + 40, count)
    assert found.problems() == []
    assert bytes(found.stream.content) == sent
    assert found.is_assigned.all()
    assert found.pictures.number.tolist() == list(range(count))
    for which, byte in (
        (found.first_picture, found.stream.first_byte),
        (found.last_picture, found.stream.last_byte),
    ):
        assert which.tolist() == np.where(byte < count * ONE, byte // ONE, NONE).tolist()
    assert (found.pictures.first_ns <= found.pictures.complete_ns).all()
    assert (found.pictures.complete_ns <= found.pictures.last_ns).all()


@pytest.fixture
def open_until_the_end() -> Generator[ExitStack]:
    """Keep a connection open until its capture has ended: what closes it is in none."""
    with ExitStack() as stack:
        yield stack


def is_there(file: Path, size_bytes: int) -> bool:
    """Tell whether a capture that is being written has the whole stream."""
    return [len(each.stream.content) for each in read_picture_streams(file)] == [size_bytes]


@pytest.mark.parametrize("is_lossy", [False, True], ids=["whole", "lossy"])
@pytest.mark.parametrize("offloads", ["on", "off"])
def test_every_segment_has_its_pictures(
    link: Link, tmp_path: Path, open_until_the_end: ExitStack, offloads: str, is_lossy: bool
) -> None:
    pictures = [picture(number, **SIZE_PX, seed=66) for number in range(COUNT)]
    for end in (CAMERA, TRACKER):
        run_in(end.namespace, "ethtool", "-K", end.interface, *f"tso {offloads} gso {offloads}".split())
        run_in(end.namespace, "ethtool", "-K", end.interface, "gro", offloads)
    sent = b"".join(pictures) + end_of(COUNT, **SIZE_PX)
    with ExitStack() as stack:
        files = [
            stack.enter_context(
                capture(
                    end.namespace, end.interface, tmp_path / f"{end.interface}.pcap", f"tcp src port {PORT}"
                )
            )
            for end in (CAMERA, TRACKER)
        ]
        camera, reader = open_until_the_end.enter_context(connection())
        if is_lossy:
            lose_some(reader, 8 if offloads == "on" else 50)
        transfer(camera, reader, sent[:-ONE], waits=not is_lossy)
        if is_lossy:
            reader.setsockopt(socket.SOL_SOCKET, SO_DETACH_FILTER, 0)
        # When this one is in the files, so is what was sent, and sent again, before.
        transfer(camera, reader, sent[-ONE:], waits=False)
        wait_until(lambda: all(is_there(file, len(sent)) for file in files), "the captures to be written")
    for file in files:
        (found,) = read_picture_streams(file, source_port=PORT)
        holds(found, pictures)
        if is_lossy:
            assert found.stream.is_retransmission.any()
        if offloads == "off":
            assert (found.stream.last_byte - found.stream.first_byte).max() < 1460
        as_tshark_has_it(file, found)


def test_a_whole_run_of_camera_and_tracker(link: Link, tmp_path: Path, repository: Path) -> None:
    """What the programs say to each other, from the SYN to the stream's end."""
    bw_loop, count = repository / ".build/linux/traffic-gen/bw-loop", 5
    pictures, commands = (f"{ADDRESS}:{port}" for port in (PORT, PORT + 1))
    serve = ["--serve", pictures, "--commands", commands, "--wait-for-client", "--pictures", str(count)]
    reach = ["--camera", pictures, "--control", commands]

    def started(
        at: End, verb: str, *words: str
    ) -> AbstractContextManager[tuple[subprocess.Popen[str], Json]]:
        within = "ip", "netns", "exec", at.namespace
        return begun(*within, bw_loop, verb, "--timeout-ms", "60000", "--priority", "0", *words)

    with capture(TRACKER.namespace, TRACKER.interface, tmp_path / "run.pcap", f"tcp src port {PORT}") as file:
        with (
            started(CAMERA, "camera", *serve) as (camera, _),
            started(TRACKER, "tracker", *reach) as (tracker, _),
        ):
            assert [ended(each)[0] for each in (camera, tracker)] == [0, 0]
        wait_until(
            lambda: any(each.end for each in read_picture_streams(file)), "the stream's end to be written"
        )
    (found,) = read_picture_streams(file, source_port=PORT)
    assert found.problems() == []
    assert found.pictures.number.tolist() == list(range(count))
    assert found.end is not None
    assert found.end.count == count
    assert found.is_assigned.all()


def as_tshark_has_it(file: Path, found: PictureStream) -> None:
    """Hold places and times against those of another program, where it is installed."""
    if shutil.which("tshark") is None:
        return
    fields = ("frame.time_epoch", "tcp.seq", "tcp.len")
    argv = ["tshark", "-r", str(file), "-Y", f"tcp.srcport=={PORT} && tcp.len>0", "-T", "fields"]
    for each in fields:
        argv += ["-e", each]
    lines = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=HANG_S).stdout.split(
        "\n"
    )
    rows = [line.split("\t") for line in lines if line]
    assert len(rows) == len(found.stream.time_ns)
    times = [
        int(whole) * 10**9 + int(part.ljust(9, "0")) for whole, part in (row[0].split(".") for row in rows)
    ]
    assert times == found.stream.time_ns.tolist()
    assert [int(row[1]) - 1 for row in rows] == found.stream.first_byte.tolist()
    ends = np.array([int(row[1]) + int(row[2]) - 2 for row in rows])
    assert ends.tolist() == found.stream.last_byte.tolist()
