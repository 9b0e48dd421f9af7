# SPDX-License-Identifier: Apache-2.0
"""Who takes part in a ring, what each is told, and what a profile may ask for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hw.bench import load_bench
from hw.errors import CapabilityError, ConfigError
from hw.fields import Fields
from reports.control_loops.ring_evidence import KnownHold, KnownPoll
from resources.control_loops.ring_trial import RingMessages, ring_nodes
from resources.control_loops.settings import TIMES, ring_times
from resources.profiles import times_of

TABLE: dict[str, Any] = {
    "count": 100,
    "interval_us": 4000,
    "size_bytes": 10,
    "writes": 2,
    "hold_us": 2000,
    "hold_interval_us": 4000,
    "hold_count": 100,
    "hold_turn": 20,
    "nagle_count": 0,
    "loads": ["network"],
    "load_count": 100,
    "load_mbit": 90,
    "clocks": [],
}


def test_machines_with_clocks_of_their_own_come_first(repository: Path) -> None:
    bench = load_bench(repository / "hw/benches/virtual.yaml")
    places = ring_nodes(bench, bench.targets["linux-rt"])
    assert [node for node, _ in places] == ["linux-rt", "producer-12", "p01", "p02", "linux-rt"]
    assert places[0] == places[-1]


def test_bench_with_too_few_producers_is_refused(repository: Path) -> None:
    bench = load_bench(repository / "hw/benches/native.yaml")
    few = replace(bench, producers={key: bench.producers[key] for key in (1, 2)})
    with pytest.raises(CapabilityError, match="2 producers besides linux: a ring needs 3"):
        ring_nodes(few, bench.targets["linux"])


def test_each_is_told_its_own_part() -> None:
    messages = RingMessages(100, 5000, 10, 2, nagle=True, hold=KnownHold(2, 2000, 20), kernel_stamps=False)
    assert messages.words(0, 4)[:2] == ["--count", "100"]
    assert messages.words(1, 4) == ["--writes", "2", "--nagle"]
    assert messages.words(2, 4) == ["--writes", "2", "--nagle", "--hold-us", "2000", "--hold-turn", "20"]
    assert messages.words(4, 4) == []
    polled = RingMessages(100, 5000, 10, 1, poll=KnownPoll(1, 700), kernel_stamps=False)
    assert polled.words(1, 4) == ["--writes", "1", "--poll-us", "700"]
    assert "--poll-us" not in polled.words(2, 4)
    assert RingMessages(100, 5000, 10, 1, udp=True).words(4, 4) == ["--udp", "--kernel-stamps"]


def test_each_profile_with_a_table_can_be_read() -> None:
    for profile in ("ci", "nightly", "acceptance", "soak"):
        times = times_of(profile, TIMES, ring_times)
        assert (times.size_bytes, times.writes) == (10, 2)  # as in the paper


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"hold_us": 2001}, r"ci\.hold_us: 2001; allowed: 1\.\.2000, half of hold_interval_us"),
        ({"hold_turn": 51}, r"ci\.hold_turn: 51; allowed: 1\.\.50, half of hold_count"),
        ({"size_bytes": 9}, r"size_bytes"),
        ({"writes": 3}, r"writes"),
        ({"load_count": 99}, r"load_count: 99; allowed, with loads or clocks: 100\.\.10000000"),
        ({"loads": ["network", "network"]}, r"loads: \['network', 'network'\]; needed: each once"),
        ({"loads": ["disk"]}, "loads"),
        ({"clocks": ["ptp"]}, "clocks"),
        ({"other": 1}, r"other"),
    ],
)
def test_what_cannot_be_is_refused(change: dict[str, int], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        ring_times(Fields({**TABLE, **change}, "times.toml", "ci"))
