# SPDX-License-Identifier: Apache-2.0
"""The edge device between processes of this machine: the guest is a page whose counter is this machine's."""

from __future__ import annotations

import contextlib
import json
import random
import socket
import statistics
import struct
import subprocess
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.traffic_gen.clock.clock_page import HOST_LINE, finish, run, started
from tests.traffic_gen.edge.lab import (
    ART_HZ,
    EDGE_OFFSET,
    HORIZON,
    MAPPING_BYTES,
    OTHER,
    PULSE_NS,
    REFERENCE,
    SDP_HZ,
    Json,
    ListeningScope,
    Page,
    wait_for,
    work_pins,
)

# The device is held to deadlines of milliseconds: what leaves it no time gets no answer.
pytestmark = pytest.mark.timed

PHC_NS = 1_800_000_000_000_000_000
PERIOD_NS = 2_000_000
RATE_PPM = 5.0
OUTPUT_BEGUN = EDGE_OFFSET + 1024
"""Announcement of the first output, sdp-out."""


@dataclass
class Device:
    """A device that is served, calibrated and has a PHC."""

    page: Page
    scope: ListeningScope
    server: subprocess.Popen[str]
    pins: Path
    hz: int
    origin: int
    """Tick at which the PHC is PHC_NS."""

    def phc_ns(self, time_ps: int) -> float:
        """Return the PHC, after PHC_NS, at an instant of the oscilloscope; its axis is the host's counter."""
        counter = time_ps * self.hz / 1e12 - self.page.offset
        return (counter - self.origin) * 1e9 / self.hz * (1 + RATE_PPM * 1e-6)

    def finish(self) -> Json:
        """End the server, wait for what it has sent, and return its result."""
        code, result = finish(self.server)
        assert code == 0, result
        self.scope.wait_for_all(result)
        return result

    def work(self, *arguments: object) -> Json:
        """Work pins to the end."""
        return work_pins(self.pins, self.page.path, *arguments)

    @contextlib.contextmanager
    def working(self, *arguments: object) -> Generator[subprocess.Popen[str]]:
        """Work pins meanwhile."""
        with started(self.pins, str(self.page.path), *(str(argument) for argument in arguments)) as process:
            yield process


@contextlib.contextmanager
def run_device(bw_edge: Path, pins: Path, folder: Path, offset: int = 0, bound: int = 0) -> Generator[Device]:
    """Serve a device until the context ends."""
    page, scope = Page(folder / "page", offset, bound), ListeningScope()
    try:
        with started(bw_edge, "serve", "--page", f"guest={page.path}", "--scope", scope.address) as server:
            page.calibrate()
            wait_for(lambda: page.horizon() > 0, "the device begins")
            hz: int = struct.unpack_from("<Q", page.memory, EDGE_OFFSET + 8)[0]
            device = Device(page, scope, server, pins, hz, page.horizon())
            page.keep_publishing(device.origin, PHC_NS, 1e9 / hz * (1 + RATE_PPM * 1e-6))
            yield device
    finally:
        scope.close()
        page.close()


@pytest.fixture
def device(bw_edge: Path, edge_pins: Path, tmp_path: Path) -> Generator[Device]:
    """Give a device that is served."""
    with run_device(bw_edge, edge_pins, tmp_path) as made:
        yield made


def outputs(result: Json, pin: str) -> Json:
    """Return the counts of an output in the server's result."""
    return result["pages"][0]["outputs"][pin]


def assert_reference(device: Device, result: Json) -> None:
    """Each edge of the reference is at its instant of the PHC, up to one cycle of 8 ns and a tick later.

    None is left out, from the first to the last. How many fit into the time is the machine's affair.
    """
    rising = device.scope.edges(REFERENCE, rising=True)
    assert len(rising) == outputs(result, "sdp-out")["fired"] >= 100
    late_ns = [device.phc_ns(edge.time_ps) % PERIOD_NS for edge in rising]
    assert max((ns if ns < PERIOD_NS / 2 else ns - PERIOD_NS) for ns in late_ns) < 1e9 / SDP_HZ + 2
    assert min((ns if ns < PERIOD_NS / 2 else ns - PERIOD_NS) for ns in late_ns) > -2
    numbers = [round(device.phc_ns(edge.time_ps) / PERIOD_NS) for edge in rising]
    assert numbers == list(range(numbers[0], numbers[0] + len(rising)))


def test_reference_edges_are_at_their_instants(device: Device) -> None:
    device.work("periodic", "sdp-out", PHC_NS, PERIOD_NS, 1500)
    result = device.finish()
    assert_reference(device, result)
    assert device.scope.disorder() == []
    both = device.scope.edges(REFERENCE)
    pulses = (len(both) + 1) // 2  # the last one may be cut off by the end
    assert [edge.rising for edge in both] == ([True, False] * pulses)[: len(both)]
    complete = zip(both[::2], both[1::2], strict=False)
    widths_ns = [(fall.time_ps - rise.time_ps) / 1000 for rise, fall in complete]
    assert all(abs(width_ns - PULSE_NS) < 2 for width_ns in widths_ns[: pulses - 1])
    assert outputs(result, "sdp-out")["fired"] == pulses
    assert result["scope"]["edges"] == len(both)
    assert result["scope"]["lost"] == 0


def test_line_younger_than_what_is_decided_interrupts_nothing(
    bw_edge: Path, edge_pins: Path, tmp_path: Path
) -> None:
    """The guest renews its line while the server, held up, still decides about the milliseconds before."""
    with run_device(bw_edge, edge_pins, tmp_path, bound=20_000_000) as device:  # 5 to 20 ms
        device.work("periodic", "sdp-out", PHC_NS, PERIOD_NS, 1500)
        assert_reference(device, device.finish())


def test_command_of_a_tick_that_is_decided_comes_too_late(
    bw_edge: Path, edge_pins: Path, tmp_path: Path
) -> None:
    """By its calibration this guest's counter is ahead by some 0.4 s of what it reads itself."""
    with run_device(bw_edge, edge_pins, tmp_path, offset=-1_000_000_000) as device:
        device.work("periodic", "sdp-out", PHC_NS, PERIOD_NS, 100)
        _, result = finish(device.server)
    # Two commands: to begin, and to stop.
    assert outputs(result, "sdp-out") == {"fired": 0, "not_fired": 0, "replaced": 0, "refused": 2}


def test_progress_comes_with_the_edges(device: Device) -> None:
    """A record can be finished at once: soon after an edge, a line promises that all before is told."""
    with device.working("periodic", "sdp-out", PHC_NS, 100_000_000, 600):
        time.sleep(0.5)
        lines = list(device.scope.lines)
    last = max(number for number, line in enumerate(lines) if "channel" in line)
    after = [line["until_ns"] for line in lines[last:] if "until_ns" in line]
    assert after, "no promise after the last edge"
    assert after[0] >= lines[last]["time_ns"]


def test_tgpio_fires_at_the_first_tick_of_art(device: Device) -> None:
    done = device.work("fire", 200, device.hz // 250, device.hz // 50)
    device.finish()
    seen = device.scope.edges(OTHER, rising=True)
    assert done["fired"] + done["not_fired"] == 200
    assert len(seen) == done["fired"] >= 100
    art = 1e9 / ART_HZ
    wanted = iter(done["done"])
    for edge in seen:
        fired_at = edge.time_ps * device.hz / 1e12
        # A stall of this machine makes software late: such values never fire.
        at = next(instant for instant in wanted if abs(fired_at - instant) < device.hz / 1000)
        assert -1 <= (fired_at - at) * 1e9 / device.hz < art + 2


def test_software_edge_is_when_its_store_is_visible(device: Device) -> None:
    done = device.work("toggle", 100, 500)
    device.finish()
    ticks = [round(edge.time_ps * device.hz / 1e12) for edge in device.scope.edges(OTHER)]
    assert len(ticks) == 200
    assert all(abs(seen - after) <= 1 for seen, (_, after) in zip(ticks, done["done"], strict=True))
    assert all(before < after for before, after in done["done"])


def test_captured_edge_is_in_the_phc_of_its_cycle(device: Device) -> None:
    done = device.work("latch", 200, 500)
    assert done["overruns"] == 0
    for number, (_, after, sequence, captured_ns) in enumerate(done["done"]):
        true_ns = (after - device.origin) * 1e9 / device.hz * (1 + RATE_PPM * 1e-6)
        assert sequence == number
        assert -1e9 / SDP_HZ - 2 < captured_ns - PHC_NS - true_ns < 2


def test_latched_ticks_are_those_of_the_reference(device: Device) -> None:
    with device.working("periodic", "sdp-out", PHC_NS, PERIOD_NS, 20_000):
        done = device.work("capture", "tgpio-in", 300, 2000)
    assert [sequence for sequence, _ in done["done"]] == list(range(300))
    ticks = [round(edge.time_ps * device.hz / 1e12) for edge in device.scope.edges(REFERENCE, rising=True)]
    begin = next(number for number, tick in enumerate(ticks) if tick >= done["done"][0][1] - 2)
    early = [
        (tick - latched) * 1e9 / device.hz
        for tick, (_, latched) in zip(ticks[begin:], done["done"], strict=False)
    ]
    assert -2 < min(early) <= max(early) < 1e9 / ART_HZ + 2
    assert statistics.pstdev(early) > 1e9 / ART_HZ / 12  # the rounding to ART is real


def test_card_pps_follows_the_timecard(device: Device, bw_clock: Path) -> None:
    with started(
        bw_clock, "card", "serve", "--page", f"guest={device.page.path}", "--source", "host"
    ) as card:
        time.sleep(0.5)
        tai_ns = struct.unpack_from("<q", device.page.memory, HOST_LINE + 8 + 16)[0]
        start_ns = tai_ns // PERIOD_NS * PERIOD_NS
        device.work("periodic", "card-pps", start_ns, PERIOD_NS, 1000)
        counter, tai_ns = struct.unpack_from("<Qq", device.page.memory, HOST_LINE + 8 + 8)
        finish(card)
    wait_for(lambda: len(device.scope.edges(REFERENCE, rising=True)) >= 300, "edges of the card")
    for edge in device.scope.edges(REFERENCE, rising=True)[-50:]:
        elapsed_ns = (edge.time_ps * device.hz / 1e12 - counter) * 1e9 / device.hz
        away_ns = (tai_ns + elapsed_ns - start_ns + PERIOD_NS / 2) % PERIOD_NS - PERIOD_NS / 2
        assert abs(away_ns) < 5000, away_ns


def test_oscilloscope_that_goes_and_comes_again(device: Device) -> None:
    with device.working("periodic", "sdp-out", PHC_NS, PERIOD_NS, 60_000) as reference:
        wait_for(lambda: len(device.scope.edges()) > 50, "edges")
        device.scope.close()
        # The device goes on meanwhile: edges are captured.
        assert len(device.work("capture", "tgpio-in", 100, 2000)["done"]) == 100
        device.scope = again = ListeningScope(device.scope.port)
        wait_for(lambda: len(device.scope.edges()) > 50, "edges again")
        assert finish(reference)[0] == 0
    time.sleep(0.1)
    code, result = finish(device.server)
    assert code == 0
    assert result["scope"]["connections"] == 2
    assert result["scope"]["lost"] >= 100
    assert outputs(result, "sdp-out")["fired"] * 2 == result["scope"]["edges"]
    assert again.disorder() == []
    again.close()


def test_oscilloscope_that_does_not_read(bw_edge: Path, edge_pins: Path, tmp_path: Path) -> None:
    page = Page(tmp_path / "page")
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        address = f"127.0.0.1:{deaf.getsockname()[1]}"
        with started(bw_edge, "serve", "--page", f"guest={page.path}", "--scope", address) as server:
            page.calibrate()
            wait_for(lambda: page.horizon() > 0, "the device begins")
            hz = struct.unpack_from("<Q", page.memory, EDGE_OFFSET + 8)[0]
            page.keep_publishing(page.horizon(), PHC_NS, 1e9 / hz)
            work_pins(edge_pins, page.path, "periodic", "sdp-out", PHC_NS, 20_000, 1500)
            before = page.horizon()
            time.sleep(0.2)
            assert page.horizon() - before > hz // 20
            code, result = finish(server)
    page.close()
    assert code == 0
    assert result["pages"][0]["outputs"]["sdp-out"]["fired"] > 50_000
    assert 0 < result["scope"]["lost"] < result["scope"]["edges"]


def test_no_oscilloscope_at_all(bw_edge: Path, edge_pins: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        address = f"127.0.0.1:{gone.getsockname()[1]}"
    page = Page(tmp_path / "page")
    with started(bw_edge, "serve", "--page", f"guest={page.path}", "--scope", address) as server:
        page.calibrate()
        wait_for(lambda: page.horizon() > 0, "the device begins")
        work_pins(edge_pins, page.path, "toggle", 10, 100)
        code, result = finish(server)
    page.close()
    assert code == 0
    assert (result["scope"]["edges"], result["scope"]["lost"], result["scope"]["connections"]) == (20, 20, 0)


def test_writer_that_died_in_the_middle_holds_the_device_for_a_second_only(device: Device) -> None:
    (head,) = struct.unpack_from("<I", device.page.memory, OUTPUT_BEGUN + 4)
    struct.pack_into("<I", device.page.memory, OUTPUT_BEGUN, head + 1)
    time.sleep(0.3)
    held = device.page.horizon()
    time.sleep(0.2)
    assert device.page.horizon() == held
    wait_for(lambda: device.page.horizon() > held, "the writer is taken for dead")
    # The next one takes the announcement back.
    device.work("periodic", "sdp-out", PHC_NS, PERIOD_NS, 300)
    _, result = finish(device.server)
    assert result["pages"][0]["dead_writers"] == 1
    assert outputs(result, "sdp-out")["fired"] > 100


def test_pin_has_one_user(device: Device) -> None:
    with device.working("periodic", "sdp-out", PHC_NS, PERIOD_NS, 20_000):
        code, _, errors = run(
            device.pins, str(device.page.path), "periodic", "sdp-out", str(PHC_NS), "2000000", "1"
        )
    assert (code, errors) == (3, "sdp-out: another process has this pin\n")


def test_pin_without_a_device(bw_edge: Path, edge_pins: Path, tmp_path: Path) -> None:
    short, bare = tmp_path / "short", tmp_path / "bare"
    short.write_bytes(bytes(4096))
    bare.write_bytes(bytes(MAPPING_BYTES))
    for path, words in (
        (short, "too short for an edge device"),
        (bare, "no edge device: bw-edge serve does not run"),
    ):
        code, _, errors = run(edge_pins, str(path), "toggle", "1", "1")
        assert code == 3
        assert words in errors
    scope = ListeningScope()
    with started(bw_edge, "serve", "--page", f"a={bare}", "--scope", scope.address):
        code, _, errors = run(edge_pins, str(bare), "toggle", "1", "1")
        assert code == 3
        assert "not calibrated" in errors
        # A second server is refused.
        code, _, errors = run(bw_edge, "serve", "--page", f"a={bare}", "--scope", scope.address)
        assert code == 3
        assert "another server has it" in errors
    scope.close()


def test_capture_ends_when_nobody_serves_any_more(device: Device) -> None:
    argv = [device.pins, str(device.page.path), "capture", "tgpio-in", "1", "20000"]
    capture = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert capture.stdout
    capture.stdout.readline()
    device.server.kill()
    begin_s = time.monotonic()
    output = capture.communicate(timeout=15)[0]
    assert json.loads(output)["done"] == []
    assert time.monotonic() - begin_s < 15


def test_two_guests_edges_come_in_one_order(bw_edge: Path, edge_pins: Path, tmp_path: Path) -> None:
    scope = ListeningScope()
    pages = [Page(tmp_path / name) for name in ("a", "b")]
    options = [part for page in pages for part in ("--page", f"{page.path.name}={page.path}")]
    with started(bw_edge, "serve", *options, "--scope", scope.address) as server:
        for page in pages:
            page.calibrate()
            wait_for(page.horizon, "the device begins")
        hz = struct.unpack_from("<Q", pages[0].memory, EDGE_OFFSET + 8)[0]
        origin = pages[0].horizon()
        for page in pages:
            page.keep_publishing(origin, PHC_NS, 1e9 / hz)
        argv = [str(edge_pins), str(pages[0].path), "periodic", "sdp-out", str(PHC_NS), "300000", "1000"]
        with subprocess.Popen(argv, stdout=subprocess.DEVNULL):
            work_pins(edge_pins, pages[1].path, "periodic", "sdp-out", PHC_NS + 50_000, 700_000, 1000)
        _, result = finish(server)
    scope.close()
    for page in pages:
        page.close()
    assert all(page["outputs"]["sdp-out"]["fired"] > 500 for page in result["pages"])
    assert scope.disorder() == []


def test_page_of_garbage_harms_nobody(checked_bw_edge: Path, edge_pins: Path, tmp_path: Path) -> None:
    bits = random.Random(7)
    with run_device(checked_bw_edge, edge_pins, tmp_path) as device:
        for _ in range(300):
            for _ in range(100):
                begin = bits.randrange(EDGE_OFFSET + 64, MAPPING_BYTES - 8)
                device.page.memory[begin : begin + 8] = bits.randbytes(8)
            time.sleep(0.003)
        code, result = finish(device.server)
    assert code == 0, result


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--scope", "127.0.0.1:5"), "--page is missing"),
        (("--page", "a=/tmp/none"), "--scope is missing"),
        (("--page", "a", "--scope", "127.0.0.1:5"), "NAME=FILE"),
        (("--page", "a=x", "--page", "a=y", "--scope", "127.0.0.1:5"), "given twice"),
        (("--page", "host=x", "--scope", "127.0.0.1:5"), 'not "host"'),
        (("--page", "a=x", "--scope", "localhost:5"), "ADDRESS:PORT"),
    ],
)
def test_bad_command_lines(bw_edge: Path, options: tuple[str, ...], words: str) -> None:
    code, _, errors = run(bw_edge, "serve", *options)
    assert code == 2
    assert words in errors


def test_follower_without_a_phc(bw_edge: Path, tmp_path: Path) -> None:
    code, _, errors = run(bw_edge, "follow-phc", "--phc", str(tmp_path / "none"))
    assert code == 3
    assert "No such file" in errors
    assert run(bw_edge, "follow-phc")[0] == 2
    assert HORIZON == EDGE_OFFSET + 24
