# SPDX-License-Identifier: Apache-2.0
"""The campaign that measures the verdict: its cases, its disturbances, its arithmetic."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from bench.lab.report import summarise
from bench.verdicts.bench_verdicts import (
    COUNTED_S,
    PATTERN_FILE,
    CountingBegins,
    append_line,
    draw_cases,
    excluded_miss_probability,
    is_wrong,
)
from bench.verdicts.verdict_disturbances import (
    DISTURBANCES,
    Stopper,
    disturbances_of,
    emulator_of,
    touch_memory,
    write_disk,
)
from bench.verdicts.verdict_faults import FAULTS, NONE, Truth, build_hog, faults_of, held_us, queue_counts
from bench.verdicts.verdict_matrix import (
    BARS,
    INVALID,
    CaseResult,
    by_fault_text,
    clopper_pearson,
    figures,
    matrix_text,
)
from hw.errors import CapabilityError, MeasurementError
from hw.toml_file import read_toml
from reports.record.sampling import required_samples
from resources.daq_replay.pattern import load_pattern

beta: Any = import_module("scipy.stats").beta  # has no types

TC_ANSWER = """qdisc netem 8003: root refcnt 2 limit 100000 delay 13ms loss 2%
 Sent 184203 bytes 1205 pkt (dropped 24, overlimits 0 requeues 0)
 backlog 0b 0p requeues 0
"""


def case(
    truth: Truth, outcome: str, disturbance: str = NONE, fault: str = "netem-delay", number: int = 1
) -> CaseResult:
    """Return a case of which only truth, outcome and disturbance matter."""
    return CaseResult(
        campaign="20260101T000000Z",
        seed=1,
        case=number,
        part="",
        fault=fault,
        disturbance=disturbance,
        target="linux-rt",
        truth=truth,
        outcome=outcome,
        first_passes=outcome == "pass",
        reason="because",
        replays=1,
        counted_s=10,
        steal_ms=20,
        seconds=40.0,
    )


# -- arithmetic


@pytest.mark.parametrize(("hits", "n"), [(0, 1), (0, 40), (3, 40), (39, 40), (40, 40), (1, 2), (150, 300)])
def test_interval_is_that_of_the_beta_distribution(hits: int, n: int) -> None:
    low = float(beta.ppf(0.025, hits, n - hits + 1)) if hits else 0.0
    high = float(beta.ppf(0.975, hits + 1, n - hits)) if hits < n else 1.0
    assert clopper_pearson(hits, n) == pytest.approx((low, high), abs=1e-9)


def test_of_no_case_nothing_is_known() -> None:
    assert clopper_pearson(0, 0) == (0.0, 1.0)
    with pytest.raises(ValueError, match="3 of 2"):
        clopper_pearson(3, 2)


def test_matrix_counts_truth_against_verdict() -> None:
    cases = [
        *(case(Truth.SOUND, "pass", fault=NONE) for _ in range(3)),
        case(Truth.SOUND, "inconclusive", "busy", NONE),
        case(Truth.SOUND, "error", "busy", NONE),
        *(case(Truth.FAULTY, "fail") for _ in range(2)),
        case(Truth.FAULTY, INVALID),
    ]
    text = matrix_text(cases)
    quiet = next(line for line in text.splitlines() if line.startswith("| none | sound"))
    assert quiet.split("|")[3].strip().startswith("3 of 3: 100.0 % (29.2 .. 100.0)")
    assert "| busy | sound | 0 of 2" in text
    assert "| all | faulty | 0 of 2" in text, "an invalid case counts nowhere"
    assert "undecidable" not in text
    assert text.splitlines()[2].startswith("| none |"), "the quiet machine comes first"
    assert "| netem-delay | faulty |" in by_fault_text(cases)


def test_matrix_of_nothing_has_no_row() -> None:
    assert len(matrix_text([]).splitlines()) == 2


def test_figures_of_a_good_campaign_meet_the_bars() -> None:
    cases = [case(Truth.SOUND, "pass"), case(Truth.FAULTY, "fail"), case(Truth.UNDECIDABLE, "inconclusive")]
    found = figures(cases)
    assert found["cases"] == 3
    assert found["sound_pass_share"] == found["faulty_fail_share_quiet"] == 1.0
    assert math.isnan(found["faulty_fail_share_disturbed"])
    assert summarise("verdicts", found, BARS)["met"] is True


@pytest.mark.parametrize(
    "wrong",
    [
        case(Truth.SOUND, "fail", "busy"),
        case(Truth.FAULTY, "pass", "busy"),
        case(Truth.UNDECIDABLE, "pass"),
        case(Truth.FAULTY, "inconclusive"),
    ],
)
def test_one_wrong_verdict_misses_a_bar(wrong: CaseResult) -> None:
    cases = [case(Truth.FAULTY, "fail") for _ in range(18)]
    assert summarise("verdicts", figures(cases), BARS)["met"] is True
    assert summarise("verdicts", figures([*cases, wrong]), BARS)["met"] is False


def test_nothing_done_meets_no_bar() -> None:
    assert summarise("verdicts", figures([]), BARS)["met"] is False


def test_wrong_is_what_contradicts_the_truth() -> None:
    outcomes = ("pass", "fail", "inconclusive", "unset", "error", INVALID)
    wrong = {(truth.value, out) for truth in Truth for out in outcomes if is_wrong(case(truth, out))}
    assert wrong == {("sound", "fail"), ("faulty", "pass"), ("undecidable", "pass"), ("undecidable", "fail")}


# -- cases


def test_a_seed_gives_the_same_cases_and_fewer_are_the_first_of_more() -> None:
    names = list(FAULTS), list(DISTURBANCES)
    assert draw_cases(3, 40, *names) == draw_cases(3, 200, *names)[:40]
    assert draw_cases(3, 40, *names) != draw_cases(4, 40, *names)


def test_a_night_has_every_pair() -> None:
    cases = draw_cases(1, 300, list(FAULTS), list(DISTURBANCES))
    assert {(c.fault, c.disturbance) for c in cases} == {(f, d) for f in FAULTS for d in DISTURBANCES}


def test_a_few_cases_have_both_truths_on_both_machines() -> None:
    cases = draw_cases(1, 12, list(FAULTS), list(DISTURBANCES))
    turns = Counter((FAULTS[c.fault].truth == Truth.SOUND, c.disturbance == NONE) for c in cases)
    assert set(turns.values()) == {3}
    assert len(turns) == 4


def test_chosen_rows_are_the_only_ones() -> None:
    cases = draw_cases(1, 5, ["rt-hog"], ["busy"])
    assert [(c.fault, c.disturbance) for c in cases] == [("rt-hog", "busy")] * 5
    assert len({tuple(c.drawn["fault"].values()) for c in cases}) == 5


@pytest.mark.parametrize("seed", range(20))
def test_what_is_drawn_lies_in_the_table(seed: int) -> None:
    for drawn in draw_cases(seed, 60, list(FAULTS), list(DISTURBANCES)):
        for part, kind in (("fault", FAULTS[drawn.fault]), ("disturbance", DISTURBANCES[drawn.disturbance])):
            assert set(drawn.drawn[part]) == set(kind.ranges)
            for name, (low, high) in kind.ranges.items():
                assert low <= drawn.drawn[part][name] <= high


def test_windows_gets_what_can_be_done_to_it() -> None:
    assert set(faults_of("windows")) == {NONE, "netem-delay", "netem-loss"}
    assert set(disturbances_of("windows")) == {NONE, "busy", "memory", "disk"}
    of_native = {"shared-hog", "timer-storm"}
    beside_native = {"stranger", "deadline", "timers"}
    assert set(faults_of("linux-rt")) == set(FAULTS) - of_native
    assert set(faults_of("linux")) == {NONE, *of_native}
    assert set(disturbances_of("linux")) == {NONE, "busy", "memory", "disk", *beside_native}
    assert set(faults_of("embedded")) == {NONE, "netem-delay"}
    assert set(disturbances_of("embedded")) == set(DISTURBANCES) - beside_native


@pytest.mark.parametrize(("counted_s", "samples"), [(COUNTED_S, 19), (60, 119)])
def test_every_stream_has_the_samples_of_a_pass(counted_s: int, samples: int) -> None:
    pattern = load_pattern(PATTERN_FILE)
    assert samples - 5 <= required_samples(excluded_miss_probability(pattern, counted_s)) <= samples


def test_truths_of_the_table_are_those_of_its_numbers() -> None:
    """The sentences in the table rest on streams of the pattern."""
    streams = {stream["id"]: stream for stream in read_toml(PATTERN_FILE)["stream"]}
    assert (streams[23]["period_us"], streams[23]["budget_us"]) == (10_000, 10_000)
    assert (streams[21]["size_bytes"], streams[21]["budget_us"]) == (640_000, 40_000)
    assert -(-streams[21]["size_bytes"] // 2304) == 278
    fragments = sum(-(-(streams[number]["size_bytes"] + 8) // 1480) for number in (42, 62, 72))
    replayed = fragments * COUNTED_S * 1_000_000 // streams[42]["period_us"]
    assert replayed >= 800
    assert (1 - FAULTS["netem-loss"].ranges["loss_permille"][0] / 1000) ** replayed < 1e-6
    # Of a burst of 13 ms + x, uniform up to 30 ms, stream 23 is held 13 ms or more with x / 10 ms, at most 1.
    shares = [min(1.0, (us - 13_000) / 10_000) for us in range(13_000, 30_001, 10)]
    assert (1 - sum(shares) / len(shares)) ** 8 < 1e-4


def test_counting_begins_once_in_each_replay() -> None:
    acted: list[int] = []
    begins = CountingBegins(lambda: acted.append(1))
    for text in ("measuring 3 clocks", "replaying daq12: warming up"):
        begins(text)
    assert not acted
    for text in ("replaying daq12: 0 of 20 s", "replaying daq12: 10 of 20 s"):
        begins(text)
    assert len(acted) == 1


def test_each_delayed_producer_exceeds_a_budget() -> None:
    pattern = load_pattern(PATTERN_FILE)
    for producers in ((2, 5, 9), (12,), pattern.producers):
        delay_us = held_us(pattern, producers, 3_000)
        for number in producers:
            budgets_us = [s.budget_ns // 1000 for s in pattern.streams if s.producer == number]
            assert delay_us >= min(budgets_us) + 3_000


def test_a_case_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "cases.ndjson"
    first, second = case(Truth.SOUND, "pass"), case(Truth.FAULTY, "fail", number=2)
    append_line(path, first)
    append_line(path, second)
    assert [CaseResult(**json.loads(line)) for line in path.read_text().splitlines()] == [first, second]


# -- what is injected


def test_netem_counts_are_read_and_their_lack_is_an_error() -> None:
    assert queue_counts(TC_ANSWER) == {"packets": 1205, "dropped": 24}
    with pytest.raises(MeasurementError, match="no netem queue"):
        queue_counts(TC_ANSWER.replace("netem", "fq_codel"))


@pytest.fixture(scope="module")
def hog(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the hog."""
    return build_hog(tmp_path_factory.mktemp("hog"))


def run_hog(hog: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run it to its end."""
    argv = [str(hog), *(str(argument) for argument in arguments)]
    return subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)


def test_hog_takes_bursts_of_the_length_that_is_asked_for(hog: Path) -> None:
    done = run_hog(hog, "spin", -1, 0, 1000, 3000, 5000, 20_000, 7, 1)
    ready, result = (json.loads(line) for line in done.stdout.splitlines())
    assert (ready["type"], result["type"], done.returncode) == ("ready", "result", 0)
    assert result["bursts"] >= 2
    assert 1000 * result["bursts"] <= result["busy_us"]
    assert result["longest_us"] * result["bursts"] >= result["busy_us"]
    assert result["longest_us"] <= result["busy_us"]


def test_timers_of_a_hog_end_at_one_instant(hog: Path) -> None:
    done = run_hog(hog, "timers", -1, 0, 500, 500, 5000, 20_000, 7, 1)
    ready, result = (json.loads(line) for line in done.stdout.splitlines())
    assert (ready["type"], result["type"], done.returncode) == ("ready", "result", 0)
    assert result["bursts"] >= 1
    assert result["longest_us"] > 100  # a thousand interrupts; a lone wake-up takes less


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        (-1, 0, 1, 2, 1, 2, 7, 1),
        ("run", -1, 0, 1, 2, 1, 2, 7, 1),
        ("spin", -1, 0, 1, 2, 1, 2, 7),
        ("spin", -1, 101, 1, 2, 1, 2, 7, 1),
        ("spin", 0, 100, 1, 2, 2, 2, 7, 1),
        ("spin", -1, 100, 1, 2, 1, 2, 7, 1),
        ("timers", -1, 0, 2, 1, 1, 2, 7, 1),
        ("spin", -1, 0, 1, 2, 1, 2, "x", 1),
        ("spin", -1, 0, 0, 2, 1, 2, 7, 1),
    ],
)
def test_hog_refuses_what_it_cannot_do(hog: Path, arguments: tuple[object, ...]) -> None:
    done = run_hog(hog, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("hog: ")


def test_hog_that_is_asked_to_end_says_what_it_took(hog: Path) -> None:
    argv = [str(hog), "spin", "-1", "0", "1000", "1000", "10000000", "10000000", "1", "60"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert '"ready"' in process.stdout.readline()
        process.terminate()
        assert json.loads(process.stdout.read())["bursts"] == 0
        assert process.wait(10) == 0


# -- disturbances

CHILD = "print('up', flush=True); input()"


@pytest.fixture
def child(tmp_path: Path) -> Generator[subprocess.Popen[str]]:
    """Start a process that waits, with an emulator's control socket in its arguments."""
    argv = [sys.executable, "-c", CHILD, "-qmp", f"unix:{tmp_path / 'qmp.sock'},server=on,wait=off"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def state_of(process: subprocess.Popen[str]) -> str:
    """Return the kernel's letter for a process: T is stopped."""
    return Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]


def until(is_so: Callable[[], bool], deadline_s: float = 10.0) -> None:
    """Wait for a condition."""
    end_s = time.monotonic() + deadline_s
    while not is_so():
        assert time.monotonic() < end_s
        time.sleep(0.002)


def test_emulator_is_a_child_with_that_socket(tmp_path: Path, child: subprocess.Popen[str]) -> None:
    assert emulator_of(tmp_path / "qmp.sock") == child.pid
    with pytest.raises(CapabilityError, match="no emulator"):
        emulator_of(tmp_path / "other" / "qmp.sock")


def test_stopped_process_always_goes_on(child: subprocess.Popen[str]) -> None:
    stopper = Stopper(child.pid, lambda: (0.001, 0.02))
    stopper.start()
    until(lambda: state_of(child) == "T")
    until(lambda: stopper.facts["stops"] >= 3)
    stopper.end()
    assert state_of(child) != "T"
    assert stopper.facts["longest_us"] >= 20_000
    assert stopper.facts["stopped_us"] >= 3 * 20_000


def test_stopper_ends_with_its_process(child: subprocess.Popen[str]) -> None:
    stopper = Stopper(child.pid, lambda: (0.001, 0.001))
    stopper.start()
    child.kill()
    child.wait()
    until(lambda: not stopper.is_alive())
    stopper.end()


def test_stop_that_would_last_is_broken_off(child: subprocess.Popen[str]) -> None:
    stopper = Stopper(child.pid, lambda: (0.0, 3600.0))
    stopper.start()
    until(lambda: state_of(child) == "T")
    stopper.end()
    assert state_of(child) != "T"


def test_loads_end_by_themselves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    touch_memory(1 << 20, time.monotonic() + 0.1)
    write_disk(8 << 20, time.monotonic() + 0.1, tmp_path)
    assert len(capsys.readouterr().out.splitlines()) >= 2
    assert list(tmp_path.iterdir()) == []
