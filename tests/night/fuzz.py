# SPDX-License-Identifier: Apache-2.0
"""The part `fuzz` of the night: every fuzz target and every campaign of made-up inputs, for long.

    python -m tests.night.fuzz SECONDS [--to results/fuzz]

Targets of libFuzzer are the tests of the suite `fuzz` in the native build; campaigns the tests with the
fixture `campaign` (tests/campaign.py). As many as there are CPUs run at a time, at low priority. What was
found stays in FOLDER/NAME/found/, the grown corpus of libFuzzer in FOLDER/NAME/corpus/.

Exit codes: 0 nothing was found; 1 a fault was, or a test failed; 2 bad input.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hw.errors import ConfigError
from tests.campaign import FOUND, SUMMARY

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / ".build" / "linux"
CAMPAIGNS = (
    "tests/reports/test_hostile_evidence.py",
    "tests/test_hostile_files.py",
    "tests/hw/virtual_oscilloscope/test_hostile_messages.py",
)
ONCE = (
    "tests/scope/test_hostile_peers.py",
    "tests/traffic_gen/test_hostile.py",
    "tests/targets/timeservice/test_chronyd.py::test_forged_malformed_and_replayed_packets_change_nothing",
)
"""Hostile peers of a fixed number: once a night."""
FORGED_PACKETS = 1_000_000
SECONDS_MAX = 7 * 86_400
SKIPPED = 77
_LOOK_S = 2.0
_COVERAGE = re.compile(r"cov: (\d+)")
_EDGES = re.compile(r"INFO: Loaded 1 modules +\((\d+) ")
_EXECUTIONS = re.compile(r"stat::number_of_executed_units: (\d+)")
_ROUNDS = re.compile(r"^#(\d+)\s", re.MULTILINE)


@dataclass(frozen=True)
class Result:
    """What came of one target."""

    name: str
    executions: int
    coverage: str
    findings: tuple[str, ...]
    failed: bool = False

    def line(self) -> str:
        """Return it in a line."""
        said = (
            f"{len(self.findings)} found" if self.findings else "FAILED" if self.failed else "nothing found"
        )
        return f"{self.name:56} {self.executions:>12} executions  {self.coverage:28} {said}"


def fuzz_commands() -> dict[str, list[str]]:
    """Return the fuzz targets of the native build and how each is run."""
    told = subprocess.run(
        ["meson", "introspect", "--tests", str(BUILD)], check=True, capture_output=True, text=True
    )
    tests: list[dict[str, Any]] = json.loads(told.stdout)
    return {test["name"]: test["cmd"] for test in tests if any("fuzz" in suite for suite in test["suite"])}


def run_target(name: str, command: list[str], seconds: int, folder: Path) -> Result:
    """Run one target of libFuzzer for so long."""
    (folder / FOUND).mkdir(parents=True, exist_ok=True)
    before = set((folder / FOUND).iterdir())
    script, _, *rest = command
    done = subprocess.run(
        ["nice", "-n", "19", script, str(seconds), *rest],
        env={**os.environ, "FUZZ_KEEP": str(folder)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode == SKIPPED:
        return Result(name, 0, done.stdout.strip()[:60], ())
    (folder / "output").write_text(done.stdout + done.stderr, encoding="utf-8")
    log = (folder / "log").read_text(encoding="utf-8", errors="replace") if (folder / "log").exists() else ""
    findings = tuple(str(file) for file in sorted(set((folder / FOUND).iterdir()) - before))
    return Result(name, *_figures(log), findings, done.returncode != 0)


def _figures(log: str) -> tuple[int, str]:
    """Return executions and coverage of a log of libFuzzer."""
    ended = _EXECUTIONS.findall(log) or _ROUNDS.findall(log) or ["0"]
    covered, edges = _COVERAGE.findall(log), _EDGES.search(log)
    return int(ended[-1]), f"{covered[-1]} of {edges[1]} edges" if covered and edges else "unknown"


def run_campaigns(seconds: int, folder: Path, first: int) -> Iterator[Result]:
    """Run all campaigns for so long each, then the hostile peers."""
    workers = str(os.cpu_count() or 1)
    common = ["nice", "-n", "19", sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    began = time.time()
    told: set[Path] = set()
    with (folder / "campaigns.log").open("wb") as log:
        long = subprocess.Popen(
            [*common, "-n", workers, "-k", "hostile or damaged", f"--timeout={2 * seconds + 600}",
             f"--fuzz-s={seconds}", f"--fuzz-first={first}", f"--fuzz-to={folder}", *CAMPAIGNS],
            cwd=ROOT, stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip
    ended = False
    while not ended:
        ended = _has_ended(long)
        for file in sorted(set(folder.glob(f"*/{SUMMARY}")) - told):
            if file.stat().st_mtime >= began:
                told.add(file)
                yield _of_campaign(file)
    yield Result("campaigns", 0, f"{folder.name}/campaigns.log", (), long.returncode != 0)
    with (folder / "hostile-peers.log").open("wb") as log:
        once = subprocess.run(
            [*common, *ONCE],
            env={**os.environ, "BW_FORGED_PACKETS": str(FORGED_PACKETS)},
            cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
    yield Result("hostile-peers", 0, f"{folder.name}/hostile-peers.log", (), once.returncode != 0)


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(_LOOK_S)
    except subprocess.TimeoutExpired:
        return False
    return True


def _of_campaign(file: Path) -> Result:
    said: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    coverage = f"{len(said['reached'])} outcomes and commands"
    return Result(file.parent.name, said["executions"], coverage, tuple(said["findings"]))


def seconds_of(text: str) -> int:
    """Return how long each target is run, in s.

    Raises:
        ConfigError: It is no number of seconds, or too large a one.
    """
    if not re.fullmatch(r"[0-9]{1,6}", text) or not 1 <= int(text) <= SECONDS_MAX:
        raise ConfigError(f"fuzz: FUZZ_S: {text!r}; allowed: seconds, 1 to {SECONDS_MAX}")
    return int(text)


def main(arguments: list[str] | None = None) -> int:
    """Run everything and say what came of it."""
    parser = argparse.ArgumentParser(prog="python -m tests.night.fuzz", description="Fuzz for long.")
    parser.add_argument("seconds", help=f"of each target, 1 to {SECONDS_MAX}")
    parser.add_argument("--to", type=Path, default=ROOT / "results" / "fuzz", help="what is kept")
    options = parser.parse_args(arguments)
    try:
        seconds = seconds_of(options.seconds)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    folder: Path = options.to.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    first = int(time.time()) // 86_400 * 10_000_000  # other inputs every night
    commands = fuzz_commands()
    print(
        f"fuzz      {len(commands)} fuzz targets, {seconds} s each; then campaigns; kept in {folder}",
        flush=True,
    )
    results: list[Result] = []
    waiting = iter(commands.items())
    at_once = os.cpu_count() or 1
    with ThreadPoolExecutor(at_once) as pool:

        def begin(count: int) -> set[Future[Result]]:
            # None waits in the pool: its threads would begin it before this one hears of an interrupt.
            return {
                pool.submit(run_target, name, command, seconds, folder / name)
                for name, command in itertools.islice(waiting, count)
            }

        running = begin(at_once)
        while running:
            ended, running = wait(running, return_when=FIRST_COMPLETED)
            running |= begin(len(ended))
            for future in ended:
                results.append(future.result())
                print(f"fuzz      {results[-1].line()}", flush=True)
    for result in run_campaigns(seconds, folder, first):
        results.append(result)
        print(f"fuzz      {result.line()}", flush=True)
    findings = [file for result in results for file in result.findings]
    failed = [result.name for result in results if result.failed]
    for file in findings:
        print(f"fuzz      found: {file}", file=sys.stderr)
    if failed:
        print(f"fuzz      failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if findings or failed else 0


if __name__ == "__main__":
    sys.exit(main())
