# SPDX-License-Identifier: Apache-2.0
"""Plans: the native tool accepts them, and each producer's clock shows the right time at each slot."""

from __future__ import annotations

import csv
import dataclasses
import socket
import subprocess
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hw.bench import BenchSpec, load_bench
from hw.errors import CapabilityError
from hw.tools import local_tool
from resources.clock_sync.lines import ClockLine
from resources.daq_replay.pattern import Pattern, load_pattern
from resources.daq_replay.plan import ReplaySettings, write_plan
from tests.patience import HANG_S

ROOT = Path(__file__).resolve().parents[3]
DAQ12 = ROOT / "traffic-gen" / "patterns" / "daq12.toml"
START_TAI_NS = 1_790_000_000_000_000_000
SPEC = load_bench(ROOT / "hw" / "benches" / "virtual.yaml")
TARGET = SPEC.targets["linux-rt"]
HOST = ClockLine("host", 0, 0, 0, 0)
BEGIN_S = 3
"""Time for two processes to begin."""


def _lines(offset_ns: int, rate_ppb: int, before_ns: int = 5_000_000_000) -> dict[str, ClockLine]:
    return {
        "host": HOST,
        "producer-12": ClockLine("producer-12", START_TAI_NS - before_ns, offset_ns, rate_ppb, 9),
    }


@pytest.fixture(scope="module")
def daq12() -> Pattern:
    return load_pattern(DAQ12)


def _check(text: str, folder: Path) -> str:
    """Let the native tool read a plan; ask it for a producer that cannot be there. Return its one line."""
    path = folder / "plan.toml"
    path.write_text(text)
    done = subprocess.run(
        [str(local_tool("bw-traffic")), "send", str(path), "--producer", "655"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    return done.stderr.strip()


def test_the_tool_accepts_a_plan_and_refuses_a_spoiled_one(tmp_path: Path, daq12: Pattern) -> None:
    settings = ReplaySettings(pattern=DAQ12)
    text = write_plan(SPEC, TARGET, settings, _lines(3_000_000_000, 100_000), START_TAI_NS, daq12.text())
    assert "the plan has no producer 655; it has 12 of them, up to 12" in _check(text, tmp_path)
    for spoil in (
        "rate_ppb = 100000",
        "start_tai_ns",
        "base_port = 20000",
        'address = "10.77.0.12"',
        'clock = "producer-12"',
    ):
        assert text.count(spoil) >= 1
        message = _check(text.replace(spoil, f"x{spoil}", 1), tmp_path)
        assert "plan.toml:" in message
        assert "no producer 655" not in message


def test_the_pattern_survives_its_way_through_the_plan(tmp_path: Path, daq12: Pattern) -> None:
    path = tmp_path / "pattern.toml"
    path.write_text(daq12.text())
    again = load_pattern(path)
    assert again.streams == daq12.streams
    path.write_text(daq12.text([3]))
    assert {stream.id for stream in load_pattern(path).streams} == {30, 31, 32, 33}


def test_the_consumer_logs_what_is_over_the_requirements_limit(tmp_path: Path, daq12: Pattern) -> None:
    """Not over the pattern's budget: a limit below that would have misses that no log explains."""
    path = tmp_path / "pattern.toml"
    path.write_text(daq12.with_budgets({23: 4_000_000, 999: 1}).text())
    budgets = {stream.id: stream.budget_ns for stream in load_pattern(path).streams}
    assert budgets == {stream.id: stream.budget_ns for stream in daq12.streams} | {23: 4_000_000}


def test_a_replay_of_one_producer_names_only_his_clock(tmp_path: Path, daq12: Pattern) -> None:
    settings = ReplaySettings(pattern=DAQ12, only_producers=(12,))
    text = write_plan(SPEC, TARGET, settings, _lines(0, 0), START_TAI_NS, daq12.text([12]))
    plan = tomllib.loads(text)
    assert [clock["name"] for clock in plan["clock"]] == ["producer-12"]
    assert [producer["number"] for producer in plan["producer"]] == [12]
    assert "it has 1 of them, up to 12" in _check(text, tmp_path)


def test_a_producer_that_the_bench_lacks_is_a_missing_capability(daq12: Pattern) -> None:
    settings = ReplaySettings(pattern=DAQ12, only_producers=(3, 13))
    with pytest.raises(CapabilityError, match=r"no producer 13; add it under benchwright\.producers"):
        write_plan(SPEC, TARGET, settings, _lines(0, 0), START_TAI_NS, daq12.text())


def test_each_plan_has_a_nonce_of_its_own(daq12: Pattern) -> None:
    texts = [
        write_plan(SPEC, TARGET, ReplaySettings(DAQ12), _lines(0, 0), START_TAI_NS, daq12.text())
        for _ in range(20)
    ]
    assert len({tomllib.loads(text)["run"]["nonce"] for text in texts}) == 20


def _scheduled_ns(producer: dict[str, Any], since_start_ns: int) -> int:
    """Return when a slot is due in its producer's own clock: docs/native-tools.md, Plan file."""
    return producer["start_tai_ns"] + since_start_ns + round(since_start_ns * producer["rate_ppb"] / 10**9)


@given(
    st.integers(-(10**18), 10**18),
    st.integers(-1_000_000, 1_000_000),
    st.integers(0, 3_600 * 10**9),
    st.integers(0, 7 * 86_400 * 10**9),
)
def test_all_producers_come_to_a_slot_at_the_same_instant_of_the_reference(
    offset_ns: int, rate_ppb: int, before_ns: int, since_start_ns: int
) -> None:
    lines = _lines(offset_ns, rate_ppb, before_ns)
    text = write_plan(SPEC, TARGET, ReplaySettings(DAQ12), lines, START_TAI_NS, "")
    producers = {producer["number"]: producer for producer in tomllib.loads(text)["producer"]}
    assert sorted(producers) == sorted(SPEC.producers)
    for number in (1, 12):
        producer = producers[number]
        instant_ns = lines[producer["clock"]].reference_ns(_scheduled_ns(producer, since_start_ns))
        assert abs(instant_ns - (START_TAI_NS + since_start_ns)) <= 2


def test_a_plan_names_the_time_service_to_the_consumer_alone() -> None:
    """Producers stamp with the system's clock, and the default stays unsaid: older tools read such plans."""
    lines = _lines(0, 0, 0)
    settings = ReplaySettings(DAQ12, correction="none", consumer_clock="timeservice")
    theirs = tomllib.loads(write_plan(SPEC, TARGET, settings, lines, START_TAI_NS, ""))
    own = write_plan(SPEC, TARGET, settings, lines, START_TAI_NS, "", scale=lines["host"])
    assert "clock" not in theirs["consumer"]
    assert tomllib.loads(own)["consumer"]["clock"] == "timeservice"


def _loopback() -> BenchSpec:
    """Return the virtual bench with producer 12 and the target on this machine's loopback."""
    return dataclasses.replace(
        SPEC,
        producers={12: dataclasses.replace(SPEC.producers[12], address="127.0.0.1")},
        clocks={
            **SPEC.clocks,
            "producer-12": dataclasses.replace(SPEC.clocks["producer-12"], address="127.0.0.1"),
        },
    )


def _free_udp_port(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        try:
            link.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


@pytest.mark.simulated
@pytest.mark.timed
def test_the_tool_schedules_by_offset_and_rate(tmp_path: Path, daq12: Pattern) -> None:
    """A real replay over loopback: this machine's clock plays one that is 2 s ahead and 0.1 % fast.

    How many of its 20 messages come is the affair of a machine that has no time for it.
    """
    if not _free_udp_port(20122):
        pytest.skip("another replay runs in this namespace")
    stream = next(stream for stream in daq12.streams if stream.id == 122)
    pattern = dataclasses.replace(daq12, streams=(stream,))
    settings = ReplaySettings(
        pattern=DAQ12,
        phase="aligned-48",
        warmup_ms=0,
        duration_ms=2000,
        grace_ms=2000,
        correction="none",
        only_producers=(12,),
    )
    start_ns = time.time_ns() + (37 + BEGIN_S) * 10**9
    line = ClockLine("producer-12", start_ns, 2 * 10**9, 1_000_000, 0)
    target = dataclasses.replace(TARGET, test_address="127.0.0.1")
    plan = tmp_path / "plan.toml"
    plan.write_text(
        write_plan(_loopback(), target, settings, {"producer-12": line}, start_ns, pattern.text())
    )
    tool = str(local_tool("bw-traffic"))
    with subprocess.Popen(
        [tool, "recv", str(plan), "--out", str(tmp_path), "--log", "--priority", "0"],
        stdout=subprocess.PIPE,
        text=True,
    ) as recv:
        assert recv.stdout is not None
        assert '"ready"' in recv.stdout.readline()
        subprocess.run(
            [tool, "send", str(plan), "--producer", "12", "--priority", "0"],
            check=True,
            timeout=HANG_S,
            capture_output=True,
        )
        assert '"result"' in recv.stdout.read().splitlines()[-1]
    with (tmp_path / "messages.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert 10 <= len(rows) <= -(-2_000_000_000 // stream.period_ns)
    for row in rows:
        instant_ns = line.reference_ns(int(row["scheduled_tai_ns"]))
        assert abs(instant_ns - (start_ns + int(row["sequence"]) * stream.period_ns)) <= 2
