# SPDX-License-Identifier: Apache-2.0
"""Tiers of the tests: unit, simulated, hardware, influxdb2."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# The same examples in every run, and no judgement by wall-clock time.
settings.register_profile("benchwright", deadline=None, derandomize=True, database=None)
settings.load_profile("benchwright")

TIERS = ("unit", "simulated", "hardware", "influxdb2")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--bench FILE`, which names the bench of the hardware tier."""
    parser.addoption("--bench", metavar="FILE", default=None, help="bench file of the tests marked hardware")


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
