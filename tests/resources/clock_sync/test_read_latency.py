# SPDX-License-Identifier: Apache-2.0
"""Which clocks are read, what is kept of a clock that cannot be, and what the tool is told."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hw.bench import BenchSpec, load_bench
from hw.errors import BenchError
from reports.clock_read.capability import CLOCKS, KERNEL_CLOCKS, QUANTITY
from reports.clock_read.readings import HOST, TARGET, Reading, Readings, load_cost, load_readings
from resources.clock_sync.read_latency import measure_read_latency, read_commands
from resources.clock_sync.times import TIMES as CLOCK_TIMES
from resources.clock_sync.times import ClockTimes, clock_times
from resources.profiles import times_of
from resources.requirements_file import load_requirements_file
from tests.fake_bench import FakeBench
from tests.reports.sample_read_latency import latency_answer

ROOT = Path(__file__).resolve().parents[3]
REQUIREMENTS = ROOT / "robot" / "clock_sync" / "requirements" / "clock_read_latency_virtual.toml"
ANSWER = json.dumps(latency_answer()) + "\n"


@pytest.fixture(scope="module")
def spec() -> BenchSpec:
    return load_bench(ROOT / "hw" / "benches" / "virtual.yaml")


def _times() -> ClockTimes:
    return times_of("ci", CLOCK_TIMES, clock_times)


def _measure(
    spec: BenchSpec, folder: Path, odd: dict[str, tuple[int, str, str]]
) -> tuple[Readings, list[list[str]]]:
    """Measure where all but the `odd` clocks (or ways to read a PHC) answer well; return what ran, too."""

    def answer(_node: str, argv: Sequence[str]) -> tuple[int, str, str]:
        return next((odd[word] for word in argv if word in odd), (0, ANSWER, ""))

    bench: Any = FakeBench(spec, answer=answer)
    bench.virtual = SimpleNamespace(timecard_page=lambda _name: None)  # pyright: ignore
    found = measure_read_latency(bench, spec.targets["linux-rt"], _times(), folder, lambda _line: None)
    nodes = list(bench.nodes.values())
    assert min(timeout_s for node in nodes for timeout_s in node.timeouts_s) > _times().latency_max_s
    return found, [argv for node in nodes for argv in node.ran]


def _of(readings: Readings, place: str, clock: str) -> Reading:
    (found,) = [one for one in readings.readings if (one.place, one.clock) == (place, clock)]
    return found


def test_every_clock_of_both_is_read(spec: BenchSpec) -> None:
    commands = read_commands(spec.targets["linux-rt"])
    assert [one.clock for one in commands if one.place == HOST] == list(KERNEL_CLOCKS)
    assert [one.clock for one in commands if one.place == TARGET] == list(CLOCKS)
    assert not any(one.not_offered for one in commands)
    ways = [one.options for one in commands if one.clock.startswith("phc-")]
    assert ways == [("--phc-read", way) for way in ("gettime", "basic", "extended", "precise")]


def test_what_the_bench_lacks_is_listed(spec: BenchSpec, tmp_path: Path) -> None:
    target = replace(spec.targets["linux-rt"], ptp_clock="", timecard=None)
    bare = replace(spec, targets={"linux-rt": target})
    readings, ran = _measure(bare, tmp_path, {})
    lacking = {one.clock: one.not_offered for one in readings.readings if one.not_offered}
    assert set(lacking) == set(CLOCKS) - set(KERNEL_CLOCKS)
    assert "no ptp_clock of target linux-rt" in lacking["phc-basic"]
    assert "no timecard of target linux-rt" in lacking["timecard"]
    assert len(ran) == 2 * len(KERNEL_CLOCKS)


def test_evidence_is_kept_and_the_tool_told_how_long(spec: BenchSpec, tmp_path: Path) -> None:
    readings, ran = _measure(spec, tmp_path, {})
    assert load_readings(tmp_path) == readings
    assert all(load_cost(tmp_path, one) is not None for one in readings.readings)
    assert len({one.file for one in readings.readings}) == len(readings.readings)
    times = _times()
    for argv in ran:
        assert argv[argv.index("--reads") + 1] == str(times.latency_reads) == "1000000"
        assert argv[argv.index("--duration-ms") + 1] == str(times.latency_max_s * 1000)


def test_what_machine_or_driver_do_not_offer_is_listed(spec: BenchSpec, tmp_path: Path) -> None:
    refusal = "bw-clock latency: --phc-read: precise: this PHC or kernel does not offer it"
    lost = 'bw-clock latency: --clock: clock "card": no shared page'
    readings, _ = _measure(spec, tmp_path, {"precise": (3, "", refusal), "card": (3, "", lost)})
    precise = _of(readings, TARGET, "phc-precise")
    assert (precise.file, precise.failed) == ("", "")
    assert precise.not_offered == "this PHC or kernel does not offer it"
    assert _of(readings, TARGET, "timecard").not_offered == 'clock "card": no shared page'
    assert _of(readings, TARGET, "phc-basic").file == "target-phc-basic.ndjson"


def test_a_clock_that_cannot_be_read_is_told_apart(spec: BenchSpec, tmp_path: Path) -> None:
    said = "bw-clock latency: card: the timecard cannot be calibrated: nobody answers"
    readings, _ = _measure(spec, tmp_path, {"card": (4, "", said)})
    card = _of(readings, TARGET, "timecard")
    assert (card.file, card.not_offered) == ("", "")
    assert card.failed == "card: the timecard cannot be calibrated: nobody answers"


def test_an_invalid_answer_is_kept(spec: BenchSpec, tmp_path: Path) -> None:
    answer = json.dumps(latency_answer(valid=False, complete=False, invalid_reasons=["stale"])) + "\n"
    readings, _ = _measure(spec, tmp_path, {"card": (4, answer, "")})
    cost = load_cost(tmp_path, _of(readings, TARGET, "timecard"))
    assert cost is not None
    assert cost.invalid() == ["stale"]


@pytest.mark.parametrize("code", [1, 2, 137])
def test_a_tool_that_does_not_work_is_a_fault_of_the_bench(
    spec: BenchSpec, tmp_path: Path, code: int
) -> None:
    with pytest.raises(BenchError, match="bw-clock latency --clock tai"):
        _measure(spec, tmp_path, {"tai": (code, "", "")})


def test_the_projects_requirements_name_sources() -> None:
    requirements = load_requirements_file(REQUIREMENTS, QUANTITY).requirements
    assert {"realtime", "timecard"} <= {one.of for one in requirements}
    assert all(len(one.limit.source) > 40 and one.samples >= 100_000 for one in requirements)
