# SPDX-License-Identifier: Apache-2.0
"""What the router does to packets, by captures at both of its ends that ask neither it nor netem."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from scapy.utils import RawPcapReader

from hw.path_settings import Distribution, Flow, GilbertElliott, PathSettings, RandomLoss
from hw.paths import router_of
from hw.protocols import Router
from hw.router import PathDirection
from hw.session import Bench
from hw.virtual.bench_network import namespace_of
from resources.tools.capture import read_packets
from resources.tools.jobs import end_job
from resources.tools.path_capture import PathEnds
from tests.namespace import in_namespace

pytestmark = [pytest.mark.simulated, pytest.mark.timed]

NEAR, FAR = "p02", "p01"
"""The router is on the link of the first, whose packets go to the second: no target takes part."""
THERE, BACK = PathDirection(NEAR, "switch"), PathDirection(NEAR, NEAR)
PORT, OTHER_PORT = 5001, 5002
DATAGRAMS = 40
LOSSY_DATAGRAMS = 300
BULK_BYTES = 4_000_000
PATIENCE_S = 60.0
ALLOWED_US, ALLOWED_SHARE = 500, 0.002
"""Of a delay under emulation."""
ATTEMPTS = 5
"""A machine that takes the router's processor away delays packets, too; it never takes delay away."""


@dataclass(frozen=True)
class Seen:
    """Times inside the router, in us, of what was sent there and back."""

    there_us: list[float]
    back_us: list[float]

    @property
    def usual_us(self) -> tuple[float, float]:
        """Return what a quarter of the packets of each way did not exceed."""
        there, back = (sorted(each)[len(each) // 4] for each in (self.there_us, self.back_us))
        return there, back


@pytest.fixture(scope="module")
def router(opened: Bench) -> Generator[Router]:
    """Give the router; it stays powered between the tests, and goes out of the way at the end."""
    node = opened.router()
    yield node
    node.clear()


def exchange(bench: Bench, folder: Path, port: int = PORT) -> Seen:
    """Send datagrams both ways, one after the other, and return how long they were inside the router."""
    addresses = {each.node: each.address for each in bench.spec.producers.values()}
    with ExitStack() as stack:
        files = [stack.enter_context(captured(bench, interface, folder)) for interface in (NEAR, FAR)]
        near, far = (stack.enter_context(datagram_socket(bench, node)) for node in (NEAR, FAR))
        for own, node, peer in ((near, NEAR, FAR), (far, FAR, NEAR)):
            own.bind((addresses[node], port))
            own.settimeout(PATIENCE_S)
            own.connect((addresses[peer], port))  # so that each of its datagrams has a number of its own
        for number in range(DATAGRAMS):
            for own, peer in ((near, far), (far, near)):
                own.send(b"%d" % number)
                assert peer.recv(100) == b"%d" % number
        times = [arrived(file) for file in files]
    ways: dict[bool, list[float]] = {True: [], False: []}
    for key in times[0]:
        ways[key[1] == addresses[NEAR]].append(abs(times[1][key] - times[0][key]) / 1000)
    return Seen(ways[True], ways[False])


@contextmanager
def captured(bench: Bench, interface: str, folder: Path, what: str = "udp") -> Generator[Path]:
    """Capture packets, each written at once."""
    assert bench.spec.capture is not None
    file = folder / f"{interface}.pcap"
    file.unlink(missing_ok=True)
    argv = ["tcpdump", "-i", interface, "-s", "128", "-n", "-U", "--immediate-mode"]
    argv.append("--time-stamp-precision=nano")
    job = bench.node(bench.spec.capture.node).start([*argv, "-w", str(file), what], folder / interface)
    try:
        until(file.exists)
        yield file
    finally:
        end_job(job)


def arrived(file: Path) -> dict[tuple[object, ...], int]:
    """Return when all datagrams of both ways were seen, by what tells them apart."""
    until(lambda: sum(1 for _ in read_packets(file)) >= 2 * DATAGRAMS)
    return {packet.key: packet.time_ns for packet in read_packets(file)}


def until(holds: Callable[[], bool]) -> None:
    """Wait for it."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def datagram_socket(bench: Bench, node: str) -> socket.socket:
    """Return a socket of a node."""
    return in_namespace(namespace_of(bench.spec.name, node), lambda: socket.socket(type=socket.SOCK_DGRAM))


def off_us(asked_us: float, seen_us: float, without_us: float) -> float:
    """Return by how much a delay is off beyond what is allowed; 0: it is as asked."""
    return max(0.0, abs(seen_us - without_us - asked_us) - ALLOWED_US - ALLOWED_SHARE * asked_us)


def delays_off_us(
    bench: Bench, folder: Path, asked_us: tuple[int, int], without: Seen
) -> tuple[float, float]:
    """Return by how much the delays of both ways are off, at best of some attempts."""
    best = (float("inf"), float("inf"))
    for _ in range(ATTEMPTS):
        seen = exchange(bench, folder)
        for asked, times in zip(asked_us, (seen.there_us, seen.back_us), strict=True):
            assert len(times) == DATAGRAMS
            assert min(times) >= asked
        off = [off_us(*each) for each in zip(asked_us, seen.usual_us, without.usual_us, strict=True)]
        best = (min(best[0], off[0]), min(best[1], off[1]))
        if best == (0.0, 0.0):
            break
    return best


def test_delays_of_both_directions_are_seen_apart(opened: Bench, router: Router, tmp_path: Path) -> None:
    for path in (THERE, BACK):
        router.configure([path], PathSettings())
    without = exchange(opened, tmp_path)
    for there_us, back_us in ((0, 5_000), (5_000, 100_000), (100_000, 0)):
        assert router.configure([THERE], PathSettings(delay_us=there_us)).interface == "test1"
        assert router.configure([BACK], PathSettings(delay_us=back_us)).interface == "test0"
        assert delays_off_us(opened, tmp_path, (there_us, back_us), without) == (0.0, 0.0)


def test_a_router_that_does_something_else_is_seen(opened: Bench, router: Router, tmp_path: Path) -> None:
    """Behind the back of whoever has set it: it delays by 8 ms, not by 5 ms."""
    router.configure([THERE], PathSettings())
    without = exchange(opened, tmp_path)
    realised = router.configure([THERE], PathSettings(delay_us=5_000))
    change = ["tc", "qdisc", "change", "dev", realised.interface, "root", "netem", "delay", "8ms"]
    opened.node(realised.node).run(change)
    there_us, _ = delays_off_us(opened, tmp_path, (5_000, 0), without)
    assert there_us > 2_000


def test_a_flow_alone_is_treated(opened: Bench, router: Router, tmp_path: Path) -> None:
    """Changing its delay keeps its filters; taking the flow away treats all packets."""
    flows = [Flow("udp", destination_port=OTHER_PORT), Flow("tcp")]
    for delay_us in (20_000, 50_000):
        router.configure([THERE], PathSettings(delay_us=delay_us), flows)
        assert min(exchange(opened, tmp_path, OTHER_PORT).there_us) >= delay_us
        assert min(exchange(opened, tmp_path, PORT).there_us) < 20_000
    router.configure([THERE], PathSettings(delay_us=50_000))
    assert min(exchange(opened, tmp_path, PORT).there_us) >= 50_000


def test_frames_are_never_joined(opened: Bench, router: Router, tmp_path: Path) -> None:
    """One connection sends 4 MB as fast as it goes: at both of its ports frames are those of a link."""
    router.configure([THERE], PathSettings())
    assert opened.spec.virtual is not None
    largest_bytes = opened.spec.virtual.mtu_bytes + 14
    addresses = {each.node: each.address for each in opened.spec.producers.values()}
    node = router_of(opened.spec).node
    namespaces = {each: namespace_of(opened.spec.name, each) for each in (NEAR, FAR)}
    with ExitStack() as stack:
        files = [
            stack.enter_context(captured(opened, port, tmp_path, "tcp"))
            for port in (f"i-{node}", f"t-{node}")
        ]
        server = stack.enter_context(in_namespace(namespaces[FAR], socket.socket))
        client = stack.enter_context(in_namespace(namespaces[NEAR], socket.socket))
        server.bind((addresses[FAR], PORT))
        server.listen()
        for each in (server, client):
            each.settimeout(PATIENCE_S)
        client.connect((addresses[FAR], PORT))
        peer = stack.enter_context(server.accept()[0])
        sender = threading.Thread(target=client.sendall, args=(bytes(BULK_BYTES),))
        sender.start()
        left = BULK_BYTES
        while left:
            left -= len(peer.recv(1 << 20))
        sender.join()
        for file in files:
            until(lambda file=file: sum(sizes_bytes(file)) >= BULK_BYTES)
    for file in files:
        assert max(sizes_bytes(file)) <= largest_bytes


def sizes_bytes(file: Path) -> list[int]:
    """Return the sizes of the frames of a capture."""
    with RawPcapReader(str(file)) as reader:
        return [meta.wirelen for _, meta in reader]


@pytest.mark.parametrize(
    "settings",
    [
        PathSettings(delay_us=1_234, jitter_us=1_234),
        PathSettings(delay_us=300_000, jitter_us=777, jitter_correlation_percent=12.5),
        *(PathSettings(9_000, 3_000, each) for each in Distribution),
        PathSettings(loss=RandomLoss(0.1, 25)),
        PathSettings(loss=GilbertElliott(1, 10, 70, 0.1)),
        PathSettings(duplicate_percent=3, duplicate_correlation_percent=7),
        PathSettings(delay_us=10_000, reorder_percent=25, reorder_correlation_percent=50),
        PathSettings(delay_us=100_000, rate_kbps=10_000),
        PathSettings(limit_packets=77),
        PathSettings(),
    ],
)
def test_the_kernel_says_what_was_asked_for(router: Router, settings: PathSettings) -> None:
    """Each after all others: nothing of an earlier one is left."""
    realised = router.configure([THERE], settings)
    assert realised.settings.delay_us == pytest.approx(settings.delay_us, abs=1.1)
    assert realised.settings.jitter_distribution == settings.jitter_distribution


def lost_numbers(bench: Bench, folder: Path) -> list[int]:
    """Send datagrams, and return which of them the router lost, by their place."""
    near, far = ({each.node: each.address for each in bench.spec.producers.values()}[n] for n in (NEAR, FAR))
    with ExitStack() as stack:
        for interface in (NEAR, FAR):
            stack.enter_context(captured(bench, interface, folder, "udp"))
        sender, receiver = (stack.enter_context(datagram_socket(bench, node)) for node in (NEAR, FAR))
        receiver.bind((far, PORT))
        receiver.settimeout(PATIENCE_S)
        sender.connect((far, PORT))
        for number in range(LOSSY_DATAGRAMS):
            sender.send(b"%d" % number)
            time.sleep(0.001)
        # Datagrams to another port are not of the flow: none of them is lost, and it comes after the others.
        sender.connect((far, OTHER_PORT))
        other = stack.enter_context(datagram_socket(bench, FAR))
        other.bind((far, OTHER_PORT))
        other.settimeout(PATIENCE_S)
        sender.send(b"end")
        assert other.recv(10) == b"end"
        ends = PathEnds(NEAR, FAR, folder)
        until(lambda: len(ends.there(near, OTHER_PORT).arrived_ns) == 1)
    found = ends.there(near, PORT)
    assert len(found.sent_ns) == LOSSY_DATAGRAMS
    return [number for number, is_lost in enumerate(found.is_lost.tolist()) if is_lost]


def test_the_same_seed_loses_the_same_datagrams(opened: Bench, router: Router, tmp_path: Path) -> None:
    """Of a flow alone: each packet that passes draws a number, also one that nobody expects."""
    flow = Flow("udp", destination_port=PORT)
    lost: list[list[int]] = []
    for seed in (7, 7, 8):
        settings = PathSettings(loss=RandomLoss(10), seed=seed)
        assert router.configure([THERE], settings, [flow]).settings.seed == seed
        lost.append(lost_numbers(opened, tmp_path))
    router.configure([THERE], PathSettings())
    assert lost[0]
    assert lost[0] == lost[1]
    assert lost[0] != lost[2]
