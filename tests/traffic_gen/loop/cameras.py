# SPDX-License-Identifier: Apache-2.0
"""Camera, tracker and display on this machine, each a process; a camera that this process plays."""

from __future__ import annotations

import json
import socket
import struct
import subprocess
import zlib
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.patience import HANG_S
from tests.traffic_gen.two_ends import Json, end, ended, free

PATIENT = ("--timeout-ms", "60000", "--priority", "0")
Place = tuple[int, int]


def closed_loop(
    bw_loop: Path,
    truth: Path,
    camera: Sequence[str] = (),
    tracker: Sequence[str] = (),
    *,
    display: bool = False,
    record: tuple[Path, Path] | None = None,
) -> dict[str, tuple[int, Json, str]]:
    """Run camera and tracker to their end; return exit code, result and what else was said of each.

    Args:
        bw_loop: The program.
        truth: File that the camera writes.
        camera: Its options besides.
        tracker: Its options besides, --program at the end.
        display: Whether there is one, behind the tracker.
        record: bw-events and a folder, where each leaves its points in a folder of its name.
    """
    pictures, commands, shown = free(), free(), free()

    def words(verb: str, *options: str | Path) -> list[str | Path]:
        before: list[str | Path] = []
        if record:
            before = [record[0], "record", "--output", record[1] / verb, "--points", verb, "--"]
        return [*before, bw_loop, verb, *PATIENT, *options]

    with ExitStack() as stack:
        begun: dict[str, subprocess.Popen[str]] = {}
        if display:
            begun["display"] = stack.enter_context(end(*words("display", "--listen", shown)))[0]
            tracker = ("--display", shown, *tracker)
        serve = ("--serve", pictures, "--commands", commands, "--wait-for-client", "--truth", truth)
        begun["camera"] = stack.enter_context(end(*words("camera", *serve, *camera)))[0]
        reach = ("--camera", pictures, "--control", commands)
        begun["tracker"] = stack.enter_context(end(*words("tracker", *reach, *tracker)))[0]
        return {name: ended(process) for name, process in begun.items()}


class Truth:
    """A truth file.

    Attributes:
        head: Its first line.
        pictures: Those of pictures, by number.
        connections: Those of the connection behind each picture that was sent, by number; on Linux.
        commands: Those of commands, refused ones among them, by number.
    """

    def __init__(self, path: Path) -> None:
        """Read it."""
        lines: list[Json] = [json.loads(line) for line in path.read_text().splitlines()]
        assert lines[0]["type"] == "camera"
        assert lines[-1]["type"] == "end"
        self.head = lines[0]
        self.pictures = {each["number"]: each for each in lines if each["type"] == "picture"}
        self.connections = {each["number"]: each for each in lines if each["type"] == "connection"}
        self.commands = {each["number"]: each for each in lines if each["type"] == "command"}
        assert list(self.pictures) == list(range(lines[-1]["pictures"]))
        assert sorted(self.commands) == list(range(lines[-1]["commands"]))

    def target(self, bw_loop: Path, times_ns: Sequence[int]) -> list[Place]:
        """Return where the target was, in 1/256 pixel of the world."""
        words = [bw_loop, "where", *self.head["options"], *map(str, times_ns)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=HANG_S, check=True)
        found: list[Json] = [json.loads(line) for line in done.stdout.splitlines()]
        assert [each["t_ns"] for each in found] == list(times_ns)
        return [(each["x_q8"], each["y_q8"]) for each in found]

    def in_picture(self, bw_loop: Path) -> dict[int, bool]:
        """Return of each picture whether the target's centre is in it; zoom is 1."""
        half = [self.head[side] * 128 for side in ("width_px", "height_px")]
        places = self.target(bw_loop, [each["captured_ns"] for each in self.pictures.values()])
        return {
            number: all(
                abs(at - looks) < most
                for at, looks, most in zip(
                    place, (each["pose"]["x_q8"], each["pose"]["y_q8"]), half, strict=True
                )
            )
            for (number, each), place in zip(self.pictures.items(), places, strict=True)
        }

    def rendered(self, bw_loop: Path, number: int) -> bytes:
        """Make a picture once more; return it as PGM."""
        picture = self.pictures[number]
        pose = [
            word
            for key, value in picture["pose"].items()
            for word in (f"--{key.replace('_', '-')}", str(value))
        ]
        words = ["--number", str(number), "--captured-ns", str(picture["captured_ns"]), *pose]
        return subprocess.run(
            [bw_loop, "render", *self.head["options"], *words],
            capture_output=True,
            timeout=HANG_S,
            check=True,
        ).stdout


def header(number: int, size: Place = (32, 32), crc: int = 0, *, is_end: bool = False) -> bytes:
    """Return a header as docs/control-loops.md has it."""
    front = struct.pack(">4sB3xHHIiiII", b"BWPI", 1, *size, number, 0, 0, 256, 10000) + crc.to_bytes(4)
    if is_end:
        front = front[:5] + b"\1" + front[6:]
    return front + zlib.crc32(front).to_bytes(4)


def picture(number: int, size: Place = (32, 32)) -> bytes:
    """Return a black picture."""
    pixels = bytes(size[0] * size[1])
    return header(number, size, zlib.crc32(pixels)) + pixels


def read_stream(peer: socket.socket) -> tuple[list[bytes], bytes]:
    """Return the pictures of a stream, and what is behind them: the end's header, or what is cut off."""
    stream = b"".join(iter(lambda: peer.recv(1 << 20), b""))
    pictures: list[bytes] = []
    while len(stream) >= 40 and not stream[5]:
        width, height = struct.unpack(">HH", stream[8:12])
        if len(stream) < 40 + width * height:
            break
        pictures.append(stream[: 40 + width * height])
        stream = stream[40 + width * height :]
    return pictures, stream


def connect(address: str) -> socket.socket:
    """Connect to one of the programs."""
    host, port = address.rsplit(":", 1)
    peer = socket.create_connection((host.strip("[]"), int(port)))
    peer.settimeout(HANG_S)
    return peer


@contextmanager
def played_camera(
    bw_loop: Path, *tracker: str | Path
) -> Generator[tuple[subprocess.Popen[str], socket.socket, socket.socket]]:
    """Play a camera for a tracker; gives its process, the connection of pictures and that of commands."""
    with (
        socket.create_server(("127.0.0.1", 0)) as pictures,
        socket.create_server(("127.0.0.1", 0)) as commands,
    ):
        at = [f"127.0.0.1:{each.getsockname()[1]}" for each in (pictures, commands)]
        words = [bw_loop, "tracker", "--camera", at[0], "--control", at[1], *PATIENT, *tracker]
        with end(*words) as (process, _), pictures.accept()[0] as sends, commands.accept()[0] as reads:
            sends.settimeout(HANG_S)
            reads.settimeout(HANG_S)
            yield process, sends, reads
