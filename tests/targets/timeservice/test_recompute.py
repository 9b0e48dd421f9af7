# SPDX-License-Identifier: Apache-2.0
"""bw-timed --log-exchanges, and its batches computed again by bw-timectl recompute."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from hw.errors import BenchError
from hw.tools import local_tool
from reports.clock_sync.log_formats import LOG_READERS
from resources.clock_sync.refused_answers import rejected_answers
from tests.patience import HANG_S, wait_until
from tests.targets.timeservice.lab import QUICK, Json, TimedProcess, ToldServer, recompute, write_lines

pytestmark = [pytest.mark.simulated, pytest.mark.slow]
MS_NS = 10**6


def lines_of(log: Path) -> list[Json]:
    """Return the log's lines."""
    return [json.loads(line) for line in log.read_text().splitlines()]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the log of three servers, over a second start of the service.

    One jumps; the root distance of another rises.
    """
    folder = tmp_path_factory.mktemp("recompute")
    log = folder / "log"
    with ToldServer() as first, ToldServer() as second, ToldServer() as third:
        for batches in (12, 4):
            servers = [word for server in (first, second, third) for word in ("--server", server.text)]
            arguments = (*servers, *QUICK, "--log", str(log), "--log-exchanges", "--batches", str(batches))
            with TimedProcess(folder / "page", *arguments) as timed:
                wait_until(lambda: log.exists() and log.read_text().count('"sync"') >= 5, "batches")
                third.ahead_s = 3600.0
                second.root_dispersion_s = 0.004
                assert timed.process.wait(HANG_S) == 0
    return log


def test_each_batch_is_computed_again_bit_for_bit(log: Path) -> None:
    code, said, error = recompute(log, "--json")
    assert (code, error) == (0, "")
    lines = lines_of(log)
    assert sum(line["type"] == "ready" for line in lines) == 2
    assert any(line["type"] == "contradiction" for line in lines)
    assert any(line["type"] == "exchange" and "batch" not in line for line in lines), "checks are there"
    logged = {number: line for number, line in enumerate(lines, 1) if line["type"] == "sync"}
    computed = [json.loads(line) for line in said.splitlines()]
    assert [batch["line"] for batch in computed] == list(logged)
    for batch in computed:
        for key in ("offset_ns", "rate_ppb", "low_ns", "high_ns", "growth_ppb", "u_ns"):
            assert batch[key] == logged[batch["line"]][f"line_{key}"]
    code, said, error = recompute(log)
    assert (code, len(said.splitlines()), error) == (0, 1 + len(computed), "")


def test_another_kind_of_processor_computes_the_same_bits(log: Path) -> None:
    """The program for 32-bit ARM, with the mathematical library that it is linked with."""
    emulator = shutil.which("qemu-arm")
    if emulator is None:
        pytest.skip("qemu-arm is not installed")
    try:
        program = local_tool("bw-timectl", "armv7l")
    except BenchError as error:
        pytest.skip(str(error))
    argv = [emulator, str(program), "recompute", str(log), "--json"]
    done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=HANG_S)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == recompute(log, "--json")[1]


def change_at(lines: list[Json], picked: Callable[[Json], bool], key: str, by: float) -> int:
    """Change a figure of the last line that is picked; return its index."""
    index = max(number for number, line in enumerate(lines) if picked(line))
    lines[index][key] += by
    return index


def is_sample(line: Json) -> bool:
    """Is it an exchange of a batch?"""
    return line["type"] == "exchange" and "batch" in line


@pytest.mark.parametrize("by_ns", [1000, MS_NS, -100 * MS_NS])
def test_changed_exchanges_are_named_by_the_first_batch_that_differs(
    log: Path, tmp_path: Path, by_ns: int
) -> None:
    lines = lines_of(log)
    first = next(number for number, line in enumerate(lines) if line["type"] == "sync")
    before = [number for number in range(first) if is_sample(lines[number])]
    for number in before:
        lines[number]["t2_utc_ns"] += by_ns
    code, _, error = recompute(write_lines(tmp_path / "log", lines))
    assert code == 4
    assert error.startswith(f"bw-timectl: {tmp_path / 'log'}:{first + 1}: line_offset_ns: ")
    assert " in the log, " in error


def test_one_digit_of_one_exchange_is_found(log: Path, tmp_path: Path) -> None:
    """Of the one that took least in the last batch: what others of a batch say may count for nothing."""
    lines = lines_of(log)
    started = max(number for number, line in enumerate(lines) if line["type"] == "ready")
    samples = [line for line in lines[started:] if is_sample(line)]
    batch = [line for line in samples if line["batch"] == samples[-1]["batch"]]
    shortest = min(batch, key=lambda line: line["away_ns"])
    index = change_at(lines, lambda line: line is shortest, "t2_utc_ns", 10 * MS_NS)
    code, _, error = recompute(write_lines(tmp_path / "log", lines))
    assert code == 4
    named = int(error.removeprefix(f"bw-timectl: {tmp_path / 'log'}:").split(":")[0])
    assert index + 1 < named <= index + 8, error


def test_one_figure_that_was_not_published_is_found(log: Path, tmp_path: Path) -> None:
    for key, by in (("line_low_ns", 1), ("line_u_ns", 2.0**-20), ("servers", 1), ("line_rate_ppb", 1e-6)):
        lines = lines_of(log)
        index = change_at(lines, lambda line: line["type"] == "sync", key, by)
        code, _, error = recompute(write_lines(tmp_path / "log", lines))
        assert code == 4
        assert f":{index + 1}: {key}: " in error


def test_root_distance_is_logged_where_it_changes(log: Path, tmp_path: Path) -> None:
    lines = lines_of(log)
    told = [number for number, line in enumerate(lines) if "root_distance_ns" in line]
    started = max(number for number, line in enumerate(lines) if line["type"] == "ready")
    assert [number > started for number in told] == [False, True]
    for number in told:
        assert lines[number]["index"] == 1
        assert lines[number]["root_distance_ns"] == pytest.approx(
            4 * MS_NS, abs=16000
        )  # as NTP has it: 1 / 65536 s
    del lines[told[1]]["root_distance_ns"]
    code, _, error = recompute(write_lines(tmp_path / "log", lines))
    assert code == 4
    assert " in the log, " in error


def test_contradiction_that_is_not_told_is_found(log: Path, tmp_path: Path) -> None:
    lines = lines_of(log)
    index = next(number for number, line in enumerate(lines) if line["type"] == "contradiction")
    step = lines.pop(index)["step_ns"]
    code, _, error = recompute(write_lines(tmp_path / "log", lines))
    assert code == 4
    assert f"by {step} ns" in error
    lines = lines_of(log)
    lines.insert(index, lines[index] | {"server": lines[0]["servers"][0]})
    code, _, error = recompute(write_lines(tmp_path / "log", lines))
    assert code == 4
    assert "contradict nothing" in error


def test_counter_that_jumped_makes_all_begin_anew(log: Path, tmp_path: Path) -> None:
    """A line that says so changes what is computed: here it is one too many."""
    lines = lines_of(log)
    second = [number for number, line in enumerate(lines) if line["type"] == "sync"][1]
    lines.insert(second, {"type": "counter", "reason": "jumped", "state": "init"})
    code, _, error = recompute(write_lines(tmp_path / "log", lines))
    assert code == 4
    assert "has said nothing" in error


def test_batch_in_which_the_counter_jumped_never_ends(log: Path, tmp_path: Path) -> None:
    """What it would contradict is not told: the service has forgotten it by then."""
    lines = lines_of(log)
    contradiction = next(number for number, line in enumerate(lines) if line["type"] == "contradiction")
    counter = {"type": "counter", "reason": "jumped", "state": "locked"}
    code, _, error = recompute(write_lines(tmp_path / "log", [*lines[:contradiction], counter]))
    assert code == 0, error


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"log_exchanges":true', '"log_exchanges":false', "--log-exchanges"),
        ('"t2_utc_ns":', '"t2_utc_ns":"', "no line of bw-timed's log"),
        ('"held_ns":', '"hold_ns":', "held_ns: missing"),
        ('"t1_', '"t0_', "t1_ticks: missing"),
        ('"index":0', '"index":3', "index: missing, or no such value"),
        ('"counter_hz":', '"counter_hz":-', "counter_hz"),
        ('"at_ticks":', '"at_ticks":-', "at_ticks"),
        ('"sync"', '"state"', "no batch"),
        ("{", "x" * 20000, "longer than"),
        ("{", "time of day {", "no line of bw-timed's log"),
    ],
)
def test_damaged_log_is_refused(log: Path, tmp_path: Path, old: str, new: str, said: str) -> None:
    other = tmp_path / "log"
    whole = log.read_text()
    assert old in whole
    other.write_text(whole.replace(old, new) if new == '"state"' else whole.replace(old, new, 1))
    code, _, error = recompute(other)
    assert (code, said in error) == (2, True), error


def test_empty_log_is_refused(tmp_path: Path) -> None:
    code, _, error = recompute(write_lines(tmp_path / "log", []))
    assert (code, "no batch" in error) == (2, True)


def test_log_of_a_service_that_was_killed_ends_anywhere(log: Path, tmp_path: Path) -> None:
    other = tmp_path / "log"
    other.write_text(log.read_text()[:-30])
    assert recompute(other)[0] == 0
    assert recompute(tmp_path / "nowhere")[0] == 2


def test_command_line_is_checked(tmp_path: Path) -> None:
    for words in (["recompute"], ["tracking", str(tmp_path)]):
        argv = [str(local_tool("bw-timectl")), *words]
        assert subprocess.run(argv, check=False, capture_output=True).returncode == 2


def test_readers_of_the_log_see_the_same_with_exchanges_and_without(log: Path) -> None:
    text = log.read_text()
    without = "".join(line for line in text.splitlines(keepends=True) if '"exchange"' not in line)
    read = LOG_READERS["bw-timed"]
    for with_exchanges, alone in zip(read(text, 37).series, read(without, 37).series, strict=True):
        assert len(alone.time_ns) > 5
        assert with_exchanges.time_ns.tolist() == alone.time_ns.tolist()
        assert with_exchanges.offset_ns.tolist() == alone.offset_ns.tolist()
    assert read(text, 37).damaged == 0
    assert rejected_answers(text) == rejected_answers(without)


def test_exchanges_take_some_200_bytes_a_second(log: Path) -> None:
    """At the pace of a facility: a check a second, and batches of 16 every 30 s."""
    sizes: dict[bool, list[int]] = {True: [], False: []}
    for line in log.read_text().splitlines(keepends=True):
        if '"exchange"' in line:
            sizes['"batch"' in line].append(len(line))
    of_batch, of_check = (sum(found) / len(found) for found in (sizes[True], sizes[False]))
    assert of_check + of_batch * 16 / 30 <= 240


def test_without_the_option_nothing_is_logged(tmp_path: Path) -> None:
    with (
        ToldServer() as server,
        TimedProcess(tmp_path / "page", "--server", server.text, *QUICK, "--batches", "4") as timed,
    ):
        timed.syncs(1)
        assert timed.process.wait(HANG_S) == 0
    assert not [line for line in timed.seen if line["type"] == "exchange" or "line_u_ns" in line]
