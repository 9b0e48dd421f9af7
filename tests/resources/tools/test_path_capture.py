# SPDX-License-Identifier: Apache-2.0
"""Both ends of a path captured: datagrams of each way, beside what was asked, and what was missed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hw.errors import MeasurementError
from hw.path_settings import Distribution, GilbertElliott, PathSettings, RandomLoss
from reports.paths.jitter import Jitter
from reports.paths.transits import LOST, Transits
from resources.tools import path_capture
from resources.tools.capture import capture_file
from resources.tools.path_capture import PathEnds, achieved, captured_path
from tests.fake_bench import FakeBench, FakeJob
from tests.reports.paths.written_capture import Datagram, write_capture

NEAR, FAR = "10.77.0.2", "10.77.0.1"
N = 2000
WITHOUT = np.full(N, 100_000) + np.arange(N) % 7
RANDOM = np.random.default_rng(65)
PORT = 9642
CAUGHT = "4 packets captured\n9 packets received by filter\n0 packets dropped by kernel\n"


def seen(inside_ns: Sequence[int] | np.typing.NDArray[np.int64], count: Sequence[int] = ()) -> Transits:
    """Return datagrams with these times inside; LOST where none came."""
    times = np.array(inside_ns)
    counts = np.array(count) if count else (times != LOST).astype(np.int64)
    sent = np.arange(len(times)) * 1_000_000
    place = np.full(len(times), LOST)
    there = np.flatnonzero(times != LOST)
    place[there[np.argsort(sent[there] + times[there], kind="stable")]] = np.arange(len(there))
    return Transits(sent, times, counts, place, 0, 0)


def names(asked: PathSettings, found: Transits) -> tuple[list[str], list[str]]:
    """Return which conditions are judged, and which of them are marked."""
    done = achieved(asked, found, [WITHOUT])
    return [each.name for each in done.conditions], [each.name for each in done.marked]


def test_each_way_has_its_own_datagrams(tmp_path: Path) -> None:
    there, back = Datagram(1), Datagram(2, FAR, NEAR)
    other = Datagram(3, ports=(5000, 5002))
    write_capture(capture_file(tmp_path, "p02"), [(100, there), (900, back), (950, other)])
    write_capture(capture_file(tmp_path, "p01"), [(400, there), (700, back), (990, other)])
    path = PathEnds("p02", "p01", tmp_path)
    assert path.there(NEAR, 5001).inside_ns.tolist() == [300]
    assert path.there(NEAR).inside_ns.tolist() == [300, 40]
    assert path.back(FAR).inside_ns.tolist() == [200]
    assert path.there(FAR).is_lost.tolist() == [True]


def test_a_damaged_capture_is_no_measurement(tmp_path: Path) -> None:
    for interface in ("p01", "p02"):
        capture_file(tmp_path, interface).write_bytes(b"no capture of packets, but text")
    with pytest.raises(MeasurementError, match=r"p02\.pcap: not a pcap file"):
        PathEnds("p02", "p01", tmp_path).there(NEAR)


def test_a_path_as_asked_has_no_mark() -> None:
    every = ["loss", "copies", "reordering", "delay"]
    assert names(PathSettings(), seen(WITHOUT)) == (every, [])
    assert names(PathSettings(delay_us=5_000), seen(WITHOUT + 5_000_000)) == (every, [])


def test_what_nobody_asked_for_is_marked() -> None:
    assert names(PathSettings(), seen(WITHOUT + 8_000_000))[1] == ["delay"]
    lost = WITHOUT.copy()
    lost[7:9] = LOST
    assert names(PathSettings(), seen(lost))[1] == ["loss"]
    assert names(PathSettings(), seen(WITHOUT, [1] * (N - 1) + [2]))[1] == ["copies"]
    early = WITHOUT + 5_000_000
    early[10::10] = 100
    assert names(PathSettings(delay_us=5_000), seen(early))[1] == ["reordering"]
    assert names(PathSettings(delay_us=5_000, reorder_percent=10), seen(early))[1] == []
    assert names(PathSettings(duplicate_percent=4), seen(WITHOUT))[1] == ["copies"]


def test_loss_in_bursts_is_judged_as_such() -> None:
    lost = WITHOUT.copy()
    for begin in range(0, N, 100):
        lost[begin : begin + 5] = LOST
    found = seen(lost)
    wanted = PathSettings(loss=GilbertElliott(100 / 95, 20))
    assert names(wanted, found) == (["loss", "burst", "copies", "reordering", "delay"], [])
    assert names(PathSettings(loss=GilbertElliott(10 / 1.9, 100)), found)[1] == ["burst"]
    assert names(wanted, seen(WITHOUT)) == (["loss", "copies", "reordering", "delay"], ["loss"])
    correlated = achieved(PathSettings(loss=RandomLoss(5, 50)), found, [WITHOUT]).conditions[0]
    alone = achieved(PathSettings(loss=RandomLoss(5)), found, [WITHOUT]).conditions[0]
    assert correlated.high - correlated.low > alone.high - alone.low


def test_jitter_is_judged_as_a_distribution_and_no_order_is() -> None:
    asked = PathSettings(delay_us=20_000, jitter_us=5_000, jitter_distribution=Distribution.PARETO)
    delays_ns = (1000 * Jitter(20_000, 5_000, "pareto").drawn_us(N, RANDOM)).astype(np.int64)
    done = achieved(asked, seen(WITHOUT + delays_ns), [WITHOUT])
    assert [each.name for each in done.conditions] == ["loss", "copies", "p10", "p50", "p90"]
    assert done.jitter is not None
    assert done.jitter.p_value > 1e-4
    assert "p10: asked" in str(done)
    narrow = achieved(asked, seen(WITHOUT + delays_ns // 2 + 10_000_000), [WITHOUT])
    assert "the jitter is lower than asked" in str(narrow)
    correlated = PathSettings(delay_us=20_000, jitter_us=5_000, jitter_correlation_percent=50)
    assert "jitter correlation" in names(correlated, seen(WITHOUT + delays_ns))[1]


def test_a_rate_makes_datagrams_wait_for_each_other() -> None:
    assert names(PathSettings(rate_kbps=1000), seen(WITHOUT + 3_000_000)) == (
        ["loss", "copies", "reordering"],
        [],
    )


def test_too_few_datagrams_are_no_measurement() -> None:
    with pytest.raises(MeasurementError, match="path: a median of 3 datagrams"):
        achieved(PathSettings(), seen([1, 2, 3]), [WITHOUT])


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (CAUGHT, ""),
        (CAUGHT.replace("0 packets", "3 packets"), "capture of p02: 3 packets are missing"),
        (f"{CAUGHT}1 packet dropped by interface\n", "capture of p02: 1 packets are missing"),
        ("Killed\n", "capture of p02: does not say what it missed: 'Killed"),
    ],
)
def test_a_capture_that_missed_packets_is_no_measurement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, message: str
) -> None:
    bench: Any = FakeBench()

    def start(_bench: object, interface: str, folder: Path, but_port: int) -> FakeJob:
        assert but_port == PORT
        return FakeJob(bench, "switch", ["tcpdump"], folder / f"capture-{interface}")

    def end(job: FakeJob) -> None:
        bench.log.append(f"end {job.name}")
        (tmp_path / "run" / f"{job.name}.err").write_text(said)

    monkeypatch.setattr(path_capture, "start_capture", start)
    monkeypatch.setattr(path_capture, "end_and_fetch", end)
    monkeypatch.setattr(path_capture, "SETTLES_S", 0)

    def capture() -> None:
        with captured_path(bench, "p02", "p01", tmp_path / "run", PORT) as path:
            assert (path.first, path.second) == ("p02", "p01")

    if message:
        with pytest.raises(MeasurementError, match=message):
            capture()
    else:
        capture()
    assert sorted(bench.log) == ["end capture-p01", "end capture-p02"]
