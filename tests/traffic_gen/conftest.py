# SPDX-License-Identifier: Apache-2.0
"""Fixtures: the built programs, and a lab of two namespaces."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.traffic_gen.lab import Lab


def _program(repository: Path, variant: str, name: str = "traffic-gen/bw-traffic") -> Path:
    program = repository / ".build" / variant / name
    if not program.exists():
        pytest.skip(f"{program.relative_to(repository)} is not built: make setup, or make test")
    return program


@pytest.fixture
def lab(repository: Path, tmp_path: Path) -> Iterator[Lab]:
    """Give a lab with the program as it is used."""
    with Lab(_program(repository, "linux"), tmp_path) as made:
        yield made


@pytest.fixture
def checked_lab(repository: Path, tmp_path: Path) -> Iterator[Lab]:
    """Give a lab with the program under sanitizers: a finding changes its exit code."""
    with Lab(_program(repository, "asan"), tmp_path) as made:
        yield made


@pytest.fixture(scope="session")
def bw_traffic(repository: Path) -> Path:
    """Return the program as it is used."""
    return _program(repository, "linux")


@pytest.fixture(scope="session")
def toml_dump(repository: Path) -> Path:
    """Return the program that prints what the C reader of TOML sees."""
    return _program(repository, "linux", "tests/traffic_gen/toml-dump")


@pytest.fixture(scope="session")
def bw_clock(repository: Path) -> Path:
    """Return the program that compares clocks."""
    return _program(repository, "linux", "traffic-gen/bw-clock")


@pytest.fixture(scope="session")
def checked_bw_clock(repository: Path) -> Path:
    """Return it under sanitizers."""
    return _program(repository, "asan", "traffic-gen/bw-clock")


@pytest.fixture(scope="session")
def static_bw_clock(repository: Path) -> Path:
    """Return it as it is put on targets."""
    return _program(repository, "static", "traffic-gen/bw-clock")


@pytest.fixture(scope="session")
def example_clock(repository: Path) -> Path:
    """Return the worked example of a plug-in."""
    return _program(repository, "linux", "traffic-gen/clock/example-clock.so")


@pytest.fixture(scope="session")
def step_at_threads(repository: Path) -> Path:
    """Return the object that steps the clock of the program that it is preloaded into."""
    return _program(repository, "linux", "tests/traffic_gen/step-at-threads.so")


@pytest.fixture(scope="session")
def arm_bw_clock(repository: Path) -> Path:
    """Return bw-clock for 32-bit ARM."""
    return _program(repository, "armhf", "traffic-gen/bw-clock")


@pytest.fixture(scope="session")
def bw_edge(repository: Path) -> Path:
    """Return the program of timed edges."""
    return _program(repository, "linux", "traffic-gen/bw-edge")


@pytest.fixture(scope="session")
def checked_bw_edge(repository: Path) -> Path:
    """Return it under sanitizers."""
    return _program(repository, "asan", "traffic-gen/bw-edge")


@pytest.fixture(scope="session")
def edge_pins(repository: Path) -> Path:
    """Return the program that works the edge device's pins."""
    return _program(repository, "linux", "tests/traffic_gen/edge-pins")
