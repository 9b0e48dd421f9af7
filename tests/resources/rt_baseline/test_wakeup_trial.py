# SPDX-License-Identifier: Apache-2.0
"""What cyclictest is told, what a target has to have, and what ends without a figure."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hw.errors import CapabilityError, ConfigError, MeasurementError
from hw.fields import Fields
from hw.open_bench import OpenBench
from reports.rt_baseline.capability import HARDWARE_NOISE, WAKEUP_LATENCY
from reports.rt_baseline.evidence import CYCLICTEST, HISTOGRAM, WITNESS, load_wakeups
from reports.tools.answers import last_result
from reports.tools.witness_series import SERIES
from reports.units import NS_PER_S
from resources.profiles import times_of
from resources.requirements_file import load_requirements_file
from resources.rt_baseline.settings import TIMES, baseline_times, checked_interval_us
from resources.rt_baseline.traced_trial import NOISE_PERIOD_US
from resources.rt_baseline.wakeup_trial import (
    BOOT_ID,
    AskedWakeups,
    cyclictest_words,
    machine_of,
    measure_wakeups,
)
from tests.fake_bench import FakeBench
from tests.reports.rt_baseline.sample import CYCLES, write_case
from tests.reports.rt_baseline.test_emulator import AWAKE, series

STAT = "cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 100 0 100 800 0 0 0 0 0 0\n"
TARGET: Any = SimpleNamespace(node="board", kind="linux")
ASKED = AskedWakeups(200, CYCLES, 50_000)


class TargetBench(FakeBench):
    """A bench of a target that is a machine of its own, without a witness."""

    def __init__(
        self, help_text: str = "--json=FILENAME", exit_code: int = 0, lines: Sequence[object] = ()
    ) -> None:
        spec = SimpleNamespace(witness=None, virtual=None)
        super().__init__(spec, answer=self._says, lines=lines, exit_code=exit_code)
        self.help_text = help_text
        self.boots: dict[str, str] = {}
        self.threads: dict[str, int] = {}
        self.virtual = SimpleNamespace(target_account=lambda: None, emulating_threads=self._emulating)

    def _emulating(self, _node: str) -> dict[str, int]:
        return self.threads

    def _says(self, node: str, argv: Sequence[str]) -> tuple[int, str, str]:
        if argv[-1] == BOOT_ID and node in self.boots:
            return 0, self.boots[node], ""
        return (0, STAT, "") if argv[0] == "cat" else (0, self.help_text, "")


def _no_time(*_: object) -> None:
    """Let a silence be over at once."""


def measured(bench: TargetBench, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Measure on a bench whose time passes at once; return the folder."""
    monkeypatch.setattr("resources.rt_baseline.wakeup_trial.silence", _no_time)
    measure_wakeups(cast(OpenBench, bench), TARGET, ASKED, folder)
    return folder


@pytest.mark.parametrize(
    ("virtual", "boot", "machine"),
    [(None, "one", "shared"), ("net", "one", "shared"), ("net", "two", "guest"), (None, "two", "own")],
)
def test_a_target_with_the_witnesss_kernel_shares_its_cpus(
    virtual: str | None, boot: str, machine: str
) -> None:
    boots = {"switch": "one", "board": boot}
    spec = SimpleNamespace(witness=SimpleNamespace(node="switch"), virtual=virtual)
    bench = FakeBench(spec, answer=lambda node, _: (0, boots[node], ""))
    assert machine_of(cast(OpenBench, bench), TARGET) == machine


def test_cyclictest_is_told_all_that_counts() -> None:
    words = cyclictest_words(ASKED, "/there")
    assert words[0] == "cyclictest"
    for word in (
        "--smp",
        "--mlockall",
        "--priority=95",
        "--interval=200",
        "--loops=40000",
        "--histogram=50000",
        "--histfile=/there/cyclictest.hist",
        "--json=/there/cyclictest.json",
    ):
        assert word in words
    assert ASKED.within_s == 8


def test_its_files_are_the_evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench, made = TargetBench(), write_case(tmp_path / "made")
    for name in (CYCLICTEST, HISTOGRAM):
        bench.node("board").there[f"/fresh/wakeups/{name}"] = (made / name).read_bytes()
    found = load_wakeups(measured(bench, tmp_path / "case", monkeypatch))
    assert found.facts.machine == "own"
    assert found.facts.latency_target_us is None
    assert found.run.cpus[0].max_us == 120


def test_the_witness_reads_what_the_processors_of_a_guest_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not the emulator's main loop: each thread costs at each wake-up, above the emulator."""
    made = write_case(tmp_path / "made", {0: {15: CYCLES}})
    answers = [{"type": "ready", "tai_utc_s": 37}, last_result(made / WITNESS)]
    bench = TargetBench(lines=answers)
    bench.spec = SimpleNamespace(
        witness=SimpleNamespace(node="switch", cpus=[0], threshold_us=100), virtual="net"
    )
    bench.boots = {"switch": "one", "board": "two"}
    bench.threads = {"vcpu0": 4711, "main-loop": 4710}
    for name in (CYCLICTEST, HISTOGRAM):
        bench.node("board").there[f"/fresh/wakeups/{name}"] = (made / name).read_bytes()
    (tmp_path / "case").mkdir()
    series(tmp_path / "case" / SERIES, [*AWAKE, 0, 0, 0, *AWAKE], threads=1)
    utc_ns = iter((-37 * NS_PER_S, 10**17))
    monkeypatch.setattr("resources.rt_baseline.wakeup_trial.time.time_ns", lambda: next(utc_ns))
    found = load_wakeups(measured(bench, tmp_path / "case", monkeypatch))
    words = next(job.argv for job in bench.jobs if "witness" in job.argv)
    assert words[words.index("--thread") + 1] == "4711"
    assert found.facts.machine == "guest"
    assert found.emulator is not None
    assert len(found.emulator[0].pauses) == 1


@pytest.mark.parametrize("help_text", ["", "cyclictest V 1.0\n--histogram"])
def test_a_target_without_it_is_skipped_by_name(
    help_text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = TargetBench(help_text)
    with pytest.raises(CapabilityError, match=r"board has no cyclictest that writes JSON: .* rt-tests"):
        measured(bench, tmp_path, monkeypatch)
    assert bench.jobs == []


@pytest.mark.parametrize(
    ("code", "said"),
    [(137, "was killed by signal 9"), (-9, "was killed by signal 9"), (1, "ended with exit code 1")],
)
def test_one_that_was_killed_leaves_no_figure(
    code: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(MeasurementError, match=f"cyclictest on board {said}"):
        measured(TargetBench(exit_code=code), tmp_path, monkeypatch)


def test_one_that_leaves_no_file_leaves_no_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MeasurementError, match=r"left no cyclictest\.json: it did not come to its end"):
        measured(TargetBench(), tmp_path, monkeypatch)


def test_acceptance_has_as_many_cycles_as_osadl() -> None:
    assert times_of("acceptance", TIMES, baseline_times).cycles == 10**8


def test_each_profile_has_the_samples_that_requirements_ask_for(repository: Path) -> None:
    file = repository / "robot/rt_baseline/requirements/rt_baseline_virtual.toml"
    every = load_requirements_file(file, WAKEUP_LATENCY, HARDWARE_NOISE).requirements
    samples = {each.quantity: each.samples for each in every}
    for profile in tomllib.loads(TIMES.read_text()):
        times = times_of(profile, TIMES, baseline_times)
        assert times.cycles >= samples[WAKEUP_LATENCY]
        assert times.noise_s * 1_000_000 // NOISE_PERIOD_US > samples[HARDWARE_NOISE]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"cycles": 999}, r"cycles"),
        ({"histogram_us": 1_000_001}, r"histogram_us"),
        ({"loads": ["network"]}, "loads"),
        ({"loads": ["cpu", "cpu"]}, r"loads: \['cpu', 'cpu'\]; needed: each once"),
        ({"noise_s": 0}, "noise_s"),
        ({"timerlat_s": 601}, "timerlat_s"),
        ({"traced_loads": ["compile-like"]}, "traced_loads"),
        ({"traced_loads": ["cpu", "cpu"]}, r"traced_loads: \['cpu', 'cpu'\]; needed: each once"),
        ({"other": 1}, "other"),
    ],
)
def test_what_cannot_be_asked_is_refused(change: dict[str, Any], said: str) -> None:
    table: dict[str, Any] = {
        "cycles": 1000,
        "histogram_us": 400,
        "loads": ["cpu"],
        "noise_s": 1,
        "timerlat_s": 1,
    }
    table["traced_loads"] = ["cpu"]
    with pytest.raises(ConfigError, match=said):
        baseline_times(Fields(table | change, "times.toml", "ci"))


@pytest.mark.parametrize("text", ["", "49", "1000001", "200.0", "-200", "²"])
def test_an_interval_that_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(
        ConfigError, match=r"WAKEUP_INTERVAL_US: .*; allowed: a whole number in 50\.\.1000000"
    ):
        checked_interval_us(text)
    assert checked_interval_us("200") == 200
