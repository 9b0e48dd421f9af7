# SPDX-License-Identifier: Apache-2.0
"""Benchmarks are found by their names, get their options, and end with the exit code of their error."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.lab.catalogue import benchmark_files

ROOT = Path(__file__).resolve().parents[2]


def bench(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "bench", *words], cwd=ROOT, capture_output=True, text=True)


def test_without_a_name_all_are_named() -> None:
    names = bench().stdout.split()
    assert names == sorted(names)
    assert {"schedule", "time-truth", "delivery-influxdb2"} <= set(names)
    assert len(names) == len(list((ROOT / "bench").rglob("bench_*.py")))


@pytest.mark.parametrize(("name", "file"), benchmark_files(ROOT).items())
def test_what_is_called_is_there(name: str, file: Path) -> None:
    functions = [item.name for item in ast.parse(file.read_text()).body if isinstance(item, ast.FunctionDef)]
    assert "main" in functions, name


def test_options_are_the_benchmarks() -> None:
    done = bench("time-truth", "--help")
    assert (done.returncode, "--windows" in done.stdout) == (0, True), done.stderr


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_says_how_and_names_all(option: str) -> None:
    done = bench(option)
    assert (done.returncode, done.stderr, "python -m bench NAME --help" in done.stdout) == (0, "", True)
    assert done.stdout.endswith(bench().stdout)


def test_an_unknown_name_is_bad_input() -> None:
    done = bench("time-turth")
    assert (done.returncode, "no benchmark 'time-turth'; allowed: camera causes " in done.stderr) == (2, True)


@pytest.mark.parametrize(
    "command",
    [
        ("-m", "bench.clocks.bench_time_truth"),
        ("-mbench.clocks.bench_time_truth", "--windows", "1"),
        ("bench/clocks/bench_time_truth.py",),
    ],
)
def test_a_file_that_is_started_itself_says_how(command: tuple[str, ...]) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "bench: a benchmark is run by its name: python -m bench time-truth\n"


def test_programs_beside_the_benchmarks_run_as_modules() -> None:
    command = [sys.executable, "-m", "bench.verdicts.verdict_disturbances", "nothing", "1", "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.stderr == "nothing: must be one of memory, disk\n"


def test_a_name_is_there_once(tmp_path: Path) -> None:
    for folder in ("one", "other"):
        (tmp_path / "bench" / folder).mkdir(parents=True)
        (tmp_path / "bench" / folder / "bench_a_b.py").write_text("")
    with pytest.raises(ValueError, match="a-b: two benchmarks"):
        benchmark_files(tmp_path)


ENDED_FROM_OUTSIDE = """import os, signal, sys
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        signal.pause()
    except KeyboardInterrupt:
        print("closed", file=sys.stderr)
        return 9
"""


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("raise CapabilityError('no image')", 3, "CapabilityError: no image"),
        ("raise BenchError('held')", 5, "BenchError: held"),
        ("return 3", 3, ""),
        (ENDED_FROM_OUTSIDE, 9, "closed"),
        ("raise RuntimeError('ours')", 1, "RuntimeError: ours"),
        ("import sys\n    assert sys.argv == ['made_up', '--x']\n    return 0", 0, ""),
    ],
)  # fmt: skip
def test_a_benchmark_ends_with_the_code_of_its_error(tmp_path: Path, text: str, code: int, said: str) -> None:
    (tmp_path / "made_up.py").write_text(f"from hw.errors import *\ndef main():\n    {text}\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    program = "import sys; from bench.__main__ import run; sys.exit(run('made_up', ['--x']))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == code, done.stderr
    assert said in done.stderr
