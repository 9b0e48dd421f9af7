# SPDX-License-Identifier: Apache-2.0
"""The timecard in a guest, x86-64 and ARM, keeps to its stated bound; an ARM guest is what it should be."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hw.session import Bench, open_bench
from hw.virtual import accel, image
from resources.clock_sync.timecard import serve_timecards
from resources.tools.jobs import end_and_fetch
from tests.targets.emulator_clock import offset_candidates, process_of

pytestmark = [pytest.mark.simulated, pytest.mark.timed]

BENCH = Path(__file__).with_name("one_guest.yaml")
KINDS = ("embedded", "linux-rt")
GUEST = "guest"
UNITS = {"embedded": "ns", "linux-rt": "ticks"}
ARM_COUNTER_HZ = 62_500_000
"""Of QEMU's generic timer for processors before ARMv8.6."""
BOUND_MAX_NS = 1000
FILTER_NS = 6000
CHANCES = 3
"""Runs of which one has to show the best bound: on a shared machine any one may meet a stall."""


@dataclass(frozen=True)
class Lab:
    """An open bench with its one guest on."""

    bench: Bench
    kind: str


@pytest.fixture(scope="module", params=KINDS)
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[Lab]:
    """Boot a guest of each image in turn."""
    file = tmp_path_factory.mktemp("bench") / BENCH.name
    text = BENCH.read_text(encoding="utf-8")
    file.write_text(text.replace("image: embedded", f"image: {request.param}"), encoding="utf-8")
    with open_bench(file) as bench:
        bench.power_on([GUEST])
        yield Lab(bench, request.param)


@contextmanager
def served_by_host(bench: Bench, folder: Path) -> Generator[None]:
    """Serve the guest's timecard with this machine's time."""
    page = f"{GUEST}={bench.virtual.timecard_page(GUEST)}"
    argv = [bench.tool("switch", "bw-clock"), "card", "serve", "--source", "host", "--page", page]
    server = bench.node("switch").start(argv, folder / "serve")
    try:
        server.wait_ready()
        yield
    finally:
        end_and_fetch(server)


def bw_clock(bench: Bench, *arguments: str) -> dict[str, Any]:
    """Run bw-clock in the guest; return its result."""
    done = bench.node(GUEST).run([bench.tool(GUEST, "bw-clock"), *arguments], timeout_s=120.0)
    return json.loads(done.stdout.splitlines()[-1])


def compare(bench: Bench, *options: str) -> dict[str, Any]:
    """Compare the guest's clock with the timecard."""
    pair = ("--device", "tai", "--reference", "card")
    filtered = ("--read", "filtered", "--filter-ns", str(FILTER_NS), "--pause-max-us", "200")
    return bw_clock(bench, "compare", *pair, *filtered, "--duration-ms", "2000", *options)


def test_guest_is_a_preempt_rt_linux(lab: Lab) -> None:
    node = lab.bench.node(GUEST)
    expected = image.build_or_get("target", kind=lab.kind)
    machine = {"embedded": "armv7l", "linux-rt": "x86_64"}[lab.kind]
    assert node.run(["uname", "-mr"]).stdout.split() == [expected.kernel_release, machine]
    assert node.run(["cat", "/sys/kernel/realtime"]).stdout.strip() == "1"
    addresses = node.run(["ip", "-json", "address", "show", "test0"]).stdout
    assert "10.77.0.100" in [one.get("local") for one in json.loads(addresses)[0]["addr_info"]]


def test_true_error_is_within_the_bound_in_1000_trials(lab: Lab, tmp_path: Path) -> None:
    """The true offset of the counters is what QEMU itself has added to this machine's."""
    if accel.probe(kind=lab.kind) != "tcg":
        pytest.skip("under KVM the processor adds the offset of the counters: QEMU does not know it")
    with served_by_host(lab.bench, tmp_path):
        result = bw_clock(lab.bench, "card", "calibrate", "--trials", "1000", "--trial-ms", "0")
    assert result["unit"] == UNITS[lab.kind]
    assert lab.kind != "embedded" or result["counter_hz"] == ARM_COUNTER_HZ
    assert len(result["trials"]) == 1000
    candidates = offset_candidates(process_of(lab.bench.folder / GUEST / "console.log"))
    truth, broken = held_against(candidates, result)
    assert truth is not None, f"{result['trials'][:5]}: none of {sorted(candidates)}"
    assert broken == []


def held_against(candidates: set[int], result: dict[str, Any]) -> tuple[int | None, list[Any]]:
    """Return the one candidate that the trial with the best bound allows, and the trials that it breaks."""
    ns_per_unit = 1.0 if result["unit"] == "ns" else 1e9 / result["counter_hz"]

    def wrong(truth: int, trial: list[int]) -> bool:
        return abs(trial[0] - truth) * ns_per_unit > trial[1]

    best = min(result["trials"], key=lambda trial: trial[1])
    truths = [truth for truth in candidates if not wrong(truth, best)]
    if len(truths) != 1:
        return None, []
    return truths[0], [trial for trial in result["trials"] if wrong(truths[0], trial)]


@pytest.mark.parametrize(
    ("truth", "broken"), [(5_000_000, 0), (5_000_290, 0), (5_000_310, 1), (5_000_900, None)]
)
def test_a_broken_bound_is_seen(truth: int, broken: int | None) -> None:
    trials = [[5_000_000, 350, 700], [4_999_900, 400, 800]]
    found, wrong = held_against({truth, 17}, {"unit": "ns", "trials": trials})
    assert (found, len(wrong)) == ((None, 0) if broken is None else (truth, broken))


def test_bound_is_a_microsecond(lab: Lab, tmp_path: Path) -> None:
    stated: list[int] = []
    with served_by_host(lab.bench, tmp_path):
        for _ in range(CHANCES):
            result = compare(lab.bench)
            assert result["valid"], result["invalid_reasons"]
            stated.append(result["reference_bound_ns"])
            if stated[-1] <= BOUND_MAX_NS:
                break
    assert min(stated) <= BOUND_MAX_NS, stated


def test_card_that_shows_the_guests_own_clock_agrees_with_it(lab: Lab, tmp_path: Path) -> None:
    """There and back again: the true offset is 0, two calibrations lie between."""
    with serve_timecards(lab.bench, [GUEST], GUEST, tmp_path):
        result = compare(lab.bench)
    assert result["valid"], result["invalid_reasons"]
    assert result["reference"]["source"] == GUEST
    allowed_ns = FILTER_NS // 2 + result["reference_bound_ns"]
    assert result["offset"]["n"] > 0
    assert -allowed_ns <= result["offset"]["min_ns"] <= result["offset"]["max_ns"] <= allowed_ns
