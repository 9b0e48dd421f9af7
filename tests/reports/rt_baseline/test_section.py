# SPDX-License-Identifier: Apache-2.0
"""The section on the real-time baseline: a histogram a case, and what has no figure."""

from __future__ import annotations

from pathlib import Path

from reports.control_loops.load import KnownLoad
from reports.rt_baseline.evidence import FOLDER, IDLE
from reports.rt_baseline.section import gather_baseline
from reports.run.folder import RunFolder
from reports.section import TargetData
from tests.reports.pages import page_with, words_of
from tests.reports.rt_baseline.sample import CYCLES, QUIET, TARGET, late, write_case
from tests.reports.rt_baseline.test_noise import write_noises
from tests.reports.rt_baseline.test_timerlat import made


def test_page_shows_each_cpu_of_each_case(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path / "results", "native", "ci", simulated=True, commit="0" * 40)
    folder = run.evidence_folder(FOLDER, TARGET)
    write_case(folder / IDLE, {0: QUIET, 1: late(3000)})
    write_case(folder / "beside-compile-like", load=KnownLoad("compile-like", TARGET))
    run.update(target={TARGET: {"hostname": TARGET}})
    run.close()
    page = page_with(run.path, "rt-baseline")
    words = words_of(page)
    for said in (
        "cyclictest 2.40, a thread a CPU of priority 95 (SCHED_FIFO), one wake-up every 200.0 µs",
        "which says that it is not PREEMPT_RT",
        "/dev/cpu_dma_latency is set to 0 µs",
        "nothing 0 40 000 15.00 µs 15.00 µs 80.00 µs 120.0 µs 4 120.0 µs 0.46 %",
        "compile-like load 1 40 000",
        "compile-like load: 2 s of CPU time a second",
        "CPU 1: max 3 ms",
    ):
        assert said in words.replace("\u202f", " "), said
    assert page.count("<figure><svg") == 2


def test_a_case_without_a_figure_says_why(tmp_path: Path) -> None:
    folder = tmp_path / "evidence" / FOLDER / TARGET
    write_case(folder / IDLE, overflow=1, cycles=CYCLES + 1)
    write_case(folder / "beside-cpu", load=KnownLoad("cpu", TARGET))
    shown = gather_baseline(TargetData(tmp_path, target=TARGET))
    assert shown
    assert [each.beside for each in shown.cases] == ["cpu load"]
    assert "idle: the histogram overflows" in shown.problems[0]
    assert list(shown.evidence_problems) == list(shown.problems)


def test_nothing_measured_has_no_section(tmp_path: Path) -> None:
    assert gather_baseline(TargetData(tmp_path, target=TARGET)) is None


def test_page_says_how_long_the_emulator_of_a_guest_was_away(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path / "results", "virtual", "ci", simulated=True, commit="0" * 40)
    folder = run.evidence_folder(FOLDER, TARGET)
    emulator = [(0, 54_000_000), (0, 3_000_000)]
    write_case(folder / IDLE, {0: QUIET}, machine="guest", emulator=emulator)
    run.update(target={TARGET: {"hostname": TARGET}})
    run.close()
    words = words_of(page_with(run.path, "rt-baseline")).replace("\u202f", " ")
    assert "Beside nothing the emulator did not run CPU 0, where cyclictest was due, 2 times" in words
    assert "at most for 54.00 ms" in words


def test_page_shows_noise_and_who_made_wakeups_late(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path / "results", "virtual", "ci", simulated=True, commit="0" * 40)
    folder = run.evidence_folder(FOLDER, TARGET)
    write_noises(folder / IDLE / "noise")
    made(folder / IDLE / "timerlat")
    run.update(target={TARGET: {"hostname": TARGET}})
    run.close()
    words = words_of(page_with(run.path, "rt-baseline")).replace("\u202f", " ")
    for said in (
        "what keeps a CPU from reading its clock for 10 µs and more",
        "nothing 0 4 2 35.40 µs 0.00 %",
        "of 2 wake-ups of the kernel's timerlat tracer, one every 1.000 ms, 1 were later than 1 ms",
        "all late ones 0 4.000 ms 320.0 µs 400.0 µs 1.300 ms \N{EN DASH} 1.980 ms \N{EN DASH}",
        "late 0 4.000 ms 320.0 µs 400.0 µs 1.300 ms a busy one 1.980 ms \N{EN DASH}",
    ):
        assert said in words, words[words.index("Hardware noise by") :][:1500]


def test_a_damaged_recording_says_why_there_is_no_noise(tmp_path: Path) -> None:
    folder = tmp_path / "evidence" / FOLDER / TARGET
    write_noises(folder / IDLE / "noise", dropped=1)
    shown = gather_baseline(TargetData(tmp_path, target=TARGET))
    assert shown
    assert shown.problems == ("idle/noise: ring.gz: 1 events of CPU 0 had no room",)
