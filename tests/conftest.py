# SPDX-License-Identifier: Apache-2.0
"""Tiers of the tests: unit, simulated, hardware, influxdb2."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.campaign import Campaign, folder_name
from tests.pace import Pace, budget_s

# The same examples in every run, and no judgement by wall-clock time.
settings.register_profile("benchwright", deadline=None, derandomize=True, database=None)
settings.load_profile("benchwright")

ROOT = Path(__file__).resolve().parents[1]
TIERS = ("unit", "simulated", "hardware", "influxdb2")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of this project's tests."""
    parser.addoption("--bench", metavar="FILE", default=None, help="bench file of the tests marked hardware")
    parser.addoption("--failed-to", metavar="FILE", default=None, help="write the names of failed tests here")
    parser.addoption("--pace-to", metavar="FILE", default=None, help="write the seconds of each file here")
    parser.addoption(
        "--hostile-files", metavar="N", default="40", help="so often is each file of a run damaged"
    )
    parser.addoption(
        "--fuzz-s", metavar="S", default=None, help="so long each campaign of made-up inputs takes"
    )
    parser.addoption("--fuzz-first", metavar="N", default="0", help="number of its first input")
    parser.addoption(
        "--fuzz-to", metavar="DIR", default=str(ROOT / ".build" / "fuzz"), help="what campaigns keep"
    )
    parser.addoption(
        "--oracle-replays", metavar="N", default="20000", help="random replays against the oracle"
    )
    parser.addoption(
        "--synthetic-runs",
        metavar="N",
        default="300",
        help="random runs that both judges have to judge alike",
    )
    parser.addoption("--whole-runs", metavar="N", default="2", help="of these, with pages, seal and sums")


def pytest_configure(config: pytest.Config) -> None:
    """Watch the pace of each file, where all workers' reports come together; runs get a key of the tests.

    Hundreds of programs are started that are written in Python. Where none may keep what it has compiled, as
    images of containers have it, each compiles numpy and matplotlib anew: half of the time of many tests.

    A program that a shell started in the background ignores SIGINT, and so would all that tests start.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ.setdefault("BENCHWRIGHT_SEAL_KEY", str(ROOT / ".build" / "tests" / "seal.key"))
    if not hasattr(config, "workerinput"):
        kept: str | None = config.getoption("--pace-to")
        config.pluginmanager.register(Pace(Path(kept) if kept else None), "benchwright-pace")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Write the names of tests that failed, or whose set-up did, one a line."""
    name: str | None = config.getoption("--failed-to")
    if name is not None:
        reports = [*terminalreporter.stats.get("failed", []), *terminalreporter.stats.get("error", [])]
        Path(name).write_text("".join(f"{report.nodeid}\n" for report in reports), encoding="utf-8")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put each test into one tier and skip, with a reason, what this run cannot do."""
    bench: str | None = config.getoption("--bench")
    for item in items:
        tiers = [tier for tier in TIERS if item.get_closest_marker(tier)]
        if not tiers:
            item.add_marker(pytest.mark.unit)
        elif len(tiers) > 1:
            raise pytest.UsageError(f"{item.nodeid}: one tier a test, found {', '.join(tiers)}")
        if "hardware" in tiers and bench is None:
            item.add_marker(pytest.mark.skip(reason="needs a bench of real devices: --bench FILE"))
        if "simulated" in tiers and os.geteuid() != 0:
            item.add_marker(pytest.mark.skip(reason="needs root: namespaces and guests"))
    if hasattr(config, "workerinput"):  # the longest files first, or one of them ends alone
        items.sort(key=lambda item: -budget_s(item.nodeid))


@pytest.fixture
def campaign(request: pytest.FixtureRequest, pytestconfig: pytest.Config) -> Generator[Campaign]:
    """Give the campaign of one test."""
    name = folder_name(str(request.node.name))
    seconds: str | None = pytestconfig.getoption("--fuzz-s")
    campaign = Campaign(
        name,
        Path(str(pytestconfig.getoption("--fuzz-to"))) / name,
        None if seconds is None else float(seconds),
        int(str(pytestconfig.getoption("--fuzz-first"))),
    )
    yield campaign
    campaign.close()


@pytest.fixture
def open_folder() -> Generator[Path]:
    """Give a folder that users without rights reach; pytest closes those above its own as any run begins."""
    with tempfile.TemporaryDirectory(prefix="bw-open-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@pytest.fixture(scope="session")
def bench_file(pytestconfig: pytest.Config) -> Path:
    """Return the bench file named with `--bench`."""
    name: str | None = pytestconfig.getoption("--bench")
    if name is None:
        pytest.skip("needs a bench of real devices: --bench FILE")
    return Path(name)


@pytest.fixture(scope="session")
def repository() -> Path:
    """Return the root of the source tree."""
    return Path(__file__).resolve().parent.parent
