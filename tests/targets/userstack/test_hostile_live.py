# SPDX-License-Identifier: Apache-2.0
"""Hostile peers at an accelerated server, through the packet path: nothing breaks, who is sound is served.

Each with the stack as it is and, where it is built, with sanitizers. BENCHWRIGHT_STACK_FRAMES: how many
hostile frames (5,000), BENCHWRIGHT_STACK_SYNS: how many SYNs (3,000), of each family;
BENCHWRIGHT_STACK_SEED: which (1).
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pytest

from bench.lab.compiler import compile_c
from tests.link import kernel_counts
from tests.namespace import in_namespace
from tests.patience import HANG_S, STALL_S, wait_until
from tests.targets.link_counts import KernelShare, lost_on_link
from tests.targets.userstack.accel_lab import FAR, INTERFACE, NEAR, AccelLab
from tests.targets.userstack.hostile_segments import KERNEL, SENDER, Connection, Forger
from tests.targets.userstack.wire import (
    ACK,
    FIN,
    RST,
    SYN,
    Segment,
    Wire,
    WirePeer,
    connect,
    descriptors,
    hear,
    ip_bytes,
    resident_kib,
    segment,
)

FRAMES = int(os.environ.get("BENCHWRIGHT_STACK_FRAMES", "5000"))
SYNS = int(os.environ.get("BENCHWRIGHT_STACK_SYNS", "3000"))
SEED = int(os.environ.get("BENCHWRIGHT_STACK_SEED", "1"))
PORT = 5001
FAREWELL_PORT = PORT + 1
BATCH_FRAMES = 64
"""Of hostile frames between two looks at the sound client: the rings have room for them."""
GROWTH_MAX_KIB = 48 * 1024
SANITIZED_GROWTH_MAX_KIB = 512 * 1024
"""What was freed is kept apart for a while (quarantine_size_mb), and each piece has its surroundings."""
STRANGERS = {
    4: [f"10.98.0.{each}" for each in range(64, 80)],
    6: [f"fd98::{each:x}" for each in range(64, 80)],
}
"""Addresses that the near end knows the way to, and no kernel has."""
TIMEOUT_S = 600 + FRAMES // 500 + SYNS // 100
Json = dict[str, Any]

pytestmark = pytest.mark.timeout(TIMEOUT_S)


class HostileLab(AccelLab):
    """The lab with a server at the near end."""

    def __init__(self, build: Path, folder: Path) -> None:
        """Take the native tools' folder and one for files."""
        super().__init__(build, folder)
        self.netstat = build / "targets/linux/userstack/netstat/bw-netstat"
        self.echo: subprocess.Popen[str]

    def __enter__(self) -> HostileLab:
        """Begin, with a server that is ready, and strangers that it knows the way to."""
        super().__enter__()
        program = compile_c(Path(__file__).with_name("echo_server.c"), self.folder / "echo", "-D_GNU_SOURCE")
        self.echo = self.start(self.near, str(program), str(PORT))
        assert self.echo.stdout
        line = self.echo.stdout.readline()
        assert line == "ready\n", line + (self.echo.stderr.read() if self.echo.stderr else "")
        mac = Wire(self).own_mac.hex(":")
        for each in (*STRANGERS[4], *STRANGERS[6]):
            argv = ["ip", "-n", self.near, "neighbour", "replace", each, "lladdr", mac, "dev", INTERFACE]
            subprocess.run(argv, check=True)
        return self

    def statistics(self) -> Json:
        """Return what `bw-netstat --json` says."""
        argv = [str(self.netstat), "--socket", str(self.socket), "--json"]
        done = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=HANG_S)
        found: Json = json.loads(done.stdout)
        return found

    def server(self) -> Json:
        """Return what it says of the server, as it is now."""
        while (found := self.statistics()["programs"][0])["report"] != "fresh":
            assert self.echo.poll() is None, self.echo.communicate()
            assert found["report"] == "late"
        assert found["pid"] == self.echo.pid
        return found

    def connections(self) -> int:
        """Return how many the server's stack has, whatever their state."""
        kinds = self.server()["sockets_by_kind"]
        return int(kinds["tcp_open"] + kinds["tcp_without_socket"])

    def client(self, family: int) -> socket.socket:
        """Return a socket of the far end's kernel."""
        kind = socket.AF_INET6 if family == 6 else socket.AF_INET
        made = in_namespace(self.far, lambda: socket.socket(kind, socket.SOCK_STREAM))
        made.settimeout(HANG_S)
        return made

    def connected(self, family: int) -> socket.socket:
        """Return one that is connected."""
        made = self.client(family)
        made.connect((NEAR[family], PORT))
        return made

    def end(self) -> None:
        """End the server in order: a sanitizer, if there is one, has nothing to say, nor has the service."""
        assert self.echo.poll() is None, self.echo.communicate()
        self.echo.send_signal(signal.SIGTERM)
        out, err = self.echo.communicate(timeout=HANG_S)
        assert (self.echo.returncode, out, err) == (0, "", "")
        wait_until(lambda: not self.show()["programs"], "the service to take all back")
        assert self.service
        assert self.service.poll() is None
        self.service.send_signal(signal.SIGTERM)
        _, err = self.service.communicate(timeout=HANG_S)
        assert (self.service.returncode, err) == (0, "")


@pytest.fixture(params=["linux", "asan"])
def lab(
    request: pytest.FixtureRequest, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[HostileLab]:
    build = repository / ".build" / request.param
    if not (build / "targets/linux/userstack/accel/libbw-accel.so").exists():
        pytest.skip(f"{build.relative_to(repository)} is not built: make test")
    monkeypatch.setenv("ASAN_OPTIONS", "detect_stack_use_after_return=1:quarantine_size_mb=16")
    monkeypatch.setenv("UBSAN_OPTIONS", "halt_on_error=1:print_stacktrace=1")
    with HostileLab(build, tmp_path) as made:
        yield made


def growth_max_kib(lab: HostileLab) -> int:
    return SANITIZED_GROWTH_MAX_KIB if lab.sanitizer else GROWTH_MAX_KIB


def received(sock: socket.socket, size_bytes: int) -> bytes:
    """Return so many bytes of a stream."""
    data = b""
    while len(data) < size_bytes:
        piece = sock.recv(size_bytes - len(data))
        assert piece, "the stream has ended"
        data += piece
    return data


def segments_of(lab: HostileLab) -> int:
    """Return how many segments the far end's kernel has sent."""
    counts = kernel_counts(lab.far)
    return counts["Tcp:OutSegs"] + counts["Tcp:RetransSegs"]


class SoundClient:
    """A client of the kernel, and its connection as the wire shows it."""

    def __init__(self, lab: HostileLab, family: int) -> None:
        """Connect, and learn both initial sequence numbers from the SYNs."""
        wire = Wire(lab)
        wire.bind(3)
        self.socket = lab.connected(family)
        numbers: dict[bool, int] = {}
        while len(numbers) < 2:
            found = Segment.of_frame(wire.socket.recv(1 << 16))
            if found and found.flags & SYN:
                numbers[bool(found.flags & ACK)] = found.seq + 1
        wire.close()
        port = self.socket.getsockname()[1]
        ends = ip_bytes(FAR[family]), port, ip_bytes(NEAR[family]), PORT
        self.connection = Connection(ends, numbers[False], numbers[True])

    def send(self, data: bytes) -> None:
        """Send a part of a message."""
        self.socket.sendall(data)
        self.connection.seq += len(data)

    def receive(self, size_bytes: int) -> bytes:
        """Receive an answer, all of it."""
        data = received(self.socket, size_bytes)
        self.connection.ack += len(data)
        return data


def test_hostile_frames_break_nothing_and_all_are_counted(lab: HostileLab, family: int) -> None:
    """Beside a client whose messages are answered right, in the middle of each of which they come."""
    random = Random(SEED + family)
    sound = SoundClient(lab, family)
    wire, kernel = Wire(lab, source_mac=SENDER), KernelShare(lab.near, INTERFACE, SENDER)
    wire.bind()
    strangers = tuple(map(ip_bytes, STRANGERS[family]))
    forger = Forger(random, ip_bytes(NEAR[family]), strangers, PORT, sound.connection)
    before, lost_before = lab.server(), lost_on_link(lab.far, INTERFACE)
    segments_before = segments_of(lab)
    assert lab.service
    pids = lab.echo.pid, lab.service.pid
    memory_before, descriptors_before = (
        [resident_kib(pid) for pid in pids],
        [descriptors(pid) for pid in pids],
    )
    due: Counter[str] = Counter()
    begin_s, sent, packets = time.monotonic(), 0, forger.packets()
    while sent < FRAMES:
        message = random.randbytes(random.randrange(2, 4000))
        sound.send(message[: len(message) // 2])
        answer = sound.receive(len(message) // 2)
        for hostile in islice(packets, BATCH_FRAMES):
            wire.send(hostile.packet)
            due.update(hostile.counts)
            sent += 1
        sound.send(message[len(message) // 2 :])
        assert answer + sound.receive(len(message) - len(message) // 2) == message
    took_s = time.monotonic() - begin_s

    passed, lost = kernel.frames(), lost_on_link(lab.far, INTERFACE) - lost_before
    after = lab.server()
    sound_segments = segments_of(lab) - segments_before
    rose = {name: count - before["counts"][name] for name, count in after["counts"].items()}
    frames_in = after["frames"]["in"] - before["frames"]["in"]
    not_taken = sum(after["frames"]["drops"][name] for name in ("ring_full", "fill_ring_empty"))
    memory = [resident_kib(pid) - was for pid, was in zip(pids, memory_before, strict=True)]
    print(f"{sent} frames in {took_s:.1f} s, {passed=} {lost=} {not_taken=}; {memory=} KiB; {rose}")
    assert frames_in + passed + lost == sent + sound_segments
    assert rose["frames_in"] == rose["ip_in"] == frames_in - not_taken
    due["ip_in"] += sound_segments
    due["tcp_in"] += sound_segments
    unheard = lost + not_taken
    kinds = [
        KERNEL,
        "ip_in",
        "tcp_in",
        "tcp_malformed",
        "tcp_checksum",
        "udp_in",
        "udp_malformed",
        "udp_checksum",
    ]
    for name in [*kinds, *(["ip_checksum"] if family == 4 else [])]:
        count = passed if name == KERNEL else rose[name]
        assert due[name] - unheard <= count <= due[name], name
        assert count > 0, name
    assert all(grown < growth_max_kib(lab) for grown in memory)
    assert after["frames"]["drops"]["foreign_port"] == 0

    # That the forger has had the numbers right all the time: with the very one it is the end.
    connection = sound.connection
    wire.send(segment(connection.ends, RST, connection.seq, connection.ack))
    sound.socket.send(b"x")
    with pytest.raises(ConnectionResetError):
        received(sound.socket, 1)
    # Those that the hostile ones have made may stay until they time out; descriptors are of accepted ones.
    assert descriptors(lab.service.pid) == descriptors_before[1]
    sound.socket.close()
    kernel.close()
    wire.close()
    lab.end()


def exchange(sock: socket.socket, message: bytes) -> None:
    """Send a message, and have it back."""
    sock.sendall(message)
    assert received(sock, len(message)) == message


def as_before(lab: HostileLab, descriptors_before: int) -> None:
    """Wait until the server has nothing of its peers, and serves a new one."""
    wait_until(lambda: lab.connections() == 0, "the server's connections to end")
    assert descriptors(lab.echo.pid) == descriptors_before
    for family in (4, 6):
        with lab.connected(family) as client:
            exchange(client, b"after")
    wait_until(lambda: lab.connections() == 0, "the last connections to end")


FORGED = {4: [f"10.98.0.{each}" for each in range(3, 253)], 6: [f"fd98::f:{each:x}" for each in range(600)]}
"""Sources of a flood; the way to some of IPv4 is known. Those of IPv6 are more than the service remembers."""
BACKLOG = 64
ROUND_SYNS = 250


def flood(lab: HostileLab, wire: Wire, family: int, random: Random) -> int:
    """Send SYNs; after each round a sound client is served. Return the most connections that there were."""
    near, sources, most = ip_bytes(NEAR[family]), list(map(ip_bytes, FORGED[family])), 0
    for begin in range(0, SYNS, ROUND_SYNS):
        for place in range(begin, min(SYNS, begin + ROUND_SYNS)):
            source = sources[place % len(sources)]
            ends = source, random.randrange(1024, 65536), near, random.choice((PORT, PORT, FAREWELL_PORT))
            wire.send(segment(ends, SYN, random.getrandbits(32), 0))
        with lab.connected(family) as client:
            exchange(client, random.randbytes(3000))
        if begin % (20 * ROUND_SYNS) == 0:
            most = max(most, lab.connections())
    return most


def test_a_flood_of_syns_keeps_nobody_out(lab: HostileLab) -> None:
    """Nor does it take more than the backlog allows; later the way to forged addresses is found."""
    descriptors_before = descriptors(lab.echo.pid)
    wire = Wire(lab, source_mac=SENDER)
    wire.bind()
    as_before(lab, descriptors_before)
    assert lab.service
    pids = lab.echo.pid, lab.service.pid
    memory_before = [resident_kib(pid) for pid in pids]
    begin_s = time.monotonic()
    most = {family: flood(lab, wire, family, Random(SEED)) for family in (4, 6)}
    took_s = time.monotonic() - begin_s
    memory = [resident_kib(pid) - was for pid, was in zip(pids, memory_before, strict=True)]
    print(f"{2 * SYNS} SYNs in {took_s:.1f} s; {most=} connections, {memory=} KiB")
    # Of both listeners; and sound clients whose last segment has not come yet.
    assert all(2 * BACKLOG + 8 >= count > BACKLOG // 2 for count in most.values())
    assert all(grown < growth_max_kib(lab) for grown in memory)
    # Addresses that nobody had while they were forged: now somebody has them.
    for family, bits in ((4, 24), (6, 64)):
        for address in (FORGED[family][0], FORGED[family][200]):
            argv = [
                "address",
                "add",
                f"{address}/{bits}",
                "dev",
                INTERFACE,
                *(["nodad"] if family == 6 else []),
            ]
            subprocess.run(["ip", "-n", lab.far, *argv], check=True)
            with lab.client(family) as client:
                client.bind((address, 0))
                client.connect((NEAR[family], PORT))
                exchange(client, b"found")
    wire.close()
    lab.end()


def peers_of(wire: Wire, first_port: int, count: int, near_port: int = PORT) -> list[WirePeer]:
    """Return peers of both families."""
    return [
        WirePeer(wire, STRANGERS[family][place % 16], first_port + place, near_port=near_port)
        for family in (4, 6)
        for place in range(count)
    ]


def test_tiny_windows_and_peers_that_never_read_hold_nobody_up(lab: HostileLab) -> None:
    """Meanwhile all others are served; when they read at last, everything is there, and right."""
    random, descriptors_before = Random(SEED), descriptors(lab.echo.pid)
    wire = Wire(lab)
    wire.listen()
    tiny, closed = peers_of(wire, 20000, 16), peers_of(wire, 30000, 16)
    windows = {id(peer): 1 + place % 16 for place, peer in enumerate(tiny)}
    for peer in (*tiny, *closed):
        connect(wire, [peer], window=windows.get(id(peer), 0))
    message = random.randbytes(1000)
    for peer in (*tiny, *closed):
        peer.send(ACK, message, window=windows.get(id(peer), 0))
    # Peers of the kernel that send as long as anything goes, and read nothing.
    glutton_bytes: dict[socket.socket, int] = {}
    piece = random.randbytes(1 << 16)
    for family in (4, 6, 4, 6):
        glutton = lab.connected(family)
        glutton.settimeout(STALL_S)
        glutton_bytes[glutton] = 0
        while True:
            try:
                glutton_bytes[glutton] += glutton.send(piece[glutton_bytes[glutton] % len(piece) :])
            except TimeoutError:
                break
    memory_before = resident_kib(lab.echo.pid)
    others = [lab.connected(family) for family in (4, 6)]
    for _ in range(100):
        for other in others:
            exchange(other, random.randbytes(3000))
        with lab.connected(random.choice((4, 6))) as short:
            exchange(short, b"short")
        hear(wire, (*tiny, *closed), 0.005)
        for peer in tiny:
            peer.send(ACK, window=windows[id(peer)])
        for peer in closed:
            peer.send(ACK, window=0)
    most_bytes = max(len(peer.received) for peer in closed)
    trickle = [len(peer.received) for peer in tiny]
    grown = resident_kib(lab.echo.pid) - memory_before
    print(f"{trickle=} bytes, {most_bytes=} of closed windows, {grown=} KiB, {sum(glutton_bytes.values())=}")
    assert most_bytes <= 1  # a probe may bring one byte, though the window is closed
    assert min(trickle) > 0
    assert grown < growth_max_kib(lab)
    deadline_s = time.monotonic() + HANG_S
    while any(len(peer.received) < len(message) for peer in (*tiny, *closed)):
        assert time.monotonic() < deadline_s, [len(peer.received) for peer in (*tiny, *closed)]
        for peer in (*tiny, *closed):
            peer.send(ACK)
        hear(wire, (*tiny, *closed), 0.01)
    assert all(peer.received == message for peer in (*tiny, *closed))
    for glutton, size_bytes in glutton_bytes.items():
        glutton.settimeout(HANG_S)
        whole = piece * (size_bytes // len(piece) + 1)
        assert received(glutton, size_bytes) == whole[:size_bytes]
        glutton.close()
    for other in others:
        other.close()
    for peer in (*tiny, *closed):
        peer.send(RST)
    wire.close()
    as_before(lab, descriptors_before)
    lab.end()


@pytest.mark.slow
def test_half_open_and_half_closed_connections_end(lab: HostileLab) -> None:
    """SYNs that nobody goes on with, ends without an answer, peers that have closed: others are served.

    What a flood leaves ends, too.
    """
    random, descriptors_before = Random(SEED), descriptors(lab.echo.pid)
    forged = Wire(lab, source_mac=SENDER)
    forged.bind()
    for family in (4, 6):
        assert flood(lab, forged, family, random) > BACKLOG // 2
    forged.close()
    wire = Wire(lab)
    wire.listen()
    half_open = peers_of(wire, 20000, 20)
    silent = peers_of(wire, 30000, 100, FAREWELL_PORT)
    """They acknowledge the server's end, but do not close."""
    leaving = peers_of(wire, 40000, 100)
    """They close, and acknowledge nothing any more."""
    for peer in half_open:
        peer.send(SYN)
    connect(wire, silent)
    connect(wire, leaving)
    deadline_s = time.monotonic() + HANG_S
    while not all(peer.closed for peer in silent):
        assert time.monotonic() < deadline_s, "no end of the server"
        hear(wire, silent, 0.02)
        for peer in silent:
            peer.send(ACK)
    assert all(peer.received == b"bye" for peer in silent)
    for peer in leaving:
        peer.send(ACK | FIN, b"leaving")
    most = lab.server()["sockets_by_kind"]
    begin_s = time.monotonic()
    for family in (4, 6) * 50:
        with lab.connected(family) as client:
            exchange(client, random.randbytes(3000))
    print(f"{most}; 100 clients beside them in {time.monotonic() - begin_s:.2f} s")
    assert most["tcp_without_socket"] >= len(silent)
    for peer in leaving:
        peer.send(RST)
    wire.close()
    as_before(lab, descriptors_before)
    lab.end()
