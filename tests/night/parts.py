# SPDX-License-Identifier: Apache-2.0
"""The parts of the night: the one table of them, and which are asked for.

A benchmark is a part by being there, `bench/FOLDER/bench_NAME.py`; so is each folder of suites, by the
profile `nightly`: all of them together take longer than most nights.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from bench.lab.catalogue import benchmark_files
from hw.errors import ConfigError
from tests.night import names

ROOT = Path(__file__).resolve().parents[2]
OWN = "{own}"
"""Stands in a command for the path of the part's own files, without an ending."""
BENCHMARKS = "bench-"
_PYTHON = sys.executable
_HOUR_S = 3600
_TARGETS_AND_CAMPAIGNS = 100
"""More of both than there are, for the time limit of `fuzz` on one CPU."""


@dataclass(frozen=True)
class Step:
    """One command of a part.

    Attributes:
        argv: The command; `{own}` in it is the path of the part's own files.
        is_pytest: Its exit codes are pytest's: all but 0 is a failure. Else docs/exit-codes.md holds.
    """

    argv: tuple[str, ...]
    is_pytest: bool = False


@dataclass(frozen=True)
class Part:
    """A part of the night: its steps run one after the other, until one does not end with 0.

    Attributes:
        name: As PARTS has it.
        about: What it does.
        steps: Its commands.
        limit_s: For all of them together; beyond it they are ended, and the part has failed.
        names: Says what has failed, by name.
    """

    name: str
    about: str
    steps: tuple[Step, ...]
    limit_s: float
    names: names.Names = names.none

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands as text: a result is of the commands that gave it."""
        return tuple(" ".join(step.argv).replace(_PYTHON, "python") for step in self.steps)


def parts(fuzz_s: int, bench: str, root: Path = ROOT) -> tuple[Part, ...]:
    """Return the table, in the order in which parts run: what takes longest comes last.

    Args:
        fuzz_s: For each fuzz target and each campaign.
        bench: The bench file of qualifications.
        root: The source tree.
    """
    lint = Part(
        "lint", "all static checks, clang-tidy among them", (Step(("tests/lint/run.sh",)),), 3 * _HOUR_S,
        names.from_log(r"^lint: failed: (.+)$", " "),
    )  # fmt: skip
    test_all = Part(
        "test-all", "all tests: also for ARM and under Wine, slow and timed ones",
        (Step(("tests/run.sh", "all")),), 4 * _HOUR_S,
        names.from_file(root / ".build" / "log" / "test-failed.txt"),
    )  # fmt: skip
    pdfa = Part(
        "pdfa", "the dossier's PDF by veraPDF",
        (
            Step(("tests/reports/dossier/verapdf/fetch.sh",)),
            _pytest("tests/reports/dossier/test_pdf_archive.py"),
        ),
        _HOUR_S, names.from_list,
    )  # fmt: skip
    influxdb2 = Part(
        "influxdb2", "delivery and dashboards against a real InfluxDB 2.7",
        (Step(("tests/influxdb2/build/build.sh",)), _pytest("-m", "influxdb2", "tests/influxdb2")),
        3 * _HOUR_S, names.from_list,
    )  # fmt: skip
    fuzz = Part(
        "fuzz", "fuzz targets and campaigns of made-up inputs, FUZZ_S each; findings: results/fuzz/",
        (Step((_PYTHON, "-m", "tests.night.fuzz", str(fuzz_s))),),
        _TARGETS_AND_CAMPAIGNS * fuzz_s + 2 * _HOUR_S,
        names.from_log(r"^fuzz      (?:found: |failed: )(.+)$", ", "),
    )  # fmt: skip
    mutants = Part(
        "mutants", "each fault of tests/mutants/mutants.toml put into the code: a test has to find it",
        (Step((_PYTHON, "-m", "tests.mutants", "--no-qualification")),), 6 * _HOUR_S,
        names.from_log(r"^[A-Za-z ]+ (\S+) +NOT FOUND", " "),
    )  # fmt: skip
    clean_root = Part(
        "clean-root", "the first commands in new roots of Debian 12 and 13, and with packages taken out",
        (
            Step((_PYTHON, "-m", "tests.clean_root", "--anew")),
            Step((_PYTHON, "-m", "tests.clean_root", "--take-out")),
        ),
        3 * _HOUR_S, names.from_log(r"^clean root: failed: (.+)$", "\n"),
    )  # fmt: skip
    honest = Part(
        "honest-runs", "ten thousand random runs that the second judge must not refuse",
        (_pytest("--synthetic-runs=10000", "tests/reports/rejudge/test_synthetic_runs.py"),),
        3 * _HOUR_S, names.from_list,
    )  # fmt: skip
    return (
        lint,
        clean_root,
        pdfa,
        influxdb2,
        test_all,
        honest,
        mutants,
        _qualification("ci", bench, 3 * _HOUR_S),
        *benchmarks(root),
        fuzz,
        *(_qualification("nightly", bench, 6 * _HOUR_S, suite) for suite in suites(root)),
    )


def suites(root: Path) -> tuple[str, ...]:
    """Return the folders of suites, by name."""
    return tuple(sorted(each.name for each in (root / "robot").glob("*/") if any(each.rglob("*.robot"))))


def benchmarks(root: Path) -> tuple[Part, ...]:
    """Return a part for each benchmark of a source tree."""
    return tuple(
        Part(
            BENCHMARKS + name,
            _first_line(file),
            (Step((_PYTHON, "-m", "bench", name)),),
            4 * _HOUR_S,
        )
        for name, file in benchmark_files(root).items()
    )


def selected(table: Sequence[Part], words: Sequence[str]) -> tuple[Part, ...]:
    """Return the parts that are asked for, in the table's order; all where no word is given.

    Args:
        table: All parts.
        words: Names, and patterns as the shell has them.

    Raises:
        ConfigError: A word is the name of no part, and a pattern of none.
    """
    for word in words:
        if not any(fnmatchcase(part.name, word) for part in table):
            there = " ".join(part.name for part in table)
            raise ConfigError(f"night: PARTS: no part {word!r}; allowed: names and patterns of {there}")
    return tuple(part for part in table if not words or any(fnmatchcase(part.name, word) for word in words))


def _pytest(*arguments: str) -> Step:
    return Step((_PYTHON, "-m", "pytest", f"--failed-to={OWN}{names.FAILED}", *arguments), is_pytest=True)


def _qualification(profile: str, bench: str, limit_s: float, suite: str = "") -> Part:
    """Return a part that qualifies all targets by a folder of suites, by all where none is named."""
    command = (
        _PYTHON, "-m", "tests.night.qualify", f"{OWN}{names.RUN}", "--profile", profile, "--bench", bench,
        "--suite", f"robot/{suite}",
    )  # fmt: skip
    about = f"{suite or 'all suites'} with all targets of {bench}, profile {profile}"
    name = "-".join(filter(None, ("qualify", profile, suite))).replace("_", "-")
    return Part(name, about, (Step(command),), limit_s, names.from_run)


def _first_line(file: Path) -> str:
    return (ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "").partition("\n")[0]
